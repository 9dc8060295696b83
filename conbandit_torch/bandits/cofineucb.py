"""CoFineUCB: few coarse features guide many fine ones."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from conbandit_torch.bandits.linear import LinearBandit
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.context import Context
from conbandit_torch.models.confidence import Alpha, check_alpha
from conbandit_torch.models.levels import Level
from conbandit_torch.models.ridge import RidgeRegression


class CoFineUCB(LinearBandit):
    """LinUCB that explores few coarse features first, then all (Yue, Hong, Guestrin, ICML 2012).

    Rule, given a projection P [D, m]:
        M_c = coarse_ridge I + sum P^T x x^T P,  theta_c = M_c^-1 sum r P^T x,
        M = ridge I + sum x x^T,  theta = M^-1 (sum r x + ridge P theta_c),
        choose argmax x^T theta + alpha |x|_{M^-1} + coarse_alpha ridge |P^T M^-1 x|_{M_c^-1}.
    Symbols: P is the paper's U; its lambda `ridge`, lambda~ `coarse_ridge`.
    Differs: the paper learns P from former users' preferences; give such a P as `projection`. The default
    needs no users.

    Args:
        catalogue: arms; key-terms are not used.
        num_users: U.
        coarse_dim: m; None: that of `projection`, or 5 (D, if there are fewer features).
        projection: [D, m]; None: the m directions along which the arms' features are longest.
        alpha: factor of the fine width, a number or a theory value.
        coarse_alpha: factor of the coarse width, likewise.
        ridge: weight of the penalty `|theta - P theta_c|^2`.
        coarse_ridge: weight of the penalty `|theta_c|^2`.
        seed: not used; every policy takes one.
    """

    not_arguments: ClassVar[dict[str, str]] = {
        "representation": "its coarse features are a projection of the catalogue's, which would not follow "
        "features that are learned",
        "link": "both its levels learn every reward by least squares, which are for linear means",
    }
    projection: Tensor  # [D, m] P

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        coarse_dim: int | None = None,
        projection: Tensor | None = None,
        alpha: Alpha = 0.25,
        coarse_alpha: Alpha = 0.25,
        ridge: float = 1.0,
        coarse_ridge: float = 1.0,
        seed: int = 0,
    ) -> None:
        super().__init__(catalogue, num_users, alpha=alpha, ridge=ridge, seed=seed)
        self.coarse_alpha = check_alpha("coarse_alpha", coarse_alpha)
        like = catalogue.arm_features
        if projection is None:
            projection = main_directions(like, min(5, catalogue.dim) if coarse_dim is None else coarse_dim)
        elif (
            projection.ndim != 2
            or len(projection) != catalogue.dim
            or 0 in projection.shape
            or not projection.isfinite().all()
        ):
            raise ValueError(
                f"projection must hold finite numbers [D, m] with D = {catalogue.dim} features as in the "
                f"catalogue and m at least 1, got shape {list(projection.shape)}"
            )
        elif coarse_dim not in (None, projection.shape[1]):
            raise ValueError(f"coarse_dim is {coarse_dim}, but projection has {projection.shape[1]} columns")
        self.register_buffer("projection", projection.to(like))
        self.coarse_model = RidgeRegression(num_users, projection.shape[1], coarse_ridge, like=like)

    @property
    def draws(self) -> bool:
        """Only if the representation does."""
        return self.representation.draws

    def levels(self) -> list[Level]:
        """The fine level, shrunk towards P times the coarse one."""
        coarse = Level("coarse", self.coarse_model, self.coarse_alpha, self.projection)
        return [*super().levels(), coarse]

    def learn(self, context: Context, arm: Tensor, reward: Tensor) -> None:
        """Both regressions, with the arms shown."""
        super().learn(context, arm, reward)
        coarse = self.shown(context, arm) @ self.projection  # [B, m]
        self.coarse_model.update(self.models_of(context.who), coarse, reward)


def main_directions(features: Tensor, number: int) -> Tensor:
    """[D, number] right singular vectors of the features [N, D], that of the largest singular value first.

    Signs are chosen, so that they are the same everywhere: the largest entry of each is positive.
    """
    if not 1 <= number <= features.shape[1]:
        raise ValueError(f"coarse_dim must be from 1 to the {features.shape[1]} features, got {number}")
    X = features.double()
    vectors: Tensor = torch.linalg.eigh(X.T @ X).eigenvectors[:, -number:].flip(1)  # they come smallest first
    return vectors * vectors.gather(0, vectors.abs().argmax(0, keepdim=True)).sign()
