"""The kinds of parts that a config can name, and what their classes say of themselves."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.callbacks.base import Callback
from conbandit_torch.configuration.build import (
    GIVEN_TO_ENVIRONMENTS,
    GIVEN_TO_POLICIES,
    public_subclasses,
)
from conbandit_torch.conversation.pair_rules import PairSelection
from conbandit_torch.conversation.schedules import Schedule
from conbandit_torch.conversation.term_rules import Selection
from conbandit_torch.core.arguments import arguments_of, not_arguments
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.core.names import public
from conbandit_torch.core.parts import node_of, path_of
from conbandit_torch.datasets.base import Reader
from conbandit_torch.datasets.key_terms import KeyTerms
from conbandit_torch.environments.answers import AnswerModel
from conbandit_torch.environments.base import Environment
from conbandit_torch.environments.delays import Delay
from conbandit_torch.environments.drift import Drift
from conbandit_torch.models.confidence import Confidence
from conbandit_torch.models.links import Link
from conbandit_torch.models.refits import RefitSchedule
from conbandit_torch.models.representation import Representation

KINDS: Mapping[str, tuple[type, str]] = {
    "policies": (Bandit, "policies: {NAME: ...}"),
    "schedules": (Schedule, "schedule: ..., of a policy that asks"),
    "rules": (Selection, "select: ..., of a policy that asks about key-terms"),
    "pair rules": (PairSelection, "pairs: ..., of a policy that compares key-terms"),
    "representations": (Representation, "representation: ..., of a linear policy"),
    "links": (Link, "link: ..., of a linear policy"),
    "confidences": (Confidence, "alpha: ..., in place of a number"),
    "refits": (RefitSchedule, "refit_every: ..., in place of a number"),
    "environments": (Environment, "environment: ..."),
    "answers": (AnswerModel, "answers: ..., of an environment"),
    "readers": (Reader, "data: ..., of an environment of real data"),
    "key terms": (KeyTerms, "key_terms: ..., of an environment of real data"),
    "delays": (Delay, "delay: ..., of an environment"),
    "drifts": (Drift, "drift: ..., of an environment"),
    "callbacks": (Callback, "callbacks: {NAME: ...}"),
}
"""By name: the base class, and where a config has such a part."""

_REQUIRED = "REQUIRED"  # stands in a snippet for a value that must be given


class Argument(NamedTuple):
    """An argument that a config may give.

    Attributes:
        name: its name.
        default: its default, as a config writes it; or that it must be given.
        meaning: what its class says of it.
    """

    name: str
    default: Any
    meaning: str


def kind_of(cls: type) -> str:
    """The name of the class's kind."""
    for kind, (base, _) in KINDS.items():
        if issubclass(cls, base):
            return kind
    raise ConfigError(f"{cls.__name__} is not a part that a config can name")


def classes_of(kind: str) -> dict[str, type]:
    """The public classes of a kind, by name; no mixins, which need a base and so pass arguments on."""
    found: dict[str, type] = {name: public(name) for name in public_subclasses(KINDS[kind][0])}
    return {name: cls for name, cls in found.items() if not _passes_arguments_on(cls)}


def _passes_arguments_on(cls: type) -> bool:
    parameters = inspect.signature(cls).parameters.values()
    return any(one.kind is one.VAR_KEYWORD for one in parameters)


def summary(cls: type) -> str:
    """The first sentence of what the class says of itself."""
    return " ".join((inspect.getdoc(cls) or "").partition("\n\n")[0].split())


def text_of(cls: type) -> str:
    """All that the class says of itself, except for its arguments."""
    return (inspect.getdoc(cls) or "").partition("\nArgs:")[0].rstrip()


def arguments(cls: type) -> list[Argument]:
    """The arguments that a config may give the class."""
    given = {Bandit: GIVEN_TO_POLICIES, Environment: GIVEN_TO_ENVIRONMENTS}
    skipped = {name for base, names in given.items() if issubclass(cls, base) for name in names}
    skipped |= set(not_arguments(cls))
    said = _said_of_arguments(cls)
    return [
        Argument(
            name,
            _REQUIRED if one.default is one.empty else node_of(one.default, f"{cls.__name__}.{name}"),
            said.get(name, ""),
        )
        for name, one in arguments_of(cls).parameters.items()
        if name not in skipped
    ]


def snippet(cls: type) -> dict[str, Any]:
    """The part as a config has it, with every default spelled out."""
    node: dict[str, Any] = {"class_path": _shortest_name(cls)}
    own = {one.name: _short_names(one.default) for one in arguments(cls)}
    if own:
        node["init_args"] = own
    kind = kind_of(cls)
    where = KINDS[kind][1].partition(":")[0]
    return {where: {cls.__name__: node} if kind in ("policies", "callbacks") else node}


def _shortest_name(cls: type) -> str:
    return path_of(cls).removeprefix("conbandit_torch.")


def _short_names(node: Any) -> Any:
    """A default with public classes named as people write them."""
    if not isinstance(node, dict):
        return node
    short = {"class_path": str(node["class_path"]).removeprefix("conbandit_torch.")}
    given = {name: _short_names(one) for name, one in node["init_args"].items()}
    return short | ({"init_args": given} if given else {})


def _said_of_arguments(cls: type) -> dict[str, str]:
    """What docstrings say of arguments; a class that passes some on leaves that to its bases."""
    said: dict[str, str] = {}
    for owner in cls.__mro__:
        text = inspect.cleandoc(owner.__doc__ or "").partition("Args:\n")[2].partition("\n\n")[0]
        for name, meaning in re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", text, re.MULTILINE):
            said.setdefault(name, " ".join(meaning.split()))
    return said
