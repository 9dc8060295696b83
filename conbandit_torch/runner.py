"""Runs an experiment's jobs, one policy with one seed each, and writes what came out.

A job that has finished leaves `result.json` in its folder, written last and at once. Running the same
experiment into the same folder again finds those and runs only the rest.
"""

from __future__ import annotations

import csv
import json
import traceback
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import torch
import yaml
from rich.console import Console

from conbandit_torch.aggregate import aggregate
from conbandit_torch.callbacks import (
    Callback,
    MetricsFile,
    ProgressBar,
    TensorBoard,
    progress_bars,
    summary_row,
)
from conbandit_torch.config import build_environment, build_policy
from conbandit_torch.config_errors import ConfigError
from conbandit_torch.experiment import Experiment
from conbandit_torch.loop import Simulation
from conbandit_torch.metrics import Record
from conbandit_torch.parallel import Backend, Crashed, stream

Job = tuple[str, int]
"""A policy's name and a seed."""

Row = dict[str, Any]
"""A line of `summary.csv`; a failed job's has `error` in place of numbers."""


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
) -> list[Row]:
    """All jobs that `folder` does not hold yet; returns the rows of `summary.csv`, failures included.

    Args:
        experiment: what to run.
        folder: where results go; `summary.csv` is written after every job.
        console: where progress is shown.
        jobs: how many to run at the same time, each in a process of its own if more than one.
        threads: threads of torch in a job; None: 1 with several jobs, torch's own number otherwise.
        backend: where they run; all machines of a Ray cluster must see `folder`.
    """
    check(experiment)
    finished = {
        job: row for job in experiment.jobs() if (row := _finished(experiment, *job, folder)) is not None
    }
    todo = [job for job in experiment.jobs() if job not in finished]
    folder.mkdir(parents=True, exist_ok=True)
    if finished:
        console.print(
            f"{folder} holds {len(finished)} of {len(experiment.jobs())} jobs; running the others",
            soft_wrap=True,
        )
    in_processes = jobs > 1 or backend != "local"
    if in_processes and threads is None:
        threads = 1  # so that results do not depend on the number of jobs
    job = partial(run_job, experiment, folder.resolve(), threads)
    rows = finished
    for row in (
        _in_processes(job, todo, console, jobs, backend) if in_processes else _here(job, todo, console)
    ):
        rows[row["policy"], row["seed"]] = row
        _write_summary(folder, [rows[job] for job in experiment.jobs() if job in rows])
        console.print(_describe(row), soft_wrap=True)
    rows_in_order = [rows[job] for job in experiment.jobs()]
    _write_summary(folder, rows_in_order)
    if any("error" not in row for row in rows_in_order):
        aggregate(folder)
    return rows_in_order


def run_job(experiment: Experiment, folder: Path, threads: int | None, job: Job, *callbacks: Callback) -> Row:
    """One policy with one seed, into `folder/<policy>/seed<k>`; an error becomes the row's `error`."""
    name, seed = job
    job_folder = folder / name / f"seed{seed}"
    try:
        job_folder.mkdir(parents=True, exist_ok=True)
        for rest in job_folder.glob("events.out.tfevents.*"):  # of an attempt that was broken off
            rest.unlink()
        config = experiment.dump(name, seed)
        (job_folder / "config.yaml").write_text(config, encoding="utf-8")
        written = (
            MetricsFile(job_folder / "metrics.csv"),
            TensorBoard(job_folder, config, experiment.hparams(name, seed)),
        )
        users, last = simulate(experiment, job, threads, *written, *callbacks)
    except Exception as error:  # whatever it is, the other jobs go on
        (job_folder / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
        return {"policy": name, "seed": seed, "error": f"{type(error).__name__}: {error}"}
    row = summary_row(name, seed, last)
    unfinished = job_folder / "result.json.part"
    unfinished.write_text(json.dumps({"users": users, "summary": row}), encoding="utf-8")
    unfinished.replace(job_folder / "result.json")
    (job_folder / "error.txt").unlink(missing_ok=True)
    return row


def simulate(
    experiment: Experiment, job: Job, threads: int | None, *callbacks: Callback
) -> tuple[int, Record]:
    """One policy with one seed; returns the number of users and the last record."""
    if threads is not None:
        torch.set_num_threads(threads)
    name, seed = job
    environment = build_environment(experiment, seed)
    records = Simulation(
        build_policy(experiment, name, environment, seed),
        environment,
        rounds=experiment.rounds,
        log_every=experiment.log_every,
        callbacks=callbacks,
        precision=experiment.precision,
        accelerator=experiment.accelerator,
    ).run()
    return environment.num_users, records[-1]


def check(experiment: Experiment) -> None:
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
    for name in experiment.policies:
        build_policy(experiment, name, environment, experiment.seeds[0])


def _finished(experiment: Experiment, name: str, seed: int, folder: Path) -> Row | None:
    """The job's row, if the folder holds its result; results of another config are refused."""
    job_folder = folder / name / f"seed{seed}"
    result = job_folder / "result.json"
    if not result.is_file():
        return None
    path = job_folder / "config.yaml"
    held, wanted = path.read_text(encoding="utf-8"), experiment.dump(name, seed)
    if held != wanted:
        key = _first_difference(yaml.safe_load(held), yaml.safe_load(wanted))
        raise ConfigError(
            f"--out {folder}: holds results of another config ({path} differs in {key}); name another folder"
        )
    return _read_row(result)


def _read_row(result: Path) -> Row:
    row: Row = json.loads(result.read_text(encoding="utf-8"))["summary"]
    return row


def _first_difference(one: Any, other: Any, key: str = "") -> str:
    """Dotted key, with both values, of the first place in which two configs differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in [*one, *other]:
            if one.get(name) != other.get(name):
                return _first_difference(one.get(name), other.get(name), f"{key}.{name}".strip("."))
    return f"{key}: {one!r} there, {other!r} now"


def _here(job: Callable[..., Row], todo: list[Job], console: Console) -> Iterator[Row]:
    with progress_bars(console=console, transient=True) as bars:
        for name, seed in todo:
            yield job((name, seed), ProgressBar(bars, f"{name} seed {seed}"))


def _in_processes(
    job: Callable[[Job], Row], todo: list[Job], console: Console, jobs: int, backend: Backend
) -> Iterator[Row]:
    from rich.progress import track

    results = stream(job, todo, jobs, backend)
    title = f"{jobs} jobs at a time"
    for (name, seed), row in track(results, title, total=len(todo), console=console, transient=True):
        if isinstance(row, Crashed):
            yield {"policy": name, "seed": seed, "error": row.reason}
        else:
            yield row


def _describe(row: Row) -> str:
    job = f"{row['policy']} seed {row['seed']}"
    if "error" in row:
        return f"{job}: FAILED, {row['error']}"
    return f"{job}: regret {row['cumulative_regret']:.2f} per user, {row['seconds']:.1f} s"


def _write_summary(folder: Path, rows: list[Row]) -> None:
    """`summary.csv`, with a column for errors if there are any.

    Results that the folder holds of other seeds or policies keep their lines, after those of this experiment.
    """
    own = {(row["policy"], row["seed"]) for row in rows}
    held = [_read_row(path) for path in sorted(folder.glob("*/seed*/result.json"))]
    rows = rows + [row for row in held if (row["policy"], row["seed"]) not in own]
    columns = max((list(row) for row in rows if "error" not in row), key=len, default=["policy", "seed"])
    if any("error" in row for row in rows):
        columns = [*columns, "error"]
    unfinished = folder / "summary.csv.part"
    with unfinished.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    unfinished.replace(folder / "summary.csv")
