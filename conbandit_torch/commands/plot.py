"""conbandit plot: draw the curves of a results folder."""

from __future__ import annotations

import argparse
from importlib.util import find_spec

from conbandit_torch.commands.screen import Screen
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.results.plots import draw_all
from conbandit_torch.results.read import read_results
from conbandit_torch.running.folder import PLOTS


def main(options: argparse.Namespace, overrides: list[tuple[str, str]], console: Screen) -> int:
    """Run the command; returns the exit code."""
    if find_spec("matplotlib") is None:
        raise ConfigError("conbandit plot needs matplotlib: pip install matplotlib")
    for path in draw_all(read_results(options.folder), options.folder / PLOTS, options.baseline):
        Screen().print(str(path), soft_wrap=True)
    return 0
