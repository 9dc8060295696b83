"""Reading source files piece by piece. Whatever is wrong with one is a `DataError` with file and line."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from conbandit_torch.core.errors import DataError
from conbandit_torch.datasets.reading.faults import (
    LARGEST,
    LINE,
    REAL,
    TEXT,
    WHERE,
    expect_columns,
    expect_once,
    first_fault,
    line_of,
    reworded,
    shown,
    undecodable,
    uneven,
)
from conbandit_torch.datasets.reading.opening import Fields, encoding_of, opened

if TYPE_CHECKING:
    import pandas as pd

UTF8 = ("utf-8-sig",)  # with or without the mark that some programs put in front
_ROWS = 2**18  # of a piece


def need_libraries() -> None:
    """Refuse to start reading what could not be read and prepared to the end."""
    for module, name in {"pandas": "pandas", "sklearn": "scikit-learn"}.items():
        if find_spec(module) is None:
            raise DataError(f"real data need {name}: pip install 'conbandit-torch[data]'")


def expand(path: str | os.PathLike[str]) -> Path:
    """The path with `~` and variables such as `$HOME` filled in."""
    return Path(os.path.expandvars(path)).expanduser()


def find(path: Path, *names: str) -> Path | None:
    """The first of the names, gzipped or not, in the folder (or beside the file); None: none is there."""
    folder = path.parent if path.is_file() else path
    candidates = (folder / f"{name}{ending}" for name in names for ending in ("", ".gz"))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def require(path: Path) -> None:
    """Refuse a file or folder that is not there."""
    if not path.exists():
        unset = re.search(r"\$\{?(\w+)", str(path))
        why = f"; the environment variable {unset[1]} is not set" if unset else ""
        raise DataError(f"{path}: no such file or folder{why}")


def need(path: Path, *names: str) -> Path:
    """The first of the names, gzipped or not, in the folder (or beside the file).

    Raises:
        DataError: if none of them is there.
    """
    require(path)
    found = find(path, *names)
    if found is None:
        raise DataError(f"{path}: there is no {' or '.join(names)}")
    return found


def read_table(
    path: Path,
    columns: dict[str, str],
    *,
    separator: str = ",",
    header: bool = True,
    quotes: bool = True,
    encodings: tuple[str, ...] = UTF8,
    optional: dict[str, str] | None = None,
    rows: int = _ROWS,
) -> Iterator[pd.DataFrame]:
    """A text table in pieces, with a first column `LINE`: where each row stands (see `place`).

    Args:
        path: the file; gzipped or not.
        columns: names and types. With a header these must be there, and others come as text; without, they
            are all that the file has, in order.
        separator: between fields; of one character, or `::`.
        header: whether the first line has the columns' names.
        quotes: whether fields may be quoted.
        encodings: the first of these in which the whole file can be read is its own.
        optional: names and types of columns that need not be there.
        rows: of a piece.
    """
    import pandas as pd

    options: dict[str, Any] = {
        "sep": "\t" if separator == "::" else separator,
        "header": 0 if header else None,
        "names": None if header else list(columns),
        "index_col": False,
        "quoting": 0 if quotes else 3,
        "keep_default_na": False,
        "skip_blank_lines": True,
        "chunksize": rows,
    }
    encoding = encoding_of(path, encodings)
    kinds = columns | (optional or {})
    first = start = 2 if header else 1
    try:
        if header:  # pandas would call the second `a` `a.1`
            expect_once(path, _header(path, encoding, separator, quotes))
        with opened(path) as (raw, advance), Fields(raw, encoding, separator) as text:
            types = defaultdict(lambda: TEXT, kinds)
            with pd.read_csv(text, dtype=types, **options) as pieces:
                for piece in _strictly(pieces):
                    if first == start:
                        expect_columns(path, piece, columns)
                    _check(piece, kinds)
                    piece.insert(0, LINE, np.arange(first, first + len(piece)))
                    piece.attrs[WHERE] = partial(_where, path, encoding, separator, quotes)
                    first += len(piece)
                    advance()
                    yield piece
    except UnicodeDecodeError:
        with opened(path) as (raw, _):
            raise DataError(f"{path}: {undecodable(raw, encoding)}") from None
    except DataError as error:
        raise DataError(str(error) if str(error).startswith(str(path)) else f"{path}: {error}") from None
    except (ValueError, OverflowError, MemoryError, pd.errors.ParserWarning) as error:
        with opened(path) as (raw, _), Fields(raw, encoding, separator) as text:
            where = first_fault(text, kinds, {**options, "skip_blank_lines": False}, start)
        raise DataError(f"{path}: {where or reworded(error)}") from None


def _header(path: Path, encoding: str, separator: str, quotes: bool) -> list[str]:
    """The fields of the first line that is not blank; none where it is too long to be a header."""
    with opened(path) as (raw, _), Fields(raw, encoding, separator) as text:
        start = io.StringIO(text.read(2**16), newline="")
    rows = csv.reader(start, delimiter=separator, quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE)
    with suppress(csv.Error):
        return next((fields for fields in rows if fields), [])
    return []


def _where(path: Path, encoding: str, separator: str, quotes: bool, row: int) -> int:
    """The line of a row, both counted from 1: lines may be blank, and quoted fields have several."""
    with opened(path) as (raw, _), Fields(raw, encoding, separator) as text:
        return line_of(text.lines(), "\t" if separator == "::" else separator, quotes, row)


def _strictly(pieces: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """The pieces; that rows are longer than the header, of which pandas only warns, is an error."""
    import pandas as pd

    while True:
        with warnings.catch_warnings():  # not around `yield`, where others run
            warnings.simplefilter("error", pd.errors.ParserWarning)
            piece = next(pieces, None)
        if piece is None:
            return
        yield piece


def read_whole(
    path: Path,
    columns: dict[str, str],
    *,
    separator: str = ",",
    header: bool = True,
    quotes: bool = True,
    encodings: tuple[str, ...] = UTF8,
) -> pd.DataFrame:
    """A text table as a whole, for tables of items; lines with too few fields of text are refused too."""
    import pandas as pd

    options: dict[str, Any] = {"separator": separator, "header": header, "quotes": quotes}
    pieces = read_table(path, columns, encodings=encodings, rows=2**14, **options)
    table = pd.concat(list(pieces), ignore_index=True)
    width = len(table.columns) - 1  # without `LINE`
    with opened(path) as (raw, _), Fields(raw, encoding_of(path, encodings), separator) as text:
        fault = uneven(text.lines(), "\t" if separator == "::" else separator, quotes, width)
    if fault:
        raise DataError(f"{path}: {fault}")
    return table


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(Line number, object) of a file with one JSON object per line; gzipped or not."""
    number = 0
    try:
        with opened(path) as (raw, advance), io.TextIOWrapper(raw, UTF8[0], newline="\n") as text:
            for number, line in enumerate(text, start=1):
                if number % 2**16 == 0:
                    advance()
                if line.isspace():
                    continue
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise DataError(f"{path}: line {number}: expected a JSON object, got {shown(record)}")
                yield number, record
    except UnicodeDecodeError:
        with opened(path) as (raw, _):
            raise DataError(f"{path}: {undecodable(raw, UTF8[0])}") from None
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", error)
        raise DataError(f"{path}: line {number}: not valid JSON, or cut off ({reason})") from None


def _check(piece: pd.DataFrame, columns: dict[str, str]) -> None:
    """What the parser lets pass: numbers that are not finite, and fields that are missing."""
    for name in piece.columns:
        kind = columns.get(str(name), TEXT)
        if kind == REAL and not bool((piece[name].abs() <= LARGEST).all()):
            raise ValueError(f"{name}: expected numbers")
        if kind == TEXT and bool(piece[name].isna().any()):
            raise ValueError(f"{name}: missing fields")
