"""Phased elimination with questions, in the manner of FedConPE, for every user alone."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from conbandit_torch.conversation.clime import EigenvalueTest, WeakestDirection
from conbandit_torch.conversation.conlinucb import ConLinUCB
from conbandit_torch.conversation.schedules import Schedule
from conbandit_torch.conversation.term_rules import Selection
from conbandit_torch.core.algebra import dot
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.context import Context
from conbandit_torch.models import levels as chain
from conbandit_torch.models.confidence import Alpha


class ConPE(ConLinUCB):
    """Eliminates candidates phase by phase, and asks where a phase has explored too little (after FedConPE).

    Rule: M, b and theta as in `ConLinUCB`; with w_a = alpha |x_a|_{M^-1} and phase l = 1 + floor(log2 t),
        keep the candidates with x_a^T theta + w_a >= max_b (x_b^T theta - w_b);
        if some of these have w_a > epsilon 2^(-l/2), show the one with the largest w_a, else the one with the
        largest x_a^T theta;
        ask when a phase begins, t = 1, 2, 4, ..., as `EigenvalueTest` and `WeakestDirection` say.
    Symbols: t counts the user's own rounds.
    Differs: in the manner of FedConPE (2024), of which all that is said here is from memory and could not be
    checked. There, users who share preferences are clients of a server; here every user is alone. There, arms
    are fixed, a design tells how often each is shown in a phase, and an eliminated arm never comes back; here
    candidates change from round to round, so they are eliminated for a round, and the widest stands for the
    design. There, a phase forgets the one before; here all is kept.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        ridge: weight of the penalty `|theta|^2`.
        alpha: factor of the width, a number or a theory value (`Lemma1`).
        epsilon: the width that the first phase allows; it shrinks by sqrt(2) from phase to phase.
        schedule: when to ask.
        select: what to ask.
        seed: seed of the policy's own random draws.
    """

    not_arguments: ClassVar[dict[str, str]] = {
        "representation": "widths that shrink from phase to phase are of features that stay as they are",
        "link": "a candidate is eliminated by its estimate and its width, for linear means",
    }

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        ridge: float = 1.0,
        alpha: Alpha = 0.5,
        epsilon: float = 1.0,
        schedule: Schedule = EigenvalueTest(),
        select: Selection = WeakestDirection(),
        seed: int = 0,
    ) -> None:
        if not 0 < epsilon < math.inf:
            raise ValueError(f"epsilon must be above 0 and finite, got {epsilon}")
        super().__init__(
            catalogue, num_users, ridge=ridge, alpha=alpha, schedule=schedule, select=select, seed=seed
        )
        self.epsilon = epsilon

    def scores(self, context: Context) -> Tensor:
        """[B, A] the widths, or the estimates; of eliminated candidates less so much that they are last."""
        x = self.representation.of(context)  # [B, A, D]
        mean = dot(x, self.preference(context))
        width = chain.width(self.levels(), self.models_of(context.who), x)
        width = torch.zeros_like(mean) if width is None else width
        kept = mean + width >= (mean - width).amax(1, keepdim=True)
        phase = torch.frexp((context.rounds + 1).double()).exponent  # [B] 1 + floor(log2 t)
        allowed = self.epsilon * torch.exp2(-0.5 * phase.to(mean))[:, None]
        exploring = (kept & (width > allowed)).any(1, keepdim=True)
        value = torch.where(exploring, width, mean)
        span = value.amax(1, keepdim=True) - value.amin(1, keepdim=True)
        return torch.where(kept, value, value - span - 1)
