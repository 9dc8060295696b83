"""conbandit tune: look for good parameters of policies."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

from conbandit_torch.commands.how import check_how
from conbandit_torch.commands.terminal import Terminal
from conbandit_torch.configuration.load import read
from conbandit_torch.configuration.packaged import find_config
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.running.runner import results_folder
from conbandit_torch.tuning.search_space import at_the_edge, read_tunings
from conbandit_torch.tuning.tables import trials_table
from conbandit_torch.tuning.tune import finished, open_study, tune, write_tuned


def main(options: argparse.Namespace, overrides: list[tuple[str, str]], console: Terminal) -> int:
    """Run the command; returns the exit code."""
    check_how(options)
    if find_spec("optuna") is None:
        raise ConfigError("conbandit tune needs Optuna: pip install optuna")
    options.config = find_config(options.config)
    config = read(options.config, overrides)
    tunings = read_tunings(config, options.config, options.policy, options.seeds)
    folder = results_folder(options.out, Path(f"tune-{options.config.stem}"))
    how = {"jobs": options.jobs, "threads": options.threads or 1, "backend": options.backend}
    output = Terminal()
    for tuning in tunings:
        best = tune(tuning, folder, console, trials=options.trials, **how)
        output.print(trials_table(tuning.policy, finished(open_study(tuning, folder))))
        for name in at_the_edge(tuning, best.params):
            output.print(f"{name} is at an end of its range: a better value may lie beyond", soft_wrap=True)
    # With the policies that earlier commands tuned in this folder. Overrides were for the trials: smaller or
    # shorter ones, say. The evaluation is the config's own.
    tunings = read_tunings(config, options.config, None, options.seeds)
    tuned = write_tuned(tunings, read(options.config), folder)
    if overrides:
        given = ", ".join(f"--{key} {value}" for key, value in overrides)
        output.print(f"Not in {tuned.name}, as they were given to tune only: {given}", soft_wrap=True)
    output.print(f"Evaluate: conbandit run {tuned}", soft_wrap=True)
    return 0
