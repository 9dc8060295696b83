"""What the hidden features of all arms are learned from."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from conbandit_torch.core.algebra import dot
from conbandit_torch.core.blocks import rows_per_block
from conbandit_torch.core.processes import Processes
from conbandit_torch.models.ridge import NumericsError, ridge_prior


class HiddenRegression(nn.Module):
    """A small ridge regression per arm, fed by all users.

    Rule: C = ridge I + sum w w^T,  d = sum w y,  v = C^-1 d.

    Unlike `RidgeRegression` it takes any number of observations of an arm at once, and solves anew for the
    arms that a round has touched: these are few, and so are their features. C and d lie side by side, so that
    both are added to, and looked up, in one step.

    Args:
        num_arms: N.
        dim: L, number of hidden features; may be 0.
        ridge: weight of the penalty `|v|^2`, above 0.
        like: a tensor whose dtype and device the state takes.
    """

    sums: Tensor  # [N, L, L + 1] (C, d)
    inverse: Tensor  # [N, L, L] C^-1

    def __init__(self, num_arms: int, dim: int, ridge: float, like: Tensor) -> None:
        super().__init__()
        self.dim, self.ridge = dim, ridge
        sums, inverse = self._prior(like)
        self.register_buffer("sums", sums.repeat(num_arms, 1, 1))
        self.register_buffer("inverse", inverse.repeat(num_arms, 1, 1))

    @staticmethod
    def products(w: Tensor, y: Tensor) -> Tensor:
        """[E, L, L + 1] what observations add to (C, d): w w^T and w y, from w [E, L] and y [E]."""
        return w.unsqueeze(2) * torch.cat((w, y.unsqueeze(1)), dim=1).unsqueeze(1)

    def add(self, arms: Tensor, products: Tensor) -> None:
        """Add to (C, d) of arms that may repeat: [E], [E, L, L + 1]. `solve` when all is in."""
        self.sums.index_add_(0, arms, products)

    def solve(self, arms: Tensor) -> Tensor:
        """[n, L] v of the distinct arms [n]; their C^-1 are computed anew, by way of float64."""
        blocks = arms.split(rows_per_block(self.dim * (self.dim + 1)))
        return torch.cat([self._solve(block) for block in blocks])

    def reset(self, arms: Tensor) -> None:
        """Forget everything that was told of the arms [n]."""
        self.sums[arms], self.inverse[arms] = self._prior(self.sums)

    def pool(self, arms: Tensor, processes: Processes) -> None:
        """Sum (C, d) of the arms [n] over processes, each of which has seen a part. `solve` then."""
        if processes.size > 1:
            prior, _ = self._prior(self.sums)
            self.sums[arms] = prior + processes.sum(self.sums[arms] - prior)

    def _prior(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """(C, d) [L, L + 1] and C^-1 [L, L] of an arm of which nothing was told."""
        C, inverse = ridge_prior("hidden_ridge", self.ridge, self.dim, like)
        return torch.cat((C, C.new_zeros(self.dim, 1)), dim=1), inverse

    def _solve(self, arms: Tensor) -> Tensor:
        C, d = self.sums.index_select(0, arms).double().split((self.dim, 1), dim=2)
        factor, failed = torch.linalg.cholesky_ex(C)
        if bool(failed.any()):
            arm = int(arms[failed.nonzero()[0]])
            raise NumericsError(
                f"the matrix C of arm {arm}'s hidden features is not positive definite any more in "
                f"{self.sums.dtype}, with hidden_ridge {self.ridge}: raise it, scale the features down, or "
                "use precision 64-true"
            )
        inverse = torch.cholesky_inverse(factor)
        self.inverse.index_copy_(0, arms, inverse.to(self.inverse))
        return dot(inverse, d.squeeze(2)).to(self.sums)
