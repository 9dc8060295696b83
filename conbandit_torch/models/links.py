"""How a mean follows from scores: the link of a linear policy."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.linalg import vecdot

from conbandit_torch.core.blocks import rows_per_block
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.questions import About, Arms, Comparison, Features, Terms
from conbandit_torch.models.refits import RefitEvery, RefitSchedule, refit_schedule

FLOOR = 0.01  # of a variance mu (1 - mu): one surprise must not outweigh all that was seen before
NOW_AND_THEN = RefitSchedule(every=10, growth=0.2)
AnswerModel = Literal["mean of items", "at the mean"]


class Link(ABC):
    """How the mean of a reward or an answer follows from the scores `z_a = x_a^T theta` of arms.

    To write one, implement `mean`, `loss`, `weigh`, and `several`, which says what an observation is to a
    ridge regression: a vector and a target, made at the theta that predicted it. One whose means are all of
    one score z of the observation, and so learned by hidden features too, says `of_one_score = True`.
    """

    is_linear = False  # then an observation is its own features and value, whatever theta is
    of_one_score = True  # whether every mean is one of `z = sum_a w_a z_a`, the score of weights w over arms
    refit_every: RefitEvery | None = None  # a user's rounds between exact fits to their log; None: never
    refit_steps: int = 1
    range: tuple[float, float] = (-math.inf, math.inf)  # of values; those outside count as the nearest
    bound: float = math.inf  # the largest length of what is learned of theta

    @abstractmethod
    def mean(self, z: Tensor) -> Tensor:
        """E[r] of arms with scores z, of any shape."""

    @abstractmethod
    def loss(self, mean: Tensor, value: Tensor) -> Tensor:
        """How badly a mean predicted a value, of any shape; at least 0."""

    @abstractmethod
    def weigh(self, about: About, z: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """[Q] and [Q]: s and rho of values of one score z [Q] each.

        To second order the loss is half of `(rho - s dz)^2`, and a constant, where the score moves by dz.
        """

    def single(self, about: About, x: Tensor, theta: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """[Q, D] and [Q]: features and target of values of one vector x [Q, D] each, at theta [Q, D]."""
        z = vecdot(x, theta)
        factor, left = self.weigh(about, z, value)
        return x * factor[:, None], factor * z + left

    @abstractmethod
    def several(
        self, about: About, source: Features, catalogue: Catalogue, theta: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The same for values of weights over arms, whose vectors `source` has."""

    @abstractmethod
    def means(self, about: About, source: Features, catalogue: Catalogue, theta: Tensor) -> Tensor:
        """[Q] what is expected of weights over arms, at theta [Q, D]."""


@dataclass(frozen=True)
class Identity(Link):
    """Means are linear: `E[r] = x^T theta`, and of an answer `x~^T theta`."""

    is_linear = True

    def mean(self, z: Tensor) -> Tensor:
        """z itself."""
        return z

    def loss(self, mean: Tensor, value: Tensor) -> Tensor:
        """The squared error."""
        return (mean - value).square()

    def weigh(self, about: About, z: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """1 and the error."""
        return torch.ones_like(z), value - z

    def several(
        self, about: About, source: Features, catalogue: Catalogue, theta: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor]:
        """x~ and the value."""
        return about.features(source), value

    def means(self, about: About, source: Features, catalogue: Catalogue, theta: Tensor) -> Tensor:
        """[Q] `x~^T theta`."""
        means: Tensor = vecdot(about.features(source), theta)
        return means


@dataclass(frozen=True)
class Logistic(Link):
    """Means are probabilities: `P(click) = mu(x^T theta)`, `mu(z) = 1 / (1 + exp(-z))`.

    Rule, per user and observation, with the mean m that theta predicts and its gradient g:
        reward on arm a: m = mu(z), g = mu'(z) x, z = x^T theta;
        answer on key-term k: m = sum_a p_{a,k} mu(z_a), g = sum_a p_{a,k} mu'(z_a) x_a   ("mean of items"),
            or m = mu(x~^T theta), g = mu'(x~^T theta) x~   ("at the mean");
        comparison: m = mu(z), g = mu'(z) x of the difference x of both sides;
        H += g g^T / v,  theta += H^-1 g (r - m) / v,  v = m (1 - m):
    a Newton step, which is a step of ridge regression of `r - m + g^T theta` on g with weight 1 / v. Every so
    often (`refit_every`, in rounds of the user) the user's regressions are fitted to their whole log, by
    `refit_steps` Newton steps, each halved until the penalised likelihood does not fall; the weights are then
    those of the present theta, no longer those of the day.
    Symbols: H is M of the linear policies.
    Differs: Li, Lu, Zhou (2017, UCB-GLM) refit in every round, with H = sum x x^T. The answers' model is
    ours. v is at least 0.01. The part of theta that a regression has learned is no longer than `bound`, also
    where clicks are separable and the ridge is tiny, so that the likelihood alone has no maximum. Values
    outside [0, 1] count as the nearest of both.

    Args:
        answer: what an answer about a key-term is the mean of.
        answer_deviation: standard deviation of graded answers about key-terms, which takes the place of
            sqrt(v); 0: answers are clicks.
        bound: the largest length of what is learned of theta, at any level.
        refit_every: a user's rounds between exact fits, a number or a `RefitSchedule`; None: never.
        refit_steps: Newton steps of an exact fit.
    """

    range = (0.0, 1.0)
    answer: AnswerModel = "mean of items"
    answer_deviation: float = 0.0
    bound: float = 100.0
    refit_every: RefitEvery | None = NOW_AND_THEN
    refit_steps: int = 3

    def __post_init__(self) -> None:
        if self.answer not in ("mean of items", "at the mean"):
            raise ValueError(f"answer must be 'mean of items' or 'at the mean', got {self.answer!r}")
        if not 0 <= self.answer_deviation < float("inf"):
            raise ValueError(f"answer_deviation must be a number of at least 0, got {self.answer_deviation}")
        if not 0 < self.bound < float("inf"):
            raise ValueError(f"bound must be above 0 and finite, got {self.bound}")
        if self.refit_steps < 1:
            raise ValueError(f"refit_steps must be at least 1, got {self.refit_steps}")
        refit_schedule(self.refit_every)  # or else an error that says what is wrong with it

    def mean(self, z: Tensor) -> Tensor:
        """mu(z)."""
        return torch.sigmoid(z)

    def loss(self, mean: Tensor, value: Tensor) -> Tensor:
        """The negative log-likelihood of a click."""
        tiny = torch.finfo(mean.dtype).tiny
        missed = (value * mean.clamp_min(tiny).log()) + (1 - value) * (1 - mean).clamp_min(tiny).log()
        return -missed

    @property
    def of_one_score(self) -> bool:  # type: ignore[override]
        """Not, where an answer is the mean of its items' probabilities."""
        return self.answer == "at the mean"

    def weigh(self, about: About, z: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """`mu'(z) / sqrt(v)` and `(r - m) / sqrt(v)`."""
        mean = torch.sigmoid(z)
        slope = mean * (1 - mean)
        if self._is_graded(about):
            return slope / self.answer_deviation, (value - mean) / self.answer_deviation
        root = slope.clamp_min_(FLOOR).sqrt()
        return root, (value - mean) / root

    def several(
        self, about: About, source: Features, catalogue: Catalogue, theta: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor]:
        """`g / sqrt(v)` and `(r - m + g^T theta) / sqrt(v)`, g being the gradient of the mean."""
        if self._at_the_mean(about):
            return self.single(about, about.features(source), theta, value)
        mean, gradient = torch.zeros_like(value), torch.zeros_like(theta)
        for owner, weight, x, each in _items(about, source, catalogue, theta):
            mean.index_add_(0, owner, weight * each)
            gradient.index_add_(0, owner, (weight * each * (1 - each))[:, None] * x)
        root = torch.full_like(mean, self.answer_deviation)
        if not self._is_graded(about):
            root = (mean * (1 - mean)).clamp_min_(FLOOR).sqrt()
        return gradient / root[:, None], (value - mean + vecdot(gradient, theta)) / root

    def means(self, about: About, source: Features, catalogue: Catalogue, theta: Tensor) -> Tensor:
        """[Q] m."""
        if self._at_the_mean(about):
            return torch.sigmoid(vecdot(about.features(source), theta))
        mean = theta.new_zeros(len(about))
        for owner, weight, _, each in _items(about, source, catalogue, theta):
            mean.index_add_(0, owner, weight * each)
        return mean

    def _is_graded(self, about: About) -> bool:
        """Whether a value is no click: of answers about key-terms, if they have a deviation."""
        return self.answer_deviation > 0 and isinstance(about, Terms)

    def _at_the_mean(self, about: About) -> bool:
        """Whether m is mu of one number: of an arm, of a comparison, or of the mean of the arms."""
        return self.answer == "at the mean" or isinstance(about, Arms | Comparison)


def _items(
    about: About, source: Features, catalogue: Catalogue, theta: Tensor
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Which question [e], weight [e], x [e, D] and mu [e] of the arms of all questions, in runs of them."""
    edges = about.edges(catalogue)
    size = rows_per_block(theta.shape[1])
    for owner, arm, weight in zip(*(part.split(size) for part in edges), strict=True):
        x = source.arms(arm)
        yield owner, weight, x, torch.sigmoid(vecdot(x, theta[owner]))
