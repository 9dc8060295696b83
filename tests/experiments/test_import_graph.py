"""The import graph's parser and pictures, and docs/house.md, which names files and functions."""

import ast
import re

import pytest

from experiments.import_graph import (
    MOVED,
    STOREYS,
    circles_of,
    folder_of,
    imported,
    lines_of,
    main,
    read_package,
    red_imports,
    room,
    size_table,
    sizes,
)
from tests.conftest import REPOSITORY

PACKAGE = REPOSITORY / "conbandit_torch"
PAGE = (REPOSITORY / "docs" / "house.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)(?:: ([\w.]+))?`", PAGE)))

SOURCES = {
    "__init__.py": "",
    "core/__init__.py": "",
    "core/context.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from tiny.loop import play\n",
    "core/files.py": "import os\nfrom os.path import join\n",
    "loop.py": "def play():\n    from tiny.core import context, files\n    import tiny.core.files\n",
}


@pytest.fixture
def tiny(tmp_path):
    folder = tmp_path / "tiny"
    for name, source in SOURCES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source)
    return folder


def test_late_imports_and_those_for_type_checkers_are_found(tiny):
    package = read_package(tiny)
    assert package.imports == {
        "": set(),
        "core": set(),
        "core.context": {"loop"},
        "core.files": set(),
        "loop": {"core.context", "core.files"},
    }
    assert circles_of(package.imports) == [{"core.context", "loop"}]
    assert red_imports(package) == [("core.context", "loop"), ("loop", "core.context")]


def test_relative_imports_and_folders_that_are_no_package_are_refused(tmp_path):
    with pytest.raises(ValueError, match="tiny.loop: line 1: imports must be absolute"):
        imported("from . import files", "tiny", "loop", {""})
    with pytest.raises(ValueError, match="no __init__.py"):
        read_package(tmp_path)


def test_lines_are_counted_as_wc_counts_them(tiny):
    assert lines_of(tiny / "core" / "context.py") == 3
    assert sizes(read_package(tiny)) == {"core": (3, 5), "top level": (2, 3)}


def test_the_package_has_no_red_import_and_every_module_a_storey():
    package = read_package(PACKAGE)
    assert package.rooms and len(package.paths) > 100
    assert red_imports(package) == []
    assert all(package.storey(name) < len(STOREYS) for name in package.paths)


def test_modules_of_the_old_layout_went_to_modules_that_exist():
    known = read_package(PACKAGE).paths
    assert set(MOVED.values()) <= set(known)
    assert room("running.checkpoint") != room("running.job") and folder_of("running.job") == "running"


def test_pictures_are_drawn_of_both_layouts(tiny, capsys):
    out = tiny.parent / "rooms.png"
    main([str(tiny), "--out", str(out), "--title", "Tiny", "--before", str(tiny)])
    assert "red: core.context -> loop" in capsys.readouterr().out
    (tiny / "records.py").write_text("from tiny import runner\n")
    (tiny / "runner.py").write_text("from tiny import records\n")
    package = read_package(tiny)
    assert not package.rooms and ("records", "runner") in red_imports(package)
    assert "| `core` | 4 | 4 | 6 | 6 |" in size_table(package, package)
    main([str(tiny), "--out", str(tiny.parent / "modules.png")])
    for name in ("rooms.png", "modules.png"):
        assert (tiny.parent / name).read_bytes().startswith(b"\x89PNG")


def test_the_page_names_enough():
    assert len(NAMED) > 60
    for walk in ("one round of hConUCB", "one `conbandit run`", "one resume"):
        assert f"## A walk: {walk}" in PAGE


@pytest.mark.parametrize(("path", "name"), NAMED, ids=[f"{path}:{name}" for path, name in NAMED])
def test_what_the_page_names_is_there(path, name):
    file = next((root / path for root in (PACKAGE, REPOSITORY) if (root / path).is_file()), None)
    assert file is not None, f"docs/house.md names {path}, which is not there"
    body = ast.parse(file.read_text(encoding="utf-8")).body
    for part in name.split(".") if name else []:
        found = [node for node in body if getattr(node, "name", None) == part]
        assert found, f"docs/house.md names {path}: {name}, which is not there"
        body = getattr(found[0], "body", [])


def test_rooms_and_pictures_of_the_page_are_there():
    rooms = {folder_of(name) for name in read_package(PACKAGE).paths} - {"top level"}
    table = PAGE.partition("## The rooms")[2].partition("## Who imports whom")[0]
    assert {name for name in rooms if f"| `{name}`" not in table} == set()
    for picture in re.findall(r"\]\((\w+\.png)\)", PAGE):
        size = (REPOSITORY / "docs" / picture).stat().st_size
        assert 10_000 < size < 250_000, picture


def walks():
    """The files that each numbered list of the page goes through, step by step."""
    for block in re.findall(r"(?:^\d+\. .*\n)+", PAGE, re.MULTILINE):
        yield [re.findall(r"`([\w/]+\.py)", step) for step in block.splitlines()]


def test_no_walk_comes_back_to_a_file_that_it_has_left():
    assert len(list(walks())) >= 12
    for steps in walks():
        files = [file for step in steps for file in dict.fromkeys(step)]
        visits = [file for place, file in enumerate(files) if place == 0 or files[place - 1] != file]
        assert len(visits) == len(set(visits)), visits
