"""How good a trial was: the objective's values on the trial's seeds, as the study keeps them."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan
from statistics import fmean
from typing import TYPE_CHECKING, Any

from conbandit_torch.running.objective import CTR, REGRET, Objective, objective_of

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from conbandit_torch.running.record import Record

_BY_NAME = {objective.name: objective for objective in (REGRET, CTR)}


def score(records: Iterable[Record]) -> dict[str, Any]:
    """What a trial keeps: the objective's name, and its value at every seed's last record.

    A replay of which no event has counted has earned no click.
    """
    records = list(records)
    objective = objective_of(records)
    values = [objective.value(record) for record in records]
    return {"objective": objective.name, "values": [0.0 if isnan(value) else value for value in values]}


def loss(kept: dict[str, Any]) -> float:
    """What the study minimises."""
    return _BY_NAME[kept["objective"]].sign * fmean(kept["values"])


def score_of(trial: FrozenTrial) -> tuple[Objective, list[float]]:
    """The objective, and a finished trial's values."""
    return _BY_NAME[trial.user_attrs["objective"]], trial.user_attrs["values"]


def describe(trial: FrozenTrial) -> str:
    """The objective and the mean over seeds, for people."""
    objective, values = score_of(trial)
    return f"{objective.name} {fmean(values):.4g}"
