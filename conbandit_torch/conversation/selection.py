"""What to ask: rules that select a key-term.

All rules see the estimator only as a pair (P, G): `P` [B, A, D] holds a vector for every candidate,
`G` is the regression that an answer would enter, and `|p_a|_{G^-1}` is the part of candidate a's
confidence interval that answers can shrink. Two levels have `p_a = M^-1 x_a, G = M~`; one level has
`p_a = x_a, G = M`. So one formula serves both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from conbandit_torch.core.algebra import quadratic, sqrt_
from conbandit_torch.core.catalogue import Edges
from conbandit_torch.core.checks import highest
from conbandit_torch.core.context import Context

if TYPE_CHECKING:
    from conbandit_torch.conversation.mixin import ConversationMixin


class Selection(ABC):
    """Scores every key-term for every row; the highest is asked. To write one, implement `scores`."""

    @abstractmethod
    def scores(self, policy: ConversationMixin, context: Context) -> Tensor:
        """[B, K]: how much each key-term should be asked of each row of `context`."""

    def __call__(self, policy: ConversationMixin, context: Context) -> Tensor:
        """[B] the key-term to ask each row."""
        dim = policy.arm_model.dim
        width = max(context.arms.shape[1] * dim, dim * dim, policy.catalogue.num_terms)
        source = f"{type(self).__name__}.scores"

        def best(block: Context) -> Tensor:
            scores = self.scores(policy, block)
            return highest(scores, (len(block), policy.catalogue.num_terms), source)

        return context.map(best, width)


class OptimalTerm(Selection):
    """The key-term whose answer most reduces the estimation error on the candidates.

    Rule: argmax `|P G^-1 x~_k|^2 / (1 + x~_k^T G^-1 x~_k)`   (Eq. 8, Theorem 2).
    Symbols: two levels have `P = X M^-1`, `G = M~`.
    Differs: nothing known.
    """

    def scores(self, policy: ConversationMixin, context: Context) -> Tensor:
        """[B, K] the value of Eq. 8."""
        terms = policy.checked_term_features()  # [K, D]
        arms, model = policy.lookahead(context)  # P [B, A, D]
        inverse = model.inverse[context.who]  # [B, D, D]
        half = torch.bmm(arms, inverse)  # [B, A, D] P G^-1
        reduction = torch.bmm(half.transpose(1, 2), half)  # [B, D, D] G^-1 P^T P G^-1
        gain, spread = quadratic(torch.cat((reduction, inverse)), terms).chunk(2)
        return gain / (1 + spread)  # Eq. 8


class RandomTerm(Selection):
    """Any key-term with equal probability (Var-RS).

    Rule: uniform over all K key-terms.
    Symbols: none.
    Differs: released code draws `randint(0, K - 1)`, which never asks the last key-term; this asks all.
    """

    def scores(self, policy: ConversationMixin, context: Context) -> Tensor:
        """[B, K] 1 for the key-term drawn, 0 for all others."""
        size = policy.catalogue.num_terms
        # The counter is the user's question, not the round: a round may have several questions.
        asked = policy.asked[context.who]
        return one_hot(policy.stream("term").integers(context.users, asked, 1, size), size)


class MaxRelatedConfidence(Selection):
    """The key-term whose candidates are least certain (Var-MRC).

    Rule: argmax `sum_{a in A_t} w_{a,k} / sum_{a' in A_t} w_{a',k} * |p_a|_{G^-1}`; 0 for key-terms of
    no candidate.
    Symbols: `|p_a|_{G^-1}` is `|M^-1 x_a|_{M~^-1}` with two levels.
    Differs: the paper's factor alpha~ is the same for all key-terms and left out.
    """

    def scores(self, policy: ConversationMixin, context: Context) -> Tensor:
        """[B, K] average interval of the key-term's candidates."""
        vectors, model = policy.lookahead(context)
        radius = model.norm(context.who, vectors)  # [B, A]
        edges = policy.catalogue.terms_of(context.arms.reshape(-1))
        return _average(context, policy, edges, radius.reshape(-1)[edges.owner])


class LargestConfidenceReduction(Selection):
    """The key-term that most shortens its own candidates' intervals (Var-LCR).

    Rule: argmax `sum_{a in A_t} w_{a,k} / sum_{a' in A_t} w_{a',k} * (C_a - C_a^k)`; 0 for key-terms of
    no candidate. `C_a = |p_a|_{G^-1}`, and `C_a^k` the same after x~_k has entered G.
    Symbols: two levels have `p_a = M^-1 x_a`, `G = M~`.
    Differs: C is the key-term level's part of the interval, as in the released code.
    """

    def scores(self, policy: ConversationMixin, context: Context) -> Tensor:
        """[B, K] average reduction of the intervals of the key-term's candidates."""
        vectors, model = policy.lookahead(context)  # p [B, A, D]
        solved = model.solve(context.who, vectors)  # G^-1 p [B, A, D]
        terms = policy.checked_term_features()  # [K, D]
        edges = policy.catalogue.terms_of(context.arms.reshape(-1))
        rows = edges.owner // context.arms.shape[1]
        before = (vectors * solved).sum(-1).reshape(-1)[edges.owner]  # [E] C_a^2
        overlap = (solved.flatten(0, 1)[edges.owner] * terms[edges.target]).sum(-1)  # p^T G^-1 x~
        spread = quadratic(model.inverse[context.who], terms)[rows, edges.target]  # x~^T G^-1 x~
        after = before - overlap.square() / (1 + spread)  # [E] Sherman-Morrison
        reduction = sqrt_(before) - sqrt_(after)
        return _average(context, policy, edges, reduction)


class MaxConfidenceRadius(Selection):
    """The key-term that is known least (ConLinUCB-MCR, Wang et al. 2023).

    Rule: argmax `|x~_k|_{G^-1}`.
    Symbols: G is M with one level, M~ with two.
    Differs: the paper has one level; two are our extension.
    """

    def scores(self, policy: ConversationMixin, context: Context) -> Tensor:
        """[B, K] the key-terms' radii."""
        return policy.term_radii(context)


class UpperConfidenceTerm(Selection):
    """The key-term that the user may like best (ConLinUCB-UCB, Wang et al. 2023).

    Rule: argmax `x~_k^T theta + alpha |x~_k|_{G^-1}`.
    Symbols: theta and G are those of the level that answers enter.
    Differs: the paper has one level; two are our extension.

    Args:
        alpha: factor of the radius.
    """

    def __init__(self, alpha: float = 0.25) -> None:
        if not 0 <= alpha < float("inf"):
            raise ValueError(f"alpha must be a number of at least 0, got {alpha}")
        self.alpha = alpha

    def scores(self, policy: ConversationMixin, context: Context) -> Tensor:
        """[B, K] the key-terms' optimistic values."""
        mean = policy.answer_theta(context.who) @ policy.checked_term_features().T
        return mean + self.alpha * policy.term_radii(context)


def one_hot(terms: Tensor, size: int) -> Tensor:
    """[B, K] 1 for the key-term drawn, `terms` [B, 1], and 0 for all others."""
    return torch.zeros(len(terms), size, device=terms.device).scatter_(1, terms, 1.0)


def _average(context: Context, policy: ConversationMixin, edges: Edges, values: Tensor) -> Tensor:
    """[B, K] weighted mean of `values` [E] over each key-term's candidates; 0 where it has none."""
    size = policy.catalogue.num_terms
    cell = edges.owner // context.arms.shape[1] * size + edges.target  # [E] position in the flat [B, K]
    total = edges.weight.new_zeros(len(context) * size)
    weight = total.clone().index_add_(0, cell, edges.weight)
    total.index_add_(0, cell, edges.weight * values)
    return (total / weight.clamp_min(torch.finfo(weight.dtype).tiny)).view(-1, size)
