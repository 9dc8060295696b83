"""Looks for good parameters of a policy with Optuna, on seeds that the evaluation does not use.

A study's trials are kept in a journal in the output folder: the same command continues it, and several
commands, on several machines that share the folder, work on it at the same time.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import yaml
from rich.console import Console

from conbandit_torch.configuration.build import build_environment
from conbandit_torch.configuration.load import resolve
from conbandit_torch.core.digests import data_digest
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.core.files import write_atomically
from conbandit_torch.core.seals import sealed_text, text_digest
from conbandit_torch.running.folder import TUNED
from conbandit_torch.running.job import build
from conbandit_torch.running.origin import package_version
from conbandit_torch.running.runner import check
from conbandit_torch.running.signals import let_in
from conbandit_torch.running.workers import Backend, Crashed, results_of
from conbandit_torch.tuning.score import describe, loss, score
from conbandit_torch.tuning.search_space import Parameters, Tuning, distribution, points

_FORMAT = 4  # of what a trial keeps: to be raised when that changes

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial


class NoTrialFinishedError(ConfigError):
    """A study of which every trial failed, and why the last one did."""


def tune(
    tuning: Tuning,
    folder: Path,
    console: Console,
    *,
    trials: int,
    jobs: int = 1,
    threads: int = 1,
    backend: Backend = "local",
) -> FrozenTrial:
    """Bring the study in `folder` to `trials` finished trials; returns the best.

    The first trial has the config's own values, the defaults of arguments that it leaves out included. No
    point is tried twice, so a small space can be exhausted before `trials` are reached. The trials before a
    restart count; so do those of other commands that work on the same study.

    Args:
        tuning: what to look for.
        folder: where the study is kept.
        console: where progress is shown.
        trials: how many finished trials the study is to have.
        jobs: trials at a time.
        threads: threads of torch in a trial.
        backend: where trials run.

    Raises:
        NoTrialFinishedError: if every trial failed.
        ConfigError: if the folder holds a study of something else.
    """
    from optuna.trial import TrialState

    study = open_study(tuning, folder)
    _refuse_other_data(study, tuning, folder)
    evaluate = partial(_evaluate, tuning, threads)
    asked: dict[int, Trial] = {}
    last = ""
    for (number, _), found in results_of(evaluate, _ask(study, tuning, trials, asked), jobs, backend):
        problem = found.reason if isinstance(found, Crashed) else ""
        problem = found if isinstance(found, str) else problem
        if isinstance(found, dict):
            found["checksum"] = _checksum(asked[number].params, found)
            for key, value in found.items():
                asked[number].set_user_attr(key, value)
            study.tell(number, loss(found))
        else:
            study.tell(number, state=TrialState.FAIL)
        console.print(_describe(tuning, study, number, problem), soft_wrap=True)
        last = f": {problem}" if problem else last
    if not finished(study):
        raise NoTrialFinishedError(f"{tuning.source}: policies.{tuning.policy}: no trial finished{last}")
    return study.best_trial


def open_study(tuning: Tuning, folder: Path) -> Study:
    """The policy's study in `folder`, made if need be; one of another experiment is refused."""
    import optuna

    optuna.logging.set_verbosity(logging.ERROR)  # progress is told by `tune`
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    folder.mkdir(parents=True, exist_ok=True)
    path = _journal(tuning, folder)
    _mend(path)
    try:
        study = optuna.create_study(
            storage=JournalStorage(JournalFileBackend(str(path))),
            study_name=tuning.policy,
            direction="minimize",
            load_if_exists=True,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{path}: damaged ({type(error).__name__}: {error}); remove it to tune {tuning.policy} anew, or "
            "name another folder"
        ) from None
    about = yaml.safe_dump({"config": tuning.trial({}), "space": tuning.space, "format": _FORMAT})
    held = study.user_attrs.get("about")
    if held is None:
        study.set_user_attr("about", about)
    elif held != about:
        raise ConfigError(
            f"--out {folder}: {tuning.policy} was tuned there with another config or search space, or by an "
            "earlier version; name another folder"
        )
    for trial in finished(study):
        kept = {name: trial.user_attrs.get(name) for name in ("objective", "values")}
        if trial.user_attrs.get("checksum") != _checksum(trial.params, kept) or trial.value != loss(kept):
            raise ConfigError(
                f"{path}: damaged, trial {trial.number} is not what was written (its checksum is another); "
                f"remove it to tune {tuning.policy} anew, or name another folder"
            )
    return study


def _checksum(parameters: Parameters, kept: dict[str, Any]) -> str:
    """Of a finished trial: where it was, and what came out."""
    numbers = {name: float(value) if isinstance(value, int) else value for name, value in parameters.items()}
    return text_digest(json.dumps([numbers, kept["objective"], kept["values"]], sort_keys=True))


def _refuse_other_data(study: Study, tuning: Tuning, folder: Path) -> None:
    """Trials on other data cannot be compared."""
    experiment = resolve(tuning.trial({}), tuning.source)
    data = data_digest(build_environment(experiment, tuning.seeds[0]))
    held = study.user_attrs.get("data")
    if held is None:
        study.set_user_attr("data", data)
    elif held != data:
        raise ConfigError(
            f"--out {folder}: {tuning.policy} was tuned there on other data (sha256 {held[:12]} there, "
            f"{data[:12]} now): what the environment reads or draws has changed since; name another folder"
        )


def finished(study: Study) -> list[FrozenTrial]:
    """The study's finished trials, best first."""
    from optuna.trial import TrialState

    done = study.get_trials(states=(TrialState.COMPLETE,))
    return sorted(done, key=lambda trial: trial.value or 0.0)


def write_tuned(tunings: list[Tuning], config: dict[str, Any], folder: Path) -> Path:
    """`tuned.yaml`: the config with the best parameters known to `folder`, for `conbandit run`.

    `tunings` are all of the config's; those without a finished trial keep the config's own values.
    """
    config = {key: value for key, value in config.items() if key != "tune"}
    lines = ["# Tuned by `conbandit tune`, on seeds of its own:"]
    for tuning in tunings:
        trials = finished(open_study(tuning, folder)) if _journal(tuning, folder).exists() else []
        if trials:
            config = tuning.with_parameters(config, trials[0].params)
            seeds = ", ".join(map(str, tuning.seeds))
            best = describe(trials[0])
            how = f"after {tuning.config['rounds']} rounds on seeds {seeds}, best of {len(trials)} trials"
            lines.append(f"#   {tuning.policy}: {best} {how}")
    path = folder / TUNED
    header = "\n".join(lines)
    text = f"{header}\n{yaml.safe_dump(config, sort_keys=False)}"
    write_atomically(path, sealed_text(text, package_version()))
    return path


def _journal(tuning: Tuning, folder: Path) -> Path:
    return folder / f"{tuning.policy}.journal"


def _mend(path: Path) -> None:
    """Cut off a line that a killed command has not finished: what is written next would be lost with it."""
    from optuna.storages.journal import JournalFileSymlinkLock

    if not path.is_file():
        return
    lock = JournalFileSymlinkLock(str(path))  # the one that Optuna writes under
    lock.acquire()
    try:
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            with path.open("r+b") as file:
                file.truncate(whole)
    finally:
        lock.release()


def _ask(
    study: Study, tuning: Tuning, trials: int, asked: dict[int, Trial]
) -> Iterator[tuple[int, Parameters]]:
    """New trials, as many as are missing when this starts, or fewer if others finish some."""
    space = {name: distribution(where) for name, where in tuning.space.items()}
    for _ in range(trials - len(finished(study))):
        if len(finished(study)) >= trials:
            return
        trial = _own_point(study, tuning, space) or _new_point(study, space, points(tuning.space))
        if trial is None:
            return  # all points of the space have been tried
        asked[trial.number] = trial
        yield trial.number, trial.params


def _own_point(study: Study, tuning: Tuning, space: dict[str, BaseDistribution]) -> Trial | None:
    """The config's own values, unless a trial had them; `start` is next in the queue.

    Where such a value lies outside the argument's range, the argument is no parameter of this trial, and so
    keeps its value.
    """
    own = tuning.current()
    if any(trial.params == own for trial in study.get_trials(deepcopy=False)):
        return None
    study.enqueue_trial(own)
    trial = study.ask({name: space[name] for name in own})
    if tuning.start:
        study.enqueue_trial(tuning.start, skip_if_exists=True)
    return trial


def _new_point(
    study: Study, space: dict[str, BaseDistribution], every: list[Parameters] | None
) -> Trial | None:
    """A trial at a point where none was before; None if there is none left among `every` point."""
    from optuna.samplers import TPESampler
    from optuna.trial import TrialState

    while True:
        # A seed of its own for every trial: a study that was broken off goes on as it would have.
        seed = len(study.get_trials(deepcopy=False))
        study.sampler = TPESampler(seed=seed, multivariate=True)
        trial = study.ask(space)
        earlier = study.get_trials(deepcopy=False)[: trial.number]
        tried = [other.params for other in earlier]
        if trial.params not in tried:
            return trial
        study.tell(trial.number, state=TrialState.FAIL)  # the sampler does not learn from failed trials
        if every is not None:
            left = [point for point in every if point not in tried]
            if not left:
                return None
            study.enqueue_trial(Random(seed).choice(left))


def _evaluate(tuning: Tuning, threads: int, trial: tuple[int, Parameters]) -> dict[str, Any] | str:
    """The score on all seeds, or what was wrong."""
    try:
        experiment = resolve(tuning.trial(trial[1]), tuning.source)
        check(experiment)
        with let_in():  # a signal ends the trial, and its process
            return score(build(experiment, job, threads).run()[-1] for job in experiment.jobs())
    except Exception as error:  # whatever it is, the other trials go on
        return f"{type(error).__name__}: {error}"


def _describe(tuning: Tuning, study: Study, number: int, problem: str) -> str:
    trial = study.get_trials(deepcopy=False)[number]
    parameters = ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in trial.params.items()
    )
    if problem:
        return f"{tuning.policy} trial {number}: {parameters}: FAILED, {problem}"
    best = describe(study.best_trial)
    return f"{tuning.policy} trial {number}: {parameters}: {describe(trial)} (best: {best})"
