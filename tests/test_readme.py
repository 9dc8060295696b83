"""What the README shows works as printed."""

import os
import re
import subprocess
import sys

import pytest

import conbandit_torch
from tests.conftest import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(REPOSITORY), "PYTHONIOENCODING": "utf-8"}
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_python_snippets_run(number, tmp_path):
    path = tmp_path / "snippet.py"
    path.write_text(SNIPPETS[number], encoding="utf-8")
    (tmp_path / "tests").symlink_to(REPOSITORY / "tests")  # what it writes goes elsewhere
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        cwd=tmp_path,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stderr
    promised = re.findall(r"^print\(.*\)  # (.+)$", SNIPPETS[number], re.MULTILINE)
    if promised:
        assert done.stdout.splitlines() == promised
    else:
        assert float(done.stdout) > 0


def test_the_experiment_in_python_is_the_quickstart():
    (code,) = [text.partition("results = ")[0] for text in SNIPPETS if "experiment = Experiment(" in text]
    names = {}
    exec(code, names)
    assert names["experiment"] == conbandit_torch.Experiment.from_yaml("quickstart")


def test_some_snippet_says_what_it_prints():
    assert "  # 1.0\n" in "".join(SNIPPETS)


def test_files_that_the_readme_names_exist():
    for name in re.findall(r"`((?:configs|conbandit_torch|tests|docs)/[\w./-]+)`", README):
        assert (REPOSITORY / name).exists(), name


def test_classes_that_the_readme_names_are_public():
    for name in re.findall(r"`([A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*)`", README):
        assert hasattr(conbandit_torch, name), name
