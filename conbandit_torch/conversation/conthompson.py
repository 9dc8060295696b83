"""Thompson sampling with a conversation."""

from __future__ import annotations

from typing import Any

from conbandit_torch.bandits.linear import check_alpha
from conbandit_torch.bandits.thompson import LinThompson
from conbandit_torch.conversation.estimator import Estimator
from conbandit_torch.conversation.mixin import ConversationMixin
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.models.confidence import Alpha


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
        term_scale: factor of the key-term-level sample's standard deviation, likewise; None: 0.1, or what the
            estimator has.
        estimator: how an answer is learned; None: `TwoLevels(mix, term_ridge, term_alpha=term_scale)`.
        conversation: `mix` (0.5), `term_ridge` (1.0), `schedule`, `select` and `seed`, as in
            `ConversationMixin`.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        scale: Alpha = 0.1,
        term_scale: Alpha | None = None,
        estimator: Estimator | None = None,
        **conversation: Any,
    ) -> None:
        if "term_alpha" in conversation:
            raise ValueError("term_alpha must not be given: no width is added; term_scale is the sample's")
        if term_scale is not None:
            check_alpha("term_scale", term_scale)
        elif estimator is None:
            term_scale = 0.1
        super().__init__(
            catalogue, num_users, scale=scale, term_alpha=term_scale, estimator=estimator, **conversation
        )
