"""conbandit report: compare the policies of a results folder."""

from __future__ import annotations

import argparse

from conbandit_torch.commands.terminal import Terminal
from conbandit_torch.results.read import read_results
from conbandit_torch.running.folder import REPORT


def main(options: argparse.Namespace, overrides: list[tuple[str, str]], console: Terminal) -> int:
    """Run the command; returns the exit code."""
    report = read_results(options.folder).report(options.baseline)
    path = options.folder / REPORT
    path.write_text(report.markdown(), encoding="utf-8")
    output = Terminal()
    output.print(report.table())
    if report.off_policy:
        output.print(report.off_policy_table())
    output.print(f"{report.order}\n\n{report.notes}\nReport: {path}", soft_wrap=True)
    return 0
