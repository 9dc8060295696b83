"""What a linear policy works out about the candidates it scores."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from torch import Tensor

from conbandit_torch.core.algebra import dot, weighted_norm
from conbandit_torch.core.context import Context

if TYPE_CHECKING:
    from conbandit_torch.bandits.linear import LinearBandit


class Candidates:
    """The candidates of a context, for the hooks `radius` and `bonus`.

    All but x is worked out when first asked for, so that a rule pays for what it uses: one that is greedy or
    samples needs no product with M^-1.

    Args:
        policy: who scores them.
        context: whose candidates, B rows of A.
    """

    def __init__(self, policy: LinearBandit, context: Context) -> None:
        self.context, self._policy = context, policy
        self.features = policy.checked_features(context)  # [B, A, D] x

    @cached_property
    def theta(self) -> Tensor:
        """[B, D] the users' preferences."""
        return self._policy.theta(self.context.who)

    @cached_property
    def mean(self) -> Tensor:
        """[B, A] `x^T theta`."""
        return dot(self.features, self.theta)

    @cached_property
    def solved(self) -> Tensor:
        """[B, A, D] `M^-1 x`."""
        return self._policy.arm_model.solve(self.context.who, self.features)

    @cached_property
    def norm(self) -> Tensor:
        """[B, A] `|x|_{M^-1}`; whoever needs `solved` too asks for it first, or has it worked out twice."""
        if "solved" in vars(self):
            return weighted_norm(self.features, self.solved)
        return self._policy.arm_model.norm(self.context.who, self.features)
