"""The wording of config errors: what was wrong, where, and what would be right."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterable, Mapping
from pkgutil import resolve_name
from typing import Any

from jsonargparse import ArgumentParser

import conbandit_torch


class ConfigError(Exception):
    """A config that cannot be run, and why."""


def check_keys(node: Mapping[str, Any], where: str, required: Iterable[str], optional: Iterable[str]) -> None:
    """Refuse keys that are unknown or missing."""
    known = [*required, *optional]
    for key in node:
        if key not in known:
            raise ConfigError(f"{where}: unknown key {key!r}{choices(key, known)}")
    for key in required:
        if key not in node:
            raise ConfigError(f"{where}: the key {key!r} is missing; it needs {', '.join(required)}")


def arguments_of(cls: type, skip: set[str] | None = None) -> dict[str, Any]:
    """The arguments that a config may give the class, with their defaults; through `**kwargs` too."""
    parser = ArgumentParser()
    parser.add_class_arguments(cls, skip=skip)
    defaults: dict[str, Any] = parser.get_defaults().as_dict()
    return defaults


def explain(where: str, message: str, base: type, skip: set[str]) -> str:
    """One line out of jsonargparse's nested report."""
    keys = [key for key in re.findall(r'Parser key "([^"]+)"', message) if key != "part"]
    place = ".init_args.".join([where, *keys])
    classes = re.findall(r"Problem with given class_path '([^']+)'", message)
    if option := first(r"Option '([^']+)' is not accepted", message):
        cls = resolve_name(classes[-1])
        known = arguments_of(cls, skip)
        return f"{place}.init_args: {cls.__name__} has no argument {option!r}{choices(option, known)}"
    if missing := first(r"the following arguments are required: (.+)", message):
        return f"{place}.init_args: {classes[-1].rpartition('.')[2]} needs the argument {missing!r}"
    got = (first(r"Got value: (.+)", message) or first(r"Given value: (.+)", message)).partition(
        ". Got value"
    )[0]
    if values := first(r"Expected a typing.Literal\[(.+?)\]", message):
        return f"{place}: expected one of {values}, got {got!r}"
    # The innermost kinds that would do: classes of ours, and plain ones such as float.
    kinds = re.findall(r"<class '([\w.]+)'>", (re.findall(r"Subtypes: \[(.*)\]", message) or [""])[-1])
    ours = next((resolve_name(kind) for kind in kinds if "." in kind), base)
    plain = [kind for kind in kinds if "." not in kind and kind != "NoneType"]
    if found := re.search(r"Import path (\S+) does not correspond to a subclass of (\w+)", message):
        return f"{place}: {found[1]} is no {found[2]}{choices(found[1], _subclasses(ours))}"
    if name := first(r"(No module named '[^']+'|module '[^']+' has no attribute '[^']+')", message):
        return f"{place}.class_path: {name}"
    if re.search("Expected a dot import path|Not a valid subclass|is abstract", message):
        name = first(r"Expected a dot import path string: (\S+)", message) or got
        name = first(r"'class_path': '([^']+)'", name) or name
        if unfinished := _missing_methods(name):
            return f"{place}: {name} lacks {unfinished}, which every {ours.__name__} has"
        valid = _subclasses(ours)
        if plain:
            return f"{place}: expected {' or '.join(plain)}, or one of {', '.join(valid)}; got {name!r}"
        return f"{place}: unknown class {name!r}{choices(name, valid)}; your own is named module.Class"
    expected = re.findall(r"Expected a <class '(\w+)'>", message)
    expected = list(dict.fromkeys(kind for kind in expected if kind != "NoneType"))
    if not expected:
        return f"{place}: {' '.join(message.split())}"
    return f"{place}: expected {' or '.join(expected)}, got {got}"


def _missing_methods(path: str) -> str:
    """What a class of one's own must implement before there can be objects of it."""
    try:
        cls = resolve_name(path) if "." in path else None
    except (ValueError, ImportError, AttributeError):
        return ""
    return ", ".join(sorted(getattr(cls, "__abstractmethods__", ())))


def _subclasses(base: type) -> list[str]:
    """Public classes of the kind, by name."""
    public = (getattr(conbandit_torch, name) for name in conbandit_torch.__all__)
    return [
        c.__name__
        for c in public
        if isinstance(c, type) and issubclass(c, base) and c is not base and not inspect.isabstract(c)
    ]


def choices(given: Any, known: Iterable[str]) -> str:
    """What could have been meant, and what is valid."""
    known = [str(key) for key in known]
    close = difflib.get_close_matches(str(given), known, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"{hint}; valid: {', '.join(known)}" if known else hint


def first(pattern: str, text: str) -> str:
    """The pattern's first group where it first matches, or ''."""
    found = re.search(pattern, text)
    return found[1] if found else ""
