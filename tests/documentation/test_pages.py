"""What pages written by hand must not forget."""

import re

import pytest
import yaml

from conbandit_torch.configuration.kinds import classes_of
from conbandit_torch.core.version import VERSION
from tests.conftest import REPOSITORY

DOCS = REPOSITORY / "docs"


@pytest.mark.parametrize("kind", ["policies", "schedules", "rules"])
def test_the_overview_names_every_policy_schedule_and_rule(kind):
    text = (DOCS / "algorithms.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`([A-Za-z0-9]+)", text))
    assert set(classes_of(kind)) - {"LinearBandit"} - names == set()


@pytest.mark.parametrize("kind", ["answers", "drifts", "delays"])
def test_the_page_about_people_names_every_way_they_are(kind):
    text = (DOCS / "howto" / "people.md").read_text(encoding="utf-8")
    missing = {name for name in classes_of(kind) if name not in text}
    assert missing <= {"FixedDelay"}


def test_every_place_names_the_same_version():
    assert yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())["version"] == VERSION
    assert f"version = {{{VERSION}}}" in (DOCS / "cite.md").read_text()
    assert f"## {VERSION}" in (REPOSITORY / "CHANGELOG.md").read_text()


def test_templates_and_hooks_are_readable():
    for path in [*(REPOSITORY / ".github").rglob("*.y*ml"), REPOSITORY / ".pre-commit-config.yaml"]:
        assert yaml.safe_load(path.read_text(encoding="utf-8")), path
    for hook in yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text())["repos"]:
        assert hook["repo"] == "local"  # nothing is downloaded
