"""What policies did, over seeds: their numbers, means and intervals. Without torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from conbandit_torch.core.errors import ConfigError, choices
from conbandit_torch.core.serving import Serving
from conbandit_torch.results.over_users import Ratio
from conbandit_torch.running.objective import REGRET, Objective
from conbandit_torch.running.result import HiddenShare
from conbandit_torch.running.user_sums import UserSums


@dataclass(frozen=True)
class Clicks:
    """What replay of a log earned.

    Attributes:
        ctr: [S, W] click-through rate in every full window, as many windows as every seed has.
        window: counted events in a window.
        logged: [S] click-through rate of the log, which is that of a policy that picks at random.
        users: sums per user, of every seed; empty: a run of a former version has none.
        same_log: whether all seeds replayed the same log.
        serving: how the log's items were chosen.
    """

    ctr: np.ndarray
    window: int
    logged: np.ndarray
    users: list[UserSums] = field(default_factory=list)
    same_log: bool = True
    serving: Serving = "unknown"

    def ratio(self, rows: list[int]) -> Ratio | None:
        """Clicks per counted event of some seeds, with its error over users."""
        if not self.users:
            return None
        clicks, counted = (
            np.stack([getattr(self.users[row], name) for row in rows]) for name in ("clicks", "counted")
        )
        return Ratio.of(clicks, counted, same_users=self.same_log)


@dataclass(frozen=True)
class PolicyResults:
    """What one policy did.

    Attributes:
        seeds: S seeds of the finished runs, in order.
        seconds: [S] wall-clock time of each.
        rounds: [T] rounds at which metrics were recorded.
        metrics: [S, T] by name; NaN where a policy has no such number.
        num_users: U, for times per user.
        objective: what the policy is judged by.
        clicks: what replay earned; None: no log was replayed.
        hidden: [S] features that were kept from the policy; empty: all were seen.
    """

    seeds: list[int]
    seconds: np.ndarray
    rounds: np.ndarray
    metrics: dict[str, np.ndarray]
    num_users: int
    objective: Objective = REGRET
    clicks: Clicks | None = None
    hidden: list[HiddenShare] = field(default_factory=list)

    def final(self, metric: str, seeds: Iterable[int] | None = None) -> np.ndarray:
        """[S] the metric at the end, of all seeds or of those given."""
        last: np.ndarray = self.metrics[metric][:, -1]
        return last if seeds is None else last[self.rows_of(seeds)]

    def rows_of(self, seeds: Iterable[int]) -> list[int]:
        """Where the seeds stand in arrays [S, ...]."""
        return [self.seeds.index(seed) for seed in seeds]


def pick(results: Mapping[str, PolicyResults], name: str, option: str) -> PolicyResults:
    """The policy `name`, which the user gave as `option`."""
    if name not in results:
        raise ConfigError(f"{option} {name}: there is no such policy{choices(name, results)}")
    return results[name]


def intervals(values: np.ndarray, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Means over seeds and half-widths of their t intervals, [S, ...] -> [...]; NaN for one seed."""
    from scipy.special import stdtrit  # scipy.stats takes half a second to import

    count = len(values)
    mean = values.mean(0)
    if count < 2:
        return mean, np.full_like(mean, np.nan)
    with np.errstate(invalid="ignore"):  # infinite values have no spread: NaN
        spread = values.std(0, ddof=1)
    half = stdtrit(count - 1, (1 + level) / 2) * spread / np.sqrt(count)
    return mean, half


def with_interval(values: np.ndarray, digits: int = 2) -> str:
    """Mean of values [S] with its interval, for people; without one if there are fewer than two."""
    if not len(values) or not np.isfinite(values).all():
        return "-"
    mean, half = intervals(values)
    return f"{mean:.{digits}f}" if np.isnan(half) else f"{mean:.{digits}f} ± {half:.{digits}f}"
