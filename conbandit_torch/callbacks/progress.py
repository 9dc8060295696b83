"""The records as a line on the screen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from conbandit_torch.callbacks.base import Callback, SimulationView
from conbandit_torch.running.objective import objective_of
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

    def on_start(self, simulation: SimulationView) -> None:
        """Show the line."""
        self._start, self._first = time.perf_counter(), simulation.round
        self._task = self._bars.add_task(
            self._title,
            total=simulation.rounds,
            completed=simulation.round,
            outcome="",
            speed="",
            unit="round",
        )

    def on_record(self, simulation: SimulationView, record: Record) -> None:
        """Move on."""
        speed = (record.round - self._first) / (time.perf_counter() - self._start)
        self._bars.update(
            self._task,
            completed=record.round,
            outcome=objective_of([record]).describe(record),
            speed=f"{speed:,.0f} rounds/s",
        )

    def on_end(self, simulation: SimulationView) -> None:
        """Make room for the next."""
        self._bars.remove_task(self._task)


class ProgressLines(Callback):
    """A line per minute, for a run without a terminal.

    Args:
        say: prints a line.
        title: what is running.
        every: seconds between two lines.
    """

    def __init__(self, say: Callable[[str], None], title: str, every: float = 60.0) -> None:
        self._say, self._title, self._every = say, title, every
        self._said, self._first, self._start = 0.0, 0, 0.0

    def on_start(self, simulation: SimulationView) -> None:
        """Start the clock."""
        self._said = self._start = time.monotonic()
        self._first = simulation.round

    def on_record(self, simulation: SimulationView, record: Record) -> None:
        """Say where the run is, if a minute has passed."""
        now = time.monotonic()
        if now - self._said < self._every:
            return
        self._said = now
        speed = (record.round - self._first) / (now - self._start)
        where = f"round {record.round:,} of {simulation.rounds:,}"
        self._say(f"{self._title}: {where}, {objective_of([record]).describe(record)}, {speed:,.0f} rounds/s")


def progress_bars(**kwargs: Any) -> Progress:
    """Bars for `ProgressBar`, to be used as a context manager."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[unit]} {task.completed}/{task.total}"),
        TextColumn("{task.fields[outcome]}"),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
        **kwargs,
    )
