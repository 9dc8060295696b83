"""Linear Thompson sampling."""

from __future__ import annotations

from torch import Tensor

from conbandit_torch.bandits.linear import LinearBandit
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.context import Context
from conbandit_torch.kernels import kernels_for
from conbandit_torch.models import levels as chain
from conbandit_torch.models.confidence import Alpha, check_alpha
from conbandit_torch.models.levels import Level
from conbandit_torch.models.links import Identity, Link
from conbandit_torch.models.representation import Representation


class LinThompson(LinearBandit):
    """The contextual bandit that plays a sampled theta as if it were true (Agrawal, Goyal 2013).

    Rule:
        M = ridge I + sum x x^T,  b = sum r x,  theta = M^-1 b,
        sample theta' ~ N(theta, v^2 M^-1), choose argmax x^T theta'.
    One theta' per user and round: a second call within the round meets the same draw, on the state as it
    then is. What the policy believes (`theta`, `predict`) is the mean, never a sample. With a conversation
    all levels are sampled.
    Symbols: v `scale`; the paper's B is M with ridge 1.
    Differs: v is a constant by default, not the value of the paper's theory, which grows with D and log t.

    Args:
        catalogue: arms; key-terms are not used.
        num_users: U.
        scale: factor of the sample's standard deviation, a number or a theory value.
        ridge: weight of the penalty `|theta|^2`.
        representation: what the model sees of the arms; None: the catalogue's features.
        link: how means follow from scores: `Identity()`, or `Logistic()` for clicks.
        seed: seed of the samples.
    """

    optimistic = False

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        scale: Alpha = 0.1,
        ridge: float = 1.0,
        representation: Representation | None = None,
        link: Link = Identity(),
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue, num_users, ridge=ridge, representation=representation, link=link, root=True, seed=seed
        )
        self.scale = check_alpha("scale", scale)

    def levels(self) -> list[Level]:
        """One level, whose factor is the sample's."""
        return [Level("theta", self.arm_model, self.scale)]

    def preference(self, context: Context) -> Tensor:
        """[B, D] theta', a function of seed, user and the user's round."""
        levels = self.levels()
        kernels, at, like = kernels_for(context.users), (context.users, context.rounds), self.arm_model.moment
        normals = [kernels.normal(self.stream(level.name), *at, level.model.dim, like) for level in levels]
        return self.theta(context.who) + chain.deviation(levels, self.models_of(context.who), normals)
