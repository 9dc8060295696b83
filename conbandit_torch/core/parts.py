"""Objects as configs write them: a class by its name, with the arguments that it was called with.

One memory serves short reprs, experiments that are written in Python, and policies that are kept.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conbandit_torch.core.arguments import arguments_of
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.core.names import PUBLIC

if TYPE_CHECKING:
    from typing_extensions import Self

_NOT_KEPT = ("catalogue",)  # data, which must not be kept alive by a repr
_LONGEST = 60  # letters of a value in a repr


class Remembers:
    """An object that knows what it was called with. It stands last among a class's bases."""

    _called_with: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Make the object, and keep the arguments beside it."""
        made = super().__new__(cls)
        given = {name: one for name, one in _by_name(cls, args, kwargs).items() if name not in _NOT_KEPT}
        object.__setattr__(made, "_called_with", given)
        return made


def _by_name(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by name; those in `kwargs` alone if the class cannot be called so, which it says itself."""
    signature = inspect.signature(cls)
    try:
        given = dict(signature.bind_partial(*args, **kwargs).arguments)
    except TypeError:
        return dict(kwargs)
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            given |= given.pop(parameter.name, {})
    return given


def called_with(part: Remembers) -> dict[str, Any]:
    """The arguments that an object was made with, without the catalogue and without defaults."""
    return dict(part._called_with)


def short_repr(part: Remembers) -> str:
    """The object as it could be called, in one line, without what is as by default."""
    known = arguments_of(type(part)).parameters
    shown = {
        name: value
        for name, value in called_with(part).items()
        if name not in known or not _same(value, known[name].default)
    }
    return f"{type(part).__name__}({', '.join(f'{name}={_short(value)}' for name, value in shown.items())})"


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and not _is_array(value) and value == default)


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and bool(getattr(value, "ndim", 0))


def _short(value: Any) -> str:
    if _is_array(value):
        return f"{type(value).__name__.lower()} {list(value.shape)}"
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def path_of(cls: type) -> str:
    """How configs name the class: a public one by its public name, which outlives its file."""
    module = PUBLIC.get(cls.__name__, "")
    if module == cls.__module__:
        return f"{module.partition('.')[0]}.{cls.__name__}"
    return f"{cls.__module__}.{cls.__qualname__}"


def node_of(value: Any, where: str) -> Any:
    """What a config has in place of a Python value; parts become `class_path` and `init_args`.

    A part may be a class, `functools.partial(Class, ...)`, or an object that is never changed or remembers
    its arguments: whoever reads the config makes a new one.

    Args:
        value: numbers, texts, lists and mappings of these, or parts.
        where: where it stands, for errors.

    Raises:
        ConfigError: if no config could hold the value.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): node_of(one, f"{where}.{key}") for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [node_of(one, f"{where}[{number}]") for number, one in enumerate(value)]
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):  # a number of NumPy or torch
        return value.item()
    cls, given = _class_and_arguments(value, where)
    if "<locals>" in cls.__qualname__:
        raise ConfigError(
            f"{where}: {cls.__name__} is defined inside a function, where no job could find it: define it at "
            "the top level of a file"
        )
    arguments = {name: node_of(one, f"{where}.init_args.{name}") for name, one in given.items()}
    return {"class_path": path_of(cls), "init_args": arguments}


def _class_and_arguments(value: Any, where: str) -> tuple[type, dict[str, Any]]:
    """Of what class a part is, or is to be, and with which arguments."""
    if isinstance(value, type):
        return value, {}
    if isinstance(value, functools.partial):
        if not isinstance(value.func, type):
            raise ConfigError(f"{where}: expected partial(Class, ...), got {value!r}")
        return value.func, _by_name(value.func, value.args, value.keywords)
    if inspect.isroutine(value):
        raise ConfigError(
            f"{where}: expected a class, or partial(Class, ...), which a config can name; got the function "
            f"{value.__name__}"
        )
    cls = type(value)
    if isinstance(value, Remembers):
        return cls, called_with(value)
    if dataclasses.is_dataclass(value):
        return cls, {one.name: getattr(value, one.name) for one in dataclasses.fields(value) if one.init}
    names = arguments_of(cls).parameters  # a reader's attributes are its arguments
    if names and all(hasattr(value, name) for name in names):
        return cls, {name: getattr(value, name) for name in names}
    raise ConfigError(
        f"{where}: a config cannot hold this {cls.__name__}: give numbers, texts, or the class of a part, as "
        f"partial({cls.__name__}, ...) if it has arguments"
    )
