"""conbandit report: compare the policies of a results folder."""

from __future__ import annotations

import argparse

from conbandit_torch.commands.terminal import Terminal
from conbandit_torch.results.people import compare_people
from conbandit_torch.results.read import read_results
from conbandit_torch.running.folder import REPORT, STUDY


def main(options: argparse.Namespace, overrides: list[tuple[str, str]], console: Terminal) -> int:
    """Run the command; returns the exit code."""
    if (options.folder / STUDY).is_file():
        return _of_people(options)
    report = read_results(options.folder).report(options.baseline)
    path = options.folder / REPORT
    path.write_text(report.markdown(), encoding="utf-8")
    output = Terminal()
    output.print(report.table())
    if report.off_policy:
        output.print(report.off_policy_table())
    output.print(f"{report.order}\n\n{report.notes}\nReport: {path}", soft_wrap=True)
    return 0


def _of_people(options: argparse.Namespace) -> int:
    """A study with people: each has met one policy."""
    from conbandit_torch.live.folder import KeptStudy  # its stores need more than results do
    from conbandit_torch.live.tally import Tally

    study = KeptStudy(options.folder, options.store)
    tally = Tally(study.policies, study.visitors())
    for policy in study.policies:
        for happened in study.events(policy):
            tally.note(happened)
    report = compare_people(tally.people(), study.policies, options.baseline)
    path = options.folder / REPORT
    path.write_text(report.markdown(), encoding="utf-8")
    output = Terminal()
    output.print(report.table())
    output.print(f"{report.order}\n\n{report.notes}\nReport: {path}", soft_wrap=True)
    return 0
