"""Ridge regression without exploration, and with blind exploration."""

from __future__ import annotations

import torch
from torch import Tensor

from conbandit_torch.bandits.linear import LinearBandit
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.context import Context
from conbandit_torch.models.links import Identity, Link
from conbandit_torch.models.representation import Representation


class Greedy(LinearBandit):
    """Shows the arm that a ridge regression expects most of.

    Rule: M = ridge I + sum x x^T,  theta = M^-1 sum r x,  choose argmax x^T theta.
    Symbols: none.
    Differs: nothing known.

    Args:
        catalogue: arms; key-terms are not used.
        num_users: U.
        ridge: weight of the penalty `|theta|^2`.
        representation: what the model sees of the arms; None: the catalogue's features.
        link: how means follow from scores: `Identity()`, or `Logistic()` for clicks.
        seed: not used; every policy takes one.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        ridge: float = 1.0,
        representation: Representation | None = None,
        link: Link = Identity(),
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue, num_users, ridge=ridge, representation=representation, link=link, seed=seed
        )

    @property
    def draws(self) -> bool:
        """Only if the representation does."""
        return self.representation.draws


class EpsilonGreedy(Greedy):
    """Shows a random candidate now and then, and otherwise what `Greedy` would.

    Rule: with probability epsilon each of the A candidates with probability 1 / A, else as `Greedy`.
    One decision per user and round: a second call within an exploring round gives the same candidate.
    Symbols: epsilon `epsilon`.
    Differs: nothing known.

    Args:
        catalogue: arms; key-terms are not used.
        num_users: U.
        epsilon: how often to explore, in [0, 1].
        ridge: weight of the penalty `|theta|^2`.
        representation: what the model sees of the arms; None: the catalogue's features.
        link: how means follow from scores: `Identity()`, or `Logistic()` for clicks.
        seed: seed of the exploration.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        epsilon: float = 0.1,
        ridge: float = 1.0,
        representation: Representation | None = None,
        link: Link = Identity(),
        seed: int = 0,
    ) -> None:
        if not 0 <= epsilon <= 1:
            raise ValueError(f"epsilon must be in [0, 1], got {epsilon}")
        super().__init__(
            catalogue, num_users, ridge=ridge, representation=representation, link=link, seed=seed
        )
        self.epsilon = epsilon

    @property
    def draws(self) -> bool:
        """When and what to explore."""
        return True

    def scores(self, context: Context) -> Tensor:
        """[B, A] `x^T theta`, or independent uniform numbers in a user's exploring rounds."""
        at = context.users, context.rounds
        explores = self.stream("explore").uniform(*at, 1) < self.epsilon  # [B, 1]
        chance = self.stream("arm").uniform(*at, context.arms.shape[1])  # [B, A]
        greedy = super().scores(context)
        return torch.where(explores, chance.to(greedy), greedy)
