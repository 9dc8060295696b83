"""conbandit describe: a part's rule, its arguments with their defaults, and the lines of a config."""

from __future__ import annotations

import argparse
from pkgutil import resolve_name
from typing import Any

import yaml
from rich.table import Table

from conbandit_torch.commands.terminal import Terminal
from conbandit_torch.configuration.kinds import KINDS, arguments, classes_of, kind_of, snippet, text_of
from conbandit_torch.core.errors import ConfigError, nearest


def main(options: argparse.Namespace, overrides: list[tuple[str, str]], console: Terminal) -> int:
    """Run the command; returns the exit code."""
    cls = _class_of(options.name)
    output = Terminal()
    kind = kind_of(cls)
    output.print(f"{cls.__name__} ({kind}, {KINDS[kind][1]})\n\n{text_of(cls)}\n", soft_wrap=True)
    table = Table("argument", "default", "meaning")
    for one in arguments(cls):
        table.add_row(one.name, _in_short(one.default), one.meaning)
    if table.row_count:
        output.print(table)
    output.print(yaml.safe_dump(snippet(cls), sort_keys=False), end="", soft_wrap=True)
    return 0


def _in_short(default: Any) -> str:
    """A default in one line: a part as it is called, anything else as YAML has it."""
    if not isinstance(default, dict):
        return yaml.safe_dump(default).partition("\n")[0]
    given = ", ".join(f"{name}={value}" for name, value in default["init_args"].items())
    return f"{default['class_path'].rpartition('.')[2]}({given})"


def _class_of(name: str) -> type:
    """A public class by its name, or one of your own by its dotted path."""
    known = {one: cls for kind in KINDS for one, cls in classes_of(kind).items()}
    if name in known:
        return known[name]
    if "." not in name:
        close = nearest(name, known)
        hint = f" (did you mean {close!r}?)" if close else ""
        raise ConfigError(
            f"{name}: no part of this name{hint}; `conbandit list` lists them, your own is named module.Class"
        )
    try:
        found = resolve_name(name)
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{name}: {type(error).__name__}: {error}") from None
    if not isinstance(found, type):
        raise ConfigError(f"{name}: not a class")
    return found
