"""Comparisons of key-terms on other bases: hidden features, and clicks."""

from __future__ import annotations

from typing import ClassVar

from conbandit_torch.bandits.hlinucb import HLinUCB
from conbandit_torch.bandits.logistic import LogisticUCB
from conbandit_torch.conversation.comparisons import ComparisonMixin, LearnedAs, RelativeConUCB
from conbandit_torch.conversation.pair_rules import BestDifference, PairSelection
from conbandit_torch.conversation.schedules import LogSchedule, Schedule
from conbandit_torch.conversation.two_levels import ConversationMixin
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.links import Link, Logistic
from conbandit_torch.models.refits import RefitEvery
from conbandit_torch.models.representation import Representation


class HRelativeConUCB(ComparisonMixin, ConversationMixin, HLinUCB):
    """hConUCB that compares key-terms (ours).

    Rule: arms as in `HConUCB`; theta~ is learned from comparisons, as `RelativeConUCB` does, on phi = (x, v).
    A comparison is weights of both signs over arms, w_a = p_{a,f} - p_{a,s}, and v learns from it by
        C_a += S |w_a| t t^T,  d_a += t (w_a rho + S |w_a| v_a^T t),  S = sum_a |w_a|,  t = theta~^v,
    rho being the error of the answer.
    Symbols: as `RelativeConUCB` and `HLinUCB`.
    Differs: no paper has it.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        pairs: which two key-terms to compare.
        learn_as: what is learned of an answer.
        mix: lam, how much the arms' own rewards count against the key-terms' guidance, in (0, 1).
        term_ridge: lam~, weight of the key-term level's penalty.
        alpha: factor of the arm level's width, a number or a theory value.
        term_alpha: factor of the key-term level's width, a number or a theory value.
        schedule: when to ask.
        hidden_dim: L, number of hidden features.
        hidden_alpha: factor of the hidden features' width.
        hidden_ridge: weight of the penalty `|v|^2`.
        init_scale: standard deviation of the initial hidden features; small, but above 0.
        refit_every: rounds between refits, a number or a `RefitSchedule`; None: never.
        refit_sweeps: how often theta and v take turns in a refit.
        representation: what the model sees of the arms, in place of hidden features per arm, with arguments
            of its own; None: hidden features per arm (`Hidden`), as the arguments above say.
        seed: seed of the policy's own random draws.
    """

    not_arguments: ClassVar[dict[str, str]] = {"link": RelativeConUCB.not_arguments["link"]}

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        pairs: PairSelection = BestDifference(),
        learn_as: LearnedAs = "difference",
        mix: float = 0.5,
        term_ridge: float = 1.0,
        alpha: Alpha = 0.25,
        term_alpha: Alpha = 0.25,
        schedule: Schedule = LogSchedule(5),
        hidden_dim: int = 5,
        hidden_alpha: float = 0.1,
        hidden_ridge: float = 1.0,
        init_scale: float = 0.01,
        refit_every: RefitEvery | None = None,
        refit_sweeps: int = 1,
        representation: Representation | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            pairs=pairs,
            learn_as=learn_as,
            mix=mix,
            term_ridge=term_ridge,
            alpha=alpha,
            term_alpha=term_alpha,
            schedule=schedule,
            hidden_dim=hidden_dim,
            hidden_alpha=hidden_alpha,
            hidden_ridge=hidden_ridge,
            init_scale=init_scale,
            refit_every=refit_every,
            refit_sweeps=refit_sweeps,
            representation=representation,
            seed=seed,
        )


class RelativeConLogisticUCB(ComparisonMixin, ConversationMixin, LogisticUCB):
    """LogisticUCB guided by comparisons of key-terms (ours, after ConDuel, KDD 2024).

    Rule: arms as in `ConLogisticUCB`. That key-term f is named, and not s, has the probability
    `mu(z^T theta~)`, z = x~_f - x~_s; theta~ learns it by the Newton steps and fits of `Logistic`. An answer
    that names neither counts as a probability of 0.5.
    Symbols: lam `mix`, lam~ `term_ridge`, alpha_t `alpha`, alpha~_t `term_alpha`, b(t) `schedule`.
    Differs: ConDuel's own rules of what to show and to ask are not taken over; its text was not at hand.
    Learned as a winner, or both, answers are those about key-terms of `Logistic`.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        pairs: which two key-terms to compare.
        learn_as: what is learned of an answer.
        mix: lam, how much the arms' own rewards count against the key-terms' guidance, in (0, 1).
        term_ridge: lam~, weight of the key-term level's penalty.
        alpha: factor of the arm level's width, a number or a theory value.
        term_alpha: factor of the key-term level's width, a number or a theory value.
        schedule: when to ask.
        representation: what the model sees of the arms; None: the catalogue's features.
        link: how probabilities follow from scores, with the arguments of the exact fits.
        seed: seed of the policy's own random draws.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        pairs: PairSelection = BestDifference(),
        learn_as: LearnedAs = "difference",
        mix: float = 0.5,
        term_ridge: float = 1.0,
        alpha: Alpha = 0.25,
        term_alpha: Alpha = 0.25,
        schedule: Schedule = LogSchedule(5),
        representation: Representation | None = None,
        link: Link = Logistic(),
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            pairs=pairs,
            learn_as=learn_as,
            mix=mix,
            term_ridge=term_ridge,
            alpha=alpha,
            term_alpha=term_alpha,
            schedule=schedule,
            representation=representation,
            link=link,
            seed=seed,
        )
