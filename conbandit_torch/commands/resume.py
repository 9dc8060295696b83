"""conbandit resume: finish what a killed or stopped run has left."""

from __future__ import annotations

import argparse

from conbandit_torch.commands.how import check_how
from conbandit_torch.commands.run import run_into
from conbandit_torch.commands.terminal import Terminal
from conbandit_torch.configuration.load import load
from conbandit_torch.running.earlier import experiment_of, how_it_ran


def main(options: argparse.Namespace, overrides: list[tuple[str, str]], console: Terminal) -> int:
    """Run the command; returns the exit code."""
    check_how(options)
    how = how_it_ran(options.folder)
    how |= {key: value for key in how if (value := getattr(options, key)) is not None}
    return run_into(load(experiment_of(options.folder)), lambda: options.folder, console, **how)
