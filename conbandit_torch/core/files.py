"""Files that are never seen half-written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def at_once(path: Path) -> Iterator[Path]:
    """Where to write; what is there at the end becomes `path`, and after an error nothing is left."""
    unfinished = path.with_name(f"{path.name}.part")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        with suppress(OSError):  # that of the writing is the one to tell
            unfinished.unlink(missing_ok=True)


def write_at_once(path: Path, text: str) -> None:
    """Write a file so that it is never seen half-written."""
    with at_once(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
