"""conbandit leaderboard: every policy, one protocol; runs what is missing, and writes one page."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

from conbandit_torch.commands.how import check_how
from conbandit_torch.commands.terminal import Terminal
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.leaderboard.page import write_page
from conbandit_torch.leaderboard.play import play
from conbandit_torch.leaderboard.read_board import picked, read_board


def main(options: argparse.Namespace, overrides: list[tuple[str, str]], console: Terminal) -> int:
    """Run the command; returns the exit code."""
    check_how(options)
    if find_spec("optuna") is None:
        raise ConfigError("conbandit leaderboard needs Optuna: pip install optuna")
    board = read_board(options.board, options.protocol, options.add)
    tasks = picked("--tasks", "task", options.tasks, board.tasks)
    policies = picked("--policies", "policy", options.policies, board.entries)
    folder = options.out or Path("runs") / f"leaderboard-{board.protocol.name}"
    if not options.page_only:
        how = {"jobs": options.jobs, "backend": options.backend}
        play(board, folder, console, tasks=tasks, policies=policies, parameters=options.parameters, **how)
    elif not folder.is_dir():
        raise ConfigError(f"--out {folder}: no such folder; without --page-only, the command fills it")
    Terminal().print(f"Page: {write_page(board, folder)}", soft_wrap=True)
    return 0
