"""The README's own promises; `tests/documentation` runs its blocks, as it runs those of all pages."""

import re

import conbandit_torch
from tests.conftest import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_it_is_short():
    assert len(README.splitlines()) <= 150


def test_the_experiment_in_python_is_the_quickstart():
    (code,) = [text.partition("results = ")[0] for text in SNIPPETS if "experiment = Experiment(" in text]
    names = {}
    exec(code, names)
    assert names["experiment"] == conbandit_torch.Experiment.from_yaml("quickstart")


def test_files_that_the_readme_names_exist():
    for name in re.findall(r"`((?:configs|conbandit_torch|tests|docs)/[\w./-]+)`", README):
        assert (REPOSITORY / name).exists(), name


def test_classes_that_the_readme_names_are_public():
    for name in re.findall(r"`([A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*)`", README):
        assert hasattr(conbandit_torch, name), name
