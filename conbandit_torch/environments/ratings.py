"""Simulation on real items and users, whose preferences were fitted to what they did."""

from __future__ import annotations

from pathlib import Path

import torch

from conbandit_torch.datasets.base import Prepared, Reader
from conbandit_torch.datasets.key_terms import KeyTerms
from conbandit_torch.environments.answers import AnswerModel, ItemMean
from conbandit_torch.environments.delays import Delay
from conbandit_torch.environments.drawn import Drawn
from conbandit_torch.environments.drift import Drift
from conbandit_torch.environments.simulated import FeedbackKind


class Ratings(Drawn):
    """Users and items of a real source; rewards and answers by the users' fitted preferences.

    Rule: features are the source's, reduced to `dim`; theta of a user is a ridge regression on all their
    feedback (see `prepare`), and counts as the truth from then on, as in [Zhang20], Section 5.
    Symbols: as in `Synthetic`.
    Differs: nothing known; the paper prints no ridge.

    Args:
        data: a reader of the source, or what `prepare` made of it.
        users: so many, those with the most feedback; None: all.
        dim: D, features to reduce the source's to; None: its own; not used with prepared data.
        ridge: weight of the penalty `|theta|^2` in the fit; not used with prepared data.
        key_terms: how key-terms are made, such as `Clusters(200)`, for sources with few tags or none; None:
            they are the source's, and items without any are left out.
        pool: candidates per user and round, drawn without replacement.
        noise: standard deviation of the rewards' and answers' noise.
        feedback: "linear", "binary" (Eq. 5) or "logistic".
        scale: how steep the probabilities of logistic feedback are.
        answers: how people answer questions.
        users_per_round: how many users come each round; None: all.
        hidden: how many of the features, drawn at random, policies do not see; or the names of which.
        hidden_seed: seed of that draw; None: `seed`, and then every seed hides other features.
        balance_hidden: of many draws, take one whose share of `|x|^2` is close to its share of the features.
        delay: how many rounds after a decision its reward comes; None: in the same round.
        drift: how the users' preferences change; None: they do not.
        cache: folder of what was prepared before; None: the usual one (see `prepare`).
        data_seed: seed of what `prepare` draws.
        seed: seed of everything else (visitors, pools, noise, drift).
    """

    def __init__(
        self,
        data: Reader | Prepared,
        *,
        users: int | None = None,
        dim: int | None = 50,
        ridge: float = 1.0,
        key_terms: KeyTerms | None = None,
        pool: int = 50,
        noise: float = 0.1,
        feedback: FeedbackKind = "linear",
        scale: float = 1.0,
        answers: AnswerModel = ItemMean(),
        users_per_round: int | None = None,
        hidden: int | list[str] = 0,
        hidden_seed: int | None = None,
        balance_hidden: bool = False,
        delay: Delay | None = None,
        drift: Drift | None = None,
        cache: str | Path | None = None,
        data_seed: int = 0,
        seed: int = 0,
    ) -> None:
        prepared = as_prepared(data, dim=dim, ridge=ridge, cache=cache, seed=data_seed, key_terms=key_terms)
        known = len(prepared.theta)
        if users is not None and not 1 <= users <= known:
            raise ValueError(f"users must be from 1 to the {known} users of the data, got {users}")
        events = torch.bincount(prepared.users, minlength=known)
        kept = events.argsort(descending=True, stable=True)[:users].sort().values
        super().__init__(
            prepared.catalogue(),
            prepared.theta[kept].to(prepared.features.dtype),
            pool=pool,
            noise=noise,
            feedback=feedback,
            scale=scale,
            answers=answers,
            users_per_round=users_per_round,
            hidden=hidden,
            delay=delay,
            drift=drift,
            hidden_seed=seed if hidden_seed is None else hidden_seed,
            balance_hidden=balance_hidden,
            seed=seed,
        )
        self.user_names = [prepared.user_names[user] for user in kept.tolist()]


def as_prepared(
    data: Reader | Prepared,
    *,
    dim: int | None,
    ridge: float,
    cache: str | Path | None,
    seed: int,
    use_feedback_columns: bool = True,
    key_terms: KeyTerms | None = None,
) -> Prepared:
    """Prepared data, from a reader's if need be."""
    if isinstance(data, Prepared):
        return data if key_terms is None else key_terms.made(data)
    from conbandit_torch.datasets.prepare import prepare  # only readers need it

    made = {} if key_terms is None else {"key_terms": key_terms}
    return prepare(
        data, dim=dim, ridge=ridge, seed=seed, use_feedback_columns=use_feedback_columns, cache=cache, **made
    )
