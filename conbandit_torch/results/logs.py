"""What a report says of replayed logs and of hidden features."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from conbandit_torch.results.off_policy import off_policy_of_replay
from conbandit_torch.results.over_users import Ratio
from conbandit_torch.results.policies import PolicyResults, intervals, with_interval


class UserIntervals:
    """Intervals and tests of click-through rates: over users or over seeds, whichever is wider.

    Args:
        results: of all policies.
        seeds: that all of them have; empty: each has its own.
    """

    def __init__(self, results: Mapping[str, PolicyResults], seeds: list[int]) -> None:
        self._replays = any(own.clicks is not None for own in results.values())
        self._ratios: dict[str, Ratio] = {}
        for name, own in results.items():
            if own.clicks is not None and (ratio := own.clicks.ratio(own.rows_of(seeds or own.seeds))):
                self._ratios[name] = ratio
        self._same_log = all(own.clicks is None or own.clicks.same_log for own in results.values())
        self._over_users: dict[bool, list[str]] = {True: [], False: []}  # whose interval is over what

    @property
    def known(self) -> bool:
        """Whether there are sums per user, of a replayed log."""
        return bool(self._ratios)

    def _ratio(self, name: str, baseline: str | None) -> Ratio | None:
        if name not in self._ratios or (baseline is not None and baseline not in self._ratios):
            return None
        if baseline is None:
            return self._ratios[name]
        if self._ratios[name].influence.shape != self._ratios[baseline].influence.shape:
            return None  # not of the same users
        return self._ratios[name] - self._ratios[baseline]

    def with_interval(self, values: np.ndarray, digits: int, name: str, baseline: str | None = None) -> str:
        """The mean of values [S], with the wider of its two intervals."""
        ratio = self._ratio(name, baseline)
        if ratio is None or not len(values) or not np.isfinite(values).all() or np.isnan(ratio.half):
            return with_interval(values, digits)
        mean, over_seeds = intervals(values)
        wider = not over_seeds > ratio.half  # with one seed there is only the other
        if baseline is None:
            self._over_users[wider].append(name)
        return f"{mean:.{digits}f} ± {ratio.half if wider else over_seeds:.{digits}f}"

    def half(self, values: np.ndarray, name: str) -> float:
        """Half-width of the wider of the two intervals of values [S]; NaN where there is none."""
        ratio = self._ratio(name, None)
        over_seeds = float(intervals(values)[1])
        return over_seeds if ratio is None else float(np.fmax(over_seeds, ratio.half))

    def p(self, one: str, other: str, over_seeds: float) -> float:
        """The larger p value of the paired tests over users and over seeds."""
        ratio = self._ratio(one, other)
        return over_seeds if ratio is None else float(np.fmax(over_seeds, ratio.p))

    def notes(self) -> list[str]:
        """Which intervals were used, and why."""
        if not self._replays:
            return []
        if not self.known:
            return [
                "Intervals are over seeds alone, for want of sums per user: they cover other draws of "
                "candidates, and not another log of the same kind."
            ]
        log = "one log" if self._same_log else "logs of their own"
        which = [
            f"over {kind}: {'all' if len(names) == len(self._ratios) else ', '.join(names)}"
            for kind, names in (("users", self._over_users[True]), ("seeds", self._over_users[False]))
            if names
        ]
        return [
            "Intervals and tests are over users (who could have been others; delta method) or over seeds "
            f"(which replay {log} with other candidates), whichever is wider; {'; '.join(which)}."
        ]


def off_policy_lines(
    results: Mapping[str, PolicyResults], ranked: list[str], seeds: list[int]
) -> tuple[list[list[str]], list[str]]:
    """A table of off-policy estimates, heading first, and which of them to believe.

    The table is empty unless the log has propensities; advice there is for every replayed log.
    """
    lines: list[list[str]] = []
    advice: dict[str, list[str]] = {}  # sentence -> policies
    for name in ranked:
        own = results[name]
        if own.clicks is None or not own.clicks.users:
            continue
        sums = [own.clicks.users[row] for row in own.rows_of(seeds or own.seeds)]
        found = off_policy_of_replay(sums, own.clicks.serving, same_users=own.clicks.same_log)
        if besides := found.estimates[1:]:  # the first is replay's, which has a table of its own
            lines = lines or [["policy", *(one.name for one in besides), "effective sample"]]
            estimates = ["-" if np.isnan(one.value) else str(one) for one in besides]
            lines.append([name, *estimates, f"{found.effective_sample:,.0f}"])
        for sentence in found.advice:
            advice.setdefault(sentence, []).append(name)
    everyone = sum(own.clicks is not None for own in results.values())
    return lines, [
        sentence if len(names) == everyone else f"{', '.join(names)}: {sentence}"
        for sentence, names in advice.items()
    ]


def hidden_notes(results: Mapping[str, PolicyResults]) -> list[str]:
    """What was hidden, of which seeds, and whether they can be compared."""
    hidden = [one for own in results.values() for one in own.hidden]
    if not hidden:
        return []
    splits = {tuple(one.names): one.share for one in hidden}
    number, low, high = len(hidden[0].names), min(splits.values()), max(splits.values())
    if len(splits) == 1:
        names = ", ".join(hidden[0].names)
        return [f"Hidden from the policies: {names} ({low:.1%} of the arms' |x|^2)."]
    return [
        f"Hidden from the policies: {number} features, other ones per seed, {low:.1%} to {high:.1%} of the "
        "arms' |x|^2. The seeds' numbers differ by that too: `hidden_seed` fixes the features, "
        "`balance_hidden` their share."
    ]
