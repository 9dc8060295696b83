"""Several values in one field of a table: key-terms, and vectors of numbers."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from conbandit_torch.core.errors import DataError
from conbandit_torch.datasets.reading.faults import LARGEST, place, shown

if TYPE_CHECKING:
    import pandas as pd

_USUAL = "|"
_OTHERS = (",", ";")  # separators that people use, besides
_LIST = re.compile(r"\[.*\]|[({]\s*['\"].*[)}]", re.DOTALL)  # "(no genres listed)" is none
_NO_COMMA = re.compile(r"(['\"])\s+\1")  # numpy writes ['a' 'b'], which Python reads as one text


def term_lists(path: Path, table: pd.DataFrame, column: str, separator: str | None) -> list[list[str]]:
    """The names in every field of a column: `a|b`, or a list as JSON, Python or YAML write it.

    Args:
        path: the file, for errors.
        table: its content.
        column: the one that holds the names.
        separator: between names; None: `|`, unless the column looks as if it were another.
    """
    texts = table[column].str.strip().tolist()
    plain = [text for text in texts if text and not _LIST.fullmatch(text)]
    if separator is None and not any(_USUAL in text for text in plain):
        for other in _OTHERS:
            number = sum(other in text for text in plain)
            if number > len(plain) / 2:
                raise DataError(
                    f"{path}: {column}: no field has {_USUAL!r}, but {number} of {len(plain)} have "
                    f"{other!r}, such as {shown(next(text for text in plain if other in text))}: give "
                    f"separator: {other!r}, or separator: {_USUAL!r} if every field is one key-term"
                )
    lists = []
    for row, text in enumerate(texts):
        names = _literal(text) if _LIST.fullmatch(text) else text.split(separator or _USUAL)
        if names is None or not all(isinstance(name, str | int | float) for name in names):
            raise DataError(
                f"{path}: line {place(table, table.index == row)}: {column}: expected a list such as "
                f"['a', 'b'], got {shown(text)}"
            )
        lists.append([name for one in names if (name := str(one).strip())])
    return lists


def vectors(path: Path, table: pd.DataFrame, column: str) -> np.ndarray:
    """[N, F] the numbers in every field of a column: `0.1 0.2`, `0.1;0.2` or `[0.1, 0.2]`."""
    rows: list[np.ndarray] = []
    for row, text in enumerate(table[column]):
        words = re.sub(r"[\[\](),;|\"']", " ", text).split()
        try:
            numbers = np.array([float(word) for word in words])
        except ValueError:
            numbers = np.empty(0)
        if not len(numbers) or not (np.abs(numbers) <= LARGEST).all():
            raise DataError(
                f"{path}: line {place(table, table.index == row)}: {column}: expected numbers such as "
                f"0.1 0.2 0.3, got {shown(text)}"
            )
        if rows and len(numbers) != len(rows[0]):
            raise DataError(
                f"{path}: line {place(table, table.index == row)}: {column}: expected {len(rows[0])} "
                f"numbers, as in the first row, got {len(numbers)}"
            )
        rows.append(numbers)
    return np.array(rows)


def vectors_beside(path: Path, items: Sequence[str]) -> np.ndarray:
    """[N, F] from a `.npy` whose rows are the items', in order, or a `.npz` with `item` and `vectors`."""
    try:
        loaded = np.load(path, allow_pickle=False)
        held = {name: loaded[name] for name in loaded.files} if path.suffix == ".npz" else {"vectors": loaded}
    except (ValueError, OSError, EOFError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: no array of numbers, or a damaged one ({error})") from None
    if "vectors" not in held or (path.suffix == ".npz" and "item" not in held):
        raise DataError(f"{path}: expected arrays 'item' and 'vectors', got {', '.join(held) or 'none'}")
    found = held["vectors"]
    if found.ndim != 2 or found.dtype.kind not in "fiu" or not found.shape[1]:
        raise DataError(f"{path}: expected numbers [N, F], got {found.dtype} {list(found.shape)}")
    names = [as_id(str(name)) for name in held["item"].tolist()] if "item" in held else list(items)
    if len(found) != len(names) or len(set(names)) != len(names):
        order = "" if "item" in held else ", one per row of the table of items"
        raise DataError(f"{path}: expected {len(names)} rows of distinct items{order}, got {len(found)}")
    places = {name: row for row, name in enumerate(names)}
    missing = [item for item in items if item not in places]
    if missing:
        raise DataError(f"{path}: {len(missing)} of {len(items)} items have no row, such as {missing[0]!r}")
    chosen: np.ndarray = found[[places[item] for item in items]].astype(np.float64)
    wrong = ~(np.abs(chosen) <= LARGEST).all(axis=1)
    if wrong.any():
        item = items[int(np.flatnonzero(wrong)[0])]
        raise DataError(
            f"{path}: the vector of item {item!r} has NaN, infinity or a number beyond {LARGEST:g}"
        )
    return chosen


def as_id(text: str) -> str:
    """An id; `1.0`, which is what is left of the number 1 in a column with gaps, is `1`."""
    head, point, tail = text.strip().partition(".")
    return head if point and tail and not tail.strip("0") and head.lstrip("-").isdigit() else text


def _literal(text: str) -> list[Any] | None:
    """The list that a text stands for; None if it is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        notations: tuple[Callable[[str], Any], ...] = (json.loads, _python, _yaml)
        for read in notations:
            try:
                found = read(text)
            except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError, yaml.YAMLError):
                continue
            if isinstance(found, list | tuple | set):
                return list(found)
    return None


def _python(text: str) -> Any:
    if _NO_COMMA.search(text):
        raise ValueError("no comma between texts")
    found = ast.literal_eval(text)
    return sorted(found, key=str) if isinstance(found, set) else found


def _yaml(text: str) -> Any:
    if _NO_COMMA.search(text):
        raise ValueError("no comma between texts")
    return yaml.load(text, yaml.BaseLoader)
