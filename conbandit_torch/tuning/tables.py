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
    objective, values = score_of(trials[0])
    over = f"{len(values)} seeds, 95 % t interval" if len(values) > 1 else "one seed, so no interval"
    table = Table(title=f"{policy}: best of {len(trials)} trials ({over})")
    for heading in ("trial", objective.name, *trials[0].params):
        table.add_column(heading.rpartition(".")[2], justify="right")
    for trial in trials[:shown]:
        parameters = [f"{v:.4g}" if isinstance(v, float) else str(v) for v in trial.params.values()]
        score = with_interval(np.array(score_of(trial)[1]), objective.digits)
        table.add_row(str(trial.number), score, *parameters)
    return table
