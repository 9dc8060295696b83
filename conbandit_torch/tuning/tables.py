"""What a study has found, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from conbandit_torch.results.read import with_interval
from conbandit_torch.tuning.score import score_of

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial


def trials_table(policy: str, trials: list[FrozenTrial], shown: int = 5) -> Table:
    """The best of a study's finished trials, with 95 % t intervals over their seeds."""
    objective, scores = score_of(trials[0])
    over = f"{len(scores)} seeds, 95 % t interval" if len(scores) > 1 else "one seed, so no interval"
    table = Table(title=f"{policy}: best of {len(trials)} trials ({over})")
    names = list(dict.fromkeys(name for trial in trials for name in trial.params))
    for heading in ("trial", objective.name, *names):
        table.add_column(heading.rpartition(".")[2], justify="right")
    for trial in trials[:shown]:
        values = [trial.params.get(name, "the config's") for name in names]
        parameters = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in values]
        score = with_interval(np.array(score_of(trial)[1]), objective.digits)
        table.add_row(str(trial.number), score, *parameters)
    return table
