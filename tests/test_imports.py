"""Who imports whom: rooms are stacked, and no arrow goes up; late imports and TYPE_CHECKING count too."""

import graphlib

import pytest

from experiments.import_graph import NEVER, imported, read_package, storey
from tests.conftest import REPOSITORY

PACKAGE = "conbandit_torch"


def graph():
    return read_package(REPOSITORY / PACKAGE).imports


def upward(arrows):
    return [
        f"{one} -> {other}"
        for one, others in arrows.items()
        for other in others
        if storey(other) > storey(one)
    ]


def cycle(arrows):
    try:
        graphlib.TopologicalSorter(arrows).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return None


def test_no_room_imports_one_above_it():
    assert upward(graph()) == []


def test_environments_and_policies_do_not_know_each_other():
    room = lambda name: name.partition(".")[0]  # noqa: E731
    met = [
        f"{one} -> {other}"
        for one, others in graph().items()
        for other in others
        for those, strangers in NEVER
        if room(one) in those and room(other) in strangers
    ]
    assert met == []


def test_no_modules_import_each_other_in_a_circle():
    assert cycle(graph()) is None


@pytest.mark.parametrize(
    "source",
    [
        "from conbandit_torch.running.runner import run",
        "import conbandit_torch.running.runner",
        "def late():\n    from conbandit_torch.running import runner",
        "if TYPE_CHECKING:\n    from conbandit_torch.running.runner import run",
    ],
)
def test_an_arrow_is_seen_wherever_it_stands(source):
    assert imported(source, PACKAGE, "core.files", graph()) == {"running.runner"}
    assert upward({"core.files": {"running.runner"}}) == ["core.files -> running.runner"]
    assert cycle({"a": {"b"}, "b": {"a"}}) is not None
