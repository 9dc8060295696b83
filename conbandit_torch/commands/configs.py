"""conbandit configs: the configs that come with this package."""

from __future__ import annotations

import argparse

from rich.table import Table

from conbandit_torch.commands.terminal import Terminal
from conbandit_torch.configuration.packaged import packaged_configs


def main(options: argparse.Namespace, overrides: list[tuple[str, str]], console: Terminal) -> int:
    """Run the command; returns the exit code."""
    table = Table()
    for heading in ("config", "what it shows", "takes, on one core"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "config")
    for config in packaged_configs():
        table.add_row(config.name, config.shows, config.takes.removesuffix(" on one core"))
    output = Terminal()
    output.print(table)
    output.print("Run one:  conbandit run NAME\nCopy one: conbandit init my.yaml --from NAME", soft_wrap=True)
    return 0
