"""CoFineUCB with a conversation."""

from __future__ import annotations

from torch import Tensor

from conbandit_torch.bandits.cofineucb import CoFineUCB
from conbandit_torch.conversation.schedules import LogSchedule, Schedule
from conbandit_torch.conversation.term_rules import OptimalTerm, Selection
from conbandit_torch.conversation.two_levels import ConversationMixin
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.models.confidence import Alpha


class ConCoFineUCB(ConversationMixin, CoFineUCB):
    """CoFineUCB that also asks: the coarse level guides the key-terms', which guides the arms'.

    Rule: as `ConUCB`, with a third level, whose estimate theta~ is shrunk towards:
        theta~ = M~^-1 (b~ + lam~ P theta_c),  theta = M^-1 (b + (1-lam) theta~);
        Eq. 7, and coarse_alpha lam~ (1-lam) |P^T M~^-1 M^-1 x|_{M_c^-1}.
    Symbols: as `ConUCB` and `CoFineUCB`.
    Differs: no paper has it. Answers do not enter theta_c. Up to version 0.1 the coarse width was
    (1-lam) |P^T M^-1 x|_{M_c^-1}, which ignored that answers shrink the share of theta_c; it is the
    derivative of the score now.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        coarse_dim: m; None: that of `projection`, or 5 (D, if there are fewer features).
        projection: [D, m] P; None: the m directions along which the arms' features are longest.
        mix: lam, how much the arms' own rewards count against the key-terms' guidance, in (0, 1).
        term_ridge: lam~, weight of the key-term level's penalty.
        alpha: factor of the arm level's width, a number or a theory value (`Lemma1`).
        term_alpha: factor of the key-term level's width, a number or a theory value (`Lemma3`).
        coarse_alpha: factor of the coarse width, a number or a theory value.
        coarse_ridge: weight of the penalty `|theta_c|^2`.
        schedule: when to ask.
        select: what to ask.
        seed: seed of the policy's own random draws.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        coarse_dim: int | None = None,
        projection: Tensor | None = None,
        mix: float = 0.5,
        term_ridge: float = 1.0,
        alpha: Alpha = 0.25,
        term_alpha: Alpha = 0.25,
        coarse_alpha: Alpha = 0.25,
        coarse_ridge: float = 1.0,
        schedule: Schedule = LogSchedule(5),
        select: Selection = OptimalTerm(),
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            coarse_dim=coarse_dim,
            projection=projection,
            mix=mix,
            term_ridge=term_ridge,
            alpha=alpha,
            term_alpha=term_alpha,
            coarse_alpha=coarse_alpha,
            coarse_ridge=coarse_ridge,
            schedule=schedule,
            select=select,
            seed=seed,
        )
