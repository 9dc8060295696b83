"""What can be wrong with a source file, and where: looked for only once something is."""

from __future__ import annotations

import csv
import re
import warnings
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from io import TextIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from conbandit_torch.core.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

WHOLE, REAL, TEXT = "int64", "float64", "object"
"""Types of columns."""

LINE = "(line)"  # a column's name that no table has
WHERE = "line of a row"  # the attribute of a table that knows it

LARGEST = 1e30  # of numbers, so that float32 holds them and float64 their squares


def shown(value: Any) -> str:
    """A value for an error message: not too much of it."""
    try:
        text = repr(value.item() if isinstance(value, np.generic) else value)
    except ValueError:  # a whole number of more than 4300 digits
        text = "a very long number"
    return text if len(text) <= 60 else f"{text[:57]}..."


def undecodable(lines: Iterable[bytes], encoding: str) -> str:
    """The first line that is no text in the encoding, and why; '' if all are."""
    for number, line in enumerate(lines, start=1):
        try:
            line.decode(encoding)
        except UnicodeDecodeError as error:
            return f"line {number}: not text in {error.encoding} ({error.reason})"
    return ""


def uneven(lines: Iterable[str], separator: str, quotes: bool, width: int) -> str:
    """The first line that has not `width` fields (pandas fills up what is missing); '' if all have."""
    rows = csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE)
    try:
        for row in rows:
            if row and len(row) != width:
                return f"line {rows.line_num}: expected {width} fields, got {len(row)}"
    except csv.Error as error:
        return f"line {rows.line_num}: {error}"
    return ""


def expect_columns(path: Path, frame: pd.DataFrame, names: dict[str, str]) -> None:
    """Refuse a table without one of the columns."""
    for name in names:
        if name not in frame.columns:
            has = ", ".join(repr(str(column)) for column in frame.columns if column != LINE)[:200]
            raise DataError(f"{path}: there is no column {name!r}; it has {has}")


def expect_once(path: Path, names: Iterable[str]) -> None:
    """Refuse a table in which two columns have one name: which of them is meant, nobody knows."""
    for name, count in Counter(names).items():
        if count > 1:
            raise DataError(f"{path}: {count} columns are called {shown(name)}; rename or remove all but one")


def expect_filled(path: Path, frame: pd.DataFrame, *columns: str) -> None:
    """Refuse a table with an empty id: such lines are cut off, as a rule."""
    for name in columns:
        empty = frame[name].str.strip() == ""
        if empty.any():
            raise DataError(f"{path}: line {place(frame, empty)}: {name}: is empty, or the line cut off")


def expect_distinct(path: Path, kind: str, frame: pd.DataFrame, column: str) -> None:
    """Refuse a table in which an id stands twice."""
    again = frame[column].duplicated()
    if again.any():
        value = shown(frame[column][again].iloc[0])
        raise DataError(f"{path}: line {place(frame, again)}: {kind} {value} is there a second time")


def place(frame: pd.DataFrame, wrong: Any) -> int:
    """The line of the first row where `wrong` [n] holds."""
    row = int(frame[LINE].to_numpy()[np.flatnonzero(wrong)[0]])
    line: int = frame.attrs[WHERE](row) if WHERE in frame.attrs else row
    return line


def line_of(lines: Iterable[str], separator: str, quotes: bool, row: int) -> int:
    """Where the row begins, without counting blank lines as rows; rows and lines are counted from 1."""
    rows = csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE)
    number, start = 0, 1
    with suppress(csv.Error):  # a field too long for it: then up to there
        for fields in rows:
            number += bool(fields)
            if number == row:
                break
            start = rows.line_num + 1
    return start


def first_fault(text: TextIOBase, columns: dict[str, str], options: dict[str, Any], first: int) -> str:
    """The first line of a table that has no number where one should be, or too few fields; '' if none.

    Args:
        text: the file.
        columns: names and types.
        options: of `pandas.read_csv`.
        first: the first row's line.
    """
    import pandas as pd

    try:
        with warnings.catch_warnings(), pd.read_csv(text, dtype=TEXT, **options) as pieces:
            warnings.simplefilter("error", pd.errors.ParserWarning)  # of lines longer than the header
            for piece in pieces:
                blank = piece.isin(["", np.nan]).all(axis=1)  # an empty line is none
                faults = [
                    found
                    for name in piece.columns
                    if (found := _fault(piece[name], columns.get(str(name), TEXT), blank)) is not None
                ]
                if faults:
                    row, fault = min(faults)
                    return f"line {first + row}: {fault}"
                first += len(piece)
    except (ValueError, pd.errors.ParserWarning) as error:
        return reworded(error)
    return ""


def _fault(values: pd.Series[Any], kind: str, blank: pd.Series[bool]) -> tuple[int, str] | None:
    """A column's first row that is not of its kind, and what is wrong there."""
    import pandas as pd

    wrong, fault = values.isna(), "is missing"
    if kind != TEXT:
        wrong, fault = ~(pd.to_numeric(values, errors="coerce").abs() <= LARGEST), "expected a number"
    if kind == WHOLE:
        whole = [isinstance(v, str) and bool(re.fullmatch(r"\s*[-+]?\d{1,19}\s*", v)) for v in values]
        wrong, fault = ~pd.Series(whole, values.index), "expected a whole number"
    rows = np.flatnonzero(wrong & ~blank)
    if not len(rows):
        return None
    value = values.iloc[rows[0]]
    return int(rows[0]), f"{values.name}: {fault}" + (f", got {shown(value)}" if value == value else "")


def reworded(error: BaseException) -> str:
    """What pandas has to say, in our words."""
    text = " ".join(str(error).split())
    if found := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", text):
        return f"line {found[2]}: expected {found[1]} fields, got {found[3]}"
    if found := re.search(r"EOF inside string starting at row (\d+)", text):
        return f"line {int(found[1]) + 1}: a quote is not closed"
    if "Length of header or names" in text:
        return "the lines have more fields than there are columns"
    if "No columns to parse" in text:
        return "the file is empty"
    return text[:200]
