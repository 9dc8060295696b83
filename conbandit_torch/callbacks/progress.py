"""The records as a line on the screen."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from conbandit_torch.callbacks.base import Callback
from conbandit_torch.running.objective import objective_of

if TYPE_CHECKING:
    from conbandit_torch.loop import Simulation
    from conbandit_torch.running.record import Record


class ProgressBar(Callback):
    """A line with the round, the regret or the click-through rate so far, and the speed.

    Args:
        bars: where the line appears; made by `progress_bars`.
        title: what is running.
    """

    def __init__(self, bars: Progress, title: str) -> None:
        self._bars, self._title = bars, title
        self._task = TaskID(0)
        self._start, self._first = 0.0, 0

    def on_start(self, simulation: Simulation) -> None:
        """Show the line."""
        self._start, self._first = time.perf_counter(), simulation.round
        self._task = self._bars.add_task(
            self._title, total=simulation.rounds, completed=simulation.round, outcome="", speed=""
        )

    def on_record(self, simulation: Simulation, record: Record) -> None:
        """Move on."""
        speed = (record.round - self._first) / (time.perf_counter() - self._start)
        self._bars.update(
            self._task,
            completed=record.round,
            outcome=objective_of([record]).describe(record),
            speed=f"{speed:,.0f} rounds/s",
        )

    def on_end(self, simulation: Simulation) -> None:
        """Make room for the next."""
        self._bars.remove_task(self._task)


def progress_bars(**kwargs: Any) -> Progress:
    """Bars for `ProgressBar`, to be used as a context manager."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("round {task.completed}/{task.total}"),
        TextColumn("{task.fields[outcome]}"),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
        **kwargs,
    )
