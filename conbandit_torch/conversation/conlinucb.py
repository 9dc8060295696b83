"""Policies with one level: answers enter the regression that rewards enter."""

from __future__ import annotations

from conbandit_torch.bandits.hlinucb import HLinUCB
from conbandit_torch.bandits.linucb import LinUCB
from conbandit_torch.conversation.one_level import OneLevelMixin
from conbandit_torch.conversation.schedules import LogSchedule, Schedule
from conbandit_torch.conversation.spanner import BarycentricSpanner
from conbandit_torch.conversation.term_rules import (
    MaxConfidenceRadius,
    OptimalTerm,
    Selection,
    UpperConfidenceTerm,
)
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.links import Identity, Link
from conbandit_torch.models.refits import RefitEvery
from conbandit_torch.models.representation import Representation


class ConLinUCB(OneLevelMixin, LinUCB):
    """LinUCB that learns from answers as from rewards (Wang et al., AAAI 2023).

    Rule:
        M = ridge I + sum x x^T + sum x~ x~^T,  b = sum r x + sum r~ x~,  theta = M^-1 b;
        show argmax_a x^T theta + alpha |x|_{M^-1};
        ask argmax_k |X M^-1 x~_k|^2 / (1 + x~_k^T M^-1 x~_k)   (Eq. 8 of [Zhang20], for one level).
    Symbols: b(t) `schedule`.
    Differs: the paper names the rules below; this one has [Zhang20]'s.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        ridge: weight of the penalty `|theta|^2`.
        alpha: factor of the arm level's width, a number or a theory value (`Lemma1`).
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
            ridge=ridge,
            alpha=alpha,
            schedule=schedule,
            select=select,
            representation=representation,
            link=link,
            seed=seed,
        )


class ConLinUCBMCR(ConLinUCB):
    """ConLinUCB that asks about the key-term it knows least (ConLinUCB-MCR).

    Rule: as `ConLinUCB`, with `MaxConfidenceRadius` in place of Eq. 8.
    Symbols: as `ConLinUCB`.
    Differs: nothing known.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        ridge: weight of the penalty `|theta|^2`.
        alpha: factor of the arm level's width, a number or a theory value (`Lemma1`).
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
        ridge: float = 1.0,
        alpha: Alpha = 0.5,
        schedule: Schedule = LogSchedule(5),
        select: Selection = MaxConfidenceRadius(),
        representation: Representation | None = None,
        link: Link = Identity(),
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            ridge=ridge,
            alpha=alpha,
            schedule=schedule,
            select=select,
            representation=representation,
            link=link,
            seed=seed,
        )


class ConLinUCBBS(ConLinUCB):
    """ConLinUCB that asks about a random key-term of a barycentric spanner (ConLinUCB-BS).

    Rule: as `ConLinUCB`, with `BarycentricSpanner` in place of Eq. 8.
    Symbols: as `ConLinUCB`.
    Differs: as `BarycentricSpanner`.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        ridge: weight of the penalty `|theta|^2`.
        alpha: factor of the arm level's width, a number or a theory value (`Lemma1`).
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
        ridge: float = 1.0,
        alpha: Alpha = 0.5,
        schedule: Schedule = LogSchedule(5),
        select: Selection = BarycentricSpanner(),
        representation: Representation | None = None,
        link: Link = Identity(),
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            ridge=ridge,
            alpha=alpha,
            schedule=schedule,
            select=select,
            representation=representation,
            link=link,
            seed=seed,
        )


class ConLinUCBUCB(ConLinUCB):
    """ConLinUCB that asks about the key-term that the user may like best (ConLinUCB-UCB).

    Rule: as `ConLinUCB`, with `UpperConfidenceTerm` in place of Eq. 8.
    Symbols: as `ConLinUCB`.
    Differs: nothing known.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        ridge: weight of the penalty `|theta|^2`.
        alpha: factor of the arm level's width, a number or a theory value (`Lemma1`).
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
        ridge: float = 1.0,
        alpha: Alpha = 0.5,
        schedule: Schedule = LogSchedule(5),
        select: Selection = UpperConfidenceTerm(),
        representation: Representation | None = None,
        link: Link = Identity(),
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            ridge=ridge,
            alpha=alpha,
            schedule=schedule,
            select=select,
            representation=representation,
            link=link,
            seed=seed,
        )


class HConLinUCB(OneLevelMixin, HLinUCB):
    """hLinUCB that learns from answers as from rewards, and asks about what it knows least (ours).

    Rule: as `HConUCB` with one level: theta in place of theta~, M in that of M~; `MaxConfidenceRadius`.
    Symbols: as `HLinUCB`.
    Differs: no paper has it. It is at its best with `refit_every`.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        ridge: weight of the penalty `|theta|^2`.
        alpha: factor of the arm level's width, a number or a theory value (`Lemma1`).
        schedule: when to ask.
        select: what to ask.
        hidden_dim: L, number of hidden features.
        hidden_alpha: factor of the hidden features' width.
        hidden_ridge: weight of the penalty `|v|^2`.
        init_scale: standard deviation of the initial hidden features; small, but above 0.
        refit_every: rounds between refits, a number or a `RefitSchedule`; None: never.
        refit_sweeps: how often theta and v take turns in a refit.
        representation: what the model sees of the arms, in place of hidden features per arm, with arguments
            of its own; None: hidden features per arm (`Hidden`), as the arguments above say.
        link: how means follow from scores: `Identity()`, or `Logistic(answer="at the mean")` for clicks.
        seed: seed of the policy's own random draws.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        ridge: float = 1.0,
        alpha: Alpha = 0.5,
        schedule: Schedule = LogSchedule(5),
        select: Selection = MaxConfidenceRadius(),
        hidden_dim: int = 5,
        hidden_alpha: float = 0.1,
        hidden_ridge: float = 1.0,
        init_scale: float = 0.01,
        refit_every: RefitEvery | None = None,
        refit_sweeps: int = 1,
        representation: Representation | None = None,
        link: Link = Identity(),
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            ridge=ridge,
            alpha=alpha,
            schedule=schedule,
            select=select,
            hidden_dim=hidden_dim,
            hidden_alpha=hidden_alpha,
            hidden_ridge=hidden_ridge,
            init_scale=init_scale,
            refit_every=refit_every,
            refit_sweeps=refit_sweeps,
            representation=representation,
            link=link,
            seed=seed,
        )
