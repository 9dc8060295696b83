"""Bandits for users who change: what is old counts less, or not at all."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from conbandit_torch.bandits.linear import LinearBandit
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.context import Context
from conbandit_torch.core.questions import About
from conbandit_torch.models.aging import AgingRegression, DiscountedRegression, WindowedRegression
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.levels import Level
from conbandit_torch.models.representation import Representation


class AgingBandit(LinearBandit):
    """A linear bandit whose regressions are told the time: all that they know ages with the user's rounds.

    Answers age as rewards do. So in a conversation of two levels both age in every round, with an answer or
    without: what a user said long ago guides little.

    Subclasses set `arm_model`, from which a conversation makes the other levels.
    """

    not_arguments: ClassVar[dict[str, str]] = {
        "link": "what has aged is a sum of squares, and exact fits of clicks would bring it back: it is for "
        "linear means"
    }
    arm_model: AgingRegression

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        alpha: Alpha,
        ridge: float,
        representation: Representation | None,
        seed: int,
    ) -> None:
        super().__init__(
            catalogue, num_users, alpha=alpha, ridge=ridge, representation=representation, seed=seed
        )
        if self.representation.learns:
            raise ValueError(
                f"{type(self).__name__} needs a representation that does not learn, got "
                f"{type(self.representation).__name__}: its refits would bring back what has aged"
            )

    @property
    def draws(self) -> bool:
        """Only if the representation does."""
        return self.representation.draws

    def learn(self, context: Context, arm: Tensor, reward: Tensor) -> None:
        """Learn the rewards as of the context's rounds."""
        self._tell_time(context, 0)
        super().learn(context, arm, reward)

    def learn_answer(self, context: Context, about: About, value: Tensor) -> None:
        """Learn the answers as of the context's rounds."""
        self._tell_time(context, self.answer_level)
        super().learn_answer(context, about, value)

    def _tell_time(self, context: Context, learning: int) -> None:
        for number, level in enumerate(self.levels()):
            assert isinstance(level.model, AgingRegression)  # siblings of one, for the type checker
            level.model.tell_time(self.models_of(context.who), context.rounds, learns=number == learning)


class DiscountedLinUCB(AgingBandit):
    """LinUCB whose observations lose weight with every round (D-LinUCB, Russac, Vernade, Cappe 2019).

    Rule, in the user's round t:
        V_t = g V_{t-1} + x x^T + (1-g) ridge I,  b_t = g b_{t-1} + r x,  theta = V_t^-1 b_t,
        W_t = g^2 W_{t-1} + x x^T + (1-g^2) ridge I,
        choose argmax x^T theta + alpha |V^-1 x|_W.
    Symbols: gamma `gamma`, lambda `ridge`; beta_t is `alpha`, a constant by default.
    Differs: time is the user's own rounds, and an observation counts by the round that it is of. So a reward
    that comes late has aged like the others, and a round's answers are as old as its reward. The order in
    which rewards come does not matter. The term with the ridge is of full rank, and Sherman-Morrison does not
    do it: V^-1 is computed from V after every observation, in float64, which is what the equations say.

    Args:
        catalogue: arms; key-terms are not used.
        num_users: U.
        gamma: what a round leaves of an observation's weight, in (0, 1]; about 1 / (1 - gamma) rounds count.
        alpha: factor of the confidence width, a number or a theory value.
        ridge: weight of the penalty `|theta|^2`; it does not age.
        representation: what the model sees of the arms, one that does not learn; None: the catalogue's
            features.
        seed: not used; every policy takes one.
    """

    arm_model: DiscountedRegression

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        gamma: float = 0.99,
        alpha: Alpha = 0.5,
        ridge: float = 1.0,
        representation: Representation | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue, num_users, alpha=alpha, ridge=ridge, representation=representation, seed=seed
        )
        old = self.arm_model
        self.arm_model = DiscountedRegression(num_users, old.dim, ridge, gamma=gamma, like=old.moment)

    def levels(self) -> list[Level]:
        """One regression; its width is an `extra`."""
        return [Level("theta", self.arm_model)]

    def extra(self, context: Context, theta: Tensor) -> Tensor | None:
        """[B, A] `alpha |V^-1 x|_W`, and what the representation is unsure of."""
        width = context.map(self._width, 2 * self.row_size(context))
        more = super().extra(context, theta)
        return width if more is None else width + more

    def _width(self, context: Context) -> Tensor:
        who = self.models_of(context.who)
        norm = self.arm_model.discounted_norm(who, self.representation.of(context))
        return Level("theta", self.arm_model, self.alpha).scaled(who, norm * self.arm_model.weight)


class WindowedLinUCB(AgingBandit):
    """LinUCB that knows only the last rounds (SW-LinUCB, Russac, Vernade, Cappe 2019).

    Rule, in the user's round t, with the observations of the last `window` rounds:
        V = ridge I + sum x x^T,  b = sum r x,  theta = V^-1 b,
        choose argmax x^T theta + alpha |x|_{V^-1}.
    Symbols: tau `window`, lambda `ridge`; beta_t is `alpha`, a constant by default.
    Differs: time is the user's own rounds, and an observation counts by the round that it is of. Where
    answers enter the regression too, it keeps the newest `window` observations of the last `window` rounds.

    Args:
        catalogue: arms; key-terms are not used.
        num_users: U.
        window: rounds after which an observation is forgotten; the state holds that many vectors per user.
        alpha: factor of the confidence width, a number or a theory value.
        ridge: weight of the penalty `|theta|^2`.
        representation: what the model sees of the arms, one that does not learn; None: the catalogue's
            features.
        seed: not used; every policy takes one.
    """

    arm_model: WindowedRegression

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        window: int = 100,
        alpha: Alpha = 0.5,
        ridge: float = 1.0,
        representation: Representation | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue, num_users, alpha=alpha, ridge=ridge, representation=representation, seed=seed
        )
        old = self.arm_model
        self.arm_model = WindowedRegression(num_users, old.dim, ridge, window=window, like=old.moment)
