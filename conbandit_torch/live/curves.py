"""Curves of a study in TensorBoard, while it goes on: the same tags as those of a replayed log."""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from conbandit_torch.callbacks.events import say_errors_once
from conbandit_torch.core.files import make_folder
from conbandit_torch.live.records import Happened
from conbandit_torch.running.folder import event_files
from conbandit_torch.running.objective import CTR

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

_WINDOW = 50  # rewards
_FLUSH = 2  # seconds until what was logged is on the disk


class Curve:
    """How one policy fares, reward by reward.

    Tags: CTR/cumulative (mean reward so far), CTR/window (of the last 50), questions/per_user and
    people/number, at the number of rewards so far.

    Args:
        folder: where the events go. Those of an earlier start are replaced: the store has all of them.
    """

    def __init__(self, folder: Path) -> None:
        # Imported here: TensorBoard takes a second to import.
        from torch.utils.tensorboard import SummaryWriter

        say_errors_once()
        make_folder(folder)
        for path in event_files(folder):
            path.unlink()
        self._writer: SummaryWriter = SummaryWriter(str(folder), flush_secs=_FLUSH)
        self._lock = threading.Lock()
        self._number, self._sum, self._answers = 0, 0.0, 0
        self._people: set[str] = set()
        self._last: deque[float] = deque(maxlen=_WINDOW)

    def note(self, happened: Happened) -> None:
        """Take in an event of the store."""
        if happened.kind == "answer":
            self.answered(happened.user, happened.time)
        elif happened.kind == "reward" and happened.value is not None:
            self.rewarded(happened.user, happened.value, happened.time)

    def answered(self, user: str, time: float | None = None) -> None:
        """Somebody has answered a question."""
        with self._lock:
            self._answers += 1
            self._people.add(user)

    def rewarded(self, user: str, reward: float, time: float | None = None) -> None:
        """An item has its reward."""
        with self._lock:
            self._people.add(user)
            self._last.append(reward)
            self._number += 1
            self._sum += reward
            scalars = {
                CTR.tag: self._sum / self._number,
                f"{CTR.group}/window": sum(self._last) / len(self._last),
                "questions/per_user": self._answers / len(self._people),
                "people/number": len(self._people),
            }
            for tag, value in scalars.items():
                self._writer.add_scalar(tag, value, self._number, time)

    def close(self) -> None:
        """Bring everything to the disk."""
        with self._lock:
            self._writer.close()
