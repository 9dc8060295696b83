"""The paper's policies on LinUCB: ConUCB, its variants, and Arm-Con."""

from __future__ import annotations

from conbandit_torch.bandits.linucb import LinUCB
from conbandit_torch.conversation.mixins import ArmConversationMixin
from conbandit_torch.conversation.schedules import LogSchedule, Schedule
from conbandit_torch.conversation.term_rules import (
    LargestConfidenceReduction,
    MaxRelatedConfidence,
    OptimalTerm,
    RandomTerm,
    Selection,
)
from conbandit_torch.conversation.two_levels import ConversationMixin
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.links import Identity, Link
from conbandit_torch.models.representation import Representation


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
        mix: lam, how much the arms' own rewards count against the key-terms' guidance, in (0, 1).
        term_ridge: lam~, weight of the key-term level's penalty.
        alpha: factor of the arm level's width, a number or a theory value (`Lemma1`).
        term_alpha: factor of the key-term level's width, a number or a theory value (`Lemma3`).
        schedule: when to ask.
        select: what to ask.
        representation: what the model sees of the arms; None: the catalogue's features.
        link: how means follow from scores: `Identity()`, or `Logistic()` for clicks.
        seed: seed of the policy's own random draws.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        mix: float = 0.5,
        term_ridge: float = 1.0,
        alpha: Alpha = 0.25,
        term_alpha: Alpha = 0.25,
        schedule: Schedule = LogSchedule(5),
        select: Selection = OptimalTerm(),
        representation: Representation | None = None,
        link: Link = Identity(),
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            mix=mix,
            term_ridge=term_ridge,
            alpha=alpha,
            term_alpha=term_alpha,
            schedule=schedule,
            select=select,
            representation=representation,
            link=link,
            seed=seed,
        )


class VarRS(ConUCB):
    """ConUCB that asks about a random key-term (Var-RS).

    Rule: as `ConUCB`, with `RandomTerm` in place of Eq. 8.
    Symbols: as `ConUCB`.
    Differs: released code never asks the last key-term; this asks all.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        mix: lam, how much the arms' own rewards count against the key-terms' guidance, in (0, 1).
        term_ridge: lam~, weight of the key-term level's penalty.
        alpha: factor of the arm level's width, a number or a theory value (`Lemma1`).
        term_alpha: factor of the key-term level's width, a number or a theory value (`Lemma3`).
        schedule: when to ask.
        select: what to ask.
        representation: what the model sees of the arms; None: the catalogue's features.
        link: how means follow from scores: `Identity()`, or `Logistic()` for clicks.
        seed: seed of the policy's own random draws.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        mix: float = 0.5,
        term_ridge: float = 1.0,
        alpha: Alpha = 0.25,
        term_alpha: Alpha = 0.25,
        schedule: Schedule = LogSchedule(5),
        select: Selection = RandomTerm(),
        representation: Representation | None = None,
        link: Link = Identity(),
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            mix=mix,
            term_ridge=term_ridge,
            alpha=alpha,
            term_alpha=term_alpha,
            schedule=schedule,
            select=select,
            representation=representation,
            link=link,
            seed=seed,
        )


class VarMRC(ConUCB):
    """ConUCB that asks about the key-term with the largest related confidence (Var-MRC).

    Rule: as `ConUCB`, with `MaxRelatedConfidence` in place of Eq. 8.
    Symbols: as `ConUCB`.
    Differs: nothing known.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        mix: lam, how much the arms' own rewards count against the key-terms' guidance, in (0, 1).
        term_ridge: lam~, weight of the key-term level's penalty.
        alpha: factor of the arm level's width, a number or a theory value (`Lemma1`).
        term_alpha: factor of the key-term level's width, a number or a theory value (`Lemma3`).
        schedule: when to ask.
        select: what to ask.
        representation: what the model sees of the arms; None: the catalogue's features.
        link: how means follow from scores: `Identity()`, or `Logistic()` for clicks.
        seed: seed of the policy's own random draws.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        mix: float = 0.5,
        term_ridge: float = 1.0,
        alpha: Alpha = 0.25,
        term_alpha: Alpha = 0.25,
        schedule: Schedule = LogSchedule(5),
        select: Selection = MaxRelatedConfidence(),
        representation: Representation | None = None,
        link: Link = Identity(),
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            mix=mix,
            term_ridge=term_ridge,
            alpha=alpha,
            term_alpha=term_alpha,
            schedule=schedule,
            select=select,
            representation=representation,
            link=link,
            seed=seed,
        )


class VarLCR(ConUCB):
    """ConUCB that asks about the key-term with the largest confidence reduction (Var-LCR).

    Rule: as `ConUCB`, with `LargestConfidenceReduction` in place of Eq. 8.
    Symbols: as `ConUCB`.
    Differs: the interval is its key-term part, as in the released code.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        mix: lam, how much the arms' own rewards count against the key-terms' guidance, in (0, 1).
        term_ridge: lam~, weight of the key-term level's penalty.
        alpha: factor of the arm level's width, a number or a theory value (`Lemma1`).
        term_alpha: factor of the key-term level's width, a number or a theory value (`Lemma3`).
        schedule: when to ask.
        select: what to ask.
        representation: what the model sees of the arms; None: the catalogue's features.
        link: how means follow from scores: `Identity()`, or `Logistic()` for clicks.
        seed: seed of the policy's own random draws.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        mix: float = 0.5,
        term_ridge: float = 1.0,
        alpha: Alpha = 0.25,
        term_alpha: Alpha = 0.25,
        schedule: Schedule = LogSchedule(5),
        select: Selection = LargestConfidenceReduction(),
        representation: Representation | None = None,
        link: Link = Identity(),
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            mix=mix,
            term_ridge=term_ridge,
            alpha=alpha,
            term_alpha=term_alpha,
            schedule=schedule,
            select=select,
            representation=representation,
            link=link,
            seed=seed,
        )


class ArmCon(ArmConversationMixin, LinUCB):
    """LinUCB that may ask about extra arms instead of key-terms (Arm-Con, Christakopoulou et al. 2016).

    Rule: as `LinUCB`; in round t it first asks `floor(b(t)) - floor(b(t-1))` times about the arm of A_t
    that it would show, and learns the answer like a reward.
    Symbols: b(t) `schedule`.
    Differs: nothing known.

    Args:
        catalogue: arms; key-terms are not used.
        num_users: U.
        alpha: factor of the confidence width, a number or a theory value.
        ridge: weight of the penalty `|theta|^2`.
        schedule: when to ask.
        representation: what the model sees of the arms; None: the catalogue's features.
        link: how means follow from scores: `Identity()`, or `Logistic()` for clicks.
        seed: seed of the policy's own random draws.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        alpha: Alpha = 0.5,
        ridge: float = 1.0,
        schedule: Schedule = LogSchedule(5),
        representation: Representation | None = None,
        link: Link = Identity(),
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            alpha=alpha,
            ridge=ridge,
            schedule=schedule,
            representation=representation,
            link=link,
            seed=seed,
        )
