"""Ratios of sums, such as clicks per counted event, with errors over users.

Events of one user are not independent, and seeds that replay one log share its users: what another log of
the same kind would give is told by how users differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Estimate:
    """A mean reward per event.

    Attributes:
        name: of the estimator.
        value: the estimate.
        error: its standard error, over users; NaN where nothing is known of the spread (see `Ratio`).
        half: half-width of its 95 % t interval.
    """

    name: str
    value: float
    error: float
    half: float

    def __str__(self) -> str:
        return f"{self.value:.4f}" if np.isnan(self.half) else f"{self.value:.4f} ± {self.half:.4f}"


@dataclass(frozen=True)
class Ratio:
    """sum(above) / sum(below), as a mean over seeds, and what each user contributes to it.

    Attributes:
        value: the mean over seeds.
        influence: [seeds, users] or [users] by how much the value would be moved by a user, to first order.
            Their sum over users is 0.
    """

    value: float
    influence: np.ndarray

    @classmethod
    def of(cls, above: np.ndarray, below: np.ndarray, *, same_users: bool = True) -> Ratio:
        """The ratio of sums over users, by the delta method.

        With R_s = sum_u above_su / sum_u below_su, user u moves R_s by
        e_su = (above_su - R_s below_su) / sum_u below_su, and the mean of S seeds by sum_s e_su / S.

        Args:
            above: [S, U] sums per user.
            below: [S, U] sums per user.
            same_users: whether user u is the same in all seeds, as on one log; if not, every seed has others.
        """
        total = below.sum(1, keepdims=True)  # [S, 1]
        with np.errstate(invalid="ignore", divide="ignore"):
            rates = above.sum(1, keepdims=True) / total
            influence = (above - rates * below) / (total * len(above))  # [S, U]
        return cls(float(rates.mean()), influence.sum(0) if same_users else influence)

    def __sub__(self, other: Ratio) -> Ratio:
        """The difference of two policies on the same users."""
        return Ratio(self.value - other.value, self.influence - other.influence)

    @property
    def error(self) -> float:
        """Standard error: of n users, n / (n - 1) sum_u e_u^2 is the variance.

        NaN of fewer than two users, and where none moves the value: without a click, or with one user alone
        whose events count, nothing is known of the spread.
        """
        users = self.influence.shape[-1]
        if users < 2 or np.abs(self.influence).max() <= 1e-12 * abs(self.value):
            return float("nan")
        return float(np.sqrt(users / (users - 1) * np.square(self.influence).sum()))

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the error."""
        seeds, users = np.atleast_2d(self.influence).shape
        return int(seeds * (users - 1))

    @property
    def half(self) -> float:
        """Half-width of the 95 % t interval."""
        from scipy.special import stdtrit  # scipy.stats takes half a second to import

        return float(stdtrit(self.freedom, 0.975)) * self.error if self.freedom else float("nan")

    @property
    def p(self) -> float:
        """Two-sided p value of the value being 0; NaN without spread."""
        from scipy.special import stdtr

        error = self.error
        return float(2 * stdtr(self.freedom, -abs(self.value) / error)) if error > 0 else float("nan")

    def named(self, name: str) -> Estimate:
        """The value with its interval."""
        return Estimate(name, self.value, self.error, self.half)
