"""Bandits for clicks: probabilities, not linear means."""

from __future__ import annotations

from conbandit_torch.bandits.linucb import LinUCB
from conbandit_torch.bandits.thompson import LinThompson
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.links import Link, Logistic
from conbandit_torch.models.representation import Representation


class LogisticUCB(LinUCB):
    """LinUCB for clicks: the probability of one is the sigmoid of a linear score (UCB-GLM, Li et al. 2017).

    Rule, with mu(z) = 1 / (1 + exp(-z)), z = x^T theta, per observation of the user:
        H += mu'(z) x x^T,  theta += H^-1 x (r - mu(z)),  H = ridge I at first;
        now and then theta maximises the penalised likelihood of the user's log, and H is taken there;
        choose argmax x^T theta + alpha |x|_{H^-1}, as mu is monotone.
    All of it is the `link`: see `Logistic`. What the policy predicts (`predict`) is a probability.
    Symbols: alpha `alpha`; H is M of the linear policies.
    Differs: see `Logistic`.

    Args:
        catalogue: arms; key-terms are not used.
        num_users: U.
        alpha: factor of the confidence width of z, a number or a theory value.
        ridge: weight of the penalty `|theta|^2 / 2`.
        representation: what the model sees of the arms; None: the catalogue's features.
        link: how probabilities follow from scores, with the arguments of the exact fits.
        seed: not used; every policy takes one.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        alpha: Alpha = 0.5,
        ridge: float = 0.3,
        representation: Representation | None = None,
        link: Link = Logistic(),
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


class LogisticThompson(LinThompson):
    """Thompson sampling for clicks, from the normal approximation of what is known of theta.

    Rule: theta and H as in `LogisticUCB`; sample theta' ~ N(theta, v^2 H^-1), choose argmax x^T theta'.
    Symbols: v `scale`; with 1 the sample is from the Laplace approximation of the posterior.
    Differs: see `Logistic`; drawn once per user and round, as in `LinThompson`.

    Args:
        catalogue: arms; key-terms are not used.
        num_users: U.
        scale: factor of the sample's standard deviation, a number or a theory value.
        ridge: weight of the penalty `|theta|^2 / 2`.
        representation: what the model sees of the arms; None: the catalogue's features.
        link: how probabilities follow from scores, with the arguments of the exact fits.
        seed: seed of the samples.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        scale: Alpha = 0.5,
        ridge: float = 0.3,
        representation: Representation | None = None,
        link: Link = Logistic(),
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            scale=scale,
            ridge=ridge,
            representation=representation,
            link=link,
            seed=seed,
        )
