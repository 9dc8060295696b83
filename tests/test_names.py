"""Public names: imported when they are used, the same ones for Python, type checkers and configs."""

import ast
import subprocess
import sys
from importlib import import_module

import pytest

import conbandit_torch
from conbandit_torch.core.names import PUBLIC
from tests.conftest import REPOSITORY

HEAVY = ("torch", "lightning", "matplotlib", "scipy", "pandas", "jsonargparse")


def loaded_after(code):
    """Which heavy libraries a new interpreter has imported after some code."""
    code += f"\nimport sys\nprint(*(name for name in {HEAVY!r} if name in sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stderr.split()


def test_table_all_and_type_checkers_imports_agree():
    tree = ast.parse((REPOSITORY / "conbandit_torch" / "__init__.py").read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    for_checkers = {alias.name: node.module for node in block.body for alias in node.names}
    assert for_checkers == PUBLIC
    assert sorted(conbandit_torch.__all__) == sorted([*PUBLIC, "__version__"])


def test_every_name_is_what_its_module_has():
    for name, module in PUBLIC.items():
        assert getattr(conbandit_torch, name) is getattr(import_module(module), name)
        assert name in dir(conbandit_torch)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'conbandit_torch' has no attribute 'LinUBC'"):
        conbandit_torch.LinUBC  # noqa: B018
    with pytest.raises(ImportError):
        from conbandit_torch import LinUBC  # noqa: F401


def test_a_star_import_gives_them_all():
    names = {}
    exec("from conbandit_torch import *", names)
    assert set(conbandit_torch.__all__) <= set(names)


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_wait_for_no_library(argument):
    code = (
        f"from conbandit_torch.commands.main import main\ntry: main([{argument!r}])\nexcept SystemExit: pass"
    )
    assert loaded_after(code) == []


def test_report_needs_no_torch(results):
    code = f"from conbandit_torch.commands.main import main\nassert main(['report', {str(results)!r}]) == 0"
    assert loaded_after(code) == ["scipy"]


def test_plot_needs_no_torch(results):
    code = f"from conbandit_torch.commands.main import main\nassert main(['plot', {str(results)!r}]) == 0"
    assert set(loaded_after(code)) == {"scipy", "matplotlib"}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    from conbandit_torch.commands.main import main
    from tests.helpers.configs import GOOD, write

    folder = tmp_path_factory.mktemp("results")
    assert main(["run", str(write(folder, GOOD)), "--out", str(folder / "out")]) == 0
    return folder / "out"


def test_version_is_that_of_the_package(capsys):
    from conbandit_torch.commands.main import main

    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out == f"conbandit {conbandit_torch.__version__}\n"
