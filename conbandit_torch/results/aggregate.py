"""Sums a results folder up over seeds: `curves.csv`, and one TensorBoard run a policy with bands.

Of replayed logs also `windows.csv`, the click-through rates in windows of counted events.
"""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np

from conbandit_torch.core.files import replacing
from conbandit_torch.results.read import METRICS, PolicyResults, intervals, read_results
from conbandit_torch.running.folder import AGGREGATE, CURVES, WINDOWS, event_files, put_events_first


def aggregate(folder: Path) -> None:
    """Write `curves.csv` and, where there are several seeds, the runs below `aggregate/`."""
    results = read_results(folder)
    _write_curves(folder / CURVES, results)
    if any(own.clicks is not None for own in results.values()):
        _write_windows(folder / WINDOWS, results)
    several = {name: own for name, own in results.items() if len(own.seeds) > 1}
    for rest in (folder / AGGREGATE).glob("*"):
        if rest.name not in several:
            shutil.rmtree(rest)
    for number, (name, own) in enumerate(several.items()):
        _write_events(folder / AGGREGATE / name, own, with_layout=number == 0)


def _write_curves(path: Path, results: dict[str, PolicyResults]) -> None:
    """A line per policy and round: means over seeds with their 95 % t intervals (empty for one seed)."""
    columns = [f"{metric}{end}" for metric in METRICS for end in ("", "_low", "_high")]
    with replacing(path) as unfinished, unfinished.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["policy", "round", "seeds", *columns])
        for name, own in results.items():
            bands = [_band(own.metrics[metric]) for metric in METRICS]
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
            bands = [_band(own.clicks.ctr), _band(own.clicks.ctr / own.clicks.logged[:, None])]
            for t in range(own.clicks.ctr.shape[1]):
                writer.writerow([name, (t + 1) * own.clicks.window, len(own.seeds), *_cells(bands, t)])


def _cells(bands: list[tuple[np.ndarray, ...]], t: int) -> list[str]:
    """Mean, low and high of every band at t; empty where there is no number."""
    numbers = [line[t] for band in bands for line in band]
    return ["" if np.isnan(value) else f"{value:.9g}" for value in numbers]


def _write_events(folder: Path, own: PolicyResults, with_layout: bool) -> None:
    """Mean, low and high of every metric under the same tags for all policies: a Margin chart shows bands."""
    from torch.utils.tensorboard import SummaryWriter

    put_events_first(folder)
    earlier = event_files(folder)
    # A TensorBoard that is running forgets what earlier files said, from round 0 on.
    with SummaryWriter(str(folder), purge_step=0) as writer:
        for metric in METRICS:
            for end, line in zip(("mean", "low", "high"), _band(own.metrics[metric]), strict=True):
                for number, value in zip(own.rounds, line, strict=True):
                    if not np.isnan(value):
                        writer.add_scalar(f"over_seeds/{metric}_{end}", value, int(number))
        if with_layout:
            tags = {
                metric: [f"over_seeds/{metric}_{end}" for end in ("mean", "low", "high")]
                for metric in METRICS
            }
            writer.add_custom_scalars(
                {"mean over seeds, 95 % t interval": {metric: ["Margin", tags[metric]] for metric in METRICS}}
            )
    for path in earlier:
        path.unlink()


def _band(values: np.ndarray) -> tuple[np.ndarray, ...]:
    """Mean, low and high [T] of values [S, T]."""
    mean, half = intervals(values)
    return mean, mean - half, mean + half
