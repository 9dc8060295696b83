"""LinUCB."""

from __future__ import annotations

from conbandit_torch.bandits.linear import LinearBandit
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.links import Identity, Link
from conbandit_torch.models.representation import Representation


class LinUCB(LinearBandit):
    """The contextual bandit that shows the arm with the highest upper confidence bound.

    Rule:
        A = ridge I + sum x x^T,  b = sum r x,  theta = A^-1 b,
        choose argmax x^T theta + alpha |x|_{A^-1}   (Eq. 3).
    Symbols: alpha_t `alpha`.
    Differs: nothing known. (Li et al. 2010 keep a theta per arm; here, as in [Zhang20], per user.)

    Args:
        catalogue: arms; key-terms are not used.
        num_users: U.
        alpha: factor of the confidence width, a number or a theory value.
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
        alpha: Alpha = 0.5,
        ridge: float = 1.0,
        representation: Representation | None = None,
        link: Link = Identity(),
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            alpha=alpha,
            ridge=ridge,
            representation=representation,
            link=link,
            seed=seed,
        )

    @property
    def draws(self) -> bool:
        """Only if the representation does."""
        return self.representation.draws
