"""The records as a CSV file."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conbandit_torch.callbacks.base import Callback
from conbandit_torch.core.files import at_once
from conbandit_torch.running.record import COLUMNS, Record

if TYPE_CHECKING:
    from conbandit_torch.loop import Simulation


class MetricsFile(Callback):
    """Writes the records to a CSV file, a row as soon as it is known.

    Args:
        path: the file, which is made anew, with the records that a resumed simulation has already.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_start(self, simulation: Simulation) -> None:
        """Write the header, and the records so far."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with at_once(self.path) as unfinished:
            self._write(unfinished, "w", COLUMNS, *map(self._row, simulation.records))

    def on_record(self, simulation: Simulation, record: Record) -> None:
        """Write a row."""
        self._write(self.path, "a", self._row(record))

    def _row(self, record: Record) -> list[Any]:
        values = vars(record)
        return [values[column] for column in COLUMNS]

    @staticmethod
    def _write(path: Path, mode: str, *rows: Any) -> None:
        with path.open(mode, newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
