"""YAML to an experiment. Every error names the file, the key, what was wrong and what would be right."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from jsonargparse.typing import PositiveInt

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.callbacks.base import Callback
from conbandit_torch.configuration.build import (
    GIVEN_TO_ENVIRONMENTS,
    GIVEN_TO_POLICIES,
    build_environment,
    resolve_part,
)
from conbandit_torch.configuration.errors import check_keys
from conbandit_torch.configuration.loggers import resolve_logger
from conbandit_torch.configuration.values import REFUSALS, parse_value
from conbandit_torch.configuration.yaml_files import read_yaml, value_of
from conbandit_torch.core.errors import ConfigError, choices
from conbandit_torch.core.screen import BadFeedback
from conbandit_torch.environments.base import Environment
from conbandit_torch.kernels import Kernels
from conbandit_torch.running.folder import is_reserved
from conbandit_torch.running.plan import IfLoggerFails, Plan
from conbandit_torch.running.processes import Precision

_REQUIRED = ("rounds", "environment", "policies")
_ALL = "all"  # rounds of an environment that ends: a log
_WHOLE_NUMBERS = ("rounds", "log_every", "checkpoint_every")
_CHOICES = {
    "precision": Precision,
    "kernels": Kernels,
    "bad_feedback": BadFeedback,
    "if_logger_fails": IfLoggerFails,
}
_PARTS = ("environment", "policies", "callbacks", "loggers")
_SETTINGS = (*_WHOLE_NUMBERS[1:], "keep_policies", *_CHOICES)
_OPTIONAL = ("seeds", "accelerator", *_SETTINGS, "callbacks", "loggers", "tune")


def load(path: Path, overrides: Iterable[tuple[str, str]] = ()) -> Plan:
    """The experiment that a YAML file describes; its section `tune` is for `conbandit tune` alone.

    Args:
        path: the file.
        overrides: (dotted key, YAML value) pairs that replace the file's values.
    """
    return resolve(read(path, overrides), path)


def read(path: Path, overrides: Iterable[tuple[str, str]] = ()) -> dict[str, Any]:
    """The file's content as it is written, with the values of `overrides` replaced."""
    config = read_yaml(path, _REQUIRED)
    known = [*_REQUIRED, *_OPTIONAL]
    for key, text in overrides:
        top = key.partition(".")[0]
        if top not in known:
            raise ConfigError(f"--{key}: no option, and no key of a config{choices(top, known)}")
        try:
            value = text if key == "seeds" else value_of(text)  # YAML reads 1:30 as 90
        except Exception:
            raise ConfigError(f"--{key}: {text!r} is not a YAML value") from None
        set_value(config, key, value)
    return config


def resolve(config: dict[str, Any], path: Path) -> Plan:
    """The experiment that the content of the file `path` describes, with all defaults filled in."""
    config = {key: value for key, value in config.items() if key != "tune"}
    check_keys(config, f"{path}", required=_REQUIRED, optional=_OPTIONAL)
    if not isinstance(config["policies"], dict) or not config["policies"]:
        raise ConfigError(f"{path}: policies: expected a mapping of names to policies")
    named = _named(path, config, "callbacks")
    settings = _settings(path, {k: v for k, v in config.items() if k not in _PARTS})
    policies = {}
    for name, node in config["policies"].items():
        where = f"{path}: policies.{name}"
        if not isinstance(name, str) or not re.fullmatch(r"[\w+-][\w.+ -]{0,99}", name):
            raise ConfigError(
                f"{where}: a policy's name is a folder's name: at most 100 letters, digits, . + - _"
            )
        if is_reserved(name):
            raise ConfigError(
                f"{where}: a policy's name is a folder's name, and a results folder has this one already"
            )
        policies[name] = resolve_part(where, node, Bandit, GIVEN_TO_POLICIES)
    environment = resolve_part(
        f"{path}: environment", config["environment"], Environment, GIVEN_TO_ENVIRONMENTS
    )
    callbacks = {
        str(name): resolve_part(f"{path}: callbacks.{name}", node, Callback, set())
        for name, node in named.items()
    }
    loggers = {
        str(name): resolve_logger(f"{path}: loggers.{name}", node)
        for name, node in _named(path, config, "loggers").items()
    }
    whole_log = settings["rounds"] == _ALL
    if whole_log:
        settings["rounds"] = 1  # until the environment says how many it holds
    plan = Plan(
        str(path),
        environment=environment,
        policies=policies,
        callbacks=callbacks,
        loggers=loggers,
        **settings,
    )
    return replace(plan, rounds=_length(plan)) if whole_log else plan


def _length(plan: Plan) -> int:
    """How many rounds the environment holds: a number from here on, so that results name it."""
    environment = build_environment(plan, plan.seeds[0])
    if environment.length is None:
        raise ConfigError(
            f"{plan.source}: rounds: {_ALL}, but {type(environment).__name__} never ends: give a number"
        )
    return environment.length


def _named(path: Path, config: dict[str, Any], key: str) -> dict[str, Any]:
    named: Any = config.get(key) or {}
    if not isinstance(named, dict):
        raise ConfigError(f"{path}: {key}: expected a mapping of names to {key}, got {named!r}")
    return named


def parse_seeds(value: Any) -> list[int]:
    """Seeds from `3`, `"0,1,2"`, `"0-9"` or a list of those."""
    seeds: list[int] = []
    for item in value if isinstance(value, list) else str(value).split(","):
        found = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", str(item))
        if found is None or isinstance(item, bool):
            raise ValueError
        first, last = int(found[1]), int(found[2] or found[1])
        if last - first >= 100_000:
            raise ValueError
        seeds.extend(range(first, last + 1))
    if not seeds or len(set(seeds)) != len(seeds):
        raise ValueError
    return seeds


def set_value(config: dict[str, Any], key: str, value: Any) -> None:
    """Set `config[a][b][c]` for the dotted key a.b.c."""
    *parents, last = key.split(".")
    node = config
    for depth, parent in enumerate(parents):
        if depth == 1 and parents[0] == "policies" and parent not in node:
            raise ConfigError(f"--{key}: there is no policy {parent!r}{choices(parent, node)}")
        node = node.setdefault(parent, {})
        if isinstance(node, str):
            raise ConfigError(f"--{key}: {parent} is {node!r} in the file, not a mapping to set {last} in")
        if not isinstance(node, dict):
            raise ConfigError(f"--{key}: {parent} is not a mapping in the file")
    node[last] = value


def _settings(path: Path, given: dict[str, Any]) -> dict[str, Any]:
    kinds = (
        dict.fromkeys(_WHOLE_NUMBERS, PositiveInt) | _CHOICES | {"accelerator": str, "keep_policies": bool}
    )
    expected = dict.fromkeys(_WHOLE_NUMBERS, "a whole number of at least 1")
    expected |= {key: f"one of {', '.join(get_args(values))}" for key, values in _CHOICES.items()}
    expected |= {"accelerator": "a name such as cpu or cuda", "keep_policies": "true or false"}
    seeds = given.pop("seeds", 0)
    settings: dict[str, Any] = {}  # those given: Plan knows the defaults
    for key, value in given.items():
        if key == "rounds" and value == _ALL:
            settings[key] = value
            continue
        try:
            settings[key] = parse_value(value, kinds[key])
            if value is None:
                raise TypeError
        except REFUSALS:
            besides = f" ({_ALL}: as many as a log holds)" if key == "rounds" else ""
            raise ConfigError(f"{path}: {key}: expected {expected[key]}, got {value!r}{besides}") from None
    whole = [key for key in _WHOLE_NUMBERS if settings.get(key, _ALL) != _ALL]
    settings |= {key: int(settings[key]) for key in whole}  # plain, for YAML
    try:
        settings["seeds"] = parse_seeds(seeds)
    except (ValueError, TypeError):
        raise ConfigError(
            f"{path}: seeds: expected distinct whole numbers like 0,1,2 or 0-9, got {seeds!r}"
        ) from None
    return settings
