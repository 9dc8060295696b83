"""Thompson sampling with a conversation."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from conbandit_torch.bandits.base import check_alpha, scale
from conbandit_torch.bandits.thompson import LinThompson
from conbandit_torch.catalogue import Catalogue
from conbandit_torch.conversation.mixin import ConversationMixin
from conbandit_torch.records import Context
from conbandit_torch.regression import dot
from conbandit_torch.theory import Alpha


class ConThompson(ConversationMixin, LinThompson):
    """Thompson sampling at both levels of a conversation ([Zhang20], Related Work).

    Rule, with M~, theta~, M, b as in `ConUCB` (Eq. 6):
        sample theta~' ~ N(theta~, v~^2 M~^-1), then theta' ~ N(M^-1 (b + (1-lam) theta~'), v^2 M^-1),
        show argmax_a x^T theta'; ask by Eq. 8.
    The centre is sampled and no width is added. With `OneLevel` there is no theta~ to sample, only theta.
    Symbols: v `scale`, v~ `term_scale`, lam `mix`, lam~ `term_ridge`, b(t) `schedule`.
    Differs: the paper only sketches it; that key-terms are asked by Eq. 8, not by a sample, is our choice.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        scale: factor of the arm-level sample's standard deviation, a number or a theory value.
        term_scale: factor of the key-term-level sample's standard deviation, likewise.
        conversation: `mix` (0.5), `term_ridge` (1.0), `schedule`, `select`, `estimator` and `seed`, as in
            `ConversationMixin`.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        scale: Alpha = 0.1,
        term_scale: Alpha = 0.1,
        **conversation: Any,
    ) -> None:
        if "term_alpha" in conversation:
            raise ValueError("term_alpha must not be given: no width is added; term_scale is the sample's")
        super().__init__(catalogue, num_users, scale=scale, term_alpha=None, **conversation)
        self.term_scale = check_alpha("term_scale", term_scale)

    def bonus(self, context: Context, features: Tensor, solved: Tensor) -> Tensor:
        """[B, A] the base's sample, and `(1-lam) (M^-1 x)^T (theta~' - theta~)`: the centre's."""
        own = super().bonus(context, features, solved)
        if self.term_model is None:
            return own
        sample = dot(solved, self.deviation("term theta", self.term_model, context))
        return own + self.arm_model.ridge * scale(self.term_scale, self.term_model, context.who, sample)
