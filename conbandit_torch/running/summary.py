"""`summary.csv`, a line per job from the first that ends; and what is made from many jobs, sparingly."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

from conbandit_torch.core.files import naming, replacing
from conbandit_torch.running.folder import SUMMARY
from conbandit_torch.running.held import Held
from conbandit_torch.running.plan import Plan
from conbandit_torch.running.result import SUMMARY_COLUMNS, JobResult


class SummaryFile:
    """Keeps `summary.csv` up to date: every result costs one line, however many there are.

    While jobs run, lines stand in the order in which jobs ended. `finish` puts them into the experiment's
    order, policy by policy; results that the folder holds of other seeds or policies come after them.

    Args:
        folder: the results folder.
        experiment: what runs.
        held: the results that the folder holds already.
    """

    def __init__(self, folder: Path, experiment: Plan, held: Held) -> None:
        self._path, self._experiment = folder / SUMMARY, experiment
        self._results = dict(held)
        self._write(with_errors=True)

    def add(self, result: JobResult) -> None:
        """Append a job's line, unless it was stopped."""
        if result.stopped:
            return
        self._results[result.job] = result
        with naming(self._path), self._path.open("a", newline="", encoding="utf-8") as file:
            file.write(_lines([result.summary()], [*SUMMARY_COLUMNS, "error"]))

    def finish(self) -> None:
        """Write all lines again, in order, with a column for errors if there are any."""
        self._write(with_errors=any(result.error for result in self._results.values()))

    def _write(self, *, with_errors: bool) -> None:
        own = {(policy, seed) for policy, seed in self._experiment.jobs()}
        ordered = [(policy, seed) for policy in self._experiment.policies for seed in self._experiment.seeds]
        ordered += sorted(job for job in self._results if job not in own)
        rows = [self._results[job].summary() for job in ordered if job in self._results]
        columns = [*SUMMARY_COLUMNS, "error"] if with_errors else list(SUMMARY_COLUMNS)
        with replacing(self._path) as path:
            path.write_text(",".join(columns) + "\n" + _lines(rows, columns), encoding="utf-8", newline="")


def _lines(rows: list[dict[str, Any]], columns: list[str]) -> str:
    text = StringIO(newline="")
    csv.DictWriter(text, columns, lineterminator="\n").writerows(rows)
    return text.getvalue()


class Sparingly:
    """Calls a function at most so often that it takes a small share of the time, whatever one call takes.

    Args:
        function: what to call.
        share: of the time since the first call.
    """

    def __init__(self, function: Callable[[], None], share: float = 0.05) -> None:
        self._function, self._share = function, share
        self._next = 0.0

    def __call__(self) -> None:
        """Call it, unless the last call was too recent."""
        start = time.monotonic()
        if start < self._next:
            return
        self._function()
        end = time.monotonic()
        self._next = end + (end - start) / self._share
