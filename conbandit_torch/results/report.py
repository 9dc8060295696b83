"""Compares policies: final regret, or click-through rate, with intervals, and paired tests over seeds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from rich.table import Table

from conbandit_torch.results.read import PolicyResults, pick, with_interval

LEVEL = 0.05


@dataclass(frozen=True)
class _Judged:
    """What policies are judged by.

    Attributes:
        metric: which metric, at the last round.
        name: what it is called.
        sign: 1 if less is better, -1 if more is.
        digits: shown after the point.
        better: heading of the difference from the baseline.
        besides: heading of a column of its own.
        effort: heading of what it took.
        meaning: for the notes.
    """

    metric: str
    name: str
    sign: int
    digits: int
    better: str
    besides: str
    effort: str
    meaning: str

    def headings(self, baseline: str) -> list[str]:
        return [
            "policy",
            "seeds",
            self.name,
            f"of {baseline}",
            f"{self.better} {baseline}",
            "p",
            self.besides,
            "asked",
            self.effort,
        ]


_REGRET = _Judged(
    "cumulative_regret",
    "regret",
    1,
    2,
    "less than",
    "theta error",
    "us/user-round",
    "Regret: per user at the last round",
)
_CTR = _Judged(
    "ctr",
    "CTR",
    -1,
    4,
    "more than",
    "of random",
    "counted",
    "CTR: clicks per counted event of the replayed log (of random: relative to the log's own, which is what "
    "picking at random earns)",
)
_ONLY_IN_MARKDOWN = (1, 4)  # columns: seeds, and the difference from the baseline


@dataclass(frozen=True)
class Report:
    """A comparison, ready to be shown.

    Attributes:
        headings: of the columns.
        lines: a line a policy, best first.
        order: which policies the seeds separate.
        notes: how to read it.
    """

    headings: list[str]
    lines: list[list[str]]
    order: str
    notes: str

    def table(self) -> Table:
        """For the terminal: what fits into 80 columns."""
        table = Table()
        shown = [number for number in range(len(self.headings)) if number not in _ONLY_IN_MARKDOWN]
        for number in shown:
            words = self.headings[number].replace(" ", "\n", 1).replace("/", " per\n")
            table.add_column(words, justify="right" if number else "left", no_wrap=True)
        for line in self.lines:
            table.add_row(*(line[number] for number in shown))
        return table

    def markdown(self) -> str:
        """For `report.md`."""
        rule = ["---", *["---:"] * (len(self.headings) - 1)]
        rows = [f"| {' | '.join(cells)} |" for cells in (self.headings, rule, *self.lines)]
        return "\n".join(["# Report", "", *rows, "", self.order, "", self.notes, ""])


def compare(results: dict[str, PolicyResults], baseline: str | None = None) -> Report:
    """The report on `results`, relative to `baseline` (the first policy, if not given)."""
    baseline = next(iter(results)) if baseline is None else baseline
    base = pick(results, baseline, "--baseline")
    judged = _REGRET if base.clicks is None else _CTR
    metric, sign = judged.metric, judged.sign
    means = {name: sign * float(own.final(metric).mean()) for name, own in results.items()}
    ranked = sorted(results, key=lambda name: (np.isnan(means[name]), means[name]))  # no number: last
    p_values = _holm({pair: _paired_p(results, metric, *pair) for pair in combinations(ranked, 2)})
    base_mean = float(base.final(metric).mean())
    lines = []
    for name in ranked:
        own = results[name]
        pair = (name, baseline) if ranked.index(name) < ranked.index(baseline) else (baseline, name)
        common = _common(own, base)
        gained = sign * (base.final(metric, common) - own.final(metric, common))
        lines.append(
            [
                name,
                str(len(own.seeds)),
                with_interval(own.final(metric), judged.digits),
                _mean(own.final(metric) / base_mean, ".1%") if base_mean else "-",
                "-" if name == baseline else with_interval(gained, judged.digits),
                "-" if name == baseline else _p(p_values[pair]),
                _besides(own),
                _mean(own.final("questions"), ".1f"),
                _effort(own),
            ]
        )
    order = _order(ranked, p_values, judged)
    return Report(judged.headings(baseline), lines, order, _notes(results, judged))


def _besides(own: PolicyResults) -> str:
    """The error of theta or, where there is a log, the click-through rate relative to the log's own."""
    if own.clicks is None:
        return _mean(own.final("theta_error"), ".4f")
    return with_interval(own.final("ctr") / own.clicks.logged)


def _effort(own: PolicyResults) -> str:
    """Time per user and round or, where there is a log, the events that counted."""
    if own.clicks is not None:
        return _mean(own.final("counted"), ",.0f")
    seconds = own.seconds.mean() / (own.rounds[-1] * own.num_users)
    return f"{seconds * 1e6:.1f}"


def _common(one: PolicyResults, other: PolicyResults) -> list[int]:
    """Seeds that both have run: all policies of a seed see the same rounds, so these are pairs."""
    return [seed for seed in one.seeds if seed in other.seeds]


def _paired_p(results: dict[str, PolicyResults], metric: str, one: str, other: str) -> float:
    """Two-sided paired t test of the metric's final values; NaN with fewer than two common seeds."""
    from scipy.stats import ttest_rel

    seeds = _common(results[one], results[other])
    a, b = (results[name].final(metric, seeds) for name in (one, other))
    if len(seeds) < 2:
        return float("nan")
    if np.ptp(a - b) <= 1e-12 * np.abs(a).max():  # the test divides by this spread
        return 1.0 if np.allclose(a, b, rtol=1e-12) else 0.0
    return float(ttest_rel(a, b).pvalue)


def _holm(p_values: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Holm's correction: all pairs are tested, and one error in all of them is to be unlikely."""
    tested = sorted((p, pair) for pair, p in p_values.items() if not np.isnan(p))
    corrected, largest = dict(p_values), 0.0
    for rank, (p, pair) in enumerate(tested):
        largest = max(largest, min(1.0, p * (len(tested) - rank)))
        corrected[pair] = largest
    return corrected


def _order(ranked: list[str], p_values: dict[tuple[str, str], float], judged: _Judged) -> str:
    """The policies, best first, with `<` or `>` where neighbours are separated and `~` where they are not."""
    text = ranked[0]
    for better, worse in pairwise(ranked):
        text += f" {_apart(judged) if p_values[better, worse] < LEVEL else '~'} {worse}"
    return f"Order by {judged.name}: {text}"


def _apart(judged: _Judged) -> str:
    return "<" if judged.sign > 0 else ">"


def _notes(results: dict[str, PolicyResults], judged: _Judged) -> str:
    notes = [
        f"`{_apart(judged)}`: the {judged.name}s differ (paired t test over seeds, Holm-corrected over all "
        f"pairs, p < {LEVEL}); `~`: these seeds do not separate the two.",
        f"{judged.meaning}, with its 95 % t interval over seeds. p: against the baseline, corrected too.",
    ]
    single = [name for name, own in results.items() if len(own.seeds) < 2]
    if single:
        notes.append(f"Only one seed, hence no interval and no test: {', '.join(single)}.")
    if len({tuple(own.seeds) for own in results.values()}) > 1:
        notes.append("The policies have different seeds; tests use those that both have.")
    return "\n".join(notes)


def _mean(values: np.ndarray, form: str) -> str:
    return "-" if np.isnan(values).any() else format(float(values.mean()), form)


def _p(value: float) -> str:
    if np.isnan(value):
        return "-"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
