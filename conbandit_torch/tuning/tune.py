"""Looks for good parameters of a policy with Optuna, on seeds that the evaluation does not use.

A study's trials are kept in a journal in the output folder: the same command continues it, and several
commands, on several machines that share the folder, work on it at the same time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import yaml
from rich.console import Console

from conbandit_torch.configuration.load import resolve
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.core.files import write_atomically
from conbandit_torch.running.folder import TUNED
from conbandit_torch.running.job import build
from conbandit_torch.running.runner import check
from conbandit_torch.running.signals import let_in
from conbandit_torch.running.workers import Backend, Crashed, results_of
from conbandit_torch.tuning.search_space import Parameters, Tuning, distribution

_FORMAT = 2  # of what a trial keeps: to be raised when that changes

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial


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

    The first trial has the config's own values. The trials before a restart count; so do those of other
    commands that work on the same study.

    Args:
        tuning: what to look for.
        folder: where the study is kept.
        console: where progress is shown.
        trials: how many finished trials the study is to have.
        jobs: trials at a time.
        threads: threads of torch in a trial.
        backend: where trials run.
    """
    from optuna.trial import TrialState

    study = open_study(tuning, folder)
    if not study.get_trials(deepcopy=False):
        for known in (tuning.current(), tuning.start):
            if known:
                study.enqueue_trial(known, skip_if_exists=True)
    evaluate = partial(_evaluate, tuning, threads)
    asked: dict[int, Trial] = {}
    for (number, _), found in results_of(evaluate, _ask(study, tuning, trials, asked), jobs, backend):
        problem = found.reason if isinstance(found, Crashed) else ""
        problem = found if isinstance(found, str) else problem
        if isinstance(found, list):
            losses = [loss for _, loss in found]
            asked[number].set_user_attr("loss", found[0][0])
            asked[number].set_user_attr("losses", losses)
            study.tell(number, fmean(losses))
        else:
            study.tell(number, state=TrialState.FAIL)
        console.print(_describe(tuning, study, number, problem), soft_wrap=True)
    if not finished(study):
        raise ConfigError(f"{tuning.source}: policies.{tuning.policy}: no trial finished")
    return study.best_trial


def open_study(tuning: Tuning, folder: Path) -> Study:
    """The policy's study in `folder`, made if need be; one of another experiment is refused."""
    import optuna

    optuna.logging.set_verbosity(logging.ERROR)  # progress is told by `tune`
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    folder.mkdir(parents=True, exist_ok=True)
    storage = JournalStorage(JournalFileBackend(str(_journal(tuning, folder))))
    study = optuna.create_study(
        storage=storage, study_name=tuning.policy, direction="minimize", load_if_exists=True
    )
    about = yaml.safe_dump({"config": tuning.trial({}), "space": tuning.space, "format": _FORMAT})
    held = study.user_attrs.get("about")
    if held is None:
        study.set_user_attr("about", about)
    elif held != about:
        raise ConfigError(
            f"--out {folder}: {tuning.policy} was tuned there with another config or search space, or by an "
            "earlier version; name another folder"
        )
    return study


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
            best = f"{trials[0].user_attrs['loss']} {trials[0].value:.4g}"
            how = f"after {tuning.config['rounds']} rounds on seeds {seeds}, best of {len(trials)} trials"
            lines.append(f"#   {tuning.policy}: {best} {how}")
    path = folder / TUNED
    header = "\n".join(lines)
    write_atomically(path, f"{header}\n{yaml.safe_dump(config, sort_keys=False)}")
    return path


def _journal(tuning: Tuning, folder: Path) -> Path:
    return folder / f"{tuning.policy}.journal"


def _ask(
    study: Study, tuning: Tuning, trials: int, asked: dict[int, Trial]
) -> Iterator[tuple[int, Parameters]]:
    """New trials, as many as are missing when this starts, or fewer if others finish some."""
    from optuna.samplers import TPESampler

    space = {name: distribution(where) for name, where in tuning.space.items()}
    for _ in range(trials - len(finished(study))):
        if len(finished(study)) >= trials:
            return
        # A seed of its own for every trial: a study that was broken off goes on as it would have.
        study.sampler = TPESampler(seed=len(study.get_trials(deepcopy=False)), multivariate=True)
        trial = study.ask(space)
        asked[trial.number] = trial
        yield trial.number, trial.params


def _evaluate(tuning: Tuning, threads: int, trial: tuple[int, Parameters]) -> list[tuple[str, float]] | str:
    """The seeds' final losses, each with its name, or what was wrong."""
    try:
        experiment = resolve(tuning.trial(trial[1]), tuning.source)
        check(experiment)
        with let_in():  # a signal ends the trial, and its process
            records = [build(experiment, job, threads).run()[-1] for job in experiment.jobs()]
    except Exception as error:  # whatever it is, the other trials go on
        return f"{type(error).__name__}: {error}"
    return [record.loss for record in records]


def _describe(tuning: Tuning, study: Study, number: int, problem: str) -> str:
    trial = study.get_trials(deepcopy=False)[number]
    parameters = ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in trial.params.items()
    )
    if problem:
        return f"{tuning.policy} trial {number}: {parameters}: FAILED, {problem}"
    loss = f"{trial.user_attrs['loss']} {trial.value:.4g} (best {study.best_value:.4g})"
    return f"{tuning.policy} trial {number}: {parameters}: {loss}"
