"""One job: one policy with one seed, from its newest checkpoint to its result."""

from __future__ import annotations

import contextlib
import json
import shutil
import traceback
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock

from conbandit_torch.callbacks import (
    Callback,
    Forgiving,
    MetricsFile,
    StoppedError,
    TensorBoard,
    headline,
    summary_row,
)
from conbandit_torch.checkpoint import Checkpoint, fingerprint, latest_checkpoint
from conbandit_torch.config import build_environment, build_policy
from conbandit_torch.experiment import Experiment
from conbandit_torch.loop import Simulation
from conbandit_torch.metrics import WINDOW
from conbandit_torch.signals import stop_on_signals

Job = tuple[str, int]
"""A policy's name and a seed."""

Row = dict[str, Any]
"""A line of `summary.csv`; a failed job's has `error` in place of numbers, one that was stopped `stopped`."""


def run_job(
    experiment: Experiment,
    folder: Path,
    threads: int,
    job: Job,
    *callbacks: Callback,
    may_insist: bool = False,
) -> Row:
    """One policy with one seed, into `folder/<policy>/seed<k>`; an error becomes the row's `error`.

    It goes on from the folder's newest checkpoint, and leaves one when SIGINT or SIGTERM stops it.
    """
    name, seed = job
    job_folder = folder / name / f"seed{seed}"
    try:
        job_folder.mkdir(parents=True, exist_ok=True)
        # A worker that outlived a killed command may still be at it: wait, and take what it leaves.
        with FileLock(job_folder / ".lock"):
            row = finished(folder, name, seed)
            if row is None:
                row = _play(experiment, job_folder, threads, job, callbacks, may_insist)
    except StoppedError as stopped:
        return {"policy": name, "seed": seed, "stopped": str(stopped)}
    except Exception as error:  # whatever it is, the other jobs go on
        with contextlib.suppress(OSError):  # the disk may be what failed
            (job_folder / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
        return {"policy": name, "seed": seed, "error": f"{type(error).__name__}: {error}"}
    return row


def _play(
    experiment: Experiment,
    folder: Path,
    threads: int,
    job: Job,
    callbacks: tuple[Callback, ...],
    may_insist: bool,
) -> Row:
    """Play the job to its end and write its result, last and at once."""
    config, checkpoints = experiment.dump(*job), folder / "checkpoints"
    write_at_once(folder / "config.yaml", config)
    saved = latest_checkpoint(checkpoints)
    if saved is None:
        for rest in folder.glob("events.out.tfevents.*"):  # of an attempt that was broken off
            rest.unlink()
    board: Callback = TensorBoard(folder, config, experiment.hparams(*job))
    simulation = build(
        experiment,
        job,
        threads,
        MetricsFile(folder / "metrics.csv"),
        board if experiment.if_logger_fails == "stop" else Forgiving(board),
        *callbacks,
        Checkpoint(checkpoints, experiment.checkpoint_every),
    )
    if saved is not None:
        simulation.restore(saved)
    with stop_on_signals(simulation.stop, may_insist=may_insist):
        records = simulation.run()
    row = summary_row(*job, records[-1])
    result: dict[str, Any] = {
        "users": simulation.environment.num_users,
        "summary": row,
        "fingerprint": fingerprint(simulation.policy.state_dict()),
    }
    if simulation.environment.logged is not None:
        result["log"] = simulation.environment.logged._asdict() | {
            "window": WINDOW,
            "ctr": simulation.metrics.windows(),
        }
    write_at_once(folder / "result.json", json.dumps(result))
    shutil.rmtree(checkpoints, ignore_errors=True)
    (folder / "error.txt").unlink(missing_ok=True)
    return row


def build(experiment: Experiment, job: Job, threads: int, *callbacks: Callback) -> Simulation:
    """The simulation of one policy with one seed."""
    torch.set_num_threads(threads)
    name, seed = job
    environment = build_environment(experiment, seed)
    return Simulation(
        build_policy(experiment, name, environment, seed),
        environment,
        rounds=experiment.rounds,
        log_every=experiment.log_every,
        callbacks=callbacks,
        precision=experiment.precision,
        accelerator=experiment.accelerator,
        bad_feedback=experiment.bad_feedback,
    )


def finished(folder: Path, name: str, seed: int) -> Row | None:
    """The job's row, if the folder holds its result."""
    result = folder / name / f"seed{seed}" / "result.json"
    return read_row(result) if result.is_file() else None


def read_row(result: Path) -> Row:
    """The row in a `result.json`."""
    row: Row = json.loads(result.read_text(encoding="utf-8"))["summary"]
    return row


def describe(row: Row) -> str:
    """What became of a job, in one line."""
    job = f"{row['policy']} seed {row['seed']}"
    if "error" in row:
        return f"{job}: FAILED, {row['error']}"
    if "stopped" in row:
        return f"{job}: {row['stopped']}"
    return f"{job}: {headline(row)}, {row['seconds']:.1f} s"


def write_at_once(path: Path, text: str) -> None:
    """Write a file so that it is never seen half-written."""
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
