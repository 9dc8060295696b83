"""The tutorials: Python files in cells, executed while the site is built, with what they printed and drew."""

from __future__ import annotations

from pathlib import Path

from making.writing import Made


def pages(folder: Path, _: Path) -> list[Made]:
    """The tutorials in the order of their names."""
    return []
