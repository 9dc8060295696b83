"""Reads a results folder back, and sums it up over seeds."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from conbandit_torch.core.errors import ConfigError, choices
from conbandit_torch.running.folder import CONFIG, HOW, RESULT, SUMMARY, job_folders
from conbandit_torch.running.folder import METRICS as METRICS_FILE
from conbandit_torch.running.metrics import COLUMNS
from conbandit_torch.running.plan import first_difference, without_incidentals
from conbandit_torch.running.result import JobResult, Replayed, ResultError, read_result

METRICS = tuple(name for name in COLUMNS if name not in ("round", "seconds"))


@dataclass(frozen=True)
class Clicks:
    """What replay of a log earned.

    Attributes:
        ctr: [S, W] click-through rate in every full window, as many windows as every seed has.
        window: counted events in a window.
        logged: [S] click-through rate of the log, which is that of a policy that picks at random.
    """

    ctr: np.ndarray
    window: int
    logged: np.ndarray


@dataclass(frozen=True)
class PolicyResults:
    """What one policy did.

    Attributes:
        seeds: S seeds of the finished runs, in order.
        seconds: [S] wall-clock time of each.
        rounds: [T] rounds at which metrics were recorded.
        metrics: [S, T] by name; NaN where a policy has no such number.
        num_users: U, for times per user.
        clicks: what replay earned; None: no log was replayed.
    """

    seeds: list[int]
    seconds: np.ndarray
    rounds: np.ndarray
    metrics: dict[str, np.ndarray]
    num_users: int
    clicks: Clicks | None = None

    def final(self, metric: str, seeds: list[int] | None = None) -> np.ndarray:
        """[S] the metric at the end, of all seeds or of those given."""
        last: np.ndarray = self.metrics[metric][:, -1]
        return last if seeds is None else last[[self.seeds.index(seed) for seed in seeds]]


def read_results(folder: Path) -> dict[str, PolicyResults]:
    """The finished runs of a results folder, by policy, in the order of `summary.csv`.

    Raises:
        ConfigError: if there are none, or if they are not of one experiment.
    """
    found: dict[str, list[Path]] = {}
    for own in job_folders(folder):
        if (own / RESULT).is_file():
            found.setdefault(own.parent.name, []).append(own)
    if not found:
        state = "holds no finished runs" if folder.is_dir() else "no such folder"
        begun = (folder / HOW).exists()
        command = f"`conbandit resume {folder}`" if begun else f"`conbandit run CONFIG --out {folder}`"
        raise ConfigError(f"{folder}: {state}; {command} makes some")
    order = list(dict.fromkeys(row["policy"] for row in _read_csv(folder / SUMMARY)))
    names = sorted(found, key=lambda name: (order.index(name) if name in order else len(order), name))
    finished = {own: _read_result(own) for name in names for own in found[name]}
    _check_one_experiment(finished)
    return {name: _read_policy({own: finished[own] for own in found[name]}) for name in names}


def pick(results: dict[str, PolicyResults], name: str, option: str) -> PolicyResults:
    """The policy `name`, which the user gave as `option`."""
    if name not in results:
        raise ConfigError(f"{option} {name}: there is no such policy{choices(name, results)}")
    return results[name]


def intervals(values: np.ndarray, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Means over seeds and half-widths of their t intervals, [S, ...] -> [...]; NaN for one seed."""
    from scipy.stats import t

    count = len(values)
    mean = values.mean(0)
    if count < 2:
        return mean, np.full_like(mean, np.nan)
    half = t.ppf((1 + level) / 2, count - 1) * values.std(0, ddof=1) / np.sqrt(count)
    return mean, half


def with_interval(values: np.ndarray, digits: int = 2) -> str:
    """Mean of values [S] with its interval, for people; without one if there are fewer than two."""
    if not len(values) or np.isnan(values).any():
        return "-"
    mean, half = intervals(values)
    return f"{mean:.{digits}f}" if np.isnan(half) else f"{mean:.{digits}f} ± {half:.{digits}f}"


def _read_policy(held: dict[Path, JobResult]) -> PolicyResults:
    folders = sorted(held, key=lambda folder: held[folder].seed)
    finished = [held[folder] for folder in folders]
    tables = [_read_csv(folder / METRICS_FILE) for folder in folders]
    for folder, table in zip(folders, tables, strict=True):
        if [row["round"] for row in table] != [row["round"] for row in tables[0]] or not table:
            raise ConfigError(
                f"{folder / METRICS_FILE}: not the rounds of {folders[0] / METRICS_FILE}: the two jobs "
                "recorded their metrics at other rounds, so they cannot be compared"
            )
    replayed = [result.replayed for result in finished if result.replayed is not None]
    return PolicyResults(
        seeds=[result.seed for result in finished],
        seconds=np.array([result.last.seconds for result in finished if result.last is not None]),
        rounds=np.array([int(row["round"]) for row in tables[0]]),
        metrics={
            name: np.array([[float(row.get(name) or "nan") for row in table] for table in tables])
            for name in METRICS
        },
        num_users=finished[0].users,
        clicks=_clicks(replayed) if replayed else None,
    )


def _read_result(folder: Path) -> JobResult:
    try:
        result = read_result(folder)
    except ResultError as error:
        raise ConfigError(f"{error}; running the experiment again makes it good") from None
    if result is None:
        raise ConfigError(f"{folder}: has no result")
    return result


def _clicks(logs: list[Replayed]) -> Clicks:
    shortest = min(len(log.ctr) for log in logs)
    return Clicks(
        ctr=np.array([log.ctr[:shortest] for log in logs]).reshape(len(logs), shortest),
        window=logs[0].window,
        logged=np.array([log.click_rate for log in logs]),
    )


def _check_one_experiment(finished: dict[Path, JobResult]) -> None:
    """All runs must agree in everything but policy and seed; their digests tell."""
    first = next(iter(finished))
    for folder, result in finished.items():
        if result.origin.shared != finished[first].origin.shared:
            where = first_difference(_shared_config(folder), _shared_config(first)).partition(":")[0]
            raise ConfigError(f"{folder}: differs from {first} in {where}; they cannot be compared")


def _shared_config(folder: Path) -> dict[str, Any]:
    """What a job's config shares with those of other policies and seeds; empty if it cannot be read."""
    try:
        config = yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8"))
        return {key: value for key, value in without_incidentals(config).items() if key != "policies"}
    except (OSError, ValueError, AttributeError, RecursionError, yaml.YAMLError):
        return {}


def _read_csv(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
