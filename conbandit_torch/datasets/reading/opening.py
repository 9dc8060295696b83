"""Opening source files: their bytes, unzipped, their encoding, and their text as pandas takes it."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from conbandit_torch.core.errors import DataError
from conbandit_torch.datasets.reading.faults import undecodable

_SHOWN_FROM = 2**26  # bytes from which on progress is shown
_BOUNDED_FROM = 2**26  # unpacked bytes from which on their number is compared with the packed ones
_PIECE = 2**20  # bytes unpacked at once
_LARGEST_RATIO = 100  # of unpacked to packed bytes; of data that people keep it is below 30


class Fields(io.TextIOBase):
    """Text for pandas: fields between single characters, and no NUL, at which it would cut them off."""

    def __init__(self, raw: BinaryIO, encoding: str, separator: str) -> None:
        self._text = io.TextIOWrapper(raw, encoding)
        self._double = separator == "::"

    def readable(self) -> bool:
        """True."""
        return True

    def read(self, size: int | None = -1, /) -> str:
        """So many characters, or all that are left."""
        data = self._text.read(-1 if size is None else size)
        if self._double:  # no parser in C takes two characters
            while data.endswith(":") and (more := self._text.read(1)):
                data += more
            if "\t" in data:
                raise DataError("a tab in a file whose fields are separated by '::'")
            data = data.replace("::", "\t")
        if "\0" in data:
            raise DataError("NUL characters: this is not a text file")
        return data

    def close(self) -> None:
        """Close the file too."""
        self._text.close()
        super().close()

    def lines(self) -> Iterator[str]:
        """Line by line."""
        return (line.replace("::", "\t") if self._double else line for line in self._text)


class _Unpacked(io.RawIOBase):
    """A gzip file, of which no more is unpacked than can be data: a few bytes can stand for any number."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._zip = path, gzip.GzipFile(fileobj=file)
        self._most = max(_BOUNDED_FROM, _LARGEST_RATIO * path.stat().st_size)
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        count = self._zip.readinto(buffer)
        self._count += count
        if self._count > self._most:
            raise DataError(
                f"{self._path}: unpacks to more than {_LARGEST_RATIO} times its size, which data do not; if "
                "these do, unpack the file first"
            )
        return count


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, Any]]:
    """The file's bytes, unzipped, and a function that shows how far reading has come."""
    from rich.console import Console

    try:
        with ExitStack() as stack:
            file = stack.enter_context(path.open("rb"))
            zipped = file.read(2) == b"\x1f\x8b"  # whatever its name
            file.seek(0)
            size = path.stat().st_size
            advance: Any = lambda: None  # noqa: E731
            console = Console(stderr=True)
            if size >= _SHOWN_FROM and console.is_terminal:
                from rich.progress import Progress

                progress = stack.enter_context(Progress(console=console, transient=True))
                task = progress.add_task(path.name, total=size)
                advance = lambda: progress.update(task, completed=file.tell())  # noqa: E731
            raw = stack.enter_context(io.BufferedReader(_Unpacked(path, file), _PIECE)) if zipped else file
            yield raw, advance
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: the gzip file is damaged or cut off ({error})") from None
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None


def encoding_of(path: Path, encodings: tuple[str, ...]) -> str:
    """The first in which the whole file can be read, or the last."""
    for encoding in encodings[:-1]:
        with opened(path) as (raw, _):
            if not undecodable(raw, encoding):
                return encoding
    return encodings[-1]
