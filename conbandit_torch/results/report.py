"""Compares policies: final regret, or click-through rate, with intervals, and paired tests over seeds.

Policies are ranked, shown and tested on the seeds that all of them have: on other seeds they would have met
other rounds. On a replayed log, intervals and tests are over users too, and the wider counts: seeds replay
one log, and say nothing of another one of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations, pairwise

import numpy as np
from rich.table import Table

from conbandit_torch.results.logs import UserIntervals, hidden_notes, off_policy_lines
from conbandit_torch.results.paired import LEVEL, holm, paired_p
from conbandit_torch.results.policies import PolicyResults, pick
from conbandit_torch.running.objective import CTR, REGRET, Objective

_ONLY_IN_MARKDOWN = (1, 4)  # columns: seeds, and the difference from the baseline
_WITH_NAMES = (0, 3)  # columns: the policy, and its share of the baseline


@dataclass(frozen=True)
class Report:
    """A comparison, ready to be shown.

    Attributes:
        headings: of the columns.
        lines: one line per policy, best first.
        order: which policies the seeds separate.
        notes: how to read it.
        off_policy: off-policy estimates, a heading and a line per policy; empty unless a log with known
            propensities was replayed.
    """

    headings: list[str]
    lines: list[list[str]]
    order: str
    notes: str
    off_policy: list[list[str]] = field(default_factory=list)

    def table(self) -> Table:
        """For the terminal: what fits into 80 columns."""
        table = Table()
        shown = [number for number in range(len(self.headings)) if number not in _ONLY_IN_MARKDOWN]
        for number in shown:
            words = self.headings[number].replace(" ", "\n", 1).replace("/", " per\n")
            # In a narrow terminal names are broken, numbers never.
            whole = number not in _WITH_NAMES
            table.add_column(words, justify="right" if number else "left", no_wrap=whole, overflow="fold")
        for line in self.lines:
            table.add_row(*(line[number] for number in shown))
        return table

    def off_policy_table(self) -> Table:
        """The off-policy estimates, for the terminal."""
        table = Table()
        for number, heading in enumerate(self.off_policy[0]):
            words = heading.replace(" ", "\n", 1)
            table.add_column(
                words, justify="right" if number else "left", no_wrap=number > 0, overflow="fold"
            )
        for line in self.off_policy[1:]:
            table.add_row(*line)
        return table

    def markdown(self) -> str:
        """For `report.md`."""
        rows = markdown_table([self.headings, *self.lines])
        besides = (
            ["", "Off-policy estimates:", "", *markdown_table(self.off_policy)] if self.off_policy else []
        )
        return "\n".join(["# Report", "", *rows, "", self.order, *besides, "", self.notes, ""])

    def __str__(self) -> str:
        return self.markdown()

    def _repr_markdown_(self) -> str:
        """For notebooks."""
        return self.markdown()


def markdown_table(lines: list[list[str]]) -> list[str]:
    """Lines of a table in Markdown; the first is its heading."""
    rule = ["---", *["---:"] * (len(lines[0]) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (lines[0], rule, *lines[1:])]


def compare(
    results: Mapping[str, PolicyResults], baseline: str | None = None, remarks: Iterable[str] = ()
) -> Report:
    """The report on `results`, relative to `baseline` (the first policy, if not given).

    Args:
        results: what the policies did, by name.
        baseline: the policy that the others are compared with.
        remarks: what else is to be said of the runs (see `Results.remarks`).
    """
    baseline = next(iter(results)) if baseline is None else baseline
    objective = pick(results, baseline, "--baseline").objective
    seeds = _common_seeds(results)
    # Without a common seed each policy has its own, which the notes say, and nothing is tested.
    finals = {name: own.final(objective.column, seeds or None) for name, own in results.items()}
    means = {name: objective.sign * float(final.mean()) for name, final in finals.items()}
    ranked = sorted(results, key=lambda name: (np.isnan(means[name]), means[name]))  # no number: last
    clicks = UserIntervals(results, seeds)
    p_values = holm(
        {
            pair: clicks.p(*pair, paired_p(finals[pair[0]], finals[pair[1]])) if seeds else np.nan
            for pair in combinations(ranked, 2)
        }
    )
    base = finals[baseline]
    lines = []
    for name in ranked:
        own = results[name]
        pair = (name, baseline) if ranked.index(name) < ranked.index(baseline) else (baseline, name)
        gained = objective.sign * (base - finals[name]) if seeds else np.array([])
        lines.append(
            [
                name,
                str(len(finals[name])),
                clicks.with_interval(finals[name], objective.digits, name),
                _mean(finals[name] / base.mean(), ".1%") if base.mean() else "-",
                "-" if name == baseline else clicks.with_interval(gained, objective.digits, name, baseline),
                "-" if name == baseline else p_value(p_values[pair]),
                _BESIDES[objective][1](own, seeds or own.seeds),
                _mean(own.final("questions", seeds or None), ".1f"),
                _EFFORT[objective][1](own, seeds or own.seeds),
            ]
        )
    headings = [
        "policy",
        "seeds",
        objective.name,
        f"of {baseline}",
        f"{objective.difference} {baseline}",
        "p",
    ]
    headings += [_BESIDES[objective][0], "asked", _EFFORT[objective][0]]
    order = _order(ranked, p_values, finals, objective)
    table, advice = off_policy_lines(results, ranked, seeds)
    told = _notes(results, finals, seeds, objective, over_users=clicks.known, remarks=list(remarks))
    notes = [told, *clicks.notes(), *advice, *hidden_notes(results)]
    return Report(headings, lines, order, "\n".join(notes), table)


Cell = tuple[str, Callable[[PolicyResults, list[int]], str]]
"""A column: its heading, and what a policy has there on some seeds."""


def _theta_error(own: PolicyResults, seeds: list[int]) -> str:
    return _mean(own.final("theta_error", seeds), ".4f")


def _of_random(own: PolicyResults, seeds: list[int]) -> str:
    """The click-through rate relative to the log's own."""
    if own.clicks is None:
        return "-"
    return _mean(own.final("ctr", seeds) / own.clicks.logged[own.rows_of(seeds)], ".2f")


def _time(own: PolicyResults, seeds: list[int]) -> str:
    """Microseconds per user and round."""
    seconds = own.seconds[own.rows_of(seeds)].mean() / (own.rounds[-1] * own.num_users)
    return f"{seconds * 1e6:.1f}"


def _counted(own: PolicyResults, seeds: list[int]) -> str:
    return _mean(own.final("counted", seeds), ",.0f")


_BESIDES: dict[Objective, Cell] = {REGRET: ("theta error", _theta_error), CTR: ("of random", _of_random)}
_EFFORT: dict[Objective, Cell] = {REGRET: ("us/user-round", _time), CTR: ("counted", _counted)}


def _common_seeds(results: Mapping[str, PolicyResults]) -> list[int]:
    """Seeds that all policies have run: all policies of a seed see the same rounds."""
    every = list(results.values())
    return [seed for seed in every[0].seeds if all(seed in own.seeds for own in every)]


def _order(
    ranked: list[str],
    p_values: dict[tuple[str, str], float],
    finals: dict[str, np.ndarray],
    objective: Objective,
) -> str:
    """The policies, best first, with `<` or `>` where neighbours are separated and `~` where they are not."""
    text = ranked[0]
    for better, worse in pairwise(ranked):
        separated = (
            p_values[better, worse] < LEVEL
            and objective.sign * float((finals[better] - finals[worse]).mean()) < 0
        )
        text += f" {objective.beats if separated else '~'} {worse}"
    return f"Order by {objective.name}: {text}"


def _notes(
    results: Mapping[str, PolicyResults],
    finals: dict[str, np.ndarray],
    seeds: list[int],
    objective: Objective,
    *,
    over_users: bool,
    remarks: list[str],
) -> str:
    tests = "t tests over seeds and over users" if over_users else "t test over seeds"
    notes = [
        f"`{objective.beats}`: the {objective.name}s differ (paired {tests}, Holm-corrected over all pairs, "
        f"p < {LEVEL}); `~`: these seeds do not separate the two.",
        f"{objective.meaning}, with its 95 % t interval. p: against the baseline, corrected too.",
    ]
    if not seeds:
        notes.append(
            "No seed was run with all policies: each mean is of a policy's own seeds, none is tested."
        )
    elif any(len(own.seeds) > len(seeds) for own in results.values()):
        used = ", ".join(map(str, seeds))
        notes.append(f"The policies have different seeds; all numbers are of those that all have: {used}.")
    if len(seeds) == 1 and not over_users:
        notes.append("There is only one seed, so there is no interval and no test.")
    copies = [name for name, own in results.items() if _are_copies(own)]
    if copies:
        notes.append(
            f"Every seed gave the same run, which is therefore one run and no sample: {', '.join(copies)}."
        )
    same = [
        f"{one} and {other}"
        for one, other in combinations(finals, 2)
        if len(seeds) > 1
        and not np.isnan(finals[one] - finals[other]).any()
        and np.isnan(paired_p(finals[one], finals[other]))
    ]
    if same:
        notes.append(f"No test, because all seeds have the same difference: {'; '.join(same)}.")
    return "\n".join([*notes, *remarks])


def _are_copies(own: PolicyResults) -> bool:
    """Whether several seeds have gone through the very same numbers."""
    curves = own.metrics[own.objective.column]
    return len(curves) > 1 and not np.isnan(curves).any() and bool((curves == curves[0]).all())


def _mean(values: np.ndarray, form: str) -> str:
    return "-" if np.isnan(values).any() else format(float(values.mean()), form)


def p_value(value: float) -> str:
    """A p value for people."""
    if np.isnan(value):
        return "-"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
