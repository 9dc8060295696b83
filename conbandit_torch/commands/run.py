"""conbandit run: every policy of a config on the same rounds."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conbandit_torch.commands.how import check_how
from conbandit_torch.commands.terminal import Terminal
from conbandit_torch.configuration.load import load
from conbandit_torch.configuration.packaged import find_config
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.results.tables import summary_table
from conbandit_torch.running.folder import SUMMARY
from conbandit_torch.running.job import describe
from conbandit_torch.running.plan import Plan
from conbandit_torch.running.processes import launch
from conbandit_torch.running.runner import results_folder, run


def main(options: argparse.Namespace, overrides: list[tuple[str, str]], console: Terminal) -> int:
    """Run the command; returns the exit code."""
    check_how(options)
    if options.seeds is not None:
        overrides.append(("seeds", options.seeds))
    experiment = load(find_config(options.config), overrides)
    how = {key: getattr(options, key) for key in ("jobs", "threads", "backend", "devices", "num_nodes")}
    return run_into(experiment, lambda: results_folder(options.out, options.config), console, **how)


def run_into(
    experiment: Plan,
    folder_of: Callable[[], Path],
    console: Terminal,
    *,
    devices: int,
    num_nodes: int,
    **how: Any,
) -> int:
    """Run the experiment's jobs into a folder, and print what came out; returns the exit code."""
    if devices * num_nodes > 1 and (how["jobs"] > 1 or how["backend"] != "local"):
        raise ConfigError(
            "--devices splits one job's users over processes, --jobs and --backend run several jobs at once: "
            "use one or the other"
        )
    processes = launch(experiment.accelerator, devices, num_nodes)
    folder = processes.broadcast(folder_of())  # the first names it, since its name may hold the time
    results = run(experiment, folder, console, processes=processes, **how)
    failed = [result for result in results if result.error]
    if not failed:
        processes.leave()
    if not processes.is_first:
        for result in results:
            console.print(f"process {processes.rank}: {describe(result)}", style="red", soft_wrap=True)
        return int(bool(results))
    if len(results) < len(experiment.jobs()) or any(result.stopped for result in results):
        console.print(f"conbandit: stopped; to go on: conbandit resume {folder}", style="red", soft_wrap=True)
        return 130
    output = Terminal()
    output.print(summary_table(results, experiment))
    for result in failed:
        output.print(f"FAILED: {result.policy} seed {result.seed}: {result.error}", soft_wrap=True)
    output.print(f"Results: {folder / SUMMARY}\nCurves:  conbandit watch {folder}", soft_wrap=True)
    return 1 if failed else 0
