"""Runs an experiment's jobs, one policy with one seed each, and writes what came out.

A job that has finished leaves `result.json` in its folder, written last and at once; one that has not
leaves checkpoints. Running the same experiment into the same folder again finishes the rest from there.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import platform
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import torch
import yaml
from filelock import FileLock, Timeout
from rich.console import Console

from conbandit_torch.callbacks.progress import ProgressBar, progress_bars
from conbandit_torch.configuration.build import build_callbacks, build_environment, build_policy
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.core.files import at_once, write_at_once
from conbandit_torch.core.processes import ALONE, Processes
from conbandit_torch.results.aggregate import aggregate
from conbandit_torch.running.checkpoint import list_checkpoints
from conbandit_torch.running.job import describe, finished, read_result, run_job
from conbandit_torch.running.plan import Experiment
from conbandit_torch.running.result import Job, JobResult
from conbandit_torch.running.signals import pass_on_to_children, stop_on_signals
from conbandit_torch.running.workers import Backend, Crashed, stream

EXPERIMENT = "experiment.yaml"  # a folder's whole experiment, for `conbandit resume`
_HOW = "how.json"  # how a folder's runs were made: threads and jobs


def results_folder(out: Path | None, source: Path) -> Path:
    """`out`, or a new dated folder under `runs/`."""
    if out is not None:
        return out
    name = f"{source.stem}-{datetime.now():%Y%m%d-%H%M%S}"
    candidates = [Path("runs") / name, *(Path("runs") / f"{name}-{number}" for number in range(2, 100))]
    return next(folder for folder in candidates if not folder.exists())


def run(
    experiment: Experiment,
    folder: Path,
    console: Console,
    *,
    jobs: int = 1,
    threads: int | None = None,
    backend: Backend = "local",
    processes: Processes = ALONE,
) -> list[JobResult]:
    """All jobs that `folder` does not hold yet; returns the results of all jobs, failures included.

    SIGINT or SIGTERM stops it in good order; jobs that were not started then have no result.

    Args:
        experiment: what to run.
        folder: where results go; `summary.csv` is written after every job.
        console: where progress is shown.
        jobs: how many to run at the same time, each in a process of its own if more than one.
        threads: threads of torch in a job; None: 1 with several jobs, torch's own number otherwise.
        backend: where they run; all machines of a Ray cluster must see `folder`.
        processes: over which every job's users are split; all of them call this.
    """
    check(experiment, processes)
    for job in experiment.jobs():
        _refuse_another_config(experiment, *job, folder)
    in_processes = jobs > 1 or backend != "local"
    if threads is None:  # with several jobs always 1, so that results do not depend on their number
        threads = 1 if in_processes or processes.size > 1 else torch.get_num_threads()
    folder.mkdir(parents=True, exist_ok=True)
    call = partial(run_job, experiment, folder.resolve(), threads)
    if not processes.is_first:
        return _help(call, processes)
    with _only_one(folder):
        write_at_once(folder / EXPERIMENT, experiment.dump())
        how = {"threads": threads, "jobs": jobs, "backend": backend}
        how |= {"devices": processes.size // processes.nodes, "num_nodes": processes.nodes}
        write_at_once(folder / _HOW, json.dumps(how))
        results = {job: had for job in experiment.jobs() if (had := finished(folder, *job)) is not None}
        todo = [job for job in experiment.jobs() if job not in results]
        if results:
            held = f"{folder} holds {len(results)} of {len(experiment.jobs())} jobs"
            console.print(f"{held}; running the others" if todo else f"{held}: all are done", soft_wrap=True)
        if in_processes:
            new = _in_processes(call, todo, console, jobs, backend)
        else:
            new = _here(call, processes.agree(todo), console, processes)
        for result in new:
            results[result.job] = result
            _write_summary(folder, [results[job] for job in experiment.jobs() if job in results])
            console.print(describe(result), soft_wrap=True)
        ordered = [results[job] for job in experiment.jobs() if job in results]
        _write_summary(folder, ordered)
        if any(result.last is not None for result in ordered):
            aggregate(folder)
    return ordered


def how_it_ran(folder: Path) -> dict[str, Any]:
    """Threads, jobs, backend and processes of the last run into the folder."""
    try:
        how: dict[str, Any] = json.loads((folder / _HOW).read_text(encoding="utf-8"))
        numbers = {key: int(how[key]) for key in ("threads", "jobs", "devices", "num_nodes")}
        return numbers | {"backend": str(how["backend"])}
    except (OSError, ValueError, KeyError, TypeError):
        problem = f"no results folder, {_HOW} is missing or damaged" if folder.exists() else "no such folder"
        raise ConfigError(f"{folder}: {problem}") from None


def check(experiment: Experiment, processes: Processes = ALONE) -> None:
    """Try everything once before anything runs: a bad last policy must not cost hours of good ones."""
    from lightning.fabric import Fabric

    try:
        Fabric(accelerator=experiment.accelerator, devices=1)
    except Exception as error:  # Lightning has many kinds for this
        raise ConfigError(f"{experiment.source}: accelerator: {error}") from None
    environment = build_environment(experiment, experiment.seeds[0])
    if environment.length is not None and experiment.rounds > environment.length:
        raise ConfigError(
            f"{experiment.source}: rounds: {experiment.rounds}, but the environment holds only "
            f"{environment.length}"
        )
    try:
        environment.split(processes)
    except ValueError as error:
        raise ConfigError(f"{experiment.source}: environment: {error}") from None
    for name in experiment.policies:
        build_policy(experiment, name, environment, experiment.seeds[0])
    build_callbacks(experiment)


def _refuse_another_config(experiment: Experiment, name: str, seed: int, folder: Path) -> None:
    """Results, and checkpoints, of another config are never overwritten or mixed."""
    job_folder = folder / name / f"seed{seed}"
    path = job_folder / "config.yaml"
    worth_keeping = (job_folder / "result.json").is_file() or list_checkpoints(job_folder / "checkpoints")
    if not worth_keeping or not path.is_file():
        return
    held, wanted = (
        {key: value for key, value in yaml.safe_load(text).items() if key != "checkpoint_every"}
        for text in (path.read_text(encoding="utf-8"), experiment.dump(name, seed))
    )
    if held != wanted:
        raise ConfigError(
            f"--out {folder}: holds results of another config ({path} differs in "
            f"{_first_difference(held, wanted)}); name another folder"
        )


@contextlib.contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Refuse to work on a folder that another process works on; a crash releases it."""
    path = folder / ".lock"
    owner = path.read_text(encoding="utf-8") if path.is_file() else ""
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        path.write_text(owner, encoding="utf-8")  # trying to lock it has emptied it
        raise ConfigError(
            f"--out {folder}: another process is writing there ({owner or 'unknown'}); wait for it, or name "
            "another folder"
        ) from None
    try:
        path.write_text(f"process {os.getpid()} on {platform.node()}", encoding="utf-8")
        yield
    finally:
        lock.release()


def _first_difference(one: Any, other: Any, key: str = "") -> str:
    """Dotted key, with both values, of the first place in which two configs differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in [*one, *other]:
            if one.get(name) != other.get(name):
                return _first_difference(one.get(name), other.get(name), f"{key}.{name}".strip("."))
    return f"{key}: {one!r} there, {other!r} now"


def _here(
    job: Callable[..., JobResult], todo: list[Job], console: Console, processes: Processes
) -> Iterator[JobResult]:
    with progress_bars(console=console, transient=True) as bars:
        for name, seed in todo:
            bar = ProgressBar(bars, f"{name} seed {seed}")
            result = job((name, seed), bar, may_insist=True, processes=processes)
            yield result
            if result.stopped or (result.error and processes.size > 1):
                return  # where the other processes are after an error, nobody knows


def _help(job: Callable[..., JobResult], processes: Processes) -> list[JobResult]:
    """The first process's jobs, for this process's users; returns the one that failed, if one did."""
    try:
        todo: list[Job] = processes.agree([])
    except RuntimeError:
        raise ConfigError("the first process has ended; its message says why") from None
    for name_and_seed in todo:
        result = job(name_and_seed, processes=processes)
        if result.last is None:
            return [result]
    return []


def _in_processes(
    job: Callable[[Job], JobResult], todo: list[Job], console: Console, jobs: int, backend: Backend
) -> Iterator[JobResult]:
    from rich.progress import track

    stopping = Event()

    def stop() -> None:
        stopping.set()
        pass_on_to_children()

    results = stream(job, todo, jobs, backend, stopping)
    title = f"{jobs} jobs at a time"
    with stop_on_signals(stop, may_insist=True):
        for (name, seed), result in track(results, title, total=len(todo), console=console, transient=True):
            if not isinstance(result, Crashed):
                yield result
            elif stopping.is_set():
                yield JobResult(name, seed, stopped=result.reason)
            else:
                yield JobResult(name, seed, error=result.reason)


def _write_summary(folder: Path, results: list[JobResult]) -> None:
    """`summary.csv` of the finished and the failed jobs, with a column for errors if there are any.

    Results that the folder holds of other seeds or policies keep their lines, after those of this experiment.
    """
    own = {result.job for result in results}
    held = [read_result(path) for path in sorted(folder.glob("*/seed*/result.json"))]
    lines = [result.summary() for result in results if not result.stopped]
    lines += [result.summary() for result in held if result.job not in own]
    columns = list(dict.fromkeys(name for line in sorted(lines, key=len, reverse=True) for name in line))
    with at_once(folder / "summary.csv") as path, path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns or ["policy", "seed"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
