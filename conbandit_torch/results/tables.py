"""Tables for people."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from conbandit_torch.results.read import with_interval
from conbandit_torch.running.metrics import Record
from conbandit_torch.running.plan import Experiment
from conbandit_torch.running.result import JobResult

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial


def summary_table(results: list[JobResult], experiment: Experiment) -> Table:
    """The policies' means over seeds, with 95 % t intervals of the regret, or of the click-through rate."""
    records = {
        name: [result.last for result in results if result.policy == name and result.last is not None]
        for name in experiment.policies
    }
    seeds = len(experiment.seeds)
    over = f"mean of {seeds} seeds, 95 % t interval" if seeds > 1 else "one seed, so no interval"
    table = Table(title=f"After {experiment.rounds:,} rounds ({over})")
    first = next(iter(experiment.policies))
    replayed = any(record.cumulative_regret is None for own in records.values() for record in own)
    metric, heading, digits = ("ctr", "CTR", 4) if replayed else ("cumulative_regret", "regret\nper user", 2)
    # In a narrow terminal names are broken, numbers never.
    table.add_column("policy", overflow="fold")
    for words in (heading, f"of\n{first}", "theta\nerror", "predict.\nerror", "asked", "time"):
        table.add_column(words, justify="right", no_wrap=first not in words, overflow="fold")
    finals = {
        name: [np.nan if (value := getattr(record, metric)) is None else value for record in own]
        for name, own in records.items()
    }
    baseline = fmean(finals[first]) if finals[first] else 0.0
    for name, own in records.items():
        if not own:
            table.add_row(name, "failed")
            continue
        table.add_row(
            name,
            with_interval(np.array(finals[name]), digits),
            f"{fmean(finals[name]) / baseline:.0%}" if baseline else "-",
            _mean(own, "theta_error", ".4f"),
            _mean(own, "prediction_error", ".4f"),
            _mean(own, "questions", ".1f"),
            f"{_mean(own, 'seconds', '.1f')} s",
        )
    return table


def trials_table(policy: str, trials: list[FrozenTrial], shown: int = 5) -> Table:
    """The best of a study's finished trials, with 95 % t intervals over their seeds."""
    name, seeds = trials[0].user_attrs["loss"], len(trials[0].user_attrs["losses"])
    over = f"{seeds} seeds, 95 % t interval" if seeds > 1 else "one seed, so no interval"
    table = Table(title=f"{policy}: best of {len(trials)} trials ({over})")
    for heading in ("trial", name, *trials[0].params):
        table.add_column(heading.rpartition(".")[2], justify="right")
    for trial in trials[:shown]:
        values = [f"{v:.4g}" if isinstance(v, float) else str(v) for v in trial.params.values()]
        losses = with_interval(np.array(trial.user_attrs["losses"]), 2 if name == "regret" else 4)
        table.add_row(str(trial.number), losses, *values)
    return table


def _mean(records: list[Record], metric: str, form: str) -> str:
    values = [value for record in records if (value := getattr(record, metric)) is not None]
    return format(fmean(values), form) if values else "-"
