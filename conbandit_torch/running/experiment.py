"""An experiment as Python writes it: several policies on the same rounds, seed by seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.callbacks.base import Callback
from conbandit_torch.configuration.load import load, resolve
from conbandit_torch.configuration.packaged import find_config
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.core.files import write_atomically
from conbandit_torch.core.parts import node_of
from conbandit_torch.core.screen import BadFeedback
from conbandit_torch.environments.base import Environment
from conbandit_torch.kernels import Kernels
from conbandit_torch.results.read import read_results
from conbandit_torch.results.results import Results
from conbandit_torch.running.plan import IfLoggerFails
from conbandit_torch.running.processes import Precision
from conbandit_torch.running.runner import results_folder, run
from conbandit_torch.running.workers import Backend

Part = Mapping[str, Any] | str
"""A part as YAML has it: `class_path` and `init_args`, or only the name of a class."""


class JobsFailedError(RuntimeError):
    """Some jobs of an experiment failed; the results of the others are in its folder."""


class Experiment:
    """Several policies on the same rounds, seed by seed: what a YAML config says, in Python.

    Every job builds its own environment and policy, so parts are given as a class, as
    `partial(Class, argument=value)`, or as YAML has them; never the catalogue, the number of users and the
    seed, which the experiment gives. Parts of parts, such as a schedule, may be objects:
    `partial(ConUCB, schedule=LogSchedule(5))`. An environment may be an object too: others are made like it.

    Args:
        environment: where to play.
        policies: who plays, by name.
        rounds: rounds to play.
        seeds: one run of every policy for each: numbers, or a text such as "0-9".
        log_every: rounds between records.
        precision: "32-true" or "64-true".
        accelerator: Lightning's name of the device.
        kernels: "torch", "compiled", or "auto": compiled on a CPU where numba is installed.
        checkpoint_every: rounds between checkpoints.
        keep_policies: whether finished jobs keep their policies, for `load_policy`.
        bad_feedback: "stop" at rewards and answers that are NaN or infinite, or "skip" and count them.
        if_logger_fails: "continue" without a logger that fails, TensorBoard or another, or "stop" the job.
        callbacks: your own, by name; classes or partials, since every job builds its own.
        loggers: Lightning loggers beside TensorBoard, by name, as YAML has them.

    Raises:
        ConfigError: if something is wrong with a part or a setting: what, where, and what would be right.
    """

    def __init__(
        self,
        *,
        environment: Environment | Callable[..., Environment] | Part,
        policies: Mapping[str, Callable[..., Bandit] | Part],
        rounds: int,
        seeds: int | str | Iterable[int] = 0,
        log_every: int = 10,
        precision: Precision = "32-true",
        accelerator: str = "cpu",
        kernels: Kernels = "auto",
        checkpoint_every: int = 1000,
        keep_policies: bool = True,
        bad_feedback: BadFeedback = "stop",
        if_logger_fails: IfLoggerFails = "continue",
        callbacks: Mapping[str, Callable[..., Callback] | Part] | None = None,
        loggers: Mapping[str, Part] | None = None,
    ) -> None:
        for name, one in policies.items():
            if isinstance(one, Bandit):
                raise ConfigError(
                    f"Experiment: policies.{name}: is a policy that was built for one catalogue, and every "
                    f"job needs its own: give partial({type(one).__name__}, ...)"
                )
        config = {
            "rounds": rounds,
            "seeds": seeds if isinstance(seeds, int | str) else [int(seed) for seed in seeds],
            "environment": node_of(environment, "Experiment: environment"),
            "policies": {
                name: node_of(one, f"Experiment: policies.{name}") for name, one in policies.items()
            },
            "log_every": log_every,
            "precision": precision,
            "accelerator": accelerator,
            "kernels": kernels,
            "checkpoint_every": checkpoint_every,
            "keep_policies": keep_policies,
            "bad_feedback": bad_feedback,
            "if_logger_fails": if_logger_fails,
            "callbacks": {
                name: node_of(one, f"Experiment: callbacks.{name}") for name, one in (callbacks or {}).items()
            },
            "loggers": dict(loggers or {}),
        }
        self.plan = resolve(config, Path("Experiment"))

    @classmethod
    def from_yaml(cls, config: Path | str) -> Experiment:
        """The experiment of a YAML config.

        Args:
            config: a file, or the name of a config of this package, such as "quickstart".
        """
        experiment = cls.__new__(cls)
        experiment.plan = load(find_config(config))
        return experiment

    def to_yaml(self, path: Path | str | None = None) -> str:
        """The experiment as YAML, with every default spelled out; `conbandit run` runs it.

        Args:
            path: where to write it too; None: nowhere.
        """
        text = self.plan.dump()
        if path is not None:
            write_atomically(Path(path), text)
        return text

    def run(
        self,
        folder: Path | str | None = None,
        *,
        jobs: int = 1,
        threads: int | None = None,
        backend: Backend = "local",
        progress: bool = True,
    ) -> Results:
        """Run all jobs that the folder does not hold yet, and read all results; as `conbandit run` does.

        What was interrupted goes on from its checkpoints when it is run again into the same folder.

        Args:
            folder: where results go; None: a new one under `runs/`.
            jobs: how many jobs at the same time, each in its own process if more than one.
            threads: threads of torch in a job; None: 1 with several jobs, torch's default otherwise.
            backend: "local", or "ray" for a Ray cluster.
            progress: whether to tell on standard error how far it is.

        Raises:
            JobsFailedError: if jobs failed; `read_results` reads the others.
            KeyboardInterrupt: if it was interrupted; what had finished is kept.
        """
        if jobs < 1 or (threads is not None and threads < 1):
            raise ConfigError(f"jobs and threads must be at least 1, got {jobs} and {threads}")
        if jobs > 1 or backend != "local":
            self._refuse_classes_of_main()
        where = results_folder(None if folder is None else Path(folder), Path("experiment"))
        console = Console(stderr=True, quiet=not progress, markup=False, emoji=False, highlight=False)
        results = run(self.plan, where, console, jobs=jobs, threads=threads, backend=backend)
        if len(results) < len(self.plan.jobs()) or any(result.stopped for result in results):
            raise KeyboardInterrupt(f"stopped; the same experiment run into {where} goes on")
        failed = [f"{one.policy} seed {one.seed}: {one.error}" for one in results if one.error]
        if failed:
            raise JobsFailedError(
                "\n".join([f"{where}: {len(failed)} of {len(results)} jobs failed", *failed])
            )
        return read_results(where)

    def _refuse_classes_of_main(self) -> None:
        """Classes of the running program, or notebook, are found in this process only."""
        if "class_path: __main__." in self.plan.dump():
            raise ConfigError(
                "Experiment: a class is defined in the program that runs, where jobs in other processes "
                "cannot find it: put it into a file and import it, or run with jobs=1"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Experiment) and self.plan.dump() == other.plan.dump()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        world = self.plan.environment["class_path"].rpartition(".")[2]
        seeds = "1 seed" if len(self.plan.seeds) == 1 else f"{len(self.plan.seeds)} seeds"
        return f"Experiment({world}: {', '.join(self.plan.policies)}; {self.plan.rounds:,} rounds, {seeds})"
