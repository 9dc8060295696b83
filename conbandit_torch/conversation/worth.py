"""When to ask: while the expected gain of the answer exceeds the price of the question."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from conbandit_torch.conversation.asking import Asking
from conbandit_torch.conversation.schedules import Schedule, expect_not_negative
from conbandit_torch.core.algebra import quadratic, sqrt_
from conbandit_torch.kernels import all_threads


@dataclass(frozen=True)
class WorthAsking(Schedule):
    """Ask while an answer is expected to save more regret than a question costs.

    Rule: ask while `S m n (sqrt(1 - u_H) - sqrt(1 - u)) > cost`, up to `questions` in all. What is worth
    asking is asked at once, unless `per_round` says otherwise: the earlier an answer, the more rounds it
    helps. What is known changes ever more slowly, so after a user's first rounds the price is looked at only
    when t has grown by about an eighth (whenever `floor(8 log2 t)` changes).

    Derivation. Let u be the share of the candidates' uncertainty that is left. Relative to their mean,
    candidate a has the vector x_a, and p_a is how its score moves with the theta that answers change:

        u = g sum_a |p_a|^2_{G^-1} / sum_a |x_a|^2.

    At first p_a = x_a and G = g I, so u = 1. An answer about k lowers the sum by the value of Eq. 8, that is
    by the share `s = max_k sum_a (p_a^T G^-1 x~_k)^2 / (1 + x~_k^T G^-1 x~_k) / sum_a |p_a|^2_{G^-1}`.

    1. What a round costs. Let the candidates' rewards be normal with standard deviation S, and let the
       estimates be their posterior means, with the squared error u S^2. Then rewards and estimates have the
       correlation sqrt(1 - u). The best of A candidates is worth S m, where m is the expected maximum of A
       standard normal numbers. The one with the highest estimate is worth `sqrt(1 - u) S m`. A round costs
       `r(u) = S m (1 - sqrt(1 - u))`.
    2. What an answer is worth. A reward lowers the uncertainty by the share h, on average over the
       candidates. So an answer is worth `n = s / h` rounds: with it, the user is n rounds ahead on the curve
       of learning. Over the H rounds to come this saves n times the difference between the round now and the
       round then: `n (r(u) - r(u_H))`, `u_H = u / (1 + h H)`.

    Symbols: G `asking.model`, g its ridge, p_a `asking.reach()`, S `spread`.
    Differs: ours. The shares h and s act on the levels of the arms and of the answers; in policies with two
    levels these are not the same, and n is approximate.

    Args:
        cost: the price of a question: how much regret a person would rather bear than answer once.
        questions: the user's patience: the most questions a user is ever asked.
        spread: S, standard deviation of the candidates' expected rewards, before anything is known of a user.
        horizon: how many rounds a user is expected to stay in all.
        discount: how much every later round counts against the one before it, in (0, 1].
        per_round: the most questions per round, on average since the user's first; None: any number.
    """

    cost: float = 1.0
    questions: int = 30
    spread: float = 1.0
    horizon: int = 1000
    discount: float = 1.0
    per_round: float | None = None

    def __post_init__(self) -> None:
        for name in ("cost", "questions", "spread"):
            expect_not_negative(name, getattr(self, name))
        if self.per_round is not None:
            expect_not_negative("per_round", self.per_round)
        if self.horizon < 1:
            raise ValueError(f"horizon must be at least 1, got {self.horizon}")
        if not 0 < self.discount <= 1:
            raise ValueError(f"discount must be in (0, 1], got {self.discount}")

    def total(self, rounds: Tensor) -> Tensor:
        """The most questions that could have been asked by the end of round t."""
        if self.per_round is None:
            return torch.full_like(rounds, self.questions)
        return (self.per_round * rounds).clamp_max(self.questions)

    def due(self, asking: Asking) -> Tensor:
        """[B] whether there is a question to go, and it is worth its price."""
        rounds = asking.context.rounds.double()  # before this one
        grown = (8 * (rounds + 1).log2()).floor() > (8 * rounds.log2()).floor()  # -inf at first
        due = super().due(asking) & grown
        rows = due.nonzero().squeeze(1)
        if len(rows):
            with all_threads():  # gains of all key-terms are large products
                due[rows] = asking.take(rows).map(self.saved) > self.cost
        return due

    def saved(self, asking: Asking) -> Tensor:
        """[B] the regret that the best question's answer is expected to save, over the rounds to come."""
        left, by_answer, by_reward = uncertainty(asking)
        later = left / (1 + by_reward * self.to_come(asking).to(left))  # u_H
        ahead = by_answer / by_reward.clamp_min(torch.finfo(left.dtype).tiny)  # n
        best = self.spread * expected_maximum(asking.context.arms.shape[1])  # S m
        return best * ahead * (sqrt_(1 - later) - sqrt_(1 - left))

    def to_come(self, asking: Asking) -> Tensor:
        """[B] how many rounds are to come, this one included; discounted, what they count."""
        rounds = (self.horizon - asking.context.rounds).clamp_min(0).double()
        if self.discount == 1:
            return rounds
        return (1 - self.discount**rounds) / (1 - self.discount)


class Uncertainty(NamedTuple):
    """What is left to learn about the candidates, [B] each.

    Attributes:
        left: u, the share that is left.
        by_answer: s, the share of this that the best answer takes away.
        by_reward: h, the share of this that a reward takes away.
    """

    left: Tensor
    by_answer: Tensor
    by_reward: Tensor


def uncertainty(asking: Asking) -> Uncertainty:
    """What is left to learn about the candidates of a record."""
    x, reach = asking.candidates(), asking.reach()  # [B, A, D] each
    model, arm = asking.model, asking.levels[0].model
    tiny = torch.finfo(x.dtype).tiny
    own, p = x - x.mean(1, keepdim=True), reach - reach.mean(1, keepdim=True)
    start = own.square().sum((1, 2)).clamp_min(tiny)
    inverse = model.inverse[asking.models]  # [B, D, D]
    half = torch.bmm(p, inverse)
    now = (half * p).sum((1, 2)).clamp_min(tiny)  # sum_a |p_a|^2_{G^-1}
    reduction = torch.bmm(half.mT, half)
    gain, spread = quadratic(torch.cat((reduction, inverse)), asking.terms()).chunk(2)  # [B, K]
    by_answer = (gain / (1 + spread)).amax(1) / now  # Eq. 8
    half = torch.bmm(own, arm.inverse[asking.models])
    rest = (half * own).sum((1, 2)).clamp_min(tiny)
    gain = (torch.bmm(x, torch.bmm(half.mT, half)) * x).sum(2)  # [B, A] Eq. 8, of a reward
    spread = arm.norm(asking.models, x).square()
    by_reward = (arm.weight * gain / (1 + arm.weight * spread)).mean(1) / rest
    return Uncertainty((model.ridge * now / start).clamp_max(1), by_answer, by_reward)


@cache
def expected_maximum(number: int) -> float:
    """Of so many standard normal numbers: the integral of `1 - Phi(x)^number - Phi(-x)^number` from 0 on."""
    x = torch.linspace(0, 12, 2401, dtype=torch.float64)  # far finer than the integrand is curved
    one, other = (torch.special.ndtr(side) ** number for side in (x, -x))
    return float(torch.trapezoid(1 - one - other, x))
