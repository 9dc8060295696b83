"""Runs an experiment's jobs, one policy with one seed each, and writes what came out.

A job that has finished leaves `result.json` in its folder, written last and atomically; one that has not
leaves checkpoints. Running the same experiment into the same folder again finishes the rest from there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import monotonic

import torch
from rich.console import Console

from conbandit_torch.callbacks.base import Callback
from conbandit_torch.callbacks.progress import ProgressBar, ProgressLines, progress_bars
from conbandit_torch.configuration.build import build_callbacks, build_policy, takes_seed
from conbandit_torch.configuration.loggers import build_logger
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.core.files import make_folder, write_atomically
from conbandit_torch.core.processes import ALONE, Processes
from conbandit_torch.core.seals import sealed, sealed_text
from conbandit_torch.kernels import using
from conbandit_torch.results.aggregate import aggregate
from conbandit_torch.running.folder import EXPERIMENT, HOW, FolderInUseError, sole_writer
from conbandit_torch.running.held import read_held, refuse_what_differs
from conbandit_torch.running.job import describe, run_job
from conbandit_torch.running.kept import expect_room, kept_bytes
from conbandit_torch.running.origin import package_version
from conbandit_torch.running.plan import Plan
from conbandit_torch.running.processes import device_of
from conbandit_torch.running.result import Job, JobResult
from conbandit_torch.running.signals import pass_on_to_children, stop_on_signals
from conbandit_torch.running.summary import Sparingly, SummaryFile
from conbandit_torch.running.workers import Backend, Crashed, results_of
from conbandit_torch.running.worlds import Worlds, build_world

_A_MINUTE = 60.0

_log = logging.getLogger(__name__)


def results_folder(out: Path | None, source: Path) -> Path:
    """`out`, or a new dated folder under `runs/`."""
    if out is not None:
        return out
    name = f"{source.stem}-{datetime.now():%Y%m%d-%H%M%S}"
    candidates = [Path("runs") / name, *(Path("runs") / f"{name}-{number}" for number in range(2, 100))]
    return next(folder for folder in candidates if not folder.exists())


def run(
    experiment: Plan,
    folder: Path,
    console: Console,
    *,
    jobs: int = 1,
    threads: int | None = None,
    backend: Backend = "local",
    processes: Processes = ALONE,
) -> list[JobResult]:
    """All jobs that `folder` does not hold yet; returns the results of all jobs, failures included.

    SIGINT or SIGTERM stops it after the current rounds; jobs that were not started then have no result.

    Args:
        experiment: what to run.
        folder: where results go; `summary.csv` has a line per job, as soon as it ends.
        console: where progress is shown.
        jobs: how many to run at the same time, each in its own process if more than one.
        threads: threads of torch in a job; None: 1 with several jobs, torch's default otherwise.
        backend: where they run; all machines of a Ray cluster must see `folder`.
        processes: over which every job's users are split; all of them call this.
    """
    worlds = Worlds(experiment, keep=processes.size == 1)
    try:
        return _run(experiment, folder, console, worlds, jobs, threads, backend, processes)
    finally:
        worlds.forget()


def _run(
    experiment: Plan,
    folder: Path,
    console: Console,
    worlds: Worlds,
    jobs: int,
    threads: int | None,
    backend: Backend,
    processes: Processes,
) -> list[JobResult]:
    sizes = check(experiment, processes, worlds)
    held = read_held(folder)
    refuse_what_differs(experiment, folder, held, worlds, repair=processes.is_first)
    in_processes = jobs > 1 or backend != "local"
    if in_processes:
        worlds.forget()  # those processes have their own
    if threads is None:  # with several jobs always 1, so that results do not depend on their number
        threads = 1 if in_processes or processes.size > 1 else torch.get_num_threads()
    make_folder(folder)
    call = partial(run_job, experiment, folder.resolve(), threads, worlds=worlds)
    if not processes.is_first:
        return _help(call, processes)
    with _alone_in(folder):
        how = {"threads": threads, "jobs": jobs, "backend": backend}
        how |= {"devices": processes.size // processes.nodes, "num_nodes": processes.nodes}
        write_atomically(folder / HOW, sealed(how))
        # Last: where there is one, the run can be resumed.
        write_atomically(folder / EXPERIMENT, sealed_text(experiment.dump(), package_version()))
        results = {job: held[job] for job in experiment.jobs() if job in held}
        todo = [job for job in experiment.jobs() if job not in results]
        if results:
            there = f"{folder} holds {len(results)} of {len(experiment.jobs())} jobs"
            _say(console, f"{there}; running the others" if todo else f"{there}: all are done")
        if experiment.keep_policies and processes.size == 1:
            expect_room(folder, sum(sizes[name] for name, _ in todo))
        summary = SummaryFile(folder, experiment, held)
        bands = Sparingly(partial(_aggregate, folder))
        if in_processes:
            new = _in_processes(call, todo, console, jobs, backend)
        else:
            new = _here(call, processes.broadcast(todo), console, processes)
        for result in new:
            results[result.job] = result
            summary.add(result)
            _say(console, describe(result))
            if result.last is not None and len(results) < len(experiment.jobs()):
                bands()
        summary.finish()
        if any(result.last is not None for result in results.values()):
            _aggregate(folder)
    return [results[job] for job in experiment.jobs() if job in results]


def _aggregate(folder: Path) -> None:
    """Curves and bands of all results so far; a folder where that fails keeps its results."""
    try:
        aggregate(folder)
    except ConfigError as error:
        _log.warning("%s; no curves over seeds were written", error)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    try:
        with sole_writer(folder):
            yield
    except FolderInUseError as error:
        raise ConfigError(f"--out {folder}: {error}; wait for it, or name another folder") from None


def check(experiment: Plan, processes: Processes = ALONE, worlds: Worlds | None = None) -> dict[str, int]:
    """Try everything once before anything runs: a bad last policy must not cost hours of good ones.

    Returns how many bytes each policy takes when it is kept, except for what it logs while it learns.
    """
    try:
        device_of(experiment.accelerator)
    except Exception as error:  # Lightning has many kinds for this
        raise ConfigError(f"{experiment.source}: accelerator: {error}") from None
    try:
        with using(experiment.kernels):
            pass
    except ValueError as error:
        raise ConfigError(f"{experiment.source}: {error}") from None
    first = experiment.seeds[0]
    environment = (build_world(experiment, first) if worlds is None else worlds.of(first)).environment
    if environment.length is not None and experiment.rounds > environment.length:
        raise ConfigError(
            f"{experiment.source}: rounds: {experiment.rounds}, but the environment holds only "
            f"{environment.length}"
        )
    try:
        environment.split(processes)
    except ValueError as error:
        raise ConfigError(f"{experiment.source}: environment: {error}") from None
    # One at a time: each may need most of the memory.
    draw, sizes = False, {}
    for name in experiment.policies:
        policy = build_policy(experiment, name, environment, first)
        draw |= policy.draws
        sizes[name] = kept_bytes(policy, experiment.precision)
    if len(experiment.seeds) > 1 and not takes_seed(experiment) and not draw:
        raise ConfigError(
            f"{experiment.source}: seeds: there are {len(experiment.seeds)}, but neither the environment "
            f"({type(environment).__name__}) nor a policy draws anything: every seed would give the same "
            "run, and copies are no sample; give one seed"
        )
    build_callbacks(experiment)
    with TemporaryDirectory() as nowhere:
        for name in experiment.loggers:
            build_logger(experiment, name, Path(nowhere), (next(iter(experiment.policies)), first))
    return sizes


def _say(console: Console, line: str) -> None:
    console.print(line, soft_wrap=True)


def _here(
    job: Callable[..., JobResult], todo: list[Job], console: Console, processes: Processes
) -> Iterator[JobResult]:
    """One job after the other, in this process: a bar each or, without a terminal, a line per minute."""
    with progress_bars(console=console, transient=True, disable=not console.is_terminal) as bars:
        for name, seed in todo:
            title = f"{name} seed {seed}"
            progress: Callback = (
                ProgressBar(bars, title)
                if console.is_terminal
                else ProgressLines(partial(_say, console), title, _A_MINUTE)
            )
            result = job((name, seed), progress, may_insist=True, processes=processes)
            yield result
            if result.stopped or (result.error and processes.size > 1):
                return  # where the other processes are after an error, nobody knows


def _help(job: Callable[..., JobResult], processes: Processes) -> list[JobResult]:
    """The first process's jobs, for this process's users; returns the one that failed, if one did."""
    try:
        todo: list[Job] = processes.broadcast([])
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
    """Several jobs at a time: a bar of all or, without a terminal, a line per minute."""
    stopping = Event()

    def stop() -> None:
        stopping.set()
        pass_on_to_children()

    title = f"{jobs} jobs at a time"
    with (
        stop_on_signals(stop, may_insist=True),
        progress_bars(console=console, transient=True, disable=not console.is_terminal) as bars,
        _every_minute(console, title, len(todo)) as done,
    ):
        bar = bars.add_task(title, total=len(todo), outcome="", speed="", unit="job")
        for (name, seed), result in results_of(job, todo, jobs, backend, stopping):
            bars.advance(bar)
            done.append((name, seed))
            if not isinstance(result, Crashed):
                yield result
            elif stopping.is_set():
                yield JobResult(name, seed, stopped=result.reason)
            else:
                yield JobResult(name, seed, error=result.reason)


@contextmanager
def _every_minute(console: Console, title: str, total: int) -> Iterator[list[Job]]:
    """Say every minute how many jobs have ended, if there is no terminal for a bar; gives their list."""
    done: list[Job] = []
    ended, start = Event(), monotonic()

    def say() -> None:
        while not ended.wait(_A_MINUTE):
            minutes = (monotonic() - start) / 60
            _say(console, f"{title}: {len(done)} of {total} have ended after {minutes:.0f} minutes")

    speaker = Thread(target=say, daemon=True)
    if not console.is_terminal:
        speaker.start()
    try:
        yield done
    finally:
        ended.set()
        if speaker.is_alive():
            speaker.join()
