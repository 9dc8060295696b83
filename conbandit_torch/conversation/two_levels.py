"""ConUCB's conversation: answers have a level of their own, which guides that of the arms."""

from __future__ import annotations

from typing import Any, ClassVar

from conbandit_torch.conversation.key_terms import KeyTermMixin
from conbandit_torch.conversation.schedules import LogSchedule, Schedule
from conbandit_torch.conversation.term_rules import OptimalTerm, Selection
from conbandit_torch.core.attributes import submodule
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.models.confidence import Alpha, check_alpha
from conbandit_torch.models.levels import Level
from conbandit_torch.models.ridge import RidgeRegression


class ConversationMixin(KeyTermMixin):
    """Asks about key-terms, and lets the answers guide any linear base bandit (ConUCB).

        class ConUCB(ConversationMixin, LinUCB): ...

    Rule:
        M~ = lam~ I + sum x~ x~^T,  b~ = sum r~ x~,  theta~ = M~^-1 (b~ + lam~ c)   (Eq. 6)
        M = (1-lam) I + lam sum x x^T,  theta = M^-1 (lam sum r x + (1-lam) theta~)   (Eq. 6)
        show argmax x^T theta + lam alpha |x|_{M^-1} + (1-lam) alpha~ |M^-1 x|_{M~^-1}   (Eq. 7)
    The base need not know: the mixin inserts a level into its chain (`levels`), from which estimates and
    widths follow, and sets ridge and weight of its regression. Of a base that samples, theta~ is sampled too.
    Symbols: lam `mix`, lam~ `term_ridge`, alpha~ `term_alpha`; c is the base's own centre, 0 in the paper.
    Differs: nothing known.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        mix: how much the arms' own rewards count against the key-terms' guidance, in (0, 1).
        term_ridge: weight of the key-term level's penalty.
        term_alpha: factor of the key-term level's width (where the base samples, of the sample's standard
            deviation), a number or a theory value (`Lemma3`).
        schedule: when to ask.
        select: what to ask.
        base: the base bandit's own arguments, without `ridge`: the arm level's is 1 - mix.
    """

    term_model: RidgeRegression = submodule()
    answer_level = 1
    not_arguments: ClassVar[dict[str, str]] = {
        "ridge": "with two levels the arm level's ridge is 1 - mix; set mix, or term_ridge for the key-term "
        "level"
    }

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        mix: float = 0.5,
        term_ridge: float = 1.0,
        term_alpha: Alpha = 0.25,
        schedule: Schedule = LogSchedule(5),
        select: Selection = OptimalTerm(),
        **base: Any,
    ) -> None:
        if not 0 < mix < 1:
            raise ValueError(f"mix must be in (0, 1), got {mix}")
        if not 0 < term_ridge < float("inf"):
            raise ValueError(f"term_ridge must be above 0 and finite, got {term_ridge}")
        if "ridge" in base:
            raise TypeError(
                f"{type(self).__name__} has no argument 'ridge'; {ConversationMixin.not_arguments['ridge']}"
            )
        super().__init__(catalogue, num_users, schedule=schedule, select=select, **base)
        self.arm_model.set_prior(ridge=1 - mix, weight=mix)
        self.term_alpha = check_alpha("term_alpha", term_alpha)
        self.term_model = self.arm_model.sibling(term_ridge)

    def levels(self) -> list[Level]:
        """The base's levels, with that of the key-terms inserted behind that of the arms."""
        arm, *inner = super().levels()
        return [arm, Level("term theta", self.term_model, self.term_alpha), *inner]
