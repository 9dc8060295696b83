"""When a policy refits from its log."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class RefitSchedule:
    """Refit often at first, when every round changes much, and ever more rarely later.

    Rule: by the end of round t there have been floor(n(t)) refits, with
        n(t) = t / every                                     up to round every / growth,
        n(t) = (1 + log(t growth / every)) / growth          from then on.
    So the rounds between two refits are `every` at first, and later about `growth` t. A refit takes time in
    proportion to the log, which has t rounds, so all refits together take constant time per round, however
    long the run.
    Symbols: none.
    Differs: ours.

    Args:
        every: rounds between refits at first.
        growth: rounds between refits later, as a share of the rounds so far; 0: `every` for ever.
    """

    every: int = 2
    growth: float = 0.05

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ValueError(f"refit_every must be at least 1, got {self.every}")
        if not 0 <= self.growth < math.inf:
            raise ValueError(f"growth must be a number of at least 0, got {self.growth}")

    def total(self, rounds: int) -> int:
        """How many refits there have been by the end of round `rounds`, counted from 1."""
        even = rounds / self.every
        if self.growth * even <= 1:
            return int(even)
        return int((1 + math.log(self.growth * even)) / self.growth)

    def due(self, rounds: int) -> bool:
        """Whether a refit ends round `rounds`, counted from 1."""
        return self.total(rounds) > self.total(rounds - 1)


RefitEvery = int | RefitSchedule
"""Rounds between refits: a number, or a schedule."""


def refit_schedule(every: RefitEvery | None) -> RefitSchedule | None:
    """The schedule that is meant; a number is a schedule that never changes."""
    if every is None or isinstance(every, RefitSchedule):
        return every
    return RefitSchedule(every, growth=0.0)
