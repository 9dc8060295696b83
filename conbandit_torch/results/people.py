"""Compares policies that different people have met: means per person, intervals, and Welch's test.

A person meets one policy, so nothing is paired. A person counts once, however many items they have rated:
items of one person are not independent observations. Without torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from rich.table import Table

from conbandit_torch.core.errors import ConfigError, choices
from conbandit_torch.results.paired import LEVEL, holm
from conbandit_torch.results.policies import intervals, with_interval
from conbandit_torch.results.report import markdown_table, p_value


@dataclass
class PersonSums:
    """What one person did.

    Attributes:
        user: who.
        policy: whom they met.
        answered: questions answered, "don't know" included.
        rated: items that they have rewarded.
        reward: the sum of those rewards.
    """

    user: str
    policy: str
    answered: int = 0
    rated: int = 0
    reward: float = 0.0


@dataclass(frozen=True)
class PolicySums:
    """What the people of one policy did.

    Attributes:
        policy: its name.
        people: how many take part.
        rated: items that they have rewarded.
        rewards: [n] mean reward per item of everybody who has rewarded one.
        questions: [people] answered by each.
    """

    policy: str
    people: int
    rated: int
    rewards: np.ndarray
    questions: np.ndarray

    @property
    def mean(self) -> float | None:
        """Mean over people of their mean reward; None: nobody has rewarded anything."""
        return float(self.rewards.mean()) if len(self.rewards) else None

    @property
    def half(self) -> float | None:
        """Half-width of its 95 % t interval; None: of fewer than two people."""
        return _half(self.rewards)

    @property
    def questions_half(self) -> float | None:
        """Half-width of the 95 % t interval of questions per person."""
        return _half(self.questions)


def by_policy(people: Iterable[PersonSums], policies: Sequence[str]) -> list[PolicySums]:
    """What the people of each policy did, in the order of the policies."""
    of: dict[str, list[PersonSums]] = {policy: [] for policy in policies}
    for person in people:
        of.setdefault(person.policy, []).append(person)
    return [
        PolicySums(
            policy,
            len(own),
            sum(one.rated for one in own),
            np.array([one.reward / one.rated for one in own if one.rated]),
            np.array([one.answered for one in own], dtype=np.float64),
        )
        for policy, own in of.items()
    ]


@dataclass(frozen=True)
class PeopleReport:
    """A comparison, ready to be shown.

    Attributes:
        headings: of the columns.
        lines: one per policy, best first.
        order: which policies the people separate.
        notes: how to read it.
    """

    headings: list[str]
    lines: list[list[str]]
    order: str
    notes: str

    def table(self) -> Table:
        """For the terminal."""
        table = Table()
        for number, heading in enumerate(self.headings):
            table.add_column(heading.replace(" ", "\n", 1), justify="right" if number else "left")
        for line in self.lines:
            table.add_row(*line)
        return table

    def markdown(self) -> str:
        """For `report.md`."""
        rows = markdown_table([self.headings, *self.lines])
        return "\n".join(["# Report", "", *rows, "", self.order, "", self.notes, ""])


def compare_people(
    people: Iterable[PersonSums], policies: Sequence[str], baseline: str | None = None
) -> PeopleReport:
    """The report on what people did, relative to `baseline` (the first policy, if not given)."""
    baseline = policies[0] if baseline is None else baseline
    if baseline not in policies:
        raise ConfigError(f"--baseline {baseline}: there is no such policy{choices(baseline, policies)}")
    sums = {own.policy: own for own in by_policy(people, policies)}
    worst = float("-inf")
    ranked = sorted(sums, key=lambda name: -(worst if sums[name].mean is None else sums[name].mean or 0.0))
    p_values = holm(
        {pair: welch(*(sums[name].rewards for name in pair))[2] for pair in combinations(ranked, 2)}
    )
    lines = []
    for name in ranked:
        own = sums[name]
        difference, half, _ = welch(own.rewards, sums[baseline].rewards)
        pair = (name, baseline) if ranked.index(name) < ranked.index(baseline) else (baseline, name)
        lines.append(
            [
                name,
                str(own.people),
                f"{own.rated:,}",
                with_interval(own.rewards, 3),
                "-" if name == baseline or np.isnan(difference) else _signed(difference, half),
                "-" if name == baseline else p_value(p_values[pair]),
                with_interval(own.questions, 1),
            ]
        )
    order = ranked[0]
    for better, worse in pairwise(ranked):
        order += f" {'>' if p_values[better, worse] < LEVEL else '~'} {worse}"
    headings = [
        "policy",
        "people",
        "rated items",
        "reward per item",
        f"more than {baseline}",
        "p",
        "questions each",
    ]
    notes = (
        "Reward per item: mean over people of their own mean, with a 95 % t interval over people; who has "
        "rated nothing is not in it. Everybody met one policy, so tests are not paired: Welch's t test, "
        f"Holm-corrected over all pairs. `>`: they differ (p < {LEVEL}); `~`: not told apart by these people."
    )
    return PeopleReport(headings, lines, f"Order by reward: {order}", notes)


def welch(one: np.ndarray, other: np.ndarray) -> tuple[float, float, float]:
    """The difference of two means, half of its 95 % interval, and the two-sided p value (Welch's t test).

    NaN where a side has fewer than two people; the last two also where neither side has any spread.
    """
    from scipy.special import stdtr, stdtrit  # scipy.stats takes half a second to import

    nan = float("nan")
    if len(one) < 2 or len(other) < 2:
        difference = float(one.mean() - other.mean()) if len(one) and len(other) else nan
        return difference, nan, nan
    difference = float(one.mean() - other.mean())
    parts = [values.var(ddof=1) / len(values) for values in (one, other)]
    variance = float(sum(parts))
    if variance <= 1e-24:
        return difference, nan, nan
    freedom = variance**2 / sum(
        part**2 / (len(values) - 1) for part, values in zip(parts, (one, other), strict=True)
    )
    error = variance**0.5
    p = 2 * stdtr(freedom, -abs(difference) / error)
    return difference, float(stdtrit(freedom, 0.975)) * error, float(p)


def _half(values: np.ndarray) -> float | None:
    return float(intervals(values)[1]) if len(values) > 1 else None


def _signed(value: float, half: float) -> str:
    return f"{value:+.3f}" if np.isnan(half) else f"{value:+.3f} ± {half:.3f}"
