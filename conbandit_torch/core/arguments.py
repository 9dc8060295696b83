"""The arguments of a class, those that it passes on with `**kwargs` included, and a misspelt one named."""

from __future__ import annotations

import functools
import inspect
from typing import Any, NamedTuple, get_type_hints

from conbandit_torch.core.errors import nearest


class Arguments(NamedTuple):
    """What a class can be called with.

    Attributes:
        parameters: by name; their annotations are types wherever those can be found.
        takes_any: whether names that are not among them are taken too.
    """

    parameters: dict[str, inspect.Parameter]
    takes_any: bool


def arguments_of(cls: type) -> Arguments:
    """The class's arguments: its constructor's, and those of the next ones that `**kwargs` reach."""
    found: dict[str, inspect.Parameter] = {}
    for owner in cls.__mro__:
        constructor = owner.__dict__.get("__init__")
        if constructor is None or owner is object:
            continue
        _, *parameters = inspect.signature(constructor).parameters.values()
        types = _types(constructor)
        passes_on = False
        for parameter in parameters:
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                passes_on = True
            elif parameter.kind is not inspect.Parameter.VAR_POSITIONAL:
                known = types.get(parameter.name, parameter.annotation)
                found.setdefault(parameter.name, parameter.replace(annotation=known))
        if not passes_on:
            return Arguments(found, takes_any=False)
    return Arguments(found, takes_any=cls.__init__ is not object.__init__)  # type: ignore[misc]


def not_arguments(cls: type) -> dict[str, str]:
    """Arguments that one might look for and why the class has none: what it and its bases say of them."""
    found: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        found |= owner.__dict__.get("not_arguments", {})
    return found


def name_misspelt_arguments(cls: type) -> None:
    """Make calls of the class name an argument that it does not have, and the nearest one that it has.

    Without this, an argument that is passed on is refused by a class that the caller has not named. To be
    called from `__init_subclass__`; the constructor's signature and source are seen through it. A class that
    keeps its `**kwargs` is never refused anything: only what Python itself refuses is explained.
    """
    constructor = cls.__dict__.get("__init__")
    if constructor is None:
        return

    @functools.wraps(constructor)
    def explained(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            constructor(self, *args, **kwargs)
        except TypeError as error:
            called = type(self)
            name = next(
                (name for name in kwargs if f"unexpected keyword argument {name!r}" in str(error)), ""
            )
            # Only the outermost constructor was called by somebody who can have misspelt something.
            if not name or called.__init__ is not explained:
                raise
            known = list(arguments_of(called).parameters)
            close = nearest(name, [other for other in known if other != name])
            hint = f"did you mean {close!r}?" if close else f"it has {', '.join(known)}"
            hint = not_arguments(called).get(name, hint)
            raise TypeError(f"{called.__name__} has no argument {name!r}; {hint}") from error

    cls.__init__ = explained  # type: ignore[misc]


def _types(constructor: Any) -> dict[str, Any]:
    try:
        return get_type_hints(constructor)
    except Exception:  # a type that is imported for type checkers only
        return {}
