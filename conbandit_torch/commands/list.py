"""conbandit list: all parts that a config can name."""

from __future__ import annotations

import argparse

from rich.table import Table

from conbandit_torch.commands.terminal import Terminal
from conbandit_torch.configuration.kinds import KINDS, classes_of, summary
from conbandit_torch.core.errors import ConfigError, choices


def main(options: argparse.Namespace, overrides: list[tuple[str, str]], console: Terminal) -> int:
    """Run the command; returns the exit code."""
    if options.kind is not None and options.kind not in KINDS:
        raise ConfigError(f"{options.kind}: no kind of part{choices(options.kind, KINDS)}")
    output = Terminal()
    for kind in KINDS if options.kind is None else [options.kind]:
        classes = classes_of(kind)
        if not classes:  # there are only your own
            continue
        table = Table(title=f"{kind} ({KINDS[kind][1]})", title_justify="left", show_header=False)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for name, cls in classes.items():
            table.add_row(name, summary(cls))
        output.print(table)
    output.print("More on one: conbandit describe NAME", soft_wrap=True)
    return 0
