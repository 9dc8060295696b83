"""Errors that are told to people in one line: what was wrong, where, and what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class ConfigError(Exception):
    """A config, a command or a results folder that cannot be used, and why."""


class DataError(ValueError):
    """Data that cannot be used: says which file, and where the file allows it which line, and why."""


def nearest(given: Any, known: Iterable[str]) -> str:
    """The known name that was probably meant, or ''."""
    return next(iter(difflib.get_close_matches(str(given), list(known), n=1)), "")


def choices(given: Any, known: Iterable[str]) -> str:
    """What could have been meant, and what is valid, for the end of a message."""
    known = [str(key) for key in known]
    close = nearest(given, known)
    hint = f" (did you mean {close!r}?)" if close else ""
    return f"{hint}; valid: {', '.join(known)}" if known else hint


def printable(text: str) -> str:
    """The text with control characters, except new lines and tabs, written as Python writes them."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)
