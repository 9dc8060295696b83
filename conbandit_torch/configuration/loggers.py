"""Loggers of a config: any of Lightning's kind, by class path. Lightning's are imported where asked for."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from conbandit_torch.configuration.errors import check_keys
from conbandit_torch.core.errors import ConfigError, choices
from conbandit_torch.running.plan import Plan

if TYPE_CHECKING:
    from lightning.fabric.loggers.logger import Logger


def resolve_logger(where: str, node: Any) -> dict[str, Any]:
    """A `class_path` / `init_args` node, checked. Arguments that are not given are chosen job by job."""
    node = {"class_path": node} if isinstance(node, str) else node
    if not isinstance(node, dict):
        raise ConfigError(f"{where}: expected class_path and init_args, got {node!r}")
    check_keys(node, where, required=("class_path",), optional=("init_args",))
    given = node.get("init_args") or {}
    if not isinstance(given, dict):
        raise ConfigError(f"{where}.init_args: expected arguments by name, got {given!r}")
    parameters = inspect.signature(_class_of(where, node["class_path"])).parameters
    takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    for name in given:
        if name not in parameters and not takes_any:
            raise ConfigError(
                f"{where}.init_args: {node['class_path']} has no argument {name!r}{choices(name, parameters)}"
            )
    return {"class_path": node["class_path"], "init_args": given}


def build_logger(experiment: Plan, name: str, folder: Path, job: tuple[str, int]) -> Logger:
    """A job's logger: into the job's folder, and with a run of the job's name, unless given otherwise."""
    where, part = f"{experiment.source}: loggers.{name}", experiment.loggers[name]
    cls = _class_of(where, part["class_path"])
    own: dict[str, Any] = {}
    for argument, parameter in inspect.signature(cls).parameters.items():
        if argument == "save_dir":
            own[argument] = str(folder)
        elif argument in ("name", "run_name") and parameter.default is None:  # what W&B and MLflow show
            own[argument] = f"{job[0]}/seed{job[1]}"
    try:
        with warnings.catch_warnings():  # loggers warn of a folder that exists: after a resume it does
            warnings.filterwarnings("ignore", message=".*exists and is not empty.*")
            logger: Logger = cls(**own | part["init_args"])
    except Exception as error:
        raise ConfigError(f"{where}: {type(error).__name__}: {error}") from None
    return logger


def _class_of(where: str, name: Any) -> type[Logger]:
    from lightning.fabric.loggers.logger import Logger

    if not isinstance(name, str):
        raise ConfigError(f"{where}.class_path: expected a class, got {name!r}")
    try:
        found = resolve_name(name)
    except (Exception, SystemExit) as error:  # a program's module ends the process when imported
        raise ConfigError(
            f"{where}.class_path: {name}: {type(error).__name__}: {error}; a logger is named by its path, "
            "for example lightning.pytorch.loggers.CSVLogger"
        ) from None
    if not isinstance(found, type) or not issubclass(found, Logger):
        raise ConfigError(f"{where}: {name} is not a logger such as lightning.pytorch.loggers.CSVLogger")
    return found
