"""conbandit run: every policy of a config on the same rounds."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conbandit_torch.commands.how import check_how
from conbandit_torch.commands.screen import Screen
from conbandit_torch.configuration.load import load
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.results.tables import summary_table
from conbandit_torch.running.job import describe
from conbandit_torch.running.plan import Experiment
from conbandit_torch.running.processes import launch
from conbandit_torch.running.runner import results_folder, run


def main(options: argparse.Namespace, overrides: list[tuple[str, str]], console: Screen) -> int:
    """Run the command; returns the exit code."""
    check_how(options)
    if options.seeds is not None:
        overrides.append(("seeds", options.seeds))
    experiment = load(options.config, overrides)
    how = {key: getattr(options, key) for key in ("jobs", "threads", "backend", "devices", "num_nodes")}
    return run_into(experiment, lambda: results_folder(options.out, options.config), console, **how)


def run_into(
    experiment: Experiment,
    folder_of: Callable[[], Path],
    console: Screen,
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
    folder = processes.agree(folder_of())  # the first names it, since its name may hold the time
    rows = run(experiment, folder, console, processes=processes, **how)
    if not any("error" in row for row in rows):
        processes.leave()
    if not processes.is_first:
        for row in rows:
            console.print(f"process {processes.rank}: {describe(row)}", style="red", soft_wrap=True)
        return int(bool(rows))
    if len(rows) < len(experiment.jobs()) or any("stopped" in row for row in rows):
        console.print(f"conbandit: stopped; to go on: conbandit resume {folder}", style="red", soft_wrap=True)
        return 130
    output = Screen()
    output.print(summary_table(rows, experiment))
    failed = [row for row in rows if "error" in row]
    for row in failed:
        output.print(f"FAILED: {row['policy']} seed {row['seed']}: {row['error']}", soft_wrap=True)
    output.print(f"Results: {folder}/summary.csv\nCurves:  tensorboard --logdir {folder}", soft_wrap=True)
    return 1 if failed else 0
