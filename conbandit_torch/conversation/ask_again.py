"""Bandits that ask again when a user has changed."""

from __future__ import annotations

from conbandit_torch.bandits.restarts import RestartMixin
from conbandit_torch.conversation.conlinucb import ConLinUCB
from conbandit_torch.conversation.conucb import ConUCB
from conbandit_torch.conversation.schedules import LogSchedule, Schedule
from conbandit_torch.conversation.term_rules import OptimalTerm, Selection
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.links import Identity, Link
from conbandit_torch.models.representation import Representation


class AskAgainConUCB(RestartMixin, ConUCB):
    """ConUCB that forgets a user who has changed, and asks again (ours).

    Rule: as `ConUCB`. A user whose rewards are too surprising, by the test of `RestartMixin`, is as new: both
    levels are forgotten, and `b(t)` begins again with t the rounds since then.
    Symbols: k `growth`, d `shift`, lam `mix`, lam~ `term_ridge`, alpha `alpha`, alpha~ `term_alpha`.
    Differs: no paper has it.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        patience: rounds of a user between false alarms, at least, on average.
        growth: k, how many times as large the errors of a changed user are taken to be.
        shift: d, by how many standard deviations they are taken to be lower.
        mix: lam, how much the arms' own rewards count against the key-terms' guidance, in (0, 1).
        term_ridge: lam~, weight of the key-term level's penalty.
        alpha: factor of the arm level's width, a number or a theory value.
        term_alpha: factor of the key-term level's width, a number or a theory value.
        schedule: when to ask; it starts again when the user has changed.
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
        patience: float = 10_000.0,
        growth: float = 3.0,
        shift: float = 1.0,
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
            patience=patience,
            growth=growth,
            shift=shift,
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


class AskAgainConLinUCB(RestartMixin, ConLinUCB):
    """ConLinUCB that forgets a user who has changed, and asks again (ours).

    Rule: as `ConLinUCB`. A user whose rewards are too surprising, by the test of `RestartMixin`, is as new:
    rewards and answers are forgotten, and `b(t)` begins again with t the rounds since then.
    Symbols: k `growth`, d `shift`, alpha `alpha`, b(t) `schedule`.
    Differs: no paper has it.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        patience: rounds of a user between false alarms, at least, on average.
        growth: k, how many times as large the errors of a changed user are taken to be.
        shift: d, by how many standard deviations they are taken to be lower.
        ridge: weight of the penalty `|theta|^2`.
        alpha: factor of the confidence width, a number or a theory value.
        schedule: when to ask; it starts again when the user has changed.
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
        patience: float = 10_000.0,
        growth: float = 3.0,
        shift: float = 1.0,
        ridge: float = 1.0,
        alpha: Alpha = 0.5,
        schedule: Schedule = LogSchedule(5),
        select: Selection = OptimalTerm(),
        representation: Representation | None = None,
        link: Link = Identity(),
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            patience=patience,
            growth=growth,
            shift=shift,
            ridge=ridge,
            alpha=alpha,
            schedule=schedule,
            select=select,
            representation=representation,
            link=link,
            seed=seed,
        )
