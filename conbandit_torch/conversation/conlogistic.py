"""Bandits for clicks that converse."""

from __future__ import annotations

from conbandit_torch.conversation.conthompson import ConThompson
from conbandit_torch.conversation.conucb import ConUCB
from conbandit_torch.conversation.schedules import LogSchedule, Schedule
from conbandit_torch.conversation.term_rules import OptimalTerm, Selection
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.links import Link, Logistic
from conbandit_torch.models.representation import Representation


class ConLogisticUCB(ConUCB):
    """LogisticUCB guided by a conversation about key-terms (ours).

    Rule, with the Newton steps of `Logistic`:
        theta~ from answers, shrunk towards 0 with weight lam~; H~ its curvature;
        theta from rewards with weight lam, shrunk towards theta~ with weight 1-lam; H its curvature;
        show argmax_a x^T theta + lam alpha |x|_{H^-1} + (1-lam) alpha~ |H^-1 x|_{H~^-1}   (as Eq. 7)
        ask by Eq. 8, with H for M and H~ for M~.
    An answer is the mean of its items' probabilities, or the probability at their mean: see `Logistic`. With
    one level: `ConLinUCB(link=Logistic())`.
    Symbols: lam `mix`, lam~ `term_ridge`, alpha_t `alpha`, alpha~_t `term_alpha`, b(t) `schedule`.
    Differs: no paper has it. Eq. 8 sees an answer as one of the linear mean x~.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        mix: lam, how much the arms' own rewards count against the key-terms' guidance, in (0, 1).
        term_ridge: lam~, weight of the key-term level's penalty.
        alpha: factor of the arm level's width, a number or a theory value.
        term_alpha: factor of the key-term level's width, a number or a theory value.
        schedule: when to ask.
        select: what to ask.
        representation: what the model sees of the arms; None: the catalogue's features.
        link: how probabilities follow from scores, with the arguments of the exact fits.
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
        link: Link = Logistic(),
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


class ConLogisticThompson(ConThompson):
    """LogisticThompson guided by a conversation about key-terms (ours).

    Rule: levels as in `ConLogisticUCB`, both of which are sampled as in `ConThompson`.
    Symbols: v `scale`, v~ `term_scale`, lam `mix`, lam~ `term_ridge`, b(t) `schedule`.
    Differs: no paper has it.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        mix: lam, how much the arms' own rewards count against the key-terms' guidance, in (0, 1).
        term_ridge: lam~, weight of the key-term level's penalty.
        scale: factor of the arm-level sample's standard deviation, a number or a theory value.
        term_scale: factor of the key-term-level sample's standard deviation, likewise.
        schedule: when to ask.
        select: what to ask.
        representation: what the model sees of the arms; None: the catalogue's features.
        link: how probabilities follow from scores, with the arguments of the exact fits.
        seed: seed of the policy's own random draws.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        mix: float = 0.5,
        term_ridge: float = 1.0,
        scale: Alpha = 0.5,
        term_scale: Alpha = 0.5,
        schedule: Schedule = LogSchedule(5),
        select: Selection = OptimalTerm(),
        representation: Representation | None = None,
        link: Link = Logistic(),
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            mix=mix,
            term_ridge=term_ridge,
            scale=scale,
            term_scale=term_scale,
            schedule=schedule,
            select=select,
            representation=representation,
            link=link,
            seed=seed,
        )
