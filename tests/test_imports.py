"""Who imports whom: rooms are stacked, and no arrow goes up; late imports and TYPE_CHECKING count too."""

import ast
import graphlib

import pytest

from tests.conftest import REPOSITORY

PACKAGE = "conbandit_torch"

# From the ground up. A room may import those below it, and itself. The room `running` has two storeys: what a
# run is made of, and, above the loop and the configs, what runs the jobs.
STOREYS = [
    ["core"],
    ["kernels"],
    ["models"],
    ["datasets"],
    ["environments"],
    ["bandits"],
    ["conversation"],
    [
        f"running.{name}"
        for name in [
            "metrics",
            "folder",
            "origin",
            "processes",
            "plan",
            "checkpoint",
            "result",
            "signals",
            "workers",
            "objective",
            "record",
            "user_sums",
        ]
    ],
    ["callbacks"],
    ["loop"],
    ["configuration"],
    ["results"],
    ["running"],
    ["tuning"],
    ["testing", "commands", "__main__", ""],
]
NEVER = [  # neighbours that must not know each other, whoever stands above
    ({"environments", "datasets"}, {"bandits", "conversation"}),
    ({"bandits", "conversation", "models"}, {"environments", "datasets"}),
]


def modules():
    """Path by the module's name within the package; "" is the package itself."""
    found = {}
    for path in sorted((REPOSITORY / PACKAGE).rglob("*.py")):
        parts = path.relative_to(REPOSITORY / PACKAGE).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


def imports(source, known):
    """What the source imports of the package, as names of modules."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name == PACKAGE or name.startswith(f"{PACKAGE}."):
                inside = name.removeprefix(PACKAGE).removeprefix(".")
                while inside not in known:  # a name in a module
                    inside = inside.rpartition(".")[0]
                found.add(inside)
    return found


def graph():
    known = modules()
    return {name: imports(path.read_text(encoding="utf-8"), known) - {name} for name, path in known.items()}


def storey(name):
    """The storey of the longest listed prefix."""
    ranks = {prefix: rank for rank, prefixes in enumerate(STOREYS) for prefix in prefixes}
    prefix = name
    while prefix not in ranks:
        prefix = prefix.rpartition(".")[0]
        assert prefix, f"{name} stands in no room that this test knows"
    return ranks[prefix]


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
    assert imports(source, modules()) == {"running.runner"}
    assert upward({"core.files": {"running.runner"}}) == ["core.files -> running.runner"]
    assert cycle({"a": {"b"}, "b": {"a"}}) is not None
