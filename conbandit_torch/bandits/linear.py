"""What every linear policy shares."""

from __future__ import annotations

from torch import Tensor

from conbandit_torch.algebra import dot, quadratic, weighted_norm
from conbandit_torch.bandits.base import Bandit
from conbandit_torch.catalogue import Catalogue
from conbandit_torch.records import EVERY_ROW, Context, Index, expect_tensor
from conbandit_torch.regression import RidgeRegression
from conbandit_torch.theory import Alpha, Confidence


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
        seed: int = 0,
    ) -> None:
        super().__init__(catalogue, num_users, seed=seed)
        self.alpha = check_alpha("alpha", alpha)
        self.arm_model = RidgeRegression(
            num_users, catalogue.dim if dim is None else dim, ridge, weight, like=catalogue.arm_features
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

    def radius(self, context: Context, features: Tensor, solved: Tensor) -> Tensor:
        """[B, A] arm-level confidence width, from x and `M^-1 x` [B, A, D]."""
        return scale(self.alpha, self.arm_model, context.who, weighted_norm(features, solved))

    def bonus(self, context: Context, features: Tensor, solved: Tensor) -> Tensor:
        """[B, A] what is added to `x^T theta`, from x and `M^-1 x` [B, A, D]."""
        return self.radius(context, features, solved)

    def centre_bonus(
        self, level: str, model: RidgeRegression, alpha: Alpha, context: Context, solved: Tensor
    ) -> Tensor:
        """[B, A] what is added for a centre that `model` estimates: `ridge alpha |M^-1 x|_{G^-1}`.

        Whoever has such a centre (CoFineUCB, a conversation) adds this to `bonus`; a bandit that samples in
        place of adding widths overrides it, and so samples every such centre.

        Args:
            level: the centre's name, for random streams.
            model: the centre's regression, with matrix G.
            alpha: factor of the width, or of the sample's deviation.
            context: whose candidates.
            solved: [B, A, n] `M^-1 x`, in the model's coordinates.
        """
        norm = weighted_norm(solved, model.solve(context.who, solved))
        return self.arm_model.ridge * scale(alpha, model, context.who, norm)

    def scores(self, context: Context) -> Tensor:
        """[B, A] `x^T theta + bonus`."""
        features = self.checked_features(context)  # [B, A, D]
        solved = self.arm_model.solve(context.who, features)  # [B, A, D] M^-1 x
        bonus = self._fitting("bonus", self.bonus(context, features, solved), context.arms.shape)
        return self._mean(context, features) + bonus

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

        def block_mean(block: Context) -> Tensor:
            return self._mean(block, self.checked_features(block))

        return context.map(block_mean, self.width(context))

    def coefficients(self) -> Tensor:
        """[U, D] theta."""
        return self.theta(slice(0, self.num_users))

    def term_radii(self, context: Context) -> Tensor:
        """[B, K] `|x~_k|_{G^-1}` of all key-terms, at the level that answers enter."""
        inverse = self.answer_model.inverse[context.who]
        return quadratic(inverse, self.checked_term_features()).clamp_min(0).sqrt()

    def diagnostics(self, context: Context) -> dict[str, Tensor]:
        """Mean arm-level width over the first block's candidates."""
        block = next(context.blocks(self.width(context)))
        features = self.features(block)
        solved = self.arm_model.solve(block.who, features)
        return {"width/arm": weighted_norm(features, solved).mean()}

    def _mean(self, context: Context, features: Tensor) -> Tensor:
        """[B, A] `x^T theta`, from x [B, A, D]."""
        return dot(features, self.theta(context.who))

    def _checked_centre(self, who: Index) -> Tensor | None:
        centre = self.centre(who)
        if centre is None:
            return None
        number = len(who) if isinstance(who, Tensor) else len(self.rounds[who])
        return self._fitting("centre", centre, (number, self.arm_model.dim))

    def _fitting(self, hook: str, given: Tensor, shape: tuple[int, ...], hint: str = "") -> Tensor:
        source = f"{type(self).__name__}.{hook}"
        return expect_tensor(source, given, shape, self.arm_model.moment.dtype, hint)


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
