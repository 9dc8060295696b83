"""How an answer is learned: at a level of its own, which guides the arm level, or at the arm level."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from torch import Tensor

from conbandit_torch.bandits.candidates import Candidates
from conbandit_torch.bandits.linear import check_alpha
from conbandit_torch.core.blocks import Index
from conbandit_torch.core.context import Context
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.ridge import RidgeRegression

if TYPE_CHECKING:
    from conbandit_torch.conversation.mixin import ConversationMixin


class Estimator(ABC):
    """Where answers go and what they change. Without state of its own: that is the policy's."""

    @abstractmethod
    def arm_level(self, ridge: float | None) -> tuple[float, float]:
        """Ridge and sample weight of the base's regression; `ridge` is the user's, if given."""

    @abstractmethod
    def term_model(self, policy: ConversationMixin) -> RidgeRegression | None:
        """A new regression for the answers; None: they enter the base's."""

    @abstractmethod
    def centre(self, policy: ConversationMixin, who: Index, base: Tensor | None) -> Tensor | None:
        """[B, D] what theta is shrunk towards, given the base's own centre."""

    @abstractmethod
    def answer_theta(self, policy: ConversationMixin, who: Index) -> Tensor:
        """[B, D] the preferences by which answers are predicted."""

    @abstractmethod
    def radius(self, base: Tensor) -> Tensor:
        """[B, A] the arm level's width, given the base's own."""

    @abstractmethod
    def bonus(self, policy: ConversationMixin, candidates: Candidates) -> Tensor | None:
        """[B, A] what is added to `x^T theta`, beside what the base adds; None: nothing."""

    @abstractmethod
    def vectors(self, policy: ConversationMixin, context: Context) -> Tensor:
        """P [B, A, D] of the selection rules: `|p_a|_{G^-1}` is what answers can shrink."""


class TwoLevels(Estimator):
    """A key-term level that guides the arm level (ConUCB).

    Rule:
        M~ = lam~ I + sum x~ x~^T,  b~ = sum r~ x~,  theta~ = M~^-1 (b~ + lam~ c)   (Eq. 6)
        M = (1-lam) I + lam sum x x^T,  theta = M^-1 (lam sum r x + (1-lam) theta~)   (Eq. 6)
        choose argmax x^T theta + lam alpha |x|_{M^-1} + (1-lam) alpha~ |M^-1 x|_{M~^-1}   (Eq. 7)
    Symbols: lam `mix`, lam~ `term_ridge`, alpha~ `term_alpha`; c is the base's own centre, 0 in the
    paper.
    Differs: nothing known.

    Args:
        mix: how much the arms' own rewards count against the key-terms' guidance, in (0, 1).
        term_ridge: weight of the key-term level's penalty.
        term_alpha: factor of the key-term level's width (where the base samples, of the sample's standard
            deviation), a number or a theory value (`Lemma3`).
    """

    def __init__(self, mix: float = 0.5, term_ridge: float = 1.0, term_alpha: Alpha = 0.25) -> None:
        if not 0 < mix < 1:
            raise ValueError(f"mix must be in (0, 1), got {mix}")
        if not 0 < term_ridge < float("inf"):
            raise ValueError(f"term_ridge must be above 0 and finite, got {term_ridge}")
        self.mix, self.term_ridge = mix, term_ridge
        self.term_alpha = check_alpha("term_alpha", term_alpha)

    def arm_level(self, ridge: float | None) -> tuple[float, float]:
        """Ridge `1-lam` and weight `lam`."""
        if ridge is not None:
            raise ValueError(
                f"ridge must not be given (got {ridge}): with two levels the arm level's ridge is "
                "1 - mix; set mix, or term_ridge for the key-term level"
            )
        return 1 - self.mix, self.mix

    def term_model(self, policy: ConversationMixin) -> RidgeRegression:
        """`M~` and `b~`."""
        arm_model = policy.arm_model
        root = arm_model.root is not None  # a policy that samples theta samples theta~ too
        return RidgeRegression(
            policy.num_users, arm_model.dim, self.term_ridge, root=root, like=arm_model.moment
        )

    def centre(self, policy: ConversationMixin, who: Index, base: Tensor | None) -> Tensor:
        """theta~, itself shrunk towards the base's own centre."""
        return policy.answer_model.coefficients(who, base)  # Eq. 6

    def answer_theta(self, policy: ConversationMixin, who: Index) -> Tensor:
        """theta~, which is what theta is shrunk towards."""
        centre = policy.centre(who)
        assert centre is not None  # this estimator's own, for the type checker
        return centre

    def radius(self, base: Tensor) -> Tensor:
        """The second term of Eq. 7."""
        return self.mix * base

    def bonus(self, policy: ConversationMixin, candidates: Candidates) -> Tensor:
        """The last term of Eq. 7; a base that samples has a sampled theta~ instead."""
        return policy.centre_bonus("term theta", policy.answer_model, self.term_alpha, candidates)  # Eq. 7

    def vectors(self, policy: ConversationMixin, context: Context) -> Tensor:
        """`X M^-1`."""
        return policy.arm_model.solve(context.who, policy.checked_features(context))


class OneLevel(Estimator):
    """Answers enter the arm level's regression like rewards (ConLinUCB, Wang et al. 2023).

    Rule: M += x~ x~^T, b += r~ x~; score as the base's.
    Symbols: none of its own; `ridge` is the base's.
    Differs: nothing known.
    """

    def arm_level(self, ridge: float | None) -> tuple[float, float]:
        """The user's ridge (1 by default) and weight 1."""
        return 1.0 if ridge is None else ridge, 1.0

    def term_model(self, policy: ConversationMixin) -> None:
        """None: answers enter the base's regression."""
        return

    def centre(self, policy: ConversationMixin, who: Index, base: Tensor | None) -> Tensor | None:
        """The base's own."""
        return base

    def answer_theta(self, policy: ConversationMixin, who: Index) -> Tensor:
        """theta: there is one level."""
        return policy.theta(who)

    def radius(self, base: Tensor) -> Tensor:
        """The base's own."""
        return base

    def bonus(self, policy: ConversationMixin, candidates: Candidates) -> None:
        """Nothing."""
        return

    def vectors(self, policy: ConversationMixin, context: Context) -> Tensor:
        """`X`."""
        return policy.checked_features(context)
