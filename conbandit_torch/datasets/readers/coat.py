"""Coat: ratings of coats, some chosen by the users and some by chance (Schnabel et al., ICML 2016)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from conbandit_torch.core.errors import DataError
from conbandit_torch.datasets.base import Dataset, Reader
from conbandit_torch.datasets.reading.faults import LARGEST, shown
from conbandit_torch.datasets.reading.files import expand, find, need
from conbandit_torch.datasets.reading.opening import opened
from conbandit_torch.datasets.reading.source import EventList, Labels, Source, check_least

_FEATURES = "user_item_features/item_features.ascii"
_NAMES = "user_item_features/item_features_map.txt"


class Coat(Reader):
    """Coat: every user rated 24 coats of their own choice (`train`), and 16 drawn uniformly (`test`).

    `test` is a log of items served at random, once per user: play it with `Replay(served_at_random=True)`.
    Key-terms are the items' features (for whom, kind, colour, whether on the front page), by the names in
    `item_features_map.txt` if that file is there. Times are not known: events are in the order of items.

    Args:
        path: the unpacked folder `coat`.
        part: "test" or "train".
        min_user_feedback: ratings that a user must have given.
        min_item_feedback: ratings that a coat must have been given.
        positive_from: stars from which on a rating is 1; with fewer it is 0.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        part: Literal["test", "train"] = "test",
        min_user_feedback: int = 1,
        min_item_feedback: int = 0,
        positive_from: float = 4.0,
    ) -> None:
        check_least(min_user_feedback=min_user_feedback, min_item_feedback=min_item_feedback)
        self.path, self.part, self.positive_from = expand(path), part, positive_from
        self.min_user_feedback, self.min_item_feedback = min_user_feedback, min_item_feedback

    def files(self) -> list[Path]:
        """Ratings, items' features and, if there, their names."""
        named = [need(self.path, f"{self.part}.ascii"), need(self.path, _FEATURES)]
        names = find(self.path, _NAMES)
        return named if names is None else [*named, names]

    def read(self) -> Dataset:
        """Everything, after the thresholds."""
        ratings_file, features_file, *names_file = self.files()
        ratings, features = _matrix(ratings_file), _matrix(features_file)  # [U, N], [N, F]
        if ratings.shape[1] != len(features):
            raise DataError(
                f"{features_file}: expected {ratings.shape[1]} lines, one per column of {ratings_file.name}, "
                f"got {len(features)}"
            )
        names = [f"feature {number}" for number in range(features.shape[1])]
        if names_file:
            names = _lines(names_file[0])
            if len(names) != features.shape[1] or len(set(names)) != len(names):
                raise DataError(
                    f"{names_file[0]}: expected {features.shape[1]} different names, one per column of "
                    f"{features_file.name}, got {len(names)}"
                )
        terms = Labels()
        for item, column in zip(*(axis.tolist() for axis in np.nonzero(features)), strict=True):
            terms.add(item, names[column])
        user, item = np.nonzero(ratings)
        events = EventList()
        events.add(
            user.astype(np.int32), item.astype(np.int32), ratings[user, item], np.zeros(len(user), np.int64)
        )
        coats = [str(number) for number in range(len(features))]
        return Source(
            self.path,
            users=[str(number) for number in range(len(ratings))],
            items=coats,
            titles=[f"coat {name}" for name in coats],
            terms=[terms.matrix(len(coats))],
            labels=[],
            numbers={},
            feedback_numbers={},
            feedback=events.feedback(),
            counts={"users": len(ratings), "coats": len(coats), "ratings": len(user)},
        ).narrowed(self.min_user_feedback, self.min_item_feedback, needs_terms=self.needs_terms)


def _lines(path: Path) -> list[str]:
    """Lines that are not blank."""
    with opened(path) as (raw, _):
        try:
            return [line.strip() for line in raw.read().decode("utf-8-sig").splitlines() if line.strip()]
        except UnicodeDecodeError:
            raise DataError(f"{path}: not text in utf-8") from None


def _matrix(path: Path) -> np.ndarray:
    """[rows, columns] numbers between blanks."""
    rows: list[list[float]] = []
    for number, line in enumerate(_lines(path), start=1):
        try:
            rows.append([float(word) for word in line.split()])
        except ValueError:
            raise DataError(f"{path}: line {number}: expected numbers, got {shown(line)}") from None
        if len(rows[-1]) != len(rows[0]):
            raise DataError(f"{path}: line {number}: expected {len(rows[0])} numbers, got {len(rows[-1])}")
        if not all(abs(value) <= LARGEST for value in rows[-1]):
            raise DataError(f"{path}: line {number}: expected finite numbers, got {shown(line)}")
    if not rows:
        raise DataError(f"{path}: the file is empty")
    return np.array(rows)
