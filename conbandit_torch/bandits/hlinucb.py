"""hLinUCB: a bandit that learns hidden features of the arms while it plays."""

from __future__ import annotations

import inspect
from typing import Any

from conbandit_torch.bandits.linear import LinearBandit
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.hidden import Hidden
from conbandit_torch.models.links import Identity, Link
from conbandit_torch.models.refits import RefitEvery
from conbandit_torch.models.representation import Representation


class HLinUCB(LinearBandit):
    """LinUCB on observed and learned hidden features of the arms (Wang, Wu, Wang, CIKM 2016).

    Rule, with phi_a = (x_a, v_a) and theta_u = (theta^x, theta^v), after user u saw arm a and gave r:
        A_u += phi phi^T,  b_u += r phi,  theta_u = A_u^-1 b_u;   then, with the new theta_u,
        C_a += theta^v theta^v^T,  d_a += theta^v (r - x^T theta^x),  v_a = C_a^-1 d_a;
        choose argmax phi^T theta + alpha |phi|_{A_u^-1} + hidden_alpha |theta^v|_{C_a^-1}   (on Eq. 9).
    How v learns from answers, and the refit from the log, are our derivations: see `Hidden`. With another
    `representation` (`HiddenOnTerms`: hidden features that live on key-terms) the rule is its own.
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
        refit_every: rounds between refits, a number or a `RefitSchedule`; None: never.
        refit_sweeps: how often theta and v take turns in a refit.
        representation: what the model sees of the arms, in place of hidden features per arm, with arguments
            of its own; None: hidden features per arm (`Hidden`), as the arguments above say.
        link: how means follow from scores: `Identity()`, or `Logistic(answer="at the mean")` for clicks.
        seed: seed of the initial hidden features.
    """

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
        refit_every: RefitEvery | None = None,
        refit_sweeps: int = 1,
        representation: Representation | None = None,
        link: Link = Identity(),
        seed: int = 0,
    ) -> None:
        own = {
            "hidden_dim": hidden_dim,
            "hidden_alpha": hidden_alpha,
            "hidden_ridge": hidden_ridge,
            "init_scale": init_scale,
            "refit_every": refit_every,
            "refit_sweeps": refit_sweeps,
        }
        if representation is None:
            representation = Hidden(
                hidden_dim,
                alpha=hidden_alpha,
                ridge=hidden_ridge,
                init_scale=init_scale,
                refit_every=refit_every,
                refit_sweeps=refit_sweeps,
            )
        else:
            refuse_what_the_representation_has(representation, own)
        super().__init__(
            catalogue,
            num_users,
            alpha=alpha,
            ridge=ridge,
            representation=representation,
            link=link,
            seed=seed,
        )


def refuse_what_the_representation_has(representation: Representation, own: dict[str, Any]) -> None:
    """Refuse arguments that describe hidden features per arm beside a representation that has its own."""
    defaults = inspect.signature(HLinUCB).parameters
    given = [name for name, value in own.items() if value != defaults[name].default]
    if given:
        kind = type(representation).__name__
        raise ValueError(
            f"{', '.join(given)} and a representation: these describe the hidden features per arm that are "
            f"built where no representation is given; set what you want on the {kind} itself"
        )
