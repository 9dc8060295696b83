"""The section `tune` of a config: which arguments of which policies to tune, and where they may lie.

    tune:
      seeds: 100-101
      space:
        ConUCB:
          mix: {low: 0.1, high: 0.9}
          alpha: {low: 0.01, high: 1.0, log: true}
          schedule.init_args.questions: [2, 5, 10]
      start:
        ConUCB: {mix: 0.8, alpha: 0.1}

Numbers are whole if `low`, `high` and `step` are.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from itertools import product
from math import log, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conbandit_torch.configuration.errors import check_keys
from conbandit_torch.configuration.load import parse_seeds, resolve, set_value
from conbandit_torch.core.errors import ConfigError, choices

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Parameters = dict[str, Any]

_MOST = 10_000  # points that are listed


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
        config.pop("callbacks", None)  # they are for runs that leave results
        alone = {self.policy: config["policies"][self.policy]}
        return config | {"policies": alone, "seeds": self.seeds, "log_every": config["rounds"]}

    def current(self) -> Parameters:
        """The arguments' values in the config, or else their defaults, where the space holds them.

        A trial of these parameters has the config's own values: it sets nothing else.
        """
        policy = resolve(self.config, self.source).policies[self.policy]
        found = {}
        for name, where in self.space.items():
            node: Any = policy
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
    config = config | {"rounds": experiment.rounds}  # a number, also of `all`
    section = config.get("tune")
    where = f"{path}: tune"
    if not isinstance(section, dict):
        got = "there is no such section" if section is None else f"got {section!r}"
        raise ConfigError(f"{where}: expected a mapping with seeds and space, {got}")
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


def distribution(where: Any) -> BaseDistribution:
    """Optuna's form of a range or a list of choices."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(where, list):
        return CategoricalDistribution(where)
    whole = isinstance(where.get("step"), int) and all(isinstance(where[end], int) for end in ("low", "high"))
    return IntDistribution(**where) if whole else FloatDistribution(**where)


def points(space: dict[str, Any]) -> list[Parameters] | None:
    """Every point of a search space; None if there are infinitely many, or more than ten thousand."""
    values = []
    for where in space.values():
        if isinstance(where, list):
            values.append(where)
        elif "step" in where:
            count = int((where["high"] - where["low"]) / where["step"] + 1e-9) + 1
            values.append([where["low"] + number * where["step"] for number in range(min(count, _MOST + 1))])
        else:
            return None
    if prod(map(len, values)) > _MOST:
        return None
    return [dict(zip(space, point, strict=True)) for point in product(*values)]


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
            distribution(node)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{where}.{name}: {error}") from None
        except ArithmeticError:  # Optuna divides the range by the step, in decimal numbers
            raise ConfigError(f"{where}.{name}: the range cannot be cut into such steps: {node!r}") from None
        example[name] = node["low"] if isinstance(node, dict) else node[0]
    for name, value in tuning.start.items():
        if name not in tuning.space or not _is_inside(tuning.space[name], value):
            raise ConfigError(
                f"{where.replace('.space', '.start')}.{name}: {value!r} is not in the search space"
            )
    # An argument that the policy does not have shows now, not in the first trial.
    resolve(tuning.trial(example), tuning.source)


def _is_inside(where: Any, value: Any) -> bool:
    """Whether a range or a list of choices holds the value."""
    if isinstance(where, list):
        return value in where
    return isinstance(value, int | float) and where["low"] <= value <= where["high"]
