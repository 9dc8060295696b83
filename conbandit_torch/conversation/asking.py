"""What schedules and rules see of a policy: a small record, not the policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from conbandit_torch.core.algebra import quadratic, sqrt_
from conbandit_torch.core.blocks import EVERY_ROW, Index, rows_per_block
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.context import Context
from conbandit_torch.core.randomness import Stream
from conbandit_torch.models import levels as chain
from conbandit_torch.models.levels import Level
from conbandit_torch.models.representation import Representation
from conbandit_torch.models.ridge import RidgeRegression


@dataclass(frozen=True)
class Asking:
    """Who may be asked, and what is known of the key-terms.

    Attributes:
        context: who is here, B rows, at which of their rounds, with which candidates.
        catalogue: arms and key-terms.
        asked: [B] questions that each of the users has been asked so far, since the policy began with them.
        rounds: [B] which of their rounds this is since then, counted from 0.
        stream: reproducible random numbers of the policy, by purpose.
        levels: the regressions that a linear score rests on; empty, if there are none.
        answer_level: which of them answers enter.
        representation: what they see of arms and key-terms.
        thetas: gives the estimates [B, D] of every level for the users `who`.
        models_of: gives the regressions that the users `who` have.
    """

    context: Context
    catalogue: Catalogue
    asked: Tensor
    rounds: Tensor
    stream: Callable[[str], Stream]
    levels: Sequence[Level]
    answer_level: int
    representation: Representation | None
    thetas: Callable[[Index], list[Tensor]]
    models_of: Callable[[Index], Index]
    _terms: list[Tensor] = field(default_factory=list, repr=False)  # known once asked for, in all blocks

    def __len__(self) -> int:
        return len(self.context)

    @property
    def model(self) -> RidgeRegression:
        """The regression G that answers enter."""
        if not self.levels:
            raise NotImplementedError("this policy has no radii of key-terms: a LinearBandit has")
        return self.levels[self.answer_level].model

    @property
    def models(self) -> Index:
        """Which of the regressions the rows have."""
        return self.models_of(self.context.who)

    def theta(self) -> Tensor:
        """[B, D] the preferences by which answers are predicted."""
        return self.thetas(self.context.who)[self.answer_level]

    def terms(self) -> Tensor:
        """[K, D] features of all key-terms."""
        if not self._terms:
            self._terms.append(self._seen().terms())
        return self._terms[0]

    def candidates(self) -> Tensor:
        """[B, A, D] x: what the regressions see of the candidates."""
        return self._seen().of(self.context)

    def reach(self) -> Tensor:
        """[B, A, D] P: row p_a is how the score of candidate a moves with the theta that answers change.

        `|p_a|_{G^-1}` is the part of its uncertainty that answers can shrink. Two levels have
        `p_a = (1-lam) M^-1 x_a` and G = M~; one level has `p_a = x_a` and G = M.
        """
        return chain.reach(self.levels, self.models, self.candidates(), self.answer_level)

    def radii(self) -> Tensor:
        """[B, K] `|x~_k|_{G^-1}`: how little is known of each key-term."""
        return sqrt_(quadratic(self.model.inverse[self.models], self.terms()))

    def map(self, function: Callable[[Asking], Tensor]) -> Tensor:
        """`function` of runs of rows, put together again: [B, ...]; so that work arrays stay bounded."""
        dim = self.model.dim
        rows = rows_per_block(max(self.context.arms.shape[1] * dim, dim * dim, self.catalogue.num_terms))
        if rows >= len(self):
            return function(self)
        starts = range(0, len(self), rows)
        return torch.cat([function(self.take(slice(start, start + rows))) for start in starts])

    def take(self, rows: Index) -> Asking:
        """The record of some of the rows."""
        if rows is EVERY_ROW:
            return self
        return replace(
            self, context=self.context.take(rows), asked=self.asked[rows], rounds=self.rounds[rows]
        )

    def _seen(self) -> Representation:
        _ = self.model  # or else an error that says why not
        assert self.representation is not None  # where there are levels, for the type checker
        return self.representation
