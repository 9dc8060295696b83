"""The records as a CSV file."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from conbandit_torch.callbacks.base import Callback, SimulationView
from conbandit_torch.core.files import make_folder, naming, replacing, sync
from conbandit_torch.running.record import COLUMNS, Record


class MetricsFile(Callback):
    """Writes the records to a CSV file, a row as soon as it is known.

    Args:
        path: the file, which is made anew, with the records that a resumed simulation has already.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_start(self, simulation: SimulationView) -> None:
        """Write the header, and the records so far."""
        make_folder(self.path.parent)
        with replacing(self.path) as unfinished:
            self._write(unfinished, "w", COLUMNS, *map(self._row, simulation.records))

    def on_record(self, simulation: SimulationView, record: Record) -> None:
        """Write a row; a power failure may lose it, but not the checkpoint's records to write it again."""
        self._write(self.path, "a", self._row(record))

    def on_end(self, simulation: SimulationView) -> None:
        """Bring the rows to the disk, before the checkpoints that hold them too are removed."""
        sync(self.path)

    def _row(self, record: Record) -> list[Any]:
        return [getattr(record, column) for column in COLUMNS]

    @staticmethod
    def _write(path: Path, mode: str, *rows: Any) -> None:
        with naming(path), path.open(mode, newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
