"""Synthetic data whose rewards are not linear in the features that policies see."""

from __future__ import annotations

import torch
from torch import Tensor

from conbandit_torch.core.randomness import Stream
from conbandit_torch.environments.answers import AnswerModel, ItemMean
from conbandit_torch.environments.delays import Delay
from conbandit_torch.environments.drift import Drift
from conbandit_torch.environments.simulated import FeedbackKind
from conbandit_torch.environments.synthetic import Synthetic


class Curved(Synthetic):
    """Synthetic data with a random network of two layers as the truth.

    Rule: arms, key-terms and pools as in `Synthetic`. `E[r] = theta_u^T cos(W x_a)`: the first layer W is
    shared by all users, every entry normal with standard deviation `steepness`; the second layer theta_u is
    each user's own, every entry U(-1, 1). An answer is the mean over the key-term's arms, as in Eq. 4.
    Symbols: none.
    Differs: ours.

    Args:
        users: U.
        arms: N.
        terms: K.
        dim: D, features that policies see.
        units: of the hidden layer.
        steepness: standard deviation of the first layer's entries; with 0 all arms are alike.
        pool: candidates per user and round, drawn without replacement.
        max_terms: M, most key-terms an arm can have.
        spread: sigma_g, standard deviation of an arm around its key-terms.
        noise: standard deviation of the rewards' and answers' noise.
        feedback: "linear" (in the hidden layer), "binary" (Eq. 5) or "logistic".
        scale: how steep the probabilities of logistic feedback are.
        answers: how people answer questions.
        normalise: scale arms' features to length 1.
        users_per_round: how many users come each round; None: all.
        delay: how many rounds after a decision its reward comes; None: in the same round.
        drift: how the users' preferences change; None: they do not.
        data_seed: seed of arms, key-terms, users and the network; None: `seed`.
        seed: seed of everything else (visitors, pools, noise, drift).
    """

    def __init__(
        self,
        users: int = 200,
        arms: int = 5000,
        terms: int = 500,
        dim: int = 50,
        *,
        units: int = 12,
        steepness: float = 1.0,
        pool: int = 50,
        max_terms: int = 5,
        spread: float = 0.1,
        noise: float = 0.1,
        feedback: FeedbackKind = "linear",
        scale: float = 1.0,
        answers: AnswerModel = ItemMean(),
        normalise: bool = False,
        users_per_round: int | None = None,
        delay: Delay | None = None,
        drift: Drift | None = None,
        data_seed: int | None = None,
        seed: int = 0,
    ) -> None:
        if units < 1:
            raise ValueError(f"units must be at least 1, got {units}")
        if not 0 <= steepness < float("inf"):
            raise ValueError(f"steepness must be a number of at least 0, got {steepness}")
        super().__init__(
            users,
            arms,
            terms,
            dim,
            pool=pool,
            max_terms=max_terms,
            spread=spread,
            noise=noise,
            feedback=feedback,
            scale=scale,
            answers=answers,
            normalise=normalise,
            users_per_round=users_per_round,
            delay=delay,
            drift=drift,
            data_seed=data_seed,
            seed=seed,
        )
        data_seed = seed if data_seed is None else data_seed
        first = steepness * Stream(data_seed, "curved first layer").normal(torch.arange(dim), 0, units)
        second = 2 * Stream(data_seed, "curved second layer").uniform(torch.arange(users), 0, units) - 1
        # What rewards and answers follow from; policies see the catalogue, as they do of hidden features.
        self._world = self.catalogue.seen_as(torch.cos(self.catalogue.arm_features @ first))
        self.theta = second

    def preferences(self) -> Tensor | None:
        """None: there is no theta on the features that policies see."""
        return None
