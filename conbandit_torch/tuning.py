"""Looks for good parameters of a policy with Optuna, on seeds that the evaluation does not use.

    tune:
      seeds: 100-101
      space:
        ConUCB:
          mix: {low: 0.1, high: 0.9}
          alpha: {low: 0.01, high: 1.0, log: true}
          schedule.init_args.questions: [2, 5, 10]
      start:
        ConUCB: {mix: 0.8, alpha: 0.1}

A study's trials are kept in a journal in the output folder: the same command continues it, and several
commands, on several machines that share the folder, work on it at the same time.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import log
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import yaml
from rich.console import Console

from conbandit_torch.config import parse_seeds, resolve, set_value
from conbandit_torch.config_errors import ConfigError, check_keys, choices
from conbandit_torch.job import build
from conbandit_torch.parallel import Backend, Crashed, stream
from conbandit_torch.runner import check

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial

Parameters = dict[str, Any]


@dataclass(frozen=True)
class Tuning:
    """What to look for: a policy's arguments and where they may lie.

    Attributes:
        config: the content of the config file.
        source: the config file.
        policy: whose arguments.
        seeds: every trial's seeds.
        space: a range or a list of choices, by dotted argument.
        start: values to try after the config's own, for some of the arguments; or none.
    """

    config: dict[str, Any]
    source: Path
    policy: str
    seeds: list[int]
    space: dict[str, Any]
    start: Parameters

    def with_parameters(self, config: dict[str, Any], parameters: Parameters) -> dict[str, Any]:
        """A copy of `config` with the policy's arguments set."""
        config = copy.deepcopy(config)
        if isinstance(config["policies"][self.policy], str):
            config["policies"][self.policy] = {"class_path": config["policies"][self.policy]}
        for name, value in parameters.items():
            set_value(config, f"policies.{self.policy}.init_args.{name}", value)
        return config

    def trial(self, parameters: Parameters) -> dict[str, Any]:
        """The config of one trial: this policy alone, on the tuning's seeds, recorded only at the end."""
        config = self.with_parameters(self.config, parameters)
        alone = {self.policy: config["policies"][self.policy]}
        return config | {"policies": alone, "seeds": self.seeds, "log_every": config["rounds"]}

    def current(self) -> Parameters:
        """The arguments' values in the config, where it gives them and the space holds them."""
        found = {}
        for name, where in self.space.items():
            node = self.config["policies"][self.policy]
            for key in ("init_args", *name.split(".")):
                node = node.get(key) if isinstance(node, dict) else None
            if _is_inside(where, node):
                found[name] = node
        return found


def read_tunings(
    config: dict[str, Any], path: Path, policies: list[str] | None = None, seeds: str | None = None
) -> list[Tuning]:
    """The tunings that the section `tune` of a config describes.

    Args:
        config: content of the file.
        path: the file.
        policies: those to tune; None: all that have a search space.
        seeds: in place of the section's.
    """
    experiment = resolve(config, path)
    section = config.get("tune")
    where = f"{path}: tune"
    if not isinstance(section, dict):
        raise ConfigError(f"{where}: expected a mapping with seeds and space, got {section!r}")
    check_keys(section, where, required=("space",), optional=("seeds", "start"))
    spaces = section["space"]
    if not isinstance(spaces, dict) or not spaces:
        raise ConfigError(f"{where}.space: expected a mapping of policies to their arguments' ranges")
    for name in policies or spaces:
        for known in (experiment.policies, spaces):
            if name not in known:
                what = "policy" if known is experiment.policies else "search space"
                raise ConfigError(f"{where}.space: there is no {what} of {name!r}{choices(name, known)}")
    given = section.get("seeds") if seeds is None else seeds
    try:
        chosen = parse_seeds(given)
    except (ValueError, TypeError):
        raise ConfigError(f"{where}.seeds: expected numbers like 100,101 or 100-109, got {given!r}") from None
    both = sorted(set(chosen) & set(experiment.seeds))
    if both:
        raise ConfigError(
            f"{where}.seeds: {both[0]} is a seed of the evaluation too (seeds: {experiment.seeds[0]}-"
            f"{experiment.seeds[-1]}); parameters tuned on it would look better than they are"
        )
    starts = section.get("start", {})
    if not isinstance(starts, dict) or not all(isinstance(start, dict) for start in starts.values()):
        raise ConfigError(f"{where}.start: expected values by policy and argument, got {starts!r}")
    for name in starts:
        if name not in spaces:
            raise ConfigError(f"{where}.start: there is no search space of {name!r}{choices(name, spaces)}")
    tunings = [
        Tuning(config, path, name, chosen, spaces[name], starts.get(name, {})) for name in policies or spaces
    ]
    for tuning in tunings:
        _check_space(f"{where}.space.{tuning.policy}", tuning)
    return tunings


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
    for (number, _), regrets in stream(evaluate, _ask(study, tuning, trials, asked), jobs, backend):
        problem = regrets.reason if isinstance(regrets, Crashed) else ""
        problem = regrets if isinstance(regrets, str) else problem
        if isinstance(regrets, list):
            asked[number].set_user_attr("regrets", regrets)
            study.tell(number, fmean(regrets))
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
    about = yaml.safe_dump({"config": tuning.trial({}), "space": tuning.space})
    held = study.user_attrs.get("about")
    if held is None:
        study.set_user_attr("about", about)
    elif held != about:
        raise ConfigError(
            f"--out {folder}: {tuning.policy} was tuned there with another config or search space; name "
            "another folder"
        )
    return study


def finished(study: Study) -> list[FrozenTrial]:
    """The study's finished trials, best first."""
    from optuna.trial import TrialState

    done = study.get_trials(states=(TrialState.COMPLETE,))
    return sorted(done, key=lambda trial: trial.value or 0.0)


def at_the_edge(tuning: Tuning, parameters: Parameters) -> list[str]:
    """Arguments within 5 % of an end of their range: a better value may lie beyond."""
    edge = []
    for name, value in parameters.items():
        where = tuning.space[name]
        if isinstance(where, dict):
            low, high, value = (
                log(number) if where.get("log") else number for number in (where["low"], where["high"], value)
            )
            if min(value - low, high - value) < 0.05 * (high - low):
                edge.append(name)
    return edge


def write_tuned(tunings: list[Tuning], folder: Path) -> Path:
    """`tuned.yaml`: the config with the best parameters known to `folder`, for `conbandit run`.

    `tunings` are all of the config's; those without a finished trial keep the config's own values.
    """
    config = {key: value for key, value in tunings[0].config.items() if key != "tune"}
    lines = ["# Tuned by `conbandit tune`, on seeds of its own:"]
    for tuning in tunings:
        trials = finished(open_study(tuning, folder)) if _journal(tuning, folder).exists() else []
        if trials:
            config = tuning.with_parameters(config, trials[0].params)
            seeds = ", ".join(map(str, tuning.seeds))
            found = f"regret {trials[0].value:.2f} on seeds {seeds}, best of {len(trials)} trials"
            lines.append(f"#   {tuning.policy}: {found}")
    path = folder / "tuned.yaml"
    unfinished = path.with_suffix(".part")
    header = "\n".join(lines)
    unfinished.write_text(f"{header}\n{yaml.safe_dump(config, sort_keys=False)}", encoding="utf-8")
    unfinished.replace(path)
    return path


def _journal(tuning: Tuning, folder: Path) -> Path:
    return folder / f"{tuning.policy}.journal"


def _ask(
    study: Study, tuning: Tuning, trials: int, asked: dict[int, Trial]
) -> Iterator[tuple[int, Parameters]]:
    """New trials, as many as are missing when this starts, or fewer if others finish some."""
    from optuna.samplers import TPESampler

    space = {name: _distribution(where) for name, where in tuning.space.items()}
    for _ in range(trials - len(finished(study))):
        if len(finished(study)) >= trials:
            return
        # A seed of its own for every trial: a study that was broken off goes on as it would have.
        study.sampler = TPESampler(seed=len(study.get_trials(deepcopy=False)), multivariate=True)
        trial = study.ask(space)
        asked[trial.number] = trial
        yield trial.number, trial.params


def _evaluate(tuning: Tuning, threads: int, trial: tuple[int, Parameters]) -> list[float] | str:
    """Final regrets of the seeds, or what was wrong."""
    try:
        experiment = resolve(tuning.trial(trial[1]), tuning.source)
        check(experiment)
        records = [build(experiment, job, threads).run()[-1] for job in experiment.jobs()]
    except Exception as error:  # whatever it is, the other trials go on
        return f"{type(error).__name__}: {error}"
    return [record.cumulative_regret for record in records]


def _is_inside(where: Any, value: Any) -> bool:
    """Whether a range or a list of choices holds the value."""
    if isinstance(where, list):
        return value in where
    return isinstance(value, int | float) and where["low"] <= value <= where["high"]


def _describe(tuning: Tuning, study: Study, number: int, problem: str) -> str:
    trial = study.get_trials(deepcopy=False)[number]
    parameters = ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in trial.params.items()
    )
    if problem:
        return f"{tuning.policy} trial {number}: {parameters}: FAILED, {problem}"
    best = study.best_value
    return f"{tuning.policy} trial {number}: {parameters}: regret {trial.value:.2f} (best {best:.2f})"


def _distribution(where: Any) -> BaseDistribution:
    """Optuna's form of a range or a list of choices."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(where, list):
        return CategoricalDistribution(where)
    whole = isinstance(where.get("step"), int) and all(isinstance(where[end], int) for end in ("low", "high"))
    return IntDistribution(**where) if whole else FloatDistribution(**where)


def _check_space(where: str, tuning: Tuning) -> None:
    if not isinstance(tuning.space, dict) or not tuning.space:
        raise ConfigError(f"{where}: expected arguments with their ranges, got {tuning.space!r}")
    example: Parameters = {}
    for name, node in tuning.space.items():
        form = "expected {low: ..., high: ...}, with log: true or step: ... if you like, or a list of choices"
        if isinstance(node, dict):
            check_keys(node, f"{where}.{name}", required=("low", "high"), optional=("log", "step"))
        elif not isinstance(node, list) or not node:
            raise ConfigError(f"{where}.{name}: {form}; got {node!r}")
        try:
            _distribution(node)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{where}.{name}: {error}") from None
        example[name] = node["low"] if isinstance(node, dict) else node[0]
    for name, value in tuning.start.items():
        if name not in tuning.space or not _is_inside(tuning.space[name], value):
            raise ConfigError(
                f"{where.replace('.space', '.start')}.{name}: {value!r} is not in the search space"
            )
    # An argument that the policy does not have shows now, not in the first trial.
    resolve(tuning.trial(example), tuning.source)
