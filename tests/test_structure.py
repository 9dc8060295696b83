"""How the tests are laid out: what several of them use stands in tests/helpers."""

import ast

from tests.conftest import REPOSITORY


def imported(path):
    """The dotted names that a module imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)


def test_no_test_module_imports_another():
    paths = sorted((REPOSITORY / "tests").rglob("*.py"))
    assert len(paths) > 40
    across = [
        f"{path.relative_to(REPOSITORY)}: {name}"
        for path in paths
        for name in imported(path)
        if any(part.startswith("test_") for part in name.split("."))
    ]
    assert across == []
