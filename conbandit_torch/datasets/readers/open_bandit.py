"""Open Bandit: ZOZOTOWN's log of fashion items, served at random or by Bernoulli Thompson sampling."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from conbandit_torch.core.errors import DataError
from conbandit_torch.datasets.base import Dataset, Interactions, Reader
from conbandit_torch.datasets.reading.faults import LARGEST, REAL, TEXT, WHOLE, expect_distinct, place, shown
from conbandit_torch.datasets.reading.files import expand, need, read_table, read_whole, require
from conbandit_torch.datasets.reading.logged import ReadLog
from conbandit_torch.datasets.reading.source import Ids, Labels, Source

if TYPE_CHECKING:
    import pandas as pd

_ROW = {"timestamp": TEXT, "item_id": WHOLE, "position": WHOLE, "click": WHOLE, "propensity_score": REAL}
_USER_FEATURES = tuple(f"user_feature_{number}" for number in range(4))

# Not used: as numbers they take less memory than as text.
_AFFINITIES = dict.fromkeys((f"user-item_affinity_{number}" for number in range(80)), REAL)


class OpenBandit(Reader):
    """Open Bandit (Saito et al. 2021): what was served where, how likely that was, and what was clicked.

    The log knows no users, only four features of each. A user here is either a segment, all with the same
    features, or everyone is one user, and the features, one-hot, are the events' context. Key-terms are the
    items' categories (features 1 to 3), side features these and feature 0. Every event offers all items of
    the campaign and serves one. The columns of affinities between users and items are not used.

    Args:
        path: the folder `open_bandit_dataset` or `obd`, which holds `random` and `bts`.
        policy: whose log: "random", or "bts" for Thompson sampling.
        campaign: "all", "men" or "women".
        users: "segments", or "one" with context.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        policy: Literal["random", "bts"] = "random",
        campaign: Literal["all", "men", "women"] = "all",
        users: Literal["segments", "one"] = "segments",
    ) -> None:
        self.path, self.policy, self.campaign, self.users = expand(path), policy, campaign, users

    def files(self) -> list[Path]:
        """The log and the items."""
        require(self.path)
        inside = f"{self.policy}/{self.campaign}"
        return [
            need(self.path, f"{inside}/{self.campaign}.csv"),
            need(self.path, f"{inside}/item_context.csv"),
        ]

    def read(self) -> Dataset:
        """Everything."""
        log_file, items_file = self.files()
        table = read_whole(items_file, {"item_id": WHOLE, "item_feature_0": REAL})
        expect_distinct(items_file, "item", table, "item_id")
        items, segments = Ids(table["item_id"].tolist()), Ids()
        terms = Labels()
        for name in ("item_feature_1", "item_feature_2", "item_feature_3"):
            if name in table:
                for item, value in enumerate(table[name]):
                    terms.add(item, f"{name}: {value}")
        parts: list[tuple[np.ndarray, ...]] = []
        columns = _ROW | dict.fromkeys(_USER_FEATURES, TEXT)
        for piece in read_table(log_file, columns, optional=_AFFINITIES, rows=2**16):
            _check(log_file, piece)
            first, *others = _USER_FEATURES
            joined = piece[first].str.cat(piece[others], sep=" ")
            rest = piece["position"], piece["click"], piece["propensity_score"]
            parts.append(
                (
                    _seconds(log_file, piece),
                    items.find(piece["item_id"]),
                    segments.positions(joined),
                    *(column.to_numpy() for column in rest),
                )
            )
        if not parts or not len(parts[0][0]):
            raise DataError(f"{log_file}: there are no events")
        times, served, segment, position, click, propensity = (
            np.concatenate(part) for part in zip(*parts, strict=True)
        )
        order = np.argsort(times, kind="stable")
        users = segment if self.users == "segments" else np.zeros_like(segment)
        context, context_names = None, tuple[str, ...]()
        if self.users == "one":
            context_names, flags = _one_hot(segments.names())
            context = flags[segment]
        names = segments.names() if self.users == "segments" else ["everyone"]
        click = click.astype(np.float64)
        return Source(
            self.path,
            users=names,
            items=items.names(),
            titles=[f"item {name}" for name in items.names()],
            terms=[terms.matrix(len(items))],
            labels=[],
            numbers={"item_feature_0": table["item_feature_0"].to_numpy()},
            feedback_numbers={},
            feedback=Interactions(users[order], served[order], click[order].astype(np.float32), times[order]),
            counts={"users": len(names), "items": len(items), "events": len(times)},
            log=ReadLog(
                users,
                times,
                np.ones(len(times), np.int64),
                served,
                click,
                on_offer=np.arange(len(items)),
                positions=position - position.min(),
                propensities=propensity.astype(np.float64),
                context=context,
                context_names=context_names,
            ),
        ).narrowed(1, 0, needs_terms=self.needs_terms)


def _check(path: Path, piece: pd.DataFrame) -> None:
    chance = piece["propensity_score"]
    for name, wrong, expected in (
        ("click", ~piece["click"].isin([0, 1]), "0 or 1"),
        ("propensity_score", ~((chance > 0) & (chance <= 1)), "above 0 and at most 1"),
        ("position", ~(piece["position"].abs() <= LARGEST) | (piece["position"] < 0), "at least 0"),
    ):
        if wrong.any():
            value = shown(piece[name][wrong].iloc[0])
            raise DataError(f"{path}: line {place(piece, wrong)}: {name}: expected {expected}, got {value}")


def _seconds(path: Path, piece: pd.DataFrame) -> np.ndarray:
    """[n] int64 seconds since 1970."""
    import pandas as pd

    times = pd.to_datetime(piece["timestamp"], format="ISO8601", utc=True, errors="coerce")
    if times.isna().any():
        value = shown(piece["timestamp"][times.isna()].iloc[0])
        raise DataError(
            f"{path}: line {place(piece, times.isna())}: timestamp: expected one such as "
            f"2019-11-24 00:00:17.004101+00:00, got {value}"
        )
    return times.dt.tz_convert(None).to_numpy().astype("datetime64[s]").astype(np.int64)


def _one_hot(segments: list[str]) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of the features' values, and [segments, values] 1 where a segment has one.

    The first value of every feature has no column: with all of them the columns of a feature would add up
    to 1, which the context has already.
    """
    rows = [segment.split(" ") for segment in segments]
    names, columns = [], []
    for number, feature in enumerate(_USER_FEATURES):
        own = np.array([row[number] for row in rows], object)
        for value in sorted(set(own))[1:]:
            names.append(f"{feature}: {value}")
            columns.append((own == value).astype(np.float64))
    return tuple(names), np.stack(columns, 1) if columns else np.zeros((len(rows), 0))
