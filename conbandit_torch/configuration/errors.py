"""The wording of config errors: what was wrong, where, and what would be right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from conbandit_torch.core.errors import ConfigError, choices

__all__ = ["ConfigError", "check_keys", "choices", "explain_value", "first"]


def check_keys(node: Mapping[str, Any], where: str, required: Iterable[str], optional: Iterable[str]) -> None:
    """Refuse keys that are unknown or missing."""
    known = [*required, *optional]
    for key in node:
        if key not in known:
            raise ConfigError(f"{where}: unknown key {key!r}{choices(key, known)}")
    for key in required:
        if key not in node:
            raise ConfigError(f"{where}: the key {key!r} is missing; it needs {', '.join(required)}")


def explain_value(where: str, message: str) -> str:
    """One line out of jsonargparse's nested report about a value of the wrong type."""
    keys = [key for key in re.findall(r'Parser key "([^"]+)"', message) if key != "part"]
    place = ".init_args.".join([where, *keys])
    got = (first(r"Got value: (.+)", message) or first(r"Given value: (.+)", message)).partition(
        ". Got value"
    )[0]
    if values := first(r"Expected a typing.Literal\[(.+?)\]", message):
        return f"{place}: expected one of {values}, got {got!r}"
    expected = re.findall(r"Expected a <class '(\w+)'>", message)
    expected = list(dict.fromkeys(kind for kind in expected if kind != "NoneType"))
    if not expected:
        return f"{place}: {' '.join(message.split())}"
    return f"{place}: expected {' or '.join(expected)}, got {got}"


def first(pattern: str, text: str) -> str:
    """The pattern's first group where it first matches, or ''."""
    found = re.search(pattern, text)
    return found[1] if found else ""
