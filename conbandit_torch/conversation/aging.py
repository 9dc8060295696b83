"""Bandits for users who change, that converse: every one is a mixin on a base."""

from __future__ import annotations

from conbandit_torch.bandits.aging import DiscountedLinUCB, WindowedLinUCB
from conbandit_torch.conversation.one_level import OneLevelMixin
from conbandit_torch.conversation.schedules import LogSchedule, Schedule
from conbandit_torch.conversation.term_rules import OptimalTerm, Selection
from conbandit_torch.conversation.two_levels import ConversationMixin
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.representation import Representation


class DiscountedConUCB(ConversationMixin, DiscountedLinUCB):
    """ConUCB whose rewards and answers lose weight with every round (ours).

    Rule: as `ConUCB` (Eq. 6 and 8) with, in the user's round t and for observations of rounds s <= t,
        M~ = lam~ I + sum g^(t-s) x~ x~^T,  b~ = sum g^(t-s) r~ x~,
        M = (1-lam) I + lam sum g^(t-s) x x^T,  b = lam sum g^(t-s) r x,
        show argmax_a x^T theta + lam alpha |M^-1 x|_W + (1-lam) alpha~ |M^-1 x|_{M~^-1},
    where W is M with g^2 in place of g. An answer ages with the user's rounds, not with further answers.
    Symbols: gamma `gamma`, lam `mix`, lam~ `term_ridge`, alpha `alpha`, alpha~ `term_alpha`.
    Differs: no paper has it. The key-term level's width is that of Eq. 7, which is at least its discounted
    width. With a schedule that asks ever more rarely, answers fade between the questions.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        gamma: what a round leaves of an observation's weight, in (0, 1].
        mix: lam, how much the arms' own rewards count against the key-terms' guidance, in (0, 1).
        term_ridge: lam~, weight of the key-term level's penalty.
        alpha: factor of the arm level's width, a number or a theory value.
        term_alpha: factor of the key-term level's width, a number or a theory value.
        schedule: when to ask.
        select: what to ask.
        representation: what the model sees of the arms, one that does not learn; None: the catalogue's
            features.
        seed: seed of the policy's own random draws.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        gamma: float = 0.99,
        mix: float = 0.5,
        term_ridge: float = 1.0,
        alpha: Alpha = 0.25,
        term_alpha: Alpha = 0.25,
        schedule: Schedule = LogSchedule(5),
        select: Selection = OptimalTerm(),
        representation: Representation | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            gamma=gamma,
            mix=mix,
            term_ridge=term_ridge,
            alpha=alpha,
            term_alpha=term_alpha,
            schedule=schedule,
            select=select,
            representation=representation,
            seed=seed,
        )


class WindowedConUCB(ConversationMixin, WindowedLinUCB):
    """ConUCB that knows only the rewards and answers of the last rounds (ours).

    Rule: as `ConUCB` (Eq. 6, 7 and 8), with sums over the observations of the last `window` rounds.
    Symbols: tau `window`, lam `mix`, lam~ `term_ridge`, alpha `alpha`, alpha~ `term_alpha`.
    Differs: no paper has it.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        window: rounds after which an observation is forgotten.
        mix: lam, how much the arms' own rewards count against the key-terms' guidance, in (0, 1).
        term_ridge: lam~, weight of the key-term level's penalty.
        alpha: factor of the arm level's width, a number or a theory value.
        term_alpha: factor of the key-term level's width, a number or a theory value.
        schedule: when to ask.
        select: what to ask.
        representation: what the model sees of the arms, one that does not learn; None: the catalogue's
            features.
        seed: seed of the policy's own random draws.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        window: int = 100,
        mix: float = 0.5,
        term_ridge: float = 1.0,
        alpha: Alpha = 0.25,
        term_alpha: Alpha = 0.25,
        schedule: Schedule = LogSchedule(5),
        select: Selection = OptimalTerm(),
        representation: Representation | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            window=window,
            mix=mix,
            term_ridge=term_ridge,
            alpha=alpha,
            term_alpha=term_alpha,
            schedule=schedule,
            select=select,
            representation=representation,
            seed=seed,
        )


class DiscountedConLinUCB(OneLevelMixin, DiscountedLinUCB):
    """ConLinUCB whose rewards and answers lose weight with every round (ours).

    Rule: as `DiscountedLinUCB`, whose V, W and b answers enter like rewards, with x~ for x; ask by Eq. 8.
    Symbols: gamma `gamma`, lambda `ridge`, alpha `alpha`, b(t) `schedule`.
    Differs: no paper has it.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        gamma: what a round leaves of an observation's weight, in (0, 1].
        ridge: weight of the penalty `|theta|^2`.
        alpha: factor of the confidence width, a number or a theory value.
        schedule: when to ask.
        select: what to ask.
        representation: what the model sees of the arms, one that does not learn; None: the catalogue's
            features.
        seed: seed of the policy's own random draws.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        gamma: float = 0.99,
        ridge: float = 1.0,
        alpha: Alpha = 0.5,
        schedule: Schedule = LogSchedule(5),
        select: Selection = OptimalTerm(),
        representation: Representation | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            gamma=gamma,
            ridge=ridge,
            alpha=alpha,
            schedule=schedule,
            select=select,
            representation=representation,
            seed=seed,
        )


class WindowedConLinUCB(OneLevelMixin, WindowedLinUCB):
    """ConLinUCB that knows only the rewards and answers of the last rounds (ours).

    Rule: as `WindowedLinUCB`, whose V and b answers enter like rewards, with x~ for x; ask by Eq. 8.
    Symbols: tau `window`, lambda `ridge`, alpha `alpha`, b(t) `schedule`.
    Differs: no paper has it.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        window: rounds after which an observation is forgotten.
        ridge: weight of the penalty `|theta|^2`.
        alpha: factor of the confidence width, a number or a theory value.
        schedule: when to ask.
        select: what to ask.
        representation: what the model sees of the arms, one that does not learn; None: the catalogue's
            features.
        seed: seed of the policy's own random draws.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        window: int = 100,
        ridge: float = 1.0,
        alpha: Alpha = 0.5,
        schedule: Schedule = LogSchedule(5),
        select: Selection = OptimalTerm(),
        representation: Representation | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            window=window,
            ridge=ridge,
            alpha=alpha,
            schedule=schedule,
            select=select,
            representation=representation,
            seed=seed,
        )
