"""Your own data: two plain tables, as CSV or Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from conbandit_torch.core.errors import DataError, choices
from conbandit_torch.datasets.base import Dataset, Reader
from conbandit_torch.datasets.reading.faults import (
    LARGEST,
    LINE,
    REAL,
    TEXT,
    WHOLE,
    expect_distinct,
    expect_filled,
    place,
    shown,
)
from conbandit_torch.datasets.reading.files import expand, need, read_table, read_whole
from conbandit_torch.datasets.reading.lists import as_id, term_lists, vectors, vectors_beside
from conbandit_torch.datasets.reading.parquet import read_parquet
from conbandit_torch.datasets.reading.source import EventList, Ids, Labels, Source, check_least

if TYPE_CHECKING:
    import pandas as pd

_ITEM_COLUMNS = (LINE, "item", "terms", "title")  # what is no side feature


class Table(Reader):
    """Your own data, as two tables: `feedback` and `items`, each `.csv`, `.csv.gz` or `.parquet`.

    `feedback` has the columns `user`, `item`, `value` and, if known, `time` in whole seconds; one row per
    event. `items` has the columns `item`, `terms` (key-terms, as `a|b` or as a list `["a", "b"]`) and, if
    wanted, `title`; in Parquet `time` may be a timestamp, and `terms` a list;
    every further column is a side feature: standardised if all its values are numbers (an empty field is the
    mean), one-hot otherwise (an empty field is none). Key-terms are side features too. Ids may be any text;
    `1.0` is `1`, since a column with gaps writes whole numbers so.
    For example

        user,item,value,time          item,terms,title,price,colour
        ann,b1,5,1700000000           b1,crime|classic,The Big Sleep,9.5,red
        bob,b2,2,1700000060           b2,science,Cosmos,,blue

    Items without key-terms, and feedback on items that `items` does not have, are left out and counted. Where
    an environment makes key-terms (`key_terms`), items without any are kept, and `terms` may be missing.
    Thresholds are counted once, on all feedback.

    Args:
        path: the folder of the two tables.
        feedback: the first one's name, with or without its ending.
        items: the second one's.
        min_user_feedback: events that a user must have.
        min_item_feedback: events that an item must have.
        min_term_count: items that must have a key-term; rarer ones are left out.
        separator: between key-terms; None: `|`, and a column that seems to have another is refused.
        ignore: columns of `items` that are not used, such as an ISBN.
        feedback_columns: columns of `items` that sum up feedback, such as a mean rating: numbers, which
            replay leaves out, because they would tell of the clicks that are replayed.
        embedding: where items have vectors that are to be their features: a column of `items` (`0.1 0.2` or
            `[0.1, 0.2]`), a `.npy` file of rows in the order of `items`, or a `.npz` with `item` and
            `vectors`. Key-terms and further columns are no side features then.
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
        min_term_count: int = 1,
        separator: str | None = None,
        ignore: list[str] | None = None,
        feedback_columns: list[str] | None = None,
        embedding: str | None = None,
        positive_from: float = 1.0,
        has_negatives: bool = True,
    ) -> None:
        check_least(
            min_user_feedback=min_user_feedback,
            min_item_feedback=min_item_feedback,
            min_term_count=min_term_count,
        )
        if separator == "":
            raise ValueError("separator must be at least one character, got ''")
        self.path, self.feedback, self.items = expand(path), feedback, items
        self.min_user_feedback, self.min_item_feedback = min_user_feedback, min_item_feedback
        self.min_term_count, self.separator = min_term_count, separator
        self.ignore, self.feedback_columns = list(ignore or []), list(feedback_columns or [])
        self.embedding = embedding
        self.positive_from, self.has_negatives = positive_from, has_negatives

    def files(self) -> list[Path]:
        """Interactions, items and, where it is a file, their embedding."""
        named = (self.feedback, self.items)
        found = [
            need(self.path, *([name] if Path(name).suffix else [f"{name}.csv", f"{name}.parquet"]))
            for name in named
        ]
        return [*found, need(self.path, str(self.embedding))] if self._embedded_in_a_file else found

    def read(self) -> Dataset:
        """Everything, after the thresholds."""
        feedback_file, items_file, *embedding_file = self.files()
        table = self._items(items_file)
        items, users, events = Ids(table["item"].tolist()), Ids(), EventList()
        columns, optional = {"user": TEXT, "item": TEXT, "value": REAL}, {"time": WHOLE}
        if feedback_file.suffix == ".parquet":
            pieces = read_parquet(feedback_file, columns, optional)
        else:
            pieces = read_table(feedback_file, columns, optional=optional)
        unknown: Any = None  # an item that `items` does not have
        for piece in pieces:
            expect_filled(feedback_file, piece, "user", "item")
            times = piece["time"] if "time" in piece else np.zeros(len(piece), np.int64)
            positions = items.find(_as_ids(piece["item"]))
            if unknown is None and (positions < 0).any():
                unknown = piece["item"].iloc[int(np.flatnonzero(positions < 0)[0])]
            events.add(users.positions(_as_ids(piece["user"])), positions, piece["value"], times)
        feedback = events.feedback()
        if unknown is not None and (feedback.items < 0).all():
            raise DataError(
                f"{feedback_file}: none of its items is in {items_file.name}: it has {shown(unknown)}, "
                f"and there ids are such as {shown(table['item'].iloc[0]) if len(table) else 'none'}"
            )
        terms = Labels()
        for item, names in enumerate(term_lists(items_file, table, "terms", self.separator)):
            for name in dict.fromkeys(names):
                terms.add(item, name)
        labels, numbers = _side(table, {*_ITEM_COLUMNS, *self.ignore, *self.feedback_columns, self.embedding})
        embedding = None
        if self.embedding is not None:
            embedding = (
                vectors_beside(embedding_file[0], table["item"].tolist())
                if embedding_file
                else vectors(items_file, table, self.embedding)
            )
        return Source(
            self.path,
            users=users.names(),
            items=items.names(),
            titles=(table["title"] if "title" in table else table["item"]).tolist(),
            terms=[terms.matrix(len(items), self.min_term_count)],
            labels=labels,
            numbers=numbers,
            feedback_numbers={name: _numbers(items_file, table, name) for name in self.feedback_columns},
            feedback=feedback,
            counts={"users": len(users), "items": len(items), "events": len(feedback.users)},
            embedding=embedding,
        ).narrowed(self.min_user_feedback, self.min_item_feedback, needs_terms=self.needs_terms)

    @property
    def _embedded_in_a_file(self) -> bool:
        return self.embedding is not None and self.embedding.endswith((".npy", ".npz"))

    def _items(self, path: Path) -> pd.DataFrame:
        """The table of items, with all columns that were named."""
        import pandas as pd

        columns = {"item": TEXT, "terms": TEXT} if self.needs_terms else {"item": TEXT}
        if path.suffix == ".parquet":
            table = pd.concat(list(read_parquet(path, columns)), ignore_index=True)
        else:
            table = read_whole(path, columns)
        if "terms" not in table:
            table["terms"] = ""
        named = {"ignore": self.ignore, "feedback_columns": self.feedback_columns}
        if self.embedding is not None and not self._embedded_in_a_file:
            named["embedding"] = [self.embedding]
        known = [str(name) for name in table.columns if name not in (LINE, "item", "terms")]
        for option, names in named.items():
            for name in names:
                if name not in known:
                    raise DataError(f"{path}: {option}: no side column {name!r}{choices(name, known)}")
        expect_filled(path, table, "item")
        table["item"] = _as_ids(table["item"])
        expect_distinct(path, "item", table, "item")
        return table


def _as_ids(values: pd.Series[Any]) -> np.ndarray:
    """[n] the ids of a column; see `as_id`."""
    import pandas as pd

    codes, distinct = pd.factorize(values)
    ids = np.empty(len(distinct), object)
    ids[:] = [as_id(text) for text in distinct]
    return ids[codes]


def _side(table: pd.DataFrame, other: set[str | None]) -> tuple[list[Any], dict[str, np.ndarray]]:
    """One-hot and numeric side features, out of the columns that have no `other` meaning."""
    import pandas as pd

    labels, numbers = [], {}
    for name in table.columns:
        if name in other:
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


def _numbers(path: Path, table: pd.DataFrame, name: str) -> np.ndarray:
    """[N] a column of numbers; NaN where it is empty."""
    import pandas as pd

    texts = table[name].str.strip()
    values = pd.to_numeric(texts, errors="coerce")
    wrong = (texts != "") & ~(values.abs() <= LARGEST)
    if wrong.any():
        raise DataError(
            f"{path}: line {place(table, wrong)}: {name}: feedback_columns are numbers, got "
            f"{shown(texts[wrong].iloc[0])}"
        )
    return values.to_numpy(np.float64)
