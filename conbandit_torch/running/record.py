"""The metrics at one round. Results are read without torch, so this module does not import it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

COLUMNS = (  # of metrics.csv
    "round",
    "cumulative_regret",
    "reward",
    "theta_error",
    "prediction_error",
    "questions",
    "effective_terms",
    "counted",
    "ctr",
    "seconds",
)


@dataclass
class Record:
    """The metrics at one round; None where a policy or environment has no such number.

    Attributes:
        round: rounds played.
        cumulative_regret: regret so far, mean per user (Eq. 1); None when a log is replayed.
        regret: regret per shown arm since the last record; None when a log is replayed.
        reward: reward per shown arm since the last record.
        theta_error: mean over users of `|theta - theta_*|`.
        prediction_error: root mean square of `x^T theta - E[r]` over this round's candidates.
        questions: questions so far, mean per user.
        effective_terms: exponential of the entropy of the key-terms asked so far: K if all were asked
            alike, 1 if only one was.
        seconds: wall-clock time so far.
        counted: events of a log that counted so far, over all users; None unless one is replayed.
        ctr: share of clicks among them; None before the first.
        details: further tagged numbers; those with more than one value are for histograms. A simulation
            keeps them of its last record alone.
    """

    round: int
    cumulative_regret: float | None
    regret: float | None
    reward: float
    theta_error: float | None
    prediction_error: float | None
    questions: float
    effective_terms: float | None = None
    seconds: float = 0.0
    counted: int | None = None
    ctr: float | None = None
    details: dict[str, Tensor] = field(default_factory=dict)


def early_rounds(log_every: int, rounds: int) -> frozenset[int]:
    """Rounds below `log_every` that are recorded too: each by a quarter later than the one before.

    Most of a run's regret is made in its first rounds, so curves need points there: 16 of them before round
    50. None if only the last round is asked for (`log_every` is at least `rounds`).
    """
    early: list[int] = []
    number = 1
    while number < log_every < rounds:
        early.append(number)
        number += max(1, number // 4)
    return frozenset(early)
