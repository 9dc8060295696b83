"""Which two key-terms to compare: rules that select a pair."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from conbandit_torch.conversation.asking import Asking
from conbandit_torch.conversation.term_rules import eq8_matrices
from conbandit_torch.core.algebra import quadratic
from conbandit_torch.core.blocks import rows_per_block
from conbandit_torch.kernels import all_threads


class Askable(NamedTuple):
    """The key-terms that may be asked, row by row, in ascending order of their ids.

    Attributes:
        ids: [B, R] key-terms; what fills up short rows may hold any id.
        features: [B, R, D] x~ of each; [1, K, D] where every row has all key-terms.
        open: [B, R] whether a place holds a key-term.
    """

    ids: Tensor
    features: Tensor
    open: Tensor


class PairSelection(ABC):
    """Picks two key-terms per row, to be compared. To write one, implement `pairs`."""

    related: bool

    @abstractmethod
    def pairs(self, asking: Asking, askable: Askable) -> Tensor:
        """[B, 2] places in `askable` of the first and of the second key-term."""

    def __call__(self, asking: Asking) -> Tensor:
        """[B, 2] the key-terms to compare."""
        found = []
        with all_threads():
            for rows in self._blocks(asking):
                block = asking.take(rows)
                askable = askable_terms(block, related=self.related)
                found.append(askable.ids.gather(1, self.pairs(block, askable)))
        return torch.cat(found)

    def _blocks(self, asking: Asking) -> list[slice]:
        """Runs of rows, so that a matrix of all pairs stays bounded."""
        arms, most = asking.context.arms, asking.catalogue.num_terms
        if self.related and len(asking):
            edges = asking.catalogue.terms_of(arms.reshape(-1))
            most = min(most, int(torch.bincount(edges.owner // arms.shape[1], minlength=1).max()))
        rows = rows_per_block(most * max(most, asking.model.dim))
        return [slice(start, start + rows) for start in range(0, max(1, len(asking)), rows)]


@dataclass(frozen=True)
class BestTwoTerms(PairSelection):
    """The best key-term, and the best one after it.

    Rule: with `e(z) = |P G^-1 z|^2 / (1 + z^T G^-1 z)` (Eq. 8 of a vector), f = argmax e(x~_k), then
    `G + x~_f x~_f^T` in place of G, and s = argmax e(x~_k) over the others.
    Symbols: as in `OptimalTerm`.
    Differs: released code (RelativeConUCB, SIGIR 2021, "doublebestrelated2") may pick s = f, and so compare a
    key-term with itself; `distinct=False` does the same. `related=False` asks about any key-term.

    Args:
        related: whether only key-terms of the round's candidates are compared.
        distinct: whether the second must be another key-term than the first.
    """

    related: bool = True
    distinct: bool = True

    def pairs(self, asking: Asking, askable: Askable) -> Tensor:
        """[B, 2] places of the first and of the second."""
        reduction, inverse = eq8_matrices(asking)
        first = _best(_values(reduction, inverse, askable), askable.open)  # [B, 1]
        x = _take(askable.features, first)  # [B, D]
        direction = torch.bmm(inverse, x.unsqueeze(2)).squeeze(2)  # G^-1 x~_f
        spread = (x * direction).sum(1) + 1  # [B]
        # (G + x x^T)^-1 = G^-1 - d d^T / spread, and P (G + x x^T)^-1 = P G^-1 (I - x d^T / spread)
        keep = torch.eye(x.shape[1]).to(x) - x[:, :, None] * direction[:, None] / spread[:, None, None]
        after = inverse - direction[:, :, None] * direction[:, None] / spread[:, None, None]
        shrunk = keep.transpose(1, 2) @ reduction @ keep
        may = askable.open.scatter(1, first, False) if self.distinct else askable.open
        may = torch.where(may.any(1, keepdim=True), may, askable.open)  # a single key-term meets itself
        return torch.cat((first, _best(_values(shrunk, after, askable), may)), dim=1)


@dataclass(frozen=True)
class BestDifference(PairSelection):
    """The two key-terms whose difference says most.

    Rule: argmax over all pairs of `e(x~_f - x~_s)`, e being Eq. 8 of a vector (see `BestTwoTerms`). Numerator
    and denominator are quadratic forms, so their values for all pairs follow from the products `X~ R X~^T`
    and `X~ G^-1 X~^T`, and no difference is ever built.
    Symbols: as in `OptimalTerm`.
    Differs: nothing known ("bestdiffrelated2" of RelativeConUCB's released code).

    Args:
        related: whether only key-terms of the round's candidates are compared.
    """

    related: bool = True

    def pairs(self, asking: Asking, askable: Askable) -> Tensor:
        """[B, 2] places, the lower key-term first."""
        reduction, inverse = eq8_matrices(asking)
        x, number = askable.features, askable.ids.shape[1]
        gain, spread = (_of_differences(torch.matmul(x @ form, x.mT)) for form in (reduction, inverse))
        may = askable.open[:, :, None] & askable.open[:, None, :]
        may &= torch.ones(number, number, dtype=torch.bool, device=may.device).triu(1)
        alone = ~may.flatten(1).any(1)  # a single key-term meets itself
        scores = (gain / (1 + spread)).masked_fill(~may, -torch.inf).flatten(1)
        best = scores.argmax(1)
        first = askable.open.to(torch.uint8).argmax(1)
        best = torch.where(alone, first * (number + 1), best)
        return torch.stack((best // number, best % number), dim=1)


@dataclass(frozen=True)
class BestThenDifference(PairSelection):
    """The best key-term, and the one whose difference from it says most.

    Rule: f = argmax e(x~_k), s = argmax e(x~_k - x~_f), e being Eq. 8 of a vector (see `BestTwoTerms`).
    Symbols: as in `OptimalTerm`.
    Differs: nothing known ("bestthendiffrelated2" of RelativeConUCB's released code).

    Args:
        related: whether only key-terms of the round's candidates are compared.
    """

    related: bool = True

    def pairs(self, asking: Asking, askable: Askable) -> Tensor:
        """[B, 2] places of the first and of the second."""
        reduction, inverse = eq8_matrices(asking)
        first = _best(_values(reduction, inverse, askable), askable.open)  # [B, 1]
        from_first = askable.features - _take(askable.features, first)[:, None]  # [B, R, D]
        own = Askable(askable.ids, from_first, askable.open)
        return torch.cat((first, _best(_values(reduction, inverse, own), askable.open)), dim=1)


def askable_terms(asking: Asking, *, related: bool) -> Askable:
    """All key-terms, or those of the round's candidates, of every row."""
    terms, size = asking.terms(), asking.catalogue.num_terms
    every = torch.arange(size, device=terms.device).expand(len(asking), -1)
    if not related:
        return Askable(every, terms[None], torch.ones_like(every, dtype=torch.bool))
    arms = asking.context.arms
    edges = asking.catalogue.terms_of(arms.reshape(-1))
    has = torch.zeros(len(asking), size, dtype=torch.bool, device=arms.device)
    has[edges.owner // arms.shape[1], edges.target] = True
    has[~has.any(1)] = True  # candidates without key-terms: any may be asked
    most = int(has.sum(1).max()) if len(has) else 0
    ids = torch.where(has, every, size).sort(1).values[:, :most]
    held = ids < size
    ids = ids.clamp_max(size - 1)
    return Askable(ids, terms[ids], held)


def _values(reduction: Tensor, inverse: Tensor, askable: Askable) -> Tensor:
    """[B, R] Eq. 8 of every key-term."""
    x = askable.features
    if len(x) == 1 and len(inverse) != 1:
        gain, spread = (quadratic(form, x[0]) for form in (reduction, inverse))
    else:
        gain, spread = ((torch.matmul(x, form) * x).sum(2) for form in (reduction, inverse))
    return gain / (1 + spread)  # Eq. 8


def _of_differences(products: Tensor) -> Tensor:
    """[B, R, R] `(x - y)^T F (x - y)` of all pairs, from `x^T F y` [B, R, R] with a symmetric F."""
    own = products.diagonal(dim1=1, dim2=2)
    return own[:, :, None] + own[:, None, :] - 2 * products


def _best(values: Tensor, may: Tensor) -> Tensor:
    """[B, 1] the first place of the highest value among those that may be picked."""
    return values.masked_fill(~may, -torch.inf).argmax(1, keepdim=True)


def _take(features: Tensor, place: Tensor) -> Tensor:
    """[B, D] the features at a place [B, 1]."""
    rows = torch.arange(len(place), device=place.device)
    return features.expand(len(place), -1, -1)[rows, place.squeeze(1)]
