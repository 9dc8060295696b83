"""Bandits on a network: its outputs are the features of a linear model per user."""

from __future__ import annotations

from conbandit_torch.bandits.linucb import LinUCB
from conbandit_torch.bandits.thompson import LinThompson
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.links import Identity, Link
from conbandit_torch.models.network import Network
from conbandit_torch.models.representation import Representation


class NeuralLinear(LinUCB):
    """LinUCB on what a network makes of the arms, shared by all users (Riquelme et al. 2018).

    Rule: `phi_a = (x_a, s f_w(x_a))`; per user M = ridge I + sum phi phi^T, b = sum r phi, theta = M^-1 b;
        choose argmax phi^T theta + alpha |phi|_{M^-1};
        now and then w is trained on everybody's log, and every M and b rebuilt on the new phi: see `Network`.
    Symbols: see `Network`.
    Differs: see `Network`. The width knows nothing of what is uncertain about w.

    Args:
        catalogue: arms; key-terms are not used.
        num_users: U.
        alpha: factor of the confidence width, a number or a theory value.
        ridge: weight of the penalty `|theta|^2`.
        representation: the network, with the arguments of its training; None: `Network()`.
        link: how means follow from scores: `Identity()`, or `Logistic()` for clicks.
        seed: seed of the network's weights and of its training.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        alpha: Alpha = 0.25,
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
            representation=Network() if representation is None else representation,
            link=link,
            seed=seed,
        )


class NeuralThompson(LinThompson):
    """Thompson sampling on what a network makes of the arms, shared by all users (Riquelme et al. 2018).

    Rule: phi, M and theta as in `NeuralLinear`;
        sample theta' ~ N(theta, v^2 M^-1), choose argmax phi^T theta'.
    Symbols: v `scale`.
    Differs: see `Network`; Riquelme et al. draw the noise's variance too.

    Args:
        catalogue: arms; key-terms are not used.
        num_users: U.
        scale: factor of the sample's standard deviation, a number or a theory value.
        ridge: weight of the penalty `|theta|^2`.
        representation: the network, with the arguments of its training; None: `Network()`.
        link: how means follow from scores: `Identity()`, or `Logistic()` for clicks.
        seed: seed of samples, of the network's weights and of its training.
    """

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
            catalogue,
            num_users,
            scale=scale,
            ridge=ridge,
            representation=Network() if representation is None else representation,
            link=link,
            seed=seed,
        )
