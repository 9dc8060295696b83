"""Reads a results folder back, and sums it up over seeds.

A job that cannot be read is left out and named; the others are read as if it had not finished.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from conbandit_torch.core.errors import ConfigError
from conbandit_torch.core.seals import file_digest, is_as_sealed
from conbandit_torch.results.policies import Clicks, PolicyResults, intervals, with_interval
from conbandit_torch.results.results import Results
from conbandit_torch.running.folder import (
    CONFIG,
    EXPERIMENT,
    RESULT,
    SUMMARY,
    USERS,
    error_files,
    job_folder,
    job_folders,
)
from conbandit_torch.running.folder import METRICS as METRICS_FILE
from conbandit_torch.running.objective import objective_of
from conbandit_torch.running.origin import THEN, Origin, OtherOriginError
from conbandit_torch.running.plan import without_incidentals
from conbandit_torch.running.record import COLUMNS, Record
from conbandit_torch.running.result import Job, JobResult, Replayed, ResultError, read_result
from conbandit_torch.running.user_sums import UserSums, read_user_sums

__all__ = ["METRICS", "Clicks", "PolicyResults", "Results", "intervals", "read_results", "with_interval"]

METRICS = tuple(name for name in COLUMNS if name not in ("round", "seconds"))


@dataclass
class _Job:
    """What a job's folder holds."""

    folder: Path
    result: JobResult
    last: Record
    table: list[dict[str, str]]
    settings: dict[str, Any]  # of its config, without policy and seed
    users: UserSums | None  # if a log was replayed
    rounds: tuple[int, ...] = field(init=False)
    metrics: dict[str, list[float]] = field(init=False)

    def __post_init__(self) -> None:
        self.rounds = tuple(int(row["round"]) for row in self.table)
        self.metrics = {name: [float(row.get(name) or "nan") for row in self.table] for name in METRICS}


def read_results(folder: Path | str) -> Results:
    """The finished runs of a results folder, by policy, in the order of `summary.csv`.

    Args:
        folder: results of `Experiment.run`, or of `conbandit run`.

    Raises:
        ConfigError: if there are none, or if they are not of one experiment.
    """
    folder = Path(folder)
    results = Results(folder)
    jobs: dict[str, list[_Job]] = {}
    for own in job_folders(folder):
        if not (own / RESULT).is_file():
            continue
        try:
            jobs.setdefault(own.parent.name, []).append(_read_job(own))
        except _UnreadableError as error:
            results.left_out.append(str(error))
    _keep_usual_rounds(jobs, results.left_out)
    if not any(jobs.values()):
        if results.left_out:
            raise ConfigError(
                "\n".join([f"{folder}: none of the finished runs can be read", *results.left_out])
            )
        state = "holds no finished runs" if folder.is_dir() else "no such folder"
        begun = (folder / EXPERIMENT).exists()
        command = f"`conbandit resume {folder}`" if begun else f"`conbandit run CONFIG --out {folder}`"
        raise ConfigError(f"{folder}: {state}; {command} makes some")
    every = [job for own in jobs.values() for job in own]
    _check_one_experiment(every)
    _check_same_data(every)
    results.mixed = _mixed(job.result.origin for job in every)
    results.unfinished = _unfinished(folder, {job.result.job for job in every})
    order = _order_of_policies(folder / SUMMARY)
    for name in sorted(jobs, key=lambda name: (order.index(name) if name in order else len(order), name)):
        if jobs[name]:
            results[name] = _sum_up(sorted(jobs[name], key=lambda job: job.result.seed))
    return results


class _UnreadableError(Exception):
    """A job's folder holds something else than what a finished job leaves there."""


def _read_job(folder: Path) -> _Job:
    """What a finished job has left; anything else is an error that names the file."""
    path = folder
    try:
        result = read_result(folder)
        if result is None or result.last is None:
            raise ResultError(f"{folder / RESULT}: is not the result of a finished job")
        if result.job != (folder.parent.name, int(folder.name.removeprefix("seed"))):
            raise ResultError(f"{folder / RESULT}: is of {result.policy} seed {result.seed}")
        path = folder / CONFIG
        if file_digest(path) != result.config:
            raise ResultError(f"{path} is damaged, or was edited: it is not what the job wrote")
        config = without_incidentals(yaml.safe_load(path.read_text(encoding="utf-8")))
        settings = {key: value for key, value in config.items() if key != "policies"}
        path, users = folder / USERS, None
        if result.replayed is not None and result.replayed.users:
            users = read_user_sums(path)
        path = folder / METRICS_FILE
        job = _Job(folder, result, result.last, _read_csv(path), settings, users)
        if not job.rounds or job.rounds[-1] != result.last.round:
            end = job.rounds[-1] if job.rounds else 0
            raise ValueError(f"ends at round {end} of {result.last.round}")
    except ResultError as error:
        raise _UnreadableError(f"{error}; {_REMEDY}") from None
    except OSError as error:
        raise _UnreadableError(f"{path}: {error.strerror or error}; {_REMEDY}") from None
    except Exception as error:  # whatever a damaged file leads to, the other jobs are read
        problem = " ".join(str(error).split()) or type(error).__name__
        raise _UnreadableError(f"{path} is damaged: {problem}; {_REMEDY}") from None
    return job


_REMEDY = "running the experiment again makes it good"


def _keep_usual_rounds(jobs: dict[str, list[_Job]], left_out: list[str]) -> None:
    """Leave out jobs that were recorded at other rounds than most of their policy's."""
    for name, own in jobs.items():
        if not own:
            continue
        usual = Counter(job.rounds for job in own).most_common(1)[0][0]
        for job in own:
            if job.rounds != usual:
                left_out.append(
                    f"{job.folder / METRICS_FILE}: not the rounds that the other seeds have; {_REMEDY}"
                )
        jobs[name] = [job for job in own if job.rounds == usual]


def _sum_up(jobs: list[_Job]) -> PolicyResults:
    replayed = [job.result.replayed for job in jobs if job.result.replayed is not None]
    users = [job.users for job in jobs if job.users is not None]
    return PolicyResults(
        seeds=[job.result.seed for job in jobs],
        seconds=np.array([job.last.seconds for job in jobs]),
        rounds=np.array(jobs[0].rounds),
        metrics={name: np.array([job.metrics[name] for job in jobs]) for name in METRICS},
        num_users=jobs[0].result.users,
        objective=objective_of(job.last for job in jobs),
        clicks=_clicks(replayed, users) if len(replayed) == len(jobs) else None,
        hidden=[job.result.hidden for job in jobs if job.result.hidden is not None],
    )


def _clicks(logs: list[Replayed], users: list[UserSums]) -> Clicks:
    shortest = min(len(log.ctr) for log in logs)
    return Clicks(
        ctr=np.array([log.ctr[:shortest] for log in logs]).reshape(len(logs), shortest),
        window=logs[0].window,
        logged=np.array([log.click_rate for log in logs]),
        users=users if len(users) == len(logs) else [],
        same_log=len({log.log for log in logs}) == 1,
        serving=logs[0].serving,
    )


def _check_one_experiment(jobs: list[_Job]) -> None:
    """All runs must agree in everything except policy and seed; one that differs from most is named."""
    texts = [yaml.safe_dump(job.settings) for job in jobs]
    usual = Counter(texts).most_common(1)[0][0]
    model = jobs[texts.index(usual)]
    for job, text in zip(jobs, texts, strict=True):
        if text != usual:
            keys = [*job.settings, *model.settings]
            key = next(key for key in keys if job.settings.get(key) != model.settings.get(key))
            raise ConfigError(f"{job.folder}: differs from {model.folder} in {key}; they cannot be compared")


def _check_same_data(jobs: list[_Job]) -> None:
    """Runs of one seed must have met the same data, wherever their folders were copied from."""
    first: dict[int, _Job] = {}
    for job in jobs:
        model = first.setdefault(job.result.seed, job)
        try:
            job.result.origin.refuse_other_data(model.result.origin, job.folder)
        except OtherOriginError:
            raise ConfigError(
                f"{job.folder}: was made from other data than {model.folder}; they cannot be compared"
            ) from None


def _unfinished(folder: Path, finished: set[Job]) -> list[str]:
    """Jobs of `experiment.yaml` without a result; none where that file is missing, damaged or edited."""
    try:
        text = (folder / EXPERIMENT).read_text(encoding="utf-8")
        plan = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if is_as_sealed(text) else {}
    except (OSError, UnicodeDecodeError):
        plan = {}
    jobs = [(policy, seed) for policy in plan.get("policies", ()) for seed in plan.get("seeds", ())]
    return [
        f"{policy} seed {seed}" + (" (failed)" if error_files(job_folder(folder, policy, seed)) else "")
        for policy, seed in jobs
        if (policy, seed) not in finished
    ]


def _mixed(origins: Iterable[Origin]) -> list[str]:
    """Versions and kernels, with the numbers of runs, where there are several."""
    every = list(origins)
    found = {
        "versions of conbandit_torch": Counter(one.version or "unknown" for one in every),
        "kernels": Counter(one.kernels or "unknown" for one in every),
    }
    return [
        f"several {what} ({'; '.join(f'{name}: {count}' for name, count in sorted(counts.items()))})"
        for what, counts in found.items()
        if len(counts) > 1 or any(THEN in name for name in counts)
    ]


def _order_of_policies(path: Path) -> list[str]:
    try:
        return list(dict.fromkeys(row["policy"] for row in _read_csv(path)))
    except (OSError, ValueError, KeyError, csv.Error):
        return []  # made from the jobs' results; those are what counts


def _read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
