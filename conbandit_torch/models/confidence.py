"""Confidence widths of Lemmas 1 and 3.

They rest on a bound on `|theta_*|` that the *user* gives. Nothing here, and no policy, sees the true
parameter.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

from conbandit_torch.core.blocks import Index
from conbandit_torch.models.ridge import RidgeRegression


class Confidence(ABC):
    """A width's factor that follows the state of the regression it belongs to."""

    @abstractmethod
    def __call__(self, model: RidgeRegression, who: Index) -> Tensor:
        """The factor of each of the models `who`: [B]."""


Alpha = float | Confidence
"""Factor of a confidence width: a number, or one of the theory's values."""


@dataclass(frozen=True)
class Lemma1(Confidence):
    """`alpha_t` of Lemma 1, for the arm level.

    Rule: `alpha_t = sqrt(2 log(det(M)^(1/2) det((1-lam) I)^(-1/2) / sigma))`, divided by sqrt(lam)
    unless `printed`.
    Symbols: sigma `sigma`; lam the regression's `weight`; (1-lam) its `ridge`.
    Differs: as printed the lemma misses the factor 1/sqrt(lam), because M is lam times the matrix of
    the theorem it cites; the corrected value is the default.

    Args:
        sigma: probability with which the interval may fail, in (0, 1).
        printed: take the lemma as printed.
    """

    sigma: float = 0.05
    printed: bool = False

    def __post_init__(self) -> None:
        probability(self.sigma)

    def __call__(self, model: RidgeRegression, who: Index) -> Tensor:
        """The factor of each of the models `who`: [B]."""
        alpha = (model.log_det[who] - 2 * math.log(self.sigma)).sqrt()  # Lemma 1
        return alpha if self.printed else alpha / math.sqrt(model.weight)


@dataclass(frozen=True)
class Lemma3(Confidence):
    """`alpha~_t` of Lemma 3, for the key-term level.

    Rule: `alpha~_t = sqrt(2 (d log 6 + log(2 max(b(t), 1) / sigma))) + 2 sqrt(lam~) S`.
    Symbols: S `norm_bound`; sigma `sigma`; lam~ the regression's `ridge`; b(t) the number of answers
    it has heard.
    Differs: max(b(t), 1) in place of b(t), which is 0 before the first question.

    Args:
        norm_bound: a bound on `|theta_*|` that you are ready to assume.
        sigma: probability with which the interval may fail, in (0, 1).
    """

    norm_bound: float
    sigma: float = 0.05

    def __post_init__(self) -> None:
        positive("norm_bound", self.norm_bound)
        probability(self.sigma)

    def __call__(self, model: RidgeRegression, who: Index) -> Tensor:
        """The factor of each of the models `who`: [B]."""
        questions = model.count[who].clamp_min(1).to(model.moment)
        log_term = model.dim * math.log(6) + (2 * questions / self.sigma).log()
        return (2 * log_term).sqrt() + 2 * math.sqrt(model.ridge) * self.norm_bound  # Lemma 3


def probability(sigma: float) -> float:
    """`sigma`, if it is in (0, 1)."""
    if not 0 < sigma < 1:
        raise ValueError(f"sigma must be in (0, 1), got {sigma}")
    return sigma


def positive(name: str, value: float) -> float:
    """`value`, if it is above 0 and finite; errors call it `name`."""
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be above 0 and finite, got {value}")
    return value


def check_alpha(name: str, alpha: Alpha) -> Alpha:
    """`alpha`, if it can be the factor of a width; errors call it `name`."""
    if not isinstance(alpha, Confidence) and not 0 <= alpha < float("inf"):
        raise ValueError(f"{name} must be a number of at least 0 or a Confidence, got {alpha}")
    return alpha
