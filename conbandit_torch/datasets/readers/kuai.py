"""KuaiRand and KuaiRec: logs of short videos."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from conbandit_torch.core.errors import DataError
from conbandit_torch.datasets.base import Dataset, Reader
from conbandit_torch.datasets.reading.faults import REAL, TEXT, WHOLE, expect_distinct
from conbandit_torch.datasets.reading.files import expand, need, read_table, read_whole
from conbandit_torch.datasets.reading.lists import term_lists
from conbandit_torch.datasets.reading.source import EventList, Ids, Labels, Source, check_least

_LOGS = ("log_random_4_22_to_5_08_pure.csv", "log_random_4_22_to_5_08_1k.csv", "small_matrix.csv")
_VIDEOS = ("video_features_basic_pure.csv", "video_features_basic_1k.csv", "item_categories.csv")
_VALUES = ("is_click", "watch_ratio")
_TERMS = ("tag", "feat", "terms")


class Kuai(Reader):
    """KuaiRand's and KuaiRec's format: who was shown which video, and what came of it.

    Key-terms are the videos' categories (column `tag` as `12,65`, or `feat` as `[12, 65]`), called
    `tag 12`. KuaiRand's `log_random` is of videos that were drawn uniformly and put among the others: play it
    with `Replay(served_at_random=True)`. In KuaiRec a user has seen every video.

    Args:
        path: the folder of the CSV files (KuaiRand's is `data`).
        log: name of the log's file; None: the random log of KuaiRand, or KuaiRec's `small_matrix.csv`.
        value: the column that says what came of it; None: `is_click`, or else `watch_ratio`.
        min_user_feedback: events that a user must have.
        min_item_feedback: events that a video must have.
        positive_from: feedback of at least this value is 1, other feedback 0.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        log: str | None = None,
        value: str | None = None,
        min_user_feedback: int = 1,
        min_item_feedback: int = 1,
        positive_from: float = 1.0,
    ) -> None:
        check_least(min_user_feedback=min_user_feedback, min_item_feedback=min_item_feedback)
        self.path, self.log, self.value, self.positive_from = expand(path), log, value, positive_from
        self.min_user_feedback, self.min_item_feedback = min_user_feedback, min_item_feedback

    def files(self) -> list[Path]:
        """The log and the videos."""
        return [need(self.path, *([self.log] if self.log else _LOGS)), need(self.path, *_VIDEOS)]

    def read(self) -> Dataset:
        """Everything, after the thresholds."""
        log_file, videos_file = self.files()
        table = read_whole(videos_file, {"video_id": WHOLE})
        expect_distinct(videos_file, "video", table, "video_id")
        column = _first(videos_file, table, _TERMS)
        videos, users, events, terms = Ids(table["video_id"].tolist()), Ids(), EventList(), Labels()
        for video, names in enumerate(term_lists(videos_file, table, column, ",")):
            for name in names:
                terms.add(video, f"tag {name}")
        head = next(read_table(log_file, {"user_id": TEXT, "video_id": TEXT}, rows=1), None)
        value = self.value or _first(log_file, head, _VALUES)
        kinds, moments = {"user_id": WHOLE, "video_id": WHOLE, value: REAL}, {"time_ms": WHOLE}
        for piece in read_table(log_file, kinds, optional=moments):
            # In milliseconds in KuaiRand; in KuaiRec `timestamp` has gaps, and then the log's order counts.
            times = piece["time_ms"] // 1000 if "time_ms" in piece else np.zeros(len(piece), np.int64)
            positions = users.positions(piece["user_id"]), videos.find(piece["video_id"])
            events.add(*positions, piece[value], times)
        feedback = events.feedback()
        return Source(
            self.path,
            users=users.names(),
            items=videos.names(),
            titles=[f"video {name}" for name in videos.names()],
            terms=[terms.matrix(len(videos))],
            labels=[],
            numbers={},
            feedback_numbers={},
            feedback=feedback,
            counts={"users": len(users), "videos": len(videos), "events": len(feedback.users)},
        ).narrowed(self.min_user_feedback, self.min_item_feedback, needs_terms=self.needs_terms)


def _first(path: Path, table: Any, names: tuple[str, ...]) -> str:
    """The first of the columns that is there."""
    has = [] if table is None else list(table.columns)
    for name in names:
        if name in has:
            return name
    raise DataError(f"{path}: there is no column {' or '.join(map(repr, names))}")
