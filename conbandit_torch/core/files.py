"""Files that are never seen half-written, and that survive a power failure once they are written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

UNFINISHED = ".part"  # how the name of a file or folder ends that is being written


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Where to write: what is there at the end becomes `path` atomically, and is on the disk afterwards.

    After an error, `path` is what it was, and nothing else is left.
    """
    unfinished = path.with_name(path.name + UNFINISHED)
    try:
        with naming(path):
            yield unfinished
            sync(unfinished)
            unfinished.replace(path)
            sync(path.parent)
    finally:
        with suppress(OSError):  # the error of the writing is the one to report
            unfinished.unlink(missing_ok=True)


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that it is never seen half-written, and is on the disk afterwards."""
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def make_folder(path: Path) -> None:
    """Make a folder and those above it, if they are missing, so that a power failure keeps them."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in reversed(missing):
        sync(folder.parent)


def sync(path: Path) -> None:
    """Wait until the file's content, or the folder's list of names, is on the disk."""
    if os.name == "nt" and path.is_dir():  # there, folders cannot be opened, and need not be
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        os.close(handle)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let errors of the operating system that name no file, such as of a full disk, name this one."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
