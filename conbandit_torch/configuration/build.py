"""Parts of a config: a class by name with its arguments, checked, completed with defaults, and made.

What is wrong with a class, or with an argument's name or type, is found from signatures; jsonargparse says
whether a value is of a type, and makes the objects.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pkgutil import resolve_name
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from jsonargparse import ArgumentParser

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.callbacks.base import Callback
from conbandit_torch.configuration.errors import check_keys
from conbandit_torch.configuration.values import REFUSALS, parse_value
from conbandit_torch.core.arguments import arguments_of, not_arguments
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.errors import ConfigError, choices
from conbandit_torch.core.names import PUBLIC, public
from conbandit_torch.environments.base import Environment
from conbandit_torch.running.plan import Plan

GIVEN_TO_POLICIES = {"catalogue", "num_users", "seed"}  # by the experiment, not by the config
GIVEN_TO_ENVIRONMENTS = {"seed"}


def build_environment(experiment: Plan, seed: int) -> Environment:
    """The experiment's environment; errors of its constructor name the file."""
    part = experiment.environment
    given = {"seed": seed} if takes_seed(experiment) else {}
    environment: Environment = _instantiate(
        f"{experiment.source}: environment", part, Environment, GIVEN_TO_ENVIRONMENTS, given
    )
    return environment


def takes_seed(experiment: Plan) -> bool:
    """Whether the experiment's environment draws anything; a recorded one has nothing to draw."""
    return "seed" in _defaults(resolve_name(experiment.environment["class_path"]))


def build_policy(experiment: Plan, name: str, environment: Environment, seed: int) -> Bandit:
    """One of the experiment's policies, for the environment; errors of its constructor name the file."""
    return build_policy_for(experiment, name, environment.catalogue, environment.num_users, seed)


def build_policy_for(experiment: Plan, name: str, catalogue: Catalogue, num_users: int, seed: int) -> Bandit:
    """One of the experiment's policies, for a catalogue and so many users."""
    given = {"catalogue": catalogue, "num_users": num_users, "seed": seed}
    where = f"{experiment.source}: policies.{name}"
    policy: Bandit = _instantiate(where, experiment.policies[name], Bandit, GIVEN_TO_POLICIES, given)
    return policy


def build_callbacks(experiment: Plan) -> list[Callback]:
    """The experiment's own callbacks, new ones; errors of their constructors name the file."""
    return [
        _instantiate(f"{experiment.source}: callbacks.{name}", part, Callback, set(), {})
        for name, part in experiment.callbacks.items()
    ]


def build_part(where: str, node: Any, base: type) -> Any:
    """An object of a kind from its `class_path` and `init_args`; errors begin with `where`."""
    return _instantiate(where, resolve_part(where, node, base, set()), base, set(), {})


def resolve_part(where: str, node: Any, base: type, skip: set[str]) -> dict[str, Any]:
    """A `class_path` / `init_args` node, checked and complete; a config does not give what is in `skip`."""
    node = _check(where, {"class_path": node} if isinstance(node, str) else node, base, skip)
    try:
        parsed = _parser(base, skip).parse_object({"part": node})
    except REFUSALS as error:
        _refuse_wrong_values(where, node)
        raise ConfigError(f"{where}: {' '.join(str(error).split())}") from None
    resolved: dict[str, Any] = {"init_args": {}} | parsed.part.as_dict()
    cls = resolve_name(resolved["class_path"])
    resolved["init_args"] = _taken(cls, resolved["init_args"])
    defaults, given = _defaults(cls, skip), inspect.signature(cls).parameters
    for key, value in resolved["init_args"].items():
        may_be_null = key in given and "None" in str(given[key].annotation)
        if value is None and defaults[key] is not None and not may_be_null:
            raise ConfigError(
                f"{where}.init_args.{key}: expected a value such as {defaults[key]!r}, got null"
            )
    return resolved


def _check(where: str, node: Any, base: type, skip: set[str]) -> dict[str, Any]:
    """The node, if it names a class of the kind and arguments that the class has, in nested parts too."""
    if not isinstance(node, dict):
        raise ConfigError(f"{where}: expected class_path and init_args, got {node!r}")
    check_keys(node, where, required=("class_path",), optional=("init_args",))
    if not isinstance(node["class_path"], str):
        raise ConfigError(f"{where}.class_path: expected a class, got {node['class_path']!r}")
    given = node.get("init_args") or {}
    if not isinstance(given, dict):
        raise ConfigError(f"{where}.init_args: expected arguments by name, got {given!r}")
    cls = _class_of(where, node["class_path"], base)
    parameters, known = arguments_of(cls).parameters, _defaults(cls, skip)
    for name in given:
        if name not in known:
            reason = not_arguments(cls).get(name)
            hint = choices(name, known) if reason is None else f": {reason}"
            raise ConfigError(f"{where}.init_args: {cls.__name__} has no argument {name!r}{hint}")
    for name in known:
        if name not in given and name in parameters and parameters[name].default is inspect.Parameter.empty:
            raise ConfigError(f"{where}.init_args: {cls.__name__} needs the argument {name!r}")
    checked = dict(given)
    for name, value in given.items():
        if name in parameters:
            checked[name] = _check_value(f"{where}.init_args.{name}", value, parameters[name].annotation)
    return {"class_path": _path(cls, node["class_path"]), "init_args": checked}


def _path(cls: type, given: str) -> str:
    """How results name the class: a public one by its public name, which outlives its file."""
    module = PUBLIC.get(cls.__name__, "")
    if module == cls.__module__:
        return f"{module.partition('.')[0]}.{cls.__name__}"
    return given if "." in given else f"{cls.__module__}.{cls.__qualname__}"


def _check_value(where: str, value: Any, annotation: Any) -> Any:
    """The value; a part, or the name of one, is checked if the argument takes parts."""
    kinds = get_args(annotation) or (annotation,)
    parts = [kind for kind in kinds if _is_part(kind)]
    if not parts:
        return value
    if isinstance(value, dict) and "class_path" in value:
        base = next((part for part in parts if _finds(value["class_path"], part)), parts[0])
        return _check(where, value, base, set())
    plain = [kind for kind in kinds if isinstance(kind, type) and kind in (int, float, str, bool)]
    if isinstance(value, str) and str not in plain and not any(get_args(kind) for kind in kinds):
        base = next((part for part in parts if _finds(value, part)), parts[0])
        if plain and not _finds(value, base):
            if _is_number(value):
                return value
            raise ConfigError(_wrong_type(where, value, annotation))
        return _check(where, {"class_path": value}, base, set())
    if not plain and isinstance(value, int | float):
        raise _unknown_class(where, str(value), parts[0])
    return value


def _refuse_wrong_values(where: str, node: dict[str, Any]) -> None:
    """Refuse the first value, in nested parts too, that is not of its argument's type."""
    try:
        parameters = arguments_of(resolve_name(node["class_path"])).parameters
        given = dict(node.get("init_args") or {})
    except (Exception, SystemExit):  # of whatever a name imports: this is no part, and refused as a value
        return
    for name, value in given.items():
        if name not in parameters:
            continue  # it goes to a class that takes any name
        place, annotation = f"{where}.init_args.{name}", parameters[name].annotation
        if isinstance(value, dict) and "class_path" in value:
            _refuse_wrong_values(place, value)
        try:
            parse_value(value, annotation)
        except REFUSALS:
            raise ConfigError(_wrong_type(place, value, annotation)) from None


def _wrong_type(where: str, value: Any, annotation: Any) -> str:
    """What an argument takes, in words, and what came."""
    if get_origin(annotation) is Literal:
        return f"{where}: expected one of {', '.join(map(repr, get_args(annotation)))}, got {value!r}"
    kinds = [kind for kind in get_args(annotation) or (annotation,) if kind is not NoneType]
    if get_origin(annotation) not in (Union, UnionType, None):
        kinds = [annotation]  # such as list[str]
    plain = [kind.__name__ if isinstance(kind, type) else str(kind) for kind in kinds if not _is_part(kind)]
    classes = [name for kind in kinds if _is_part(kind) for name in public_subclasses(kind)]
    if not classes:
        return f"{where}: expected {' or '.join(plain)}, got {value}"
    either = f"{' or '.join(plain)}, or " if plain else ""
    return f"{where}: expected {either}one of {', '.join(classes)}; got {value!r}"


def _is_part(kind: Any) -> bool:
    """Whether a config gives such a value as a class with arguments."""
    outside = {*sys.stdlib_module_names, "torch", "numpy"}
    return isinstance(kind, type) and kind.__module__.partition(".")[0] not in outside


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _class_of(where: str, name: str, base: type) -> type:
    """The class that a config names: a public one, one that is imported already, or module.Class."""
    cls = _known_subclasses(base).get(name)
    if cls is not None:
        return cls
    if "." not in name:
        raise _unknown_class(where, name, base)
    try:
        found = resolve_name(name)
    except (Exception, SystemExit) as error:  # a program's module ends the process when imported
        raise ConfigError(f"{where}.class_path: {name}: {type(error).__name__}: {error}") from None
    if not isinstance(found, type) or not issubclass(found, base):
        raise ConfigError(
            f"{where}: {name} is not a kind of {base.__name__}{choices(name, public_subclasses(base))}"
        )
    if missing := ", ".join(sorted(getattr(found, "__abstractmethods__", ()))):
        raise ConfigError(f"{where}: {name} lacks {missing}, which every {base.__name__} has")
    return found


def _finds(name: Any, base: type) -> bool:
    try:
        return bool(_class_of("", str(name), base))
    except ConfigError:
        return False


def _unknown_class(where: str, name: str, base: type) -> ConfigError:
    hint = choices(name, public_subclasses(base))
    return ConfigError(f"{where}: unknown class {name!r}{hint}; your own is named module.Class")


def public_subclasses(base: type) -> list[str]:
    """Public classes of the kind, by name."""
    known = _known_subclasses(base)
    return [name for name in sorted(PUBLIC) if name in known and known[name] is public(name)]


def _known_subclasses(base: type) -> dict[str, type]:
    """Classes of the kind that can be made, by name; all public ones are imported for it, and come first."""
    for name in PUBLIC:
        public(name)
    kinds = [*_subclasses(base)] or [base]  # a part that has no kinds is its own
    kinds.sort(key=lambda cls: PUBLIC.get(cls.__name__) == cls.__module__)  # the last of a name is kept
    return {cls.__name__: cls for cls in kinds if not inspect.isabstract(cls)}


def _subclasses(base: type) -> Iterator[type]:
    children: list[type] = base.__subclasses__()
    for cls in children:
        yield from _subclasses(cls)
        yield cls


def _defaults(cls: type, skip: set[str] | None = None) -> dict[str, Any]:
    """The arguments that a config may give the class, with their defaults; through `**kwargs` too."""
    parser = ArgumentParser()
    parser.add_class_arguments(cls, skip=skip)
    defaults: dict[str, Any] = parser.get_defaults().as_dict()
    return _taken(cls, defaults)


def _taken(cls: type, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments without those that the class sets itself, which jsonargparse finds in its base."""
    return {name: value for name, value in arguments.items() if name not in not_arguments(cls)}


def _parser(base: type, skip: set[str]) -> ArgumentParser:
    parser = ArgumentParser(exit_on_error=False)
    parser.add_subclass_arguments(base, "part", skip=skip, required=True)
    return parser


def _instantiate(where: str, part: dict[str, Any], base: type, skip: set[str], given: dict[str, Any]) -> Any:
    failures: list[Exception] = []

    def make(cls: type, *args: Any, **init: Any) -> Any:
        try:
            return cls(*args, **_taken(cls, init), **(given if issubclass(cls, base) else {}))
        except Exception as error:
            failures.append(error)  # jsonargparse would bury it in a report of its own
            raise

    parser = _parser(base, skip)
    try:
        return parser.instantiate(
            parser.parse_object({"part": part}), instantiators=[(make, object, True)]
        ).part
    except (Exception, SystemExit) as error:
        cause = failures[0] if failures else error
        kind = "" if isinstance(cause, ValueError | TypeError) else f"{type(cause).__name__}: "
        raise ConfigError(f"{where}: {kind}{cause}") from None
