"""hConUCB with other rules for what to ask: at random, by related confidence, by the largest reduction."""

from __future__ import annotations

from conbandit_torch.conversation.hconucb import HConUCB
from conbandit_torch.conversation.schedules import LogSchedule, Schedule
from conbandit_torch.conversation.term_rules import (
    LargestConfidenceReduction,
    MaxRelatedConfidence,
    RandomTerm,
    Selection,
)
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.links import Identity, Link
from conbandit_torch.models.refits import RefitEvery
from conbandit_torch.models.representation import Representation


class HVarRS(HConUCB):
    """hConUCB that asks about a random key-term (hVar-RS).

    Rule: as `HConUCB`, with `RandomTerm` in place of Eq. 8.
    Symbols: as `HConUCB`.
    Differs: as `HConUCB`.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        mix: lam, how much the arms' own rewards count against the key-terms' guidance, in (0, 1).
        term_ridge: lam~, weight of the key-term level's penalty.
        alpha: factor of the arm level's width, a number or a theory value (`Lemma1`).
        term_alpha: factor of the key-term level's width, a number or a theory value (`Lemma3`).
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
        mix: float = 0.5,
        term_ridge: float = 1.0,
        alpha: Alpha = 0.25,
        term_alpha: Alpha = 0.25,
        schedule: Schedule = LogSchedule(5),
        select: Selection = RandomTerm(),
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
            mix=mix,
            term_ridge=term_ridge,
            alpha=alpha,
            term_alpha=term_alpha,
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


class HVarMRC(HConUCB):
    """hConUCB that asks about the key-term with the largest related confidence (hVar-MRC).

    Rule: as `HConUCB`, with `MaxRelatedConfidence` in place of Eq. 8.
    Symbols: as `HConUCB`.
    Differs: as `HConUCB`.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        mix: lam, how much the arms' own rewards count against the key-terms' guidance, in (0, 1).
        term_ridge: lam~, weight of the key-term level's penalty.
        alpha: factor of the arm level's width, a number or a theory value (`Lemma1`).
        term_alpha: factor of the key-term level's width, a number or a theory value (`Lemma3`).
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
        mix: float = 0.5,
        term_ridge: float = 1.0,
        alpha: Alpha = 0.25,
        term_alpha: Alpha = 0.25,
        schedule: Schedule = LogSchedule(5),
        select: Selection = MaxRelatedConfidence(),
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
            mix=mix,
            term_ridge=term_ridge,
            alpha=alpha,
            term_alpha=term_alpha,
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


class HVarLCR(HConUCB):
    """hConUCB that asks about the key-term with the largest confidence reduction (hVar-LCR).

    Rule: as `HConUCB`, with `LargestConfidenceReduction` in place of Eq. 8.
    Symbols: as `HConUCB`.
    Differs: as `HConUCB`; the interval is its key-term part, as in `VarLCR`.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        mix: lam, how much the arms' own rewards count against the key-terms' guidance, in (0, 1).
        term_ridge: lam~, weight of the key-term level's penalty.
        alpha: factor of the arm level's width, a number or a theory value (`Lemma1`).
        term_alpha: factor of the key-term level's width, a number or a theory value (`Lemma3`).
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
        mix: float = 0.5,
        term_ridge: float = 1.0,
        alpha: Alpha = 0.25,
        term_alpha: Alpha = 0.25,
        schedule: Schedule = LogSchedule(5),
        select: Selection = LargestConfidenceReduction(),
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
            mix=mix,
            term_ridge=term_ridge,
            alpha=alpha,
            term_alpha=term_alpha,
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
