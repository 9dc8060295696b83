"""One job: one policy with one seed, from its newest checkpoint to its result."""

from __future__ import annotations

import contextlib
import logging
import shutil
import traceback
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from conbandit_torch.callbacks.base import Callback, Forgiving, StoppedError
from conbandit_torch.callbacks.checkpoints import Checkpoint
from conbandit_torch.callbacks.loggers import LoggerCallback
from conbandit_torch.callbacks.metrics_file import MetricsFile
from conbandit_torch.callbacks.tensorboard import TensorBoard
from conbandit_torch.configuration.build import build_callbacks, build_policy
from conbandit_torch.configuration.loggers import build_logger
from conbandit_torch.core.digests import fingerprint, gather_digests
from conbandit_torch.core.files import make_folder, write_atomically
from conbandit_torch.core.processes import ALONE, Processes
from conbandit_torch.core.seals import file_digest, sealed_text, text_digest
from conbandit_torch.environments.base import Environment
from conbandit_torch.kernels import TORCH, name_of, using
from conbandit_torch.loop import Simulation
from conbandit_torch.running.checkpoint import latest_checkpoint
from conbandit_torch.running.folder import (
    CHECKPOINTS,
    CONFIG,
    METRICS,
    USERS,
    error_file,
    error_files,
    event_files,
    job_folder,
    job_lock,
)
from conbandit_torch.running.kept import keep_policy
from conbandit_torch.running.metrics import WINDOW
from conbandit_torch.running.objective import objective_of
from conbandit_torch.running.origin import Origin, OtherOriginError, package_version
from conbandit_torch.running.plan import Plan
from conbandit_torch.running.processes import device_of
from conbandit_torch.running.result import (
    HiddenShare,
    Job,
    JobResult,
    OtherFormatError,
    Replayed,
    ResultError,
    read_result,
    write_result,
)
from conbandit_torch.running.signals import stop_on_signals
from conbandit_torch.running.user_sums import write_user_sums
from conbandit_torch.running.worlds import Worlds, build_world

_log = logging.getLogger(__name__)


def run_job(
    experiment: Plan,
    folder: Path,
    threads: int,
    job: Job,
    *callbacks: Callback,
    may_insist: bool = False,
    processes: Processes = ALONE,
    worlds: Worlds | None = None,
) -> JobResult:
    """One policy with one seed, into `folder/<policy>/seed<k>`; an error becomes the result's `error`.

    It goes on from the folder's newest checkpoint, and leaves one when SIGINT or SIGTERM stops it. If its
    users are split over processes, all of them call this, and the first writes what came out. `worlds` are
    those of the run that the job is part of; None: it has one of its own.
    """
    name, seed = job
    own = job_folder(folder, name, seed)
    stop = _Stop()
    try:
        with stop_on_signals(stop, may_insist=may_insist):
            make_folder(own)
            # A worker that outlived a killed command may still be at it: wait, and take what it leaves.
            with job_lock(own) if processes.is_first else contextlib.nullcontext():
                result = processes.broadcast(finished(own))
                if result is None:
                    result = _play(experiment, own, threads, job, callbacks, stop, processes, worlds)
    except (StoppedError, _StoppedEarly) as stopped:
        return JobResult(name, seed, stopped=str(stopped))
    except Exception as error:  # whatever it is, the other jobs go on
        if worlds is not None:
            worlds.forget()  # where it may have come from
        with contextlib.suppress(OSError):  # the disk may be what failed
            (own / error_file(processes.rank)).write_text(traceback.format_exc(), encoding="utf-8")
        return JobResult(name, seed, error=f"{type(error).__name__}: {error}")
    return result


class _StoppedEarly(BaseException):  # no Exception, so that nothing takes it for an error of the config
    """A job was told to stop before there was anything to keep."""


class _Stop:
    """What a signal does to a job: its simulation ends after the round or, before there is one, all ends."""

    simulation: Simulation | None = None

    def __call__(self) -> None:
        if self.simulation is None:
            raise _StoppedEarly("stopped before it began to play")
        self.simulation.stop()


def _play(
    experiment: Plan,
    folder: Path,
    threads: int,
    job: Job,
    callbacks: tuple[Callback, ...],
    stop: _Stop,
    processes: Processes,
    worlds: Worlds | None,
) -> JobResult:
    """Play the job to its end and write its result, last and atomically."""
    environment, data = build_world(experiment, job[1]) if worlds is None else worlds.of(job[1])
    origin = origin_of(experiment, job, data)
    checkpoints = folder / CHECKPOINTS
    saved = latest_checkpoint(checkpoints, processes, origin)
    if saved is not None:
        experiment, origin = _with_kernels_of(saved.origin, experiment, origin, checkpoints)
    refuse_unlike_processes(origin, processes)
    loggers = (
        _loggers(experiment, folder, job, origin, resuming=saved is not None) if processes.is_first else ()
    )
    # The checkpoint last, so that it knows of what the others have written.
    every = (*loggers, *callbacks, Checkpoint(checkpoints, experiment.checkpoint_every, origin))
    simulation = build(
        experiment, job, threads, *every, environment=environment, processes=processes, folder=folder
    )
    if saved is not None:
        simulation.restore(saved)
    stop.simulation = simulation
    records = simulation.run()
    result = JobResult(
        *job,
        last=replace(records[-1], details={}),
        users=simulation.metrics.num_users,
        fingerprint=fingerprint(simulation.policy.state_dict(), processes),
        replayed=_replayed(simulation, folder),
        hidden=HiddenShare(*hidden) if (hidden := simulation.environment.hidden_features) else None,
        origin=origin,
    )
    if processes.is_first:
        digests = {name: file_digest(folder / name) for name in (METRICS, CONFIG)}
        result = replace(result, metrics=digests[METRICS], config=digests[CONFIG])
        if experiment.keep_policies and processes.size == 1:
            result = replace(result, kept=keep_policy(experiment, folder, job, simulation.policy))
        write_result(folder, result)
        # Only now, when the result and all that it sums up are on the disk.
        shutil.rmtree(checkpoints, ignore_errors=True)
        for errors in error_files(folder):  # of former attempts
            errors.unlink()
    return result


def _replayed(simulation: Simulation, folder: Path) -> Replayed | None:
    """What replay of a log gave, whose sums per user are written to a file; None: no log was replayed."""
    log = simulation.environment.logged(simulation.rounds)
    if log is None:
        return None
    write_user_sums(folder / USERS, simulation.metrics.user_sums())
    return Replayed(
        events=log.events,
        click_rate=log.click_rate,
        window=WINDOW,
        ctr=simulation.metrics.windows(),
        serving=log.serving,
        log=log.digest,
        users=file_digest(folder / USERS),
    )


def _loggers(experiment: Plan, folder: Path, job: Job, origin: Origin, *, resuming: bool) -> list[Callback]:
    """What writes into the job's folder while it runs."""
    write_config(experiment, folder, job, origin)
    if not resuming:
        for rest in event_files(folder):  # of an attempt that was broken off
            rest.unlink()
    hparams = experiment.hparams(*job)
    loggers: dict[str, Callback] = {"TensorBoard": TensorBoard(folder, experiment.dump(*job), hparams)}
    for name in experiment.loggers:
        make = partial(build_logger, experiment, name, folder, job)
        loggers[f"logger {name}"] = LoggerCallback(make, hparams)
    if experiment.if_logger_fails == "continue":
        loggers = {name: Forgiving(logger, name) for name, logger in loggers.items()}
    return [MetricsFile(folder / METRICS), *loggers.values(), *build_callbacks(experiment)]


def write_config(experiment: Plan, folder: Path, job: Job, origin: Origin) -> None:
    """Write a job's `config.yaml`, which runs it again; its first line says on what it was run."""
    about = f"{origin.version}, data: sha256 {origin.data}"
    write_atomically(folder / CONFIG, sealed_text(experiment.dump(*job), about))


def origin_of(experiment: Plan, job: Job, data: str) -> Origin:
    """What a job's numbers come from, given the digest of its world's data."""
    return Origin(
        version=package_version(),
        kernels=kernels_of(experiment),
        data=data,
        config=experiment.digest(*job),
        shared=experiment.shared_digest,
    )


def refuse_unlike_processes(origin: Origin, processes: Processes) -> None:
    """Refuse processes of one run, perhaps on several machines, that would not work on the same.

    What users share would drift apart, and each process would take its own for everybody's.
    """
    if processes.size > 1 and len(set(gather_digests(text_digest(repr(origin)), processes))) > 1:
        raise OtherOriginError(
            f"process {processes.rank} has conbandit_torch {origin.version}, kernels {origin.kernels} and "
            f"data {origin.data[:12]}, and another process has something else: all must have the same"
        )


def kernels_of(experiment: Plan) -> str:
    """Which kernels the experiment's jobs run with, on this machine."""
    with using(experiment.kernels):
        return name_of(device_of(experiment.accelerator))


def _with_kernels_of(saved: Origin, experiment: Plan, now: Origin, where: Path) -> tuple[Plan, Origin]:
    """The experiment with the kernels that a checkpoint was made with, or a word about what differs."""
    if saved.last_kernels == TORCH and experiment.kernels == "auto":  # those run everywhere
        experiment, now = replace(experiment, kernels="torch"), replace(now, kernels=TORCH)
    saved.warn_of_other_kernels(now, where)
    return experiment, now.after(saved)


def build(
    experiment: Plan,
    job: Job,
    threads: int,
    *callbacks: Callback,
    environment: Environment | None = None,
    processes: Processes = ALONE,
    folder: Path | None = None,
) -> Simulation:
    """The simulation of one policy with one seed, of this process's users.

    Args:
        experiment: whose job it is.
        job: policy and seed.
        threads: threads of torch.
        callbacks: told of the simulation's events.
        environment: the job's environment, with all users; None: it is built here.
        processes: over which users are split.
        folder: where callbacks may put their files.
    """
    torch.set_num_threads(threads)
    name, seed = job
    if environment is None:
        environment = build_world(experiment, seed).environment
    environment.split(processes)
    return Simulation(
        build_policy(experiment, name, environment, seed),
        environment,
        rounds=experiment.rounds,
        log_every=experiment.log_every,
        callbacks=callbacks,
        precision=experiment.precision,
        accelerator=experiment.accelerator,
        kernels=experiment.kernels,
        bad_feedback=experiment.bad_feedback,
        folder=folder,
    )


def finished(folder: Path) -> JobResult | None:
    """The job's result, if its folder holds a sound one; a damaged one is reported and counts as none."""
    try:
        return read_result(folder)
    except OtherFormatError:
        raise
    except ResultError as error:
        _log.warning("%s; the job counts as not finished", error)
        return None


def describe(result: JobResult) -> str:
    """What became of a job, in one line."""
    job = f"{result.policy} seed {result.seed}"
    if result.last is None:
        return f"{job}: FAILED, {result.error}" if result.error else f"{job}: {result.stopped}"
    return f"{job}: {objective_of([result.last]).describe(result.last)}, {result.last.seconds:.1f} s"
