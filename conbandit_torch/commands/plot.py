"""conbandit plot: draw the curves of a results folder."""

from __future__ import annotations

import argparse
from importlib.util import find_spec

from conbandit_torch.commands.terminal import Terminal
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.results.plots import draw_all
from conbandit_torch.results.read import read_results
from conbandit_torch.running.folder import PLOTS


def main(options: argparse.Namespace, overrides: list[tuple[str, str]], console: Terminal) -> int:
    """Run the command; returns the exit code."""
    if find_spec("matplotlib") is None:
        raise ConfigError("conbandit plot needs matplotlib: pip install matplotlib")
    results = read_results(options.folder)
    for line in results.left_out:
        console.print(f"left out: {line}", style="red", soft_wrap=True)
    for path in draw_all(results, options.folder / PLOTS, options.baseline, log_x=options.log_x):
        Terminal().print(str(path), soft_wrap=True)
    return 0
