"""The policy that knows nothing."""

from __future__ import annotations

from torch import Tensor

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.core.context import Context


class Random(Bandit):
    """Shows a candidate drawn uniformly.

    Rule: choose each of the A candidates with probability 1 / A.
    Symbols: none.
    Differs: nothing known.

    Args:
        catalogue: arms; key-terms are not used.
        num_users: U.
        seed: seed of the draws.
    """

    def scores(self, context: Context) -> Tensor:
        """[B, A] independent uniform numbers, a function of seed, user and the user's round."""
        return self.stream("arm").uniform(context.users, context.rounds, context.arms.shape[1])

    def learn(self, context: Context, arm: Tensor, reward: Tensor) -> None:
        """Learns nothing."""
