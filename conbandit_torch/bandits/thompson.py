"""Linear Thompson sampling."""

from __future__ import annotations

from torch import Tensor

from conbandit_torch.bandits.candidates import Candidates
from conbandit_torch.bandits.linear import LinearBandit, check_alpha, scale
from conbandit_torch.core.algebra import dot
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.context import Context
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.ridge import RidgeRegression


class LinThompson(LinearBandit):
    """The contextual bandit that plays a sampled theta as if it were true (Agrawal, Goyal 2013).

    Rule:
        M = ridge I + weight sum x x^T,  b = weight sum r x,  theta = M^-1 b,
        sample theta' ~ N(theta, v^2 M^-1), choose argmax x^T theta'.
    One theta' per user and round: whoever asks again within the round meets the same draw, on the state as it
    then is. What the policy believes (`theta`, `predict`) is the mean, never a sample.
    Symbols: v `scale`; the paper's B is M with ridge and weight 1.
    Differs: v is a constant by default, not the value of the paper's theory, which grows with D and log t.

    Args:
        catalogue: arms; key-terms are not used.
        num_users: U.
        scale: factor of the sample's standard deviation, a number or a theory value.
        ridge: weight of the penalty `|theta|^2`.
        weight: weight of every observation.
        seed: seed of the samples.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        scale: Alpha = 0.1,
        ridge: float = 1.0,
        weight: float = 1.0,
        seed: int = 0,
    ) -> None:
        super().__init__(catalogue, num_users, ridge=ridge, weight=weight, root=True, seed=seed)
        self.scale = check_alpha("scale", scale)

    def bonus(self, candidates: Candidates) -> Tensor:
        """[B, A] `x^T (theta' - theta)`: a sample in place of a width."""
        context = candidates.context
        sample = dot(candidates.features, self.deviation("theta", self.arm_model, context))
        return scale(self.scale, self.arm_model, context.who, sample)

    def centre_bonus(
        self,
        level: str,
        model: RidgeRegression,
        alpha: Alpha,
        candidates: Candidates,
        projection: Tensor | None = None,
    ) -> Tensor:
        """[B, A] `ridge x^T M^-1 P (c' - c)`: a centre P c that is an estimate is sampled too."""
        context = candidates.context
        sample = self.deviation(level, model, context)  # [B, m]
        shift = sample if projection is None else sample @ projection.T  # [B, D]
        solved = self.arm_model.solve(context.who, shift[:, None]).squeeze(1)
        return self.arm_model.ridge * scale(alpha, model, context.who, dot(candidates.features, solved))

    def deviation(self, purpose: str, model: RidgeRegression, context: Context) -> Tensor:
        """[B, D] of N(0, M^-1) of the model, a function of seed, purpose, user and the user's round."""
        rounds = self.rounds[context.who]
        normal = self.stream(purpose).normal(context.users, rounds, model.dim)  # [B, D]
        return model.deviation(context.who, normal)
