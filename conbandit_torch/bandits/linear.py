"""What every linear policy shares."""

from __future__ import annotations

import torch
from torch import Tensor

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.bandits.candidates import Candidates
from conbandit_torch.core.algebra import quadratic, sqrt_
from conbandit_torch.core.blocks import EVERY_ROW, Index
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.checks import expect_tensor
from conbandit_torch.core.context import Context
from conbandit_torch.models.confidence import Alpha, Confidence
from conbandit_torch.models.ridge import RidgeRegression


class LinearBandit(Bandit):
    """A ridge regression per user and an optimistic score; with alpha 0, greedy.

    Rule:
        M = ridge I + weight sum x x^T,  b = weight sum r x,
        theta = M^-1 (b + ridge centre),
        choose argmax x^T theta + bonus,  bonus = alpha |x|_{M^-1} unless overridden.

    Hooks to override, each of which composes with the conversation mixin:
        features: what the model sees of the candidates;
        term_features: the same for key-terms;
        centre: what theta is shrunk towards;
        learn, learn_terms: what rewards and answers do;
        radius: the arm-level width, which the mixin weighs against its own;
        bonus: everything added to `x^T theta`;
        centre_bonus: what is added where the centre is an estimate too.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        alpha: factor of the confidence width, a number or a theory value (`Lemma1`).
        ridge: weight of the penalty.
        weight: weight of every observation.
        dim: length of the vectors that `features` gives; None: the catalogue's.
        root: whether the regressions keep a root of M^-1, for policies that draw from them every round.
        seed: seed of the policy's own random draws, if it makes any.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        alpha: Alpha = 0.0,
        ridge: float = 1.0,
        weight: float = 1.0,
        dim: int | None = None,
        root: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(catalogue, num_users, seed=seed)
        self.alpha = check_alpha("alpha", alpha)
        dim = catalogue.dim if dim is None else dim
        self.arm_model = RidgeRegression(
            num_users, dim, ridge, weight, root=root, like=catalogue.arm_features
        )

    def features(self, context: Context) -> Tensor:
        """[B, A, D] what the model sees of the candidates."""
        return context.arm_features

    def term_features(self, terms: Index = EVERY_ROW) -> Tensor:
        """[n, D] what the model sees of the key-terms `terms` (all of them: [K, D])."""
        return self.catalogue.term_features[terms]

    def centre(self, who: Index) -> Tensor | None:
        """[B, D] what the users' theta is shrunk towards; None is 0."""
        return None

    def checked_features(self, context: Context) -> Tensor:
        """[B, A, D] `features`; an error, if they do not fit the model."""
        shape = (*context.arms.shape, self.arm_model.dim)
        return self._fitting("features", self.features(context), shape, _DIM_HINT)

    def checked_term_features(self, terms: Index = EVERY_ROW) -> Tensor:
        """[n, D] `term_features`; an error, if they do not fit the model."""
        number = len(terms) if isinstance(terms, Tensor) else self.catalogue.num_terms
        shape = (number, self.arm_model.dim)
        return self._fitting("term_features", self.term_features(terms), shape, _TERMS_HINT)

    def theta(self, who: Index) -> Tensor:
        """[B, D] the users' estimated preferences."""
        return self.arm_model.coefficients(who, self._checked_centre(who))

    @property
    def answer_model(self) -> RidgeRegression:
        """The regression that answers about key-terms enter; a mixin may have one of its own."""
        return self.arm_model

    def answer_theta(self, who: Index) -> Tensor:
        """[B, D] the preferences by which answers are predicted, `r~ = x~^T theta`."""
        return self.theta(who)

    def radius(self, candidates: Candidates) -> Tensor:
        """[B, A] arm-level confidence width."""
        if self.alpha == 0:
            return torch.zeros_like(candidates.mean)  # without the product that widths take
        return scale(self.alpha, self.arm_model, candidates.context.who, candidates.norm)

    def bonus(self, candidates: Candidates) -> Tensor:
        """[B, A] what is added to `x^T theta`."""
        return self.radius(candidates)

    def centre_bonus(
        self,
        level: str,
        model: RidgeRegression,
        alpha: Alpha,
        candidates: Candidates,
        projection: Tensor | None = None,
    ) -> Tensor:
        """[B, A] what is added for a centre P c if `model` estimates c: `ridge alpha |P^T M^-1 x|_{G^-1}`.

        Whoever has such a centre (CoFineUCB, a conversation) adds this to `bonus`; a bandit that samples in
        place of adding widths overrides it, and so samples every such centre.

        Args:
            level: the centre's name, for random streams.
            model: c's regression, with matrix G.
            alpha: factor of the width, or of the sample's deviation.
            candidates: what to score.
            projection: [D, m] P; None: the identity.
        """
        who = candidates.context.who
        solved = candidates.solved if projection is None else candidates.solved @ projection  # [B, A, m]
        return self.arm_model.ridge * scale(alpha, model, who, model.norm(who, solved))

    def scores(self, context: Context) -> Tensor:
        """[B, A] `x^T theta + bonus`."""
        candidates = Candidates(self, context)
        bonus = self._fitting("bonus", self.bonus(candidates), context.arms.shape)
        return candidates.mean + bonus

    def learn(self, context: Context, arm: Tensor, reward: Tensor) -> None:
        """Rank-one update of the users' regressions with the arms shown."""
        shown = self.checked_features(context.pick(arm)).squeeze(1)  # [B, D]
        self.arm_model.update(context.who, shown, reward)

    def learn_terms(self, context: Context, terms: Tensor, answer: Tensor) -> None:
        """Learn that each row answered `answer` [B] when asked about the key-term `terms` [B]."""
        self.answer_model.update(context.who, self.checked_term_features(terms), answer)

    def width(self, context: Context) -> int:
        """Numbers a row that `scores` works on at once."""
        return context.arms.shape[1] * self.arm_model.dim

    def predict(self, context: Context) -> Tensor:
        """[B, A] `x^T theta`."""
        return context.map(lambda block: Candidates(self, block).mean, self.width(context))

    def coefficients(self) -> Tensor:
        """[U, D] theta."""
        return self.theta(slice(0, self.num_users))

    def term_radii(self, context: Context) -> Tensor:
        """[B, K] `|x~_k|_{G^-1}` of all key-terms, at the level that answers enter."""
        inverse = self.answer_model.inverse[context.who]
        return sqrt_(quadratic(inverse, self.checked_term_features()))

    def diagnostics(self, context: Context) -> dict[str, Tensor]:
        """Mean arm-level width over the candidates of the first users."""
        some = context.take(SAMPLE)
        return {"width/arm": self.arm_model.norm(some.who, self.features(some)).mean()}

    def _checked_centre(self, who: Index) -> Tensor | None:
        centre = self.centre(who)
        if centre is None:
            return None
        number = len(who) if isinstance(who, Tensor) else len(range(self.num_users)[who])
        return self._fitting("centre", centre, (number, self.arm_model.dim))

    def _fitting(self, hook: str, given: Tensor, shape: tuple[int, ...], hint: str = "") -> Tensor:
        source = f"{type(self).__name__}.{hook}"
        return expect_tensor(source, given, shape, self.arm_model.moment.dtype, hint)


SAMPLE = slice(0, 64)  # rows that diagnostics look at: enough for a mean, and cheap beside a round
_DIM_HINT = "; their length is `dim` of LinearBandit's constructor, by default the catalogue's"
_TERMS_HINT = "; a bandit that overrides features must override term_features to match"


def scale(alpha: Alpha, model: RidgeRegression, who: Index, norm: Tensor) -> Tensor:
    """`alpha` times the norms [B, A] of the models `who`."""
    if isinstance(alpha, Confidence):
        return alpha(model, who)[:, None] * norm
    return alpha * norm


def check_alpha(name: str, alpha: Alpha) -> Alpha:
    """`alpha`, if it can be the factor of a width."""
    if not isinstance(alpha, Confidence) and not 0 <= alpha < float("inf"):
        raise ValueError(f"{name} must be a number of at least 0 or a Confidence, got {alpha}")
    return alpha
