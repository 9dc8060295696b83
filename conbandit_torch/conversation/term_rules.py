"""What to ask: rules that select a key-term.

All rules see the policy only as a record (`Asking`): `reach` P [B, A, D] holds a vector for every candidate,
`model` G is the regression that an answer would enter, and `|p_a|_{G^-1}` is the part of candidate a's
confidence interval that answers can shrink. So one formula serves one level and two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from conbandit_torch.conversation.asking import Asking
from conbandit_torch.core.algebra import quadratic, sqrt_
from conbandit_torch.core.catalogue import Edges
from conbandit_torch.core.checks import highest
from conbandit_torch.kernels import all_threads


class Selection(ABC):
    """Scores every key-term for every row; the highest is asked. To write one, implement `scores`."""

    draws: ClassVar[bool] = True  # whether it draws random numbers

    @abstractmethod
    def scores(self, asking: Asking) -> Tensor:
        """[B, K]: how much each key-term should be asked of each row."""

    def __call__(self, asking: Asking) -> Tensor:
        """[B] the key-term to ask each row."""
        source = f"{type(self).__name__}.scores"

        def best(block: Asking) -> Tensor:
            return highest(self.scores(block), (len(block), block.catalogue.num_terms), source)

        with all_threads():  # scores of all key-terms are large products
            return asking.map(best)


@dataclass(frozen=True)
class OptimalTerm(Selection):
    """The key-term whose answer most reduces the estimation error on the candidates.

    Rule: argmax `|P G^-1 x~_k|^2 / (1 + x~_k^T G^-1 x~_k)`   (Eq. 8, Theorem 2).
    Symbols: two levels have `P = X M^-1`, `G = M~`.
    Differs: nothing known.
    """

    draws = False

    def scores(self, asking: Asking) -> Tensor:
        """[B, K] the value of Eq. 8."""
        reduction, inverse = eq8_matrices(asking)
        gain, spread = quadratic(torch.cat((reduction, inverse)), asking.terms()).chunk(2)
        return gain / (1 + spread)  # Eq. 8


@dataclass(frozen=True)
class RandomTerm(Selection):
    """Any key-term with equal probability (Var-RS).

    Rule: uniform over all K key-terms.
    Symbols: none.
    Differs: released code draws `randint(0, K - 1)`, which never asks the last key-term; this asks all.
    """

    def scores(self, asking: Asking) -> Tensor:
        """[B, K] 1 for the key-term drawn, 0 for all others."""
        size = asking.catalogue.num_terms
        # The counter is the user's question, not the round: a round may have several questions.
        return one_hot(asking.stream("term").integers(asking.context.users, asking.asked, 1, size), size)


@dataclass(frozen=True)
class MaxRelatedConfidence(Selection):
    """The key-term whose candidates are least certain (Var-MRC).

    Rule: argmax `sum_{a in A_t} w_{a,k} / sum_{a' in A_t} w_{a',k} * |p_a|_{G^-1}`; 0 for key-terms of
    no candidate.
    Symbols: `|p_a|_{G^-1}` is `|M^-1 x_a|_{M~^-1}` with two levels.
    Differs: the paper's factor alpha~ is the same for all key-terms and left out.
    """

    draws = False

    def scores(self, asking: Asking) -> Tensor:
        """[B, K] average interval of the key-term's candidates."""
        radius = asking.model.norm(asking.models, asking.reach())  # [B, A]
        edges = asking.catalogue.terms_of(asking.context.arms.reshape(-1))
        return _average(asking, edges, radius.reshape(-1)[edges.owner])


@dataclass(frozen=True)
class LargestConfidenceReduction(Selection):
    """The key-term that most shortens its own candidates' intervals (Var-LCR).

    Rule: argmax `sum_{a in A_t} w_{a,k} / sum_{a' in A_t} w_{a',k} * (C_a - C_a^k)`; 0 for key-terms of
    no candidate. `C_a = |p_a|_{G^-1}`, and `C_a^k` the same after x~_k has entered G.
    Symbols: two levels have `p_a = M^-1 x_a`, `G = M~`.
    Differs: C is the key-term level's part of the interval, as in the released code.
    """

    draws = False

    def scores(self, asking: Asking) -> Tensor:
        """[B, K] average reduction of the intervals of the key-term's candidates."""
        vectors, terms = asking.reach(), asking.terms()  # p [B, A, D], x~ [K, D]
        solved = asking.model.solve(asking.models, vectors)  # G^-1 p [B, A, D]
        edges = asking.catalogue.terms_of(asking.context.arms.reshape(-1))
        rows = edges.owner // asking.context.arms.shape[1]
        before = (vectors * solved).sum(-1).reshape(-1)[edges.owner]  # [E] C_a^2
        overlap = (solved.flatten(0, 1)[edges.owner] * terms[edges.target]).sum(-1)  # p^T G^-1 x~
        spread = quadratic(asking.model.inverse[asking.models], terms)[rows, edges.target]  # x~^T G^-1 x~
        after = before - overlap.square() / (1 + spread)  # [E] Sherman-Morrison
        reduction = sqrt_(before) - sqrt_(after)
        return _average(asking, edges, reduction)


@dataclass(frozen=True)
class MaxConfidenceRadius(Selection):
    """The key-term that is known least (ConLinUCB-MCR, Wang et al. 2023).

    Rule: argmax `|x~_k|_{G^-1}`.
    Symbols: G is M with one level, M~ with two.
    Differs: the paper has one level; two are our extension.
    """

    draws = False

    def scores(self, asking: Asking) -> Tensor:
        """[B, K] the key-terms' radii."""
        return asking.radii()


@dataclass(frozen=True)
class UpperConfidenceTerm(Selection):
    """The key-term that the user may like best (ConLinUCB-UCB, Wang et al. 2023).

    Rule: argmax `x~_k^T theta + alpha |x~_k|_{G^-1}`.
    Symbols: theta and G are those of the level that answers enter.
    Differs: the paper has one level; two are our extension.

    Args:
        alpha: factor of the radius.
    """

    draws = False

    alpha: float = 0.25

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < float("inf"):
            raise ValueError(f"alpha must be a number of at least 0, got {self.alpha}")

    def scores(self, asking: Asking) -> Tensor:
        """[B, K] the key-terms' optimistic values."""
        return asking.theta() @ asking.terms().T + self.alpha * asking.radii()


def eq8_matrices(asking: Asking) -> tuple[Tensor, Tensor]:
    """[B, D, D] each: `G^-1 P^T P G^-1` and `G^-1`, the quadratic forms of Eq. 8."""
    inverse = asking.model.inverse[asking.models]
    half = torch.bmm(asking.reach(), inverse)  # [B, A, D] P G^-1
    return torch.bmm(half.transpose(1, 2), half), inverse


def one_hot(terms: Tensor, size: int) -> Tensor:
    """[B, K] 1 for the key-term drawn, `terms` [B, 1], and 0 for all others."""
    return torch.zeros(len(terms), size, device=terms.device).scatter_(1, terms, 1.0)


def _average(asking: Asking, edges: Edges, values: Tensor) -> Tensor:
    """[B, K] weighted mean of `values` [E] over each key-term's candidates; 0 where it has none."""
    size = asking.catalogue.num_terms
    # [E] position in the flat [B, K]
    cell = edges.owner // asking.context.arms.shape[1] * size + edges.target
    total = edges.weight.new_zeros(len(asking) * size)
    weight = total.clone().index_add_(0, cell, edges.weight)
    total.index_add_(0, cell, edges.weight * values)
    return (total / weight.clamp_min(torch.finfo(weight.dtype).tiny)).view(-1, size)
