"""The paper's policies on LinUCB: ConUCB, its variants, and Arm-Con."""

from __future__ import annotations

from typing import Any

from conbandit_torch.bandits.linucb import LinUCB
from conbandit_torch.conversation.mixin import ArmConversationMixin, ConversationMixin
from conbandit_torch.conversation.selection import (
    LargestConfidenceReduction,
    MaxRelatedConfidence,
    RandomTerm,
)
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.models.confidence import Alpha


class ConUCB(ConversationMixin, LinUCB):
    """LinUCB guided by a conversation about key-terms.

    Rule:
        b~ = sum r~ x~,  M~ = lam~ I + sum x~ x~^T,  theta~ = M~^-1 b~   (Eq. 6)
        b = lam sum r x,  M = (1-lam) I + lam sum x x^T,  theta = M^-1 (b + (1-lam) theta~)   (Eq. 6)
        show argmax_a x^T theta + lam alpha |x|_{M^-1} + (1-lam) alpha~ |M^-1 x|_{M~^-1}   (Eq. 7)
        ask argmax_k |X M^-1 M~^-1 x~_k|^2 / (1 + x~_k^T M~^-1 x~_k)   (Eq. 8)
    Symbols: lam `mix`, lam~ `term_ridge`, alpha_t `alpha`, alpha~_t `term_alpha`, b(t) `schedule`.
    Differs: alpha and alpha~ are constants by default, as in the released code; `Lemma1` and `Lemma3`
    give the paper's.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        alpha: factor of the arm level's width, a number or `Lemma1`.
        conversation: `mix` (0.5), `term_ridge` (1.0), `term_alpha` (0.25, a number or `Lemma3`), `schedule`,
            `select`, `estimator` and `seed`, as in `ConversationMixin`.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        alpha: Alpha = 0.25,
        **conversation: Any,
    ) -> None:
        super().__init__(catalogue, num_users, alpha=alpha, **conversation)


class VarRS(ConUCB):
    """ConUCB that asks about a random key-term (Var-RS).

    Rule: as `ConUCB`, with `RandomTerm` in place of Eq. 8.
    Symbols: as `ConUCB`.
    Differs: released code never asks the last key-term; this asks all.
    """

    default_select = RandomTerm


class VarMRC(ConUCB):
    """ConUCB that asks about the key-term with the largest related confidence (Var-MRC).

    Rule: as `ConUCB`, with `MaxRelatedConfidence` in place of Eq. 8.
    Symbols: as `ConUCB`.
    Differs: nothing known.
    """

    default_select = MaxRelatedConfidence


class VarLCR(ConUCB):
    """ConUCB that asks about the key-term with the largest confidence reduction (Var-LCR).

    Rule: as `ConUCB`, with `LargestConfidenceReduction` in place of Eq. 8.
    Symbols: as `ConUCB`.
    Differs: the interval is its key-term part, as in the released code.
    """

    default_select = LargestConfidenceReduction


class ArmCon(ArmConversationMixin, LinUCB):
    """LinUCB that may ask about extra arms instead of key-terms (Arm-Con, Christakopoulou et al. 2016).

    Rule: as `LinUCB`; in round t it first asks `floor(b(t)) - floor(b(t-1))` times about the arm of A_t
    that it would show, and learns the answer like a reward.
    Symbols: b(t) `schedule`.
    Differs: nothing known.
    """
