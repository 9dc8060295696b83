"""The paper's policies on hidden features: hConUCB, its variants, and hArm-Con."""

from __future__ import annotations

from typing import Any

from conbandit_torch.bandits.hlinucb import HLinUCB
from conbandit_torch.conversation.mixin import ArmConversationMixin, ConversationMixin
from conbandit_torch.conversation.selection import (
    LargestConfidenceReduction,
    MaxRelatedConfidence,
    RandomTerm,
)
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.models.confidence import Alpha


class HConUCB(ConversationMixin, HLinUCB):
    """hLinUCB guided by a conversation about key-terms.

    Rule, with phi = (x, v), phi~_k = sum_a p_{a,k} phi_a, both from the current v:
        after an answer: theta~ (Eq. 6), theta (Eq. 6), then v of the key-term's arms;
        after a reward: theta (Eq. 6), then v of the arm;
        show argmax_a: Eq. 7 on phi, plus hidden_alpha |theta^v|_{C_a^-1}; ask argmax_k: Eq. 8 on phi~.
    Symbols: as `ConUCB` and `HLinUCB`.
    Differs: [Zhang20] gives the order of the steps, but no formula for v from both kinds of feedback; the
    one in `HLinUCB` is our derivation, and so is the refit.

    Args:
        catalogue: arms, with their observed features, and key-terms.
        num_users: U.
        alpha: factor of the arm level's width.
        rest: `mix` (0.5), `term_ridge` (1.0), `term_alpha` (0.25), `schedule`, `select`, `estimator`, as in
            `ConversationMixin`; `hidden_dim`, `hidden_alpha`, `hidden_ridge`, `init_scale`, `refit_every`,
            `refit_sweeps` and `seed`, as in `HLinUCB`.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        alpha: Alpha = 0.25,
        **rest: Any,
    ) -> None:
        super().__init__(catalogue, num_users, alpha=alpha, **rest)


class HVarRS(HConUCB):
    """hConUCB that asks about a random key-term (hVar-RS).

    Rule: as `HConUCB`, with `RandomTerm` in place of Eq. 8.
    Symbols: as `HConUCB`.
    Differs: as `HConUCB`.
    """

    default_select = RandomTerm


class HVarMRC(HConUCB):
    """hConUCB that asks about the key-term with the largest related confidence (hVar-MRC).

    Rule: as `HConUCB`, with `MaxRelatedConfidence` in place of Eq. 8.
    Symbols: as `HConUCB`.
    Differs: as `HConUCB`.
    """

    default_select = MaxRelatedConfidence


class HVarLCR(HConUCB):
    """hConUCB that asks about the key-term with the largest confidence reduction (hVar-LCR).

    Rule: as `HConUCB`, with `LargestConfidenceReduction` in place of Eq. 8.
    Symbols: as `HConUCB`.
    Differs: as `HConUCB`; the interval is its key-term part, as in `VarLCR`.
    """

    default_select = LargestConfidenceReduction


class HArmCon(ArmConversationMixin, HLinUCB):
    """hLinUCB that may ask about extra arms instead of key-terms (hArm-Con).

    Rule: as `HLinUCB`, asking as `ArmCon` does; an answer updates theta and v like a reward.
    Symbols: as `HLinUCB`.
    Differs: nothing known.
    """
