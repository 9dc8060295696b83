"""What readers share: ids to positions, labels to columns, and thresholds."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from conbandit_torch.core.errors import DataError
from conbandit_torch.datasets.base import Dataset, Interactions
from conbandit_torch.datasets.reading.logged import ReadLog

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class Ids:
    """Distinct ids, each with a position: the order in which they were first seen.

    Args:
        known: the first of them.
    """

    def __init__(self, known: Iterable[Any] = ()) -> None:
        self._positions = {value: position for position, value in enumerate(known)}

    def __len__(self) -> int:
        return len(self._positions)

    def position(self, value: Any) -> int:
        """The position of an id; a new one gets the next."""
        return self._positions.setdefault(value, len(self._positions))

    def find_one(self, value: Any) -> int:
        """The position of an id; -1 if it is unknown."""
        return self._positions.get(value, -1)

    def positions(self, values: Any) -> np.ndarray:
        """[n] int32 positions of many ids, new ones included."""
        return self._each(values, self.position)

    def find(self, values: Any) -> np.ndarray:
        """[n] int32 positions of many ids; -1 where unknown."""
        return self._each(values, self.find_one)

    def names(self) -> list[str]:
        """The ids as text."""
        return [str(value) for value in self._positions]

    @staticmethod
    def _each(values: Any, position: Any) -> np.ndarray:
        import pandas as pd

        codes, distinct = pd.factorize(values)  # few of a piece's ids are distinct
        return np.array([position(value) for value in distinct.tolist()], np.int32)[codes]


class EventList:
    """Interactions as it is read, piece by piece."""

    def __init__(self) -> None:
        self._columns: tuple[list[np.ndarray], ...] = ([], [], [], [])

    def add(self, users: np.ndarray, items: np.ndarray, values: Any, times: Any) -> None:
        """A piece: [n] positions of users, and of items (-1: unknown), values and times."""
        piece: tuple[np.ndarray, ...]  # without this, what mypy infers depends on its hash seed
        piece = (users, items, np.asarray(values, np.float32), np.asarray(times, np.int64))
        for column, part in zip(self._columns, piece, strict=True):
            column.append(part)

    def feedback(self) -> Interactions:
        """Everything, in the order of time; events of one time as they were read."""
        kinds = (np.int32, np.int32, np.float32, np.int64)
        joined = []
        for column, kind in zip(self._columns, kinds, strict=True):
            joined.append(np.concatenate([np.empty(0, kind), *column]).astype(kind, copy=False))
            column.clear()  # so that no more than one column is there twice
        times = joined[3]
        if (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
            for position, column_ in enumerate(joined):
                joined[position] = column_[order]
        return Interactions(*joined)


class Labels:
    """Which items have which of some named labels: key-terms, cities, decades."""

    def __init__(self) -> None:
        self._ids = Ids()
        self._rows, self._columns = array("i"), array("i")

    def add(self, row: int, name: str) -> None:
        """Item `row` has the label `name`; saying so twice changes nothing but its count."""
        self._rows.append(row)
        self._columns.append(self._ids.position(name))

    def matrix(self, rows: int, least: int = 1) -> tuple[list[str], csr_matrix]:
        """Names of the labels given at least so many times, and [rows, names] 1 where an item has one."""
        from scipy.sparse import csr_matrix

        row, column = np.array(self._rows, np.int64), np.array(self._columns, np.int64)
        frequent = np.bincount(column, minlength=len(self._ids)) >= least
        keep = frequent[column]
        column = (np.cumsum(frequent) - 1)[column[keep]]
        shape = (rows, int(frequent.sum()))
        matrix = csr_matrix((np.ones(len(column), np.float32), (row[keep], column)), shape)
        matrix.data[:] = 1  # sums of what was said twice
        return [name for name, kept in zip(self._ids.names(), frequent, strict=True) if kept], matrix


@dataclass
class Source:
    """What a reader found in its files, before thresholds.

    Attributes:
        path: the folder, for errors.
        users: ids of users.
        items: ids of items.
        titles: names of items.
        terms: names and [N, K] matrices of the key-terms, by kind; side features too.
        labels: the same for further one-hot side features.
        numbers: [N] further side features; NaN where unknown. They are standardised.
        feedback_numbers: real numbers per item that sum up feedback, by name.
        feedback: what users did; item -1: not one of the items.
        counts: what was read.
        embedding: [N, F] items' own vectors, which then are their only side features; None: they have none.
        log: what was on offer and served, where the source says.
    """

    path: Path
    users: list[str]
    items: list[str]
    titles: list[str]
    terms: list[tuple[list[str], csr_matrix]]
    labels: list[tuple[list[str], csr_matrix]]
    numbers: dict[str, np.ndarray]
    feedback_numbers: dict[str, np.ndarray]
    feedback: Interactions
    counts: dict[str, int]
    embedding: np.ndarray | None = None
    log: ReadLog | None = None

    def narrowed(
        self, min_user_feedback: int, min_item_feedback: int, *, needs_terms: bool = True
    ) -> Dataset:
        """The data of users and items with enough feedback, counted once, on all that was read.

        Args:
            min_user_feedback: events that a user must have.
            min_item_feedback: events that an item must have.
            needs_terms: whether items without key-terms are left out.
        """
        from scipy.sparse import csr_matrix, hstack

        seen, counts = self.feedback, dict(self.counts)
        known = seen.items >= 0
        user_counts = np.bincount(seen.users, minlength=len(self.users))
        item_counts = np.bincount(seen.items[known], minlength=len(self.items))
        user_kept = self._enough("user", min_user_feedback, user_counts)
        item_kept = self._enough("item", min_item_feedback, item_counts)
        terms = hstack([matrix for _, matrix in self.terms], format="csr")
        named = np.asarray(terms.getnnz(axis=1)) > 0
        counts["feedback on unknown items (dropped)"] = int((~known).sum())
        counts["users with too little feedback (dropped)"] = int((~user_kept).sum())
        counts["items with too little feedback (dropped)"] = int((~item_kept).sum())
        nameless = int((item_kept & ~named).sum())
        counts[f"items without key-terms ({'dropped' if needs_terms else 'kept'})"] = nameless
        item_kept &= named | (not needs_terms)
        if not item_kept.any():
            raise DataError(
                f"{self.path}: none of the {nameless} items with enough feedback has key-terms; an "
                "environment's `key_terms` makes some, such as Clusters"
            )
        kept = known & user_kept[seen.users] & item_kept[seen.items]
        here = np.bincount(seen.users[kept], minlength=len(self.users)) > 0
        counts["users left without feedback (dropped)"] = int((user_kept & ~here).sum())
        if not here.any():
            raise DataError(
                f"{self.path}: no feedback is left: min_user_feedback={min_user_feedback} keeps "
                f"{int(user_kept.sum())} users, min_item_feedback={min_item_feedback} {int(item_kept.sum())} "
                "items with key-terms, and none of the users met one of the items"
            )
        new_user, new_item = (np.cumsum(some, dtype=np.int32) - 1 for some in (here, item_kept))
        rows = np.flatnonzero(item_kept)
        names = [name for kind, _ in self.terms for name in kind]
        term_names, item_terms = _used(names, terms[rows])
        label_names, labels = [], []
        for kind, matrix in self.labels:
            used_names, used = _used(kind, matrix[rows])
            label_names += used_names
            labels.append(used)
        numbers = self.numbers | self.feedback_numbers
        standardised = [_standardised(values[rows]) for values in numbers.values()]
        side: Any = hstack([item_terms, *labels, *standardised], format="csr", dtype=np.float32)
        side_names = [*term_names, *label_names, *numbers]
        if self.embedding is not None:
            side = csr_matrix(self.embedding[rows].astype(np.float32))
            side_names = [f"embedding {number + 1}" for number in range(side.shape[1])]
        return Dataset(
            users=_texts(np.array(self.users, object)[here]),
            items=_texts(np.array(self.items, object)[rows]),
            titles=_texts(np.array(self.titles, object)[rows]),
            terms=_texts(term_names),
            item_terms=item_terms,
            side=side,
            side_names=_texts(side_names),
            feedback=Interactions(
                new_user[seen.users[kept]], new_item[seen.items[kept]], seen.values[kept], seen.times[kept]
            ),
            counts=counts,
            events=None
            if self.log is None
            else self.log.renumbered(np.where(here, new_user, -1), np.where(item_kept, new_item, -1)),
            feedback_columns=0 if self.embedding is not None else len(self.feedback_numbers),
        )

    def _enough(self, kind: str, least: int, counts: np.ndarray) -> np.ndarray:
        enough: np.ndarray = counts >= least
        if not enough.any():
            most = (
                f"the most that one has is {counts.max()}" if len(counts) else "there is no feedback at all"
            )
            raise DataError(f"{self.path}: min_{kind}_feedback={least} leaves no {kind}: {most}")
        return enough


def item_numbers(feedback: Interactions, items: int) -> tuple[np.ndarray, np.ndarray]:
    """[N] mean value (NaN: none) and count of every item's feedback."""
    known = feedback.items >= 0
    positions = feedback.items[known]
    counts = np.bincount(positions, minlength=items)
    sums = np.bincount(positions, weights=feedback.values[known], minlength=items)
    means = np.divide(sums, counts, out=np.full(items, np.nan), where=counts > 0)
    return means, counts.astype(np.float64)


def check_least(**least: int | None) -> None:
    """Refuse thresholds below 0."""
    for name, value in least.items():
        if value is not None and value < 0:
            raise ValueError(f"{name} must be at least 0, got {value}")


def _used(names: list[str], matrix: csr_matrix) -> tuple[list[str], csr_matrix]:
    """Without the columns that no item is left in."""
    used = np.flatnonzero(matrix.getnnz(axis=0))
    return [names[column] for column in used], matrix[:, used]


def _standardised(values: np.ndarray) -> csr_matrix:
    """[N, 1] with mean 0 and variance 1; 0 where unknown, and everywhere if all are equal."""
    from scipy.sparse import csr_matrix

    known = np.isfinite(values)
    column = np.zeros(len(values))
    if known.any():
        centred = values[known] - values[known].mean()
        spread = centred.std()
        # Rounding leaves equal values a spread of about 1e-16 of their size.
        if spread > 1e-12 * np.abs(values[known]).max():
            column[known] = centred / spread
    return csr_matrix(column[:, None], dtype=np.float32)


def _texts(values: Any) -> np.ndarray:
    """Text in an array of objects: numpy's own text cuts off NUL, and takes four bytes a character."""
    texts = np.empty(len(values), object)
    texts[:] = values
    return texts
