"""hLinUCB: a bandit that learns hidden features of the arms while it plays."""

from __future__ import annotations

from torch import Tensor

from conbandit_torch.bandits.linear import LinearBandit
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.context import Context
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.hidden import Hidden


class HLinUCB(LinearBandit):
    """LinUCB on observed and learned hidden features of the arms (Wang, Wu, Wang, CIKM 2016).

    Rule, with phi_a = (x_a, v_a) and theta_u = (theta^x, theta^v), after user u saw arm a and gave r:
        A_u += phi phi^T,  b_u += r phi,  theta_u = A_u^-1 b_u;   then, with the new theta_u,
        C_a += theta^v theta^v^T,  d_a += theta^v (r - x^T theta^x),  v_a = C_a^-1 d_a;
        choose argmax phi^T theta + alpha |phi|_{A_u^-1} + hidden_alpha |theta^v|_{C_a^-1}   (on Eq. 9).
    How v learns from answers, and the refit from the log, are our derivations: see `Hidden`.
    Symbols: C starts at `hidden_ridge` I, A at `ridge` I; v at random values of scale `init_scale`.
    Differs: nothing known without answers and refit.

    Args:
        catalogue: arms, with their observed features.
        num_users: U.
        hidden_dim: L, number of hidden features; 0 gives LinUCB.
        alpha: factor of the arm-level width, a number or a theory value.
        hidden_alpha: factor of the hidden features' width.
        ridge: weight of the penalty `|theta|^2`.
        hidden_ridge: weight of the penalty `|v|^2`.
        init_scale: standard deviation of the initial hidden features; small, but above 0.
        refit_every: rounds between refits; None: never.
        refit_sweeps: how often theta and v take turns in a refit.
        seed: seed of the initial hidden features.
    """

    representation: Hidden

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        hidden_dim: int = 5,
        alpha: Alpha = 0.5,
        hidden_alpha: float = 0.1,
        ridge: float = 1.0,
        hidden_ridge: float = 1.0,
        init_scale: float = 0.01,
        refit_every: int | None = None,
        refit_sweeps: int = 1,
        seed: int = 0,
    ) -> None:
        if not 0 <= hidden_alpha < float("inf"):
            raise ValueError(f"hidden_alpha must be a number of at least 0, got {hidden_alpha}")
        hidden = Hidden(
            hidden_dim,
            ridge=hidden_ridge,
            init_scale=init_scale,
            refit_every=refit_every,
            refit_sweeps=refit_sweeps,
        )
        super().__init__(catalogue, num_users, alpha=alpha, ridge=ridge, representation=hidden, seed=seed)
        self.hidden_alpha = hidden_alpha

    def extra(self, context: Context, theta: Tensor) -> Tensor:
        """[B, A] the hidden features' width."""
        return self.hidden_alpha * self.representation.width(context, theta)

    def row_size(self, context: Context) -> int:
        """Numbers per row that `scores` works on at once: features, and C^-1 of every candidate."""
        return super().row_size(context) + context.arms.shape[1] * self.representation.size**2
