"""Tables for people."""

from __future__ import annotations

from statistics import fmean

import numpy as np
from rich.table import Table

from conbandit_torch.results.read import with_interval
from conbandit_torch.running.objective import objective_of
from conbandit_torch.running.plan import Plan
from conbandit_torch.running.record import Record
from conbandit_torch.running.result import JobResult


def summary_table(results: list[JobResult], experiment: Plan) -> Table:
    """The policies' means over seeds, with 95 % t intervals of the regret, or of the click-through rate."""
    records = {
        name: [result.last for result in results if result.policy == name and result.last is not None]
        for name in experiment.policies
    }
    seeds = len(experiment.seeds)
    over = f"mean of {seeds} seeds, 95 % t interval" if seeds > 1 else "one seed, so no interval"
    table = Table(title=f"After {experiment.rounds:,} rounds ({over})")
    first = next(iter(experiment.policies))
    objective = objective_of(record for own in records.values() for record in own)
    # In a narrow terminal names are broken, numbers never.
    table.add_column("policy", overflow="fold")
    for words in (objective.heading, f"of\n{first}", "theta\nerror", "predict.\nerror", "asked", "time"):
        table.add_column(words, justify="right", no_wrap=first not in words, overflow="fold")
    finals = {name: [objective.value(record) for record in own] for name, own in records.items()}
    baseline = fmean(finals[first]) if finals[first] else 0.0
    for name, own in records.items():
        if not own:
            table.add_row(name, "failed")
            continue
        table.add_row(
            name if len(own) == seeds else f"{name} ({len(own)} of {seeds} seeds)",
            with_interval(np.array(finals[name]), objective.digits),
            f"{fmean(finals[name]) / baseline:.0%}" if baseline else "-",
            _mean(own, "theta_error", ".4f"),
            _mean(own, "prediction_error", ".4f"),
            _mean(own, "questions", ".1f"),
            f"{_mean(own, 'seconds', '.1f')} s",
        )
    return table


def _mean(records: list[Record], metric: str, form: str) -> str:
    values = [value for record in records if (value := getattr(record, metric)) is not None]
    return format(fmean(values), form) if values else "-"
