"""MovieLens 100k with what is known of its users, as a log with context."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from conbandit_torch.core.errors import DataError
from conbandit_torch.core.randomness import Stream
from conbandit_torch.datasets.base import Dataset
from conbandit_torch.datasets.events import LoggedEvents
from conbandit_torch.datasets.readers.movielens import MovieLens
from conbandit_torch.datasets.reading.faults import TEXT, WHOLE, expect_distinct
from conbandit_torch.datasets.reading.files import UTF8, need, read_whole
from conbandit_torch.datasets.reading.source import Ids

if TYPE_CHECKING:
    import pandas as pd

_USER = {"user": WHOLE, "age": WHOLE, "gender": TEXT, "occupation": TEXT, "zip": TEXT}


class MovieLensUsers(MovieLens):
    """MovieLens 100k for one policy that serves everyone, and knows age, gender and occupation.

    A policy that learns every user for itself has no use for what is the same in all of a user's events, so
    here everyone is one user, and these features are the context of the events, for `ReplayEvents`. An event
    is a rating: it serves that movie, and offers besides `pool - 1` others, drawn among those that the same
    person rates later, as in `Replay`; a person's last ratings, with fewer than that to come, are left out.
    Key-terms and side features are those of `MovieLens`.

    Args:
        path: the unpacked folder `ml-100k`.
        pool: candidates of an event, the rated movie among them.
        min_user_feedback: ratings that a person must have given.
        min_item_feedback: ratings that a movie must have been given.
        positive_from: a rating of at least this is 1, a lower one 0.
        seed: of the drawn candidates.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        pool: int = 10,
        min_user_feedback: int = 1,
        min_item_feedback: int = 0,
        positive_from: float = 4.0,
        seed: int = 0,
    ) -> None:
        super().__init__(
            path,
            min_user_feedback=min_user_feedback,
            min_item_feedback=min_item_feedback,
            positive_from=positive_from,
        )
        if pool < 2:
            raise ValueError(f"pool must be at least 2, the rated movie and another, got {pool}")
        self.pool, self.seed = pool, seed

    def files(self) -> list[Path]:
        """Those of MovieLens, and the users."""
        return [*super().files(), need(self.path, "u.user")]

    def read(self) -> Dataset:
        """Everything, after the thresholds."""
        *_, path = self.files()
        data = super().read()
        table = read_whole(
            path, _USER, separator="|", header=False, quotes=False, encodings=(*UTF8, "latin-1")
        )
        expect_distinct(path, "user", table, "user")
        rows = Ids(table["user"].astype(str)).find(data.users)
        if (rows < 0).any():
            raise DataError(f"{path}: user {data.users[int(np.flatnonzero(rows < 0)[0])]} is missing")
        names, features = _features(table.iloc[rows])
        who, served, offered = self._offers(data)
        if not len(served):
            raise DataError(f"{self.path}: pool={self.pool} leaves no event: nobody rated so many movies")
        events = torch.arange(len(served))
        clicks = data.feedback.values[served] >= np.float32(self.positive_from)
        log = LoggedEvents(
            users=torch.zeros_like(events),
            times=torch.from_numpy(data.feedback.times[served]),
            offers=events,
            first=torch.arange(len(served) + 1) * self.pool,
            candidates=offered.reshape(-1),
            events=events,
            items=offered[:, 0].contiguous(),
            clicks=torch.from_numpy(clicks.astype(np.float64)),
            context=torch.from_numpy(features[who]),
            context_names=names,
        )
        counts = data.counts | {"ratings that are events": len(served)}
        feedback = data.feedback._replace(users=np.zeros_like(data.feedback.users))
        everyone = np.array(["everyone"], object)
        return replace(data, users=everyone, feedback=feedback, events=log, counts=counts)

    def _offers(self, data: Dataset) -> tuple[np.ndarray, np.ndarray, Tensor]:
        """[E] whose events, [E] rows of the feedback, and [E, pool] candidates, the rated movie first."""
        users, items = data.feedback.users, data.feedback.items
        pairs = users.astype(np.int64) * len(data.items) + items
        rows = np.sort(np.unique(pairs, return_index=True)[1])  # a movie counts the first time
        own = rows[np.argsort(users[rows], kind="stable")]  # person by person, in the order of time
        count = np.bincount(users[own], minlength=len(data.users))
        number = np.arange(len(own)) - np.repeat(np.cumsum(count) - count, count)
        left = count[users[own]] - number  # movies to come, this one included
        place = np.flatnonzero(left >= self.pool)
        place = place[np.argsort(own[place])]  # in the order of time again
        who, nth, to_come = (
            torch.from_numpy(values[place].astype(np.int64)) for values in (users[own], number, left)
        )
        others = Stream(self.seed, "movies offered").subsets_of(who, nth, self.pool - 1, to_come - 1)
        places = torch.from_numpy(place)[:, None]
        places = torch.cat((places, places + 1 + others), dim=1)  # [E, pool] into `own`
        offered = torch.from_numpy(items[own].astype(np.int64))[places]
        return users[own][place], own[place], offered


def _features(table: pd.DataFrame) -> tuple[list[str], np.ndarray]:
    """Names, and [U, F] age, and one-hot gender and occupation without the first value of each."""
    names, columns = ["age"], [table["age"].to_numpy(np.float64)]
    for column in ("gender", "occupation"):
        for value in sorted(set(table[column]))[1:]:
            names.append(f"{column}: {value}")
            columns.append((table[column] == value).to_numpy(np.float64))
    return names, np.stack(columns, axis=1)
