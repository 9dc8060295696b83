"""Sums a results folder up over seeds: `curves.csv`, and TensorBoard's curves of every policy.

Of replayed logs also `windows.csv`, the click-through rates in windows of counted events.
"""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np

from conbandit_torch.core.files import replacing
from conbandit_torch.results.bands import band, write_bands
from conbandit_torch.results.read import METRICS, PolicyResults, read_results
from conbandit_torch.running.folder import AGGREGATE, CURVES, WINDOWS


def aggregate(folder: Path) -> None:
    """Write `curves.csv` and, of policies with several seeds, TensorBoard's curves over seeds."""
    results = read_results(folder)
    _write_curves(folder / CURVES, results)
    if any(own.clicks is not None for own in results.values()):
        _write_windows(folder / WINDOWS, results)
    shutil.rmtree(folder / AGGREGATE, ignore_errors=True)
    write_bands(folder, results)


def _write_curves(path: Path, results: dict[str, PolicyResults]) -> None:
    """A line per policy and round: means over seeds with their 95 % t intervals (empty for one seed)."""
    columns = [f"{metric}{end}" for metric in METRICS for end in ("", "_low", "_high")]
    with replacing(path) as unfinished, unfinished.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["policy", "round", "seeds", *columns])
        for name, own in results.items():
            bands = [band(own.metrics[metric]) for metric in METRICS]
            for t, number in enumerate(own.rounds):
                writer.writerow([name, number, len(own.seeds), *_cells(bands, t)])


def _write_windows(path: Path, results: dict[str, PolicyResults]) -> None:
    """A line per policy and full window, which ends at so many counted events; also relative to the log's."""
    columns = [f"{metric}{end}" for metric in ("ctr", "of_random") for end in ("", "_low", "_high")]
    with replacing(path) as unfinished, unfinished.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["policy", "counted", "seeds", *columns])
        for name, own in results.items():
            if own.clicks is None:
                continue
            bands = [band(own.clicks.ctr), band(own.clicks.ctr / own.clicks.logged[:, None])]
            for t in range(own.clicks.ctr.shape[1]):
                writer.writerow([name, (t + 1) * own.clicks.window, len(own.seeds), *_cells(bands, t)])


def _cells(bands: list[tuple[np.ndarray, ...]], t: int) -> list[str]:
    """Mean, low and high of every band at t; empty where there is no number."""
    numbers = [line[t] for band in bands for line in band]
    return ["" if np.isnan(value) else f"{value:.9g}" for value in numbers]
