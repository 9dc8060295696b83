"""One job: one policy with one seed, from its newest checkpoint to its result."""

from __future__ import annotations

import contextlib
import shutil
import traceback
from dataclasses import replace
from pathlib import Path

import torch
from filelock import FileLock

from conbandit_torch.callbacks.base import Callback, Forgiving, StoppedError
from conbandit_torch.callbacks.checkpoints import Checkpoint
from conbandit_torch.callbacks.metrics_file import MetricsFile
from conbandit_torch.callbacks.tensorboard import TensorBoard
from conbandit_torch.configuration.build import build_callbacks, build_environment, build_policy
from conbandit_torch.core.digests import fingerprint
from conbandit_torch.core.files import write_at_once
from conbandit_torch.core.processes import ALONE, Processes
from conbandit_torch.loop import Simulation
from conbandit_torch.running.checkpoint import latest_checkpoint
from conbandit_torch.running.metrics import WINDOW
from conbandit_torch.running.objective import objective_of
from conbandit_torch.running.plan import Experiment
from conbandit_torch.running.result import Job, JobResult, Replayed
from conbandit_torch.running.signals import stop_on_signals


def run_job(
    experiment: Experiment,
    folder: Path,
    threads: int,
    job: Job,
    *callbacks: Callback,
    may_insist: bool = False,
    processes: Processes = ALONE,
) -> JobResult:
    """One policy with one seed, into `folder/<policy>/seed<k>`; an error becomes the result's `error`.

    It goes on from the folder's newest checkpoint, and leaves one when SIGINT or SIGTERM stops it. If its
    users are split over processes, all of them call this, and the first writes what came out.
    """
    name, seed = job
    job_folder = folder / name / f"seed{seed}"
    stop = _Stop()
    try:
        with stop_on_signals(stop, may_insist=may_insist):
            job_folder.mkdir(parents=True, exist_ok=True)
            # A worker that outlived a killed command may still be at it: wait, and take what it leaves.
            with FileLock(job_folder / ".lock") if processes.is_first else contextlib.nullcontext():
                result = processes.agree(finished(folder, name, seed))
                if result is None:
                    result = _play(experiment, job_folder, threads, job, callbacks, stop, processes)
    except (StoppedError, _StoppedEarly) as stopped:
        return JobResult(name, seed, stopped=str(stopped))
    except Exception as error:  # whatever it is, the other jobs go on
        with contextlib.suppress(OSError):  # the disk may be what failed
            errors = "error.txt" if processes.is_first else f"error-{processes.rank}.txt"
            (job_folder / errors).write_text(traceback.format_exc(), encoding="utf-8")
        return JobResult(name, seed, error=f"{type(error).__name__}: {error}")
    return result


class _StoppedEarly(BaseException):  # no Exception, so that nothing takes it for an error of the config
    """A job was told to stop before there was anything to keep."""


class _Stop:
    """What a signal does to a job: its simulation ends in good order or, before there is one, all ends."""

    simulation: Simulation | None = None

    def __call__(self) -> None:
        if self.simulation is None:
            raise _StoppedEarly("stopped before it began to play")
        self.simulation.stop()


def _play(
    experiment: Experiment,
    folder: Path,
    threads: int,
    job: Job,
    callbacks: tuple[Callback, ...],
    stop: _Stop,
    processes: Processes,
) -> JobResult:
    """Play the job to its end and write its result, last and at once."""
    checkpoints = folder / "checkpoints"
    saved = latest_checkpoint(checkpoints, processes)
    loggers = _loggers(experiment, folder, job, resuming=saved is not None) if processes.is_first else ()
    # The checkpoint last, so that it knows of what the others have written.
    every = (*loggers, *callbacks, Checkpoint(checkpoints, experiment.checkpoint_every))
    simulation = build(experiment, job, threads, *every, processes=processes, folder=folder)
    if saved is not None:
        simulation.restore(saved)
    stop.simulation = simulation
    records = simulation.run()
    log = simulation.environment.logged(simulation.rounds)
    result = JobResult(
        *job,
        last=replace(records[-1], details={}),
        users=simulation.metrics.num_users,
        fingerprint=fingerprint(simulation.policy.state_dict(), processes),
        replayed=None if log is None else Replayed(*log, window=WINDOW, ctr=simulation.metrics.windows()),
    )
    if processes.is_first:
        write_at_once(folder / "result.json", result.to_json())
        shutil.rmtree(checkpoints, ignore_errors=True)
        for errors in folder.glob("error*.txt"):  # of former attempts
            errors.unlink()
    return result


def _loggers(experiment: Experiment, folder: Path, job: Job, *, resuming: bool) -> list[Callback]:
    """What writes into the job's folder while it runs."""
    config = experiment.dump(*job)
    write_at_once(folder / "config.yaml", config)
    if not resuming:
        for rest in folder.glob("events.out.tfevents.*"):  # of an attempt that was broken off
            rest.unlink()
    board: Callback = TensorBoard(folder, config, experiment.hparams(*job))
    if experiment.if_logger_fails == "continue":
        board = Forgiving(board)
    return [MetricsFile(folder / "metrics.csv"), board, *build_callbacks(experiment)]


def build(
    experiment: Experiment,
    job: Job,
    threads: int,
    *callbacks: Callback,
    processes: Processes = ALONE,
    folder: Path | None = None,
) -> Simulation:
    """The simulation of one policy with one seed, of this process's users."""
    torch.set_num_threads(threads)
    name, seed = job
    environment = build_environment(experiment, seed)
    environment.split(processes)
    return Simulation(
        build_policy(experiment, name, environment, seed),
        environment,
        rounds=experiment.rounds,
        log_every=experiment.log_every,
        callbacks=callbacks,
        precision=experiment.precision,
        accelerator=experiment.accelerator,
        bad_feedback=experiment.bad_feedback,
        folder=folder,
    )


def finished(folder: Path, name: str, seed: int) -> JobResult | None:
    """The job's result, if the folder holds it."""
    path = folder / name / f"seed{seed}" / "result.json"
    return read_result(path) if path.is_file() else None


def read_result(path: Path) -> JobResult:
    """The result in a `result.json`."""
    return JobResult.from_json(path.read_text(encoding="utf-8"))


def describe(result: JobResult) -> str:
    """What became of a job, in one line."""
    job = f"{result.policy} seed {result.seed}"
    if result.last is None:
        return f"{job}: FAILED, {result.error}" if result.error else f"{job}: {result.stopped}"
    return f"{job}: {objective_of([result.last]).describe(result.last)}, {result.last.seconds:.1f} s"
