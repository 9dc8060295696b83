"""Your own data: two plain tables, as CSV or Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from conbandit_torch.core.errors import DataError
from conbandit_torch.datasets.base import Dataset, Reader
from conbandit_torch.datasets.reading.faults import (
    LARGEST,
    LINE,
    REAL,
    TEXT,
    WHOLE,
    expect_columns,
    expect_distinct,
    expect_filled,
)
from conbandit_torch.datasets.reading.files import expand, need, read_table, read_whole
from conbandit_torch.datasets.reading.source import EventList, Ids, Labels, Source, check_least

if TYPE_CHECKING:
    import pandas as pd

_ITEM_COLUMNS = (LINE, "item", "terms", "title")  # what is no side feature


class Table(Reader):
    """Your own data, as two tables: `feedback` and `items`, each `.csv`, `.csv.gz` or `.parquet`.

    `feedback` has the columns `user`, `item`, `value` and, if known, `time` in whole seconds; one row an
    event. `items` has the columns `item`, `terms` (key-terms, separated by `|`) and, if wanted, `title`;
    in Parquet `time` may be a timestamp, and `terms` a list;
    every further column is a side feature: standardised if all its values are numbers (an empty field is the
    mean), one-hot otherwise (an empty field is none). Key-terms are side features too. Ids may be any text.
    For example

        user,item,value,time          item,terms,title,price,colour
        ann,b1,5,1700000000           b1,crime|classic,The Big Sleep,9.5,red
        bob,b2,2,1700000060           b2,science,Cosmos,,blue

    Items without key-terms, and feedback on items that `items` does not have, are left out and counted.
    Thresholds are counted once, on all feedback.

    Args:
        path: the folder of the two tables.
        feedback: the first one's name, with or without its ending.
        items: the second one's.
        min_user_feedback: events that a user must have.
        min_item_feedback: events that an item must have.
        positive_from: feedback of at least this value is 1, other feedback 0.
        has_negatives: False if there is only positive feedback, such as purchases: everything is 1, and
            preparation draws as many unseen items as 0.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        feedback: str = "feedback",
        items: str = "items",
        min_user_feedback: int = 1,
        min_item_feedback: int = 0,
        positive_from: float = 1.0,
        has_negatives: bool = True,
    ) -> None:
        check_least(min_user_feedback=min_user_feedback, min_item_feedback=min_item_feedback)
        self.path, self.feedback, self.items = expand(path), feedback, items
        self.min_user_feedback, self.min_item_feedback = min_user_feedback, min_item_feedback
        self.positive_from, self.has_negatives = positive_from, has_negatives

    def files(self) -> list[Path]:
        """Interactions and items."""
        named = (self.feedback, self.items)
        return [
            need(self.path, *([name] if Path(name).suffix else [f"{name}.csv", f"{name}.parquet"]))
            for name in named
        ]

    def read(self) -> Dataset:
        """Everything, after the thresholds."""
        import pandas as pd

        feedback_file, items_file = self.files()
        columns = {"item": TEXT, "terms": TEXT}
        if items_file.suffix == ".parquet":
            table = pd.concat(list(_parquet(items_file, columns, {})), ignore_index=True)
        else:
            table = read_whole(items_file, columns)
        expect_filled(items_file, table, "item")
        expect_distinct(items_file, "item", table, "item")
        items, users, events = Ids(table["item"].tolist()), Ids(), EventList()
        columns, optional = {"user": TEXT, "item": TEXT, "value": REAL}, {"time": WHOLE}
        if feedback_file.suffix == ".parquet":
            pieces = _parquet(feedback_file, columns, optional)
        else:
            pieces = read_table(feedback_file, columns, optional=optional)
        for piece in pieces:
            expect_filled(feedback_file, piece, "user", "item")
            times = piece["time"] if "time" in piece else np.zeros(len(piece), np.int64)
            events.add(users.positions(piece["user"]), items.find(piece["item"]), piece["value"], times)
        terms = Labels()
        for item, text in enumerate(table["terms"]):
            for name in text.split("|"):
                if name.strip():
                    terms.add(item, name.strip())
        labels, numbers = _side(table)
        feedback = events.feedback()
        return Source(
            self.path,
            users=users.names(),
            items=items.names(),
            titles=(table["title"] if "title" in table else table["item"]).tolist(),
            terms=[terms.matrix(len(items))],
            labels=labels,
            numbers=numbers,
            feedback_numbers={},
            feedback=feedback,
            counts={"users": len(users), "items": len(items), "events": len(feedback.users)},
        ).narrowed(self.min_user_feedback, self.min_item_feedback)


def _side(table: pd.DataFrame) -> tuple[list[Any], dict[str, np.ndarray]]:
    """One-hot and numeric side features, out of the columns that have no other meaning."""
    import pandas as pd

    labels, numbers = [], {}
    for name in table.columns:
        if name in _ITEM_COLUMNS:
            continue
        texts = table[name].str.strip()
        filled = texts != ""
        values = pd.to_numeric(texts, errors="coerce")
        if (values[filled].abs() <= LARGEST).all():
            numbers[str(name)] = values.to_numpy(np.float64)
            continue
        column = Labels()
        for item in np.flatnonzero(filled):
            column.add(int(item), f"{name}: {texts.iloc[item]}")
        labels.append(column.matrix(len(table)))
    return labels, numbers


def _parquet(path: Path, columns: dict[str, str], optional: dict[str, str]) -> Iterator[pd.DataFrame]:
    """A table in Parquet, piece by piece; `LINE` is the row."""
    import pandas as pd

    if find_spec("pyarrow") is None:
        raise DataError(f"{path}: reading Parquet needs pyarrow: pip install pyarrow")
    import pyarrow
    from pyarrow.parquet import ParquetFile

    kinds, first = columns | optional, 1
    try:
        with ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=2**18):
                # pandas' own remarks in the file, which may be damaged, are of no use here.
                piece = batch.replace_schema_metadata(None).to_pandas(integer_object_nulls=True)
                expect_columns(path, piece, columns)
                for name in piece.columns:
                    piece[name] = _converted(path, name, piece[name], kinds.get(str(name), TEXT), first)
                piece.insert(0, LINE, np.arange(first, first + len(piece)))
                first += len(piece)
                yield piece
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: no Parquet file, or a damaged one ({reason})") from None
    if first == 1:
        yield pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in {LINE: WHOLE, **columns}.items()})


def _converted(path: Path, name: str, values: pd.Series[Any], kind: str, first: int) -> pd.Series[Any]:
    import pandas as pd

    if kind == TEXT:
        return pd.Series([_text(value) for value in values], values.index, dtype=object)
    if pd.api.types.is_datetime64_any_dtype(values):
        numbers = (values - pd.Timestamp(0, tz=values.dt.tz)).dt.total_seconds() // 1
    else:
        numbers = pd.to_numeric(values, errors="coerce")
    bad = ~(numbers.abs() <= (LARGEST if kind == REAL else 2**62))
    if kind == WHOLE:
        bad |= numbers != numbers.round()
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        expected = f"a {'whole ' if kind == WHOLE else ''}number"
        raise DataError(f"{path}: row {first + row}: {name}: expected {expected}, got {values.iloc[row]!r}")
    return numbers.astype(np.dtype(kind))


def _text(value: Any) -> str:
    """A value as a CSV file would have it: a list as `a|b`, null empty, 3.0 (an id among nulls) as 3."""
    if isinstance(value, np.ndarray | list):
        return "|".join(map(_text, value))
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
