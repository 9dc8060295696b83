"""Questions that compare two key-terms, for any conversing bandit."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor

from conbandit_torch.bandits.linucb import LinUCB
from conbandit_torch.conversation.asking import Asking
from conbandit_torch.conversation.key_terms import KeyTermMixin
from conbandit_torch.conversation.mixins import checked_part
from conbandit_torch.conversation.pair_rules import BestDifference, PairSelection
from conbandit_torch.conversation.schedules import LogSchedule, Schedule
from conbandit_torch.conversation.two_levels import ConversationMixin
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.context import Context
from conbandit_torch.core.questions import About, Comparison, Terms
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.representation import Representation

LearnedAs = Literal["winner", "both", "difference"]


class ComparisonMixin(KeyTermMixin):
    """Asks which of two key-terms the user likes better, in place of how much they like one.

    It stands left of the mixin that says where answers go:

        class RelativeConUCB(ComparisonMixin, ConversationMixin, LinUCB): ...

    Rule: of two key-terms f and s the user names w, and l is the other one. Learned are
        "winner"       (x~_w, 1)
        "both"         (x~_w, 1) and (x~_l, 0)
        "difference"   (x~_w - x~_l, 1)
    and of an answer that names neither (0.5) likewise (x~_f, 0.5); (x~_f, 0.5) and (x~_s, 0.5);
    (x~_f - x~_s, 0). Where a link is not linear, the difference z = x~_w - x~_l is learned with the chance
    `mu(z^T theta~)` that w wins (ConDuel, KDD 2024); of an answer that names neither it is 0.5.
    Symbols: none.
    Differs: see `RelativeConUCB`. What is learned of neutral answers follows ArcUCB for "difference"; for the
    others it is our reading.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        pairs: which two key-terms to compare.
        learn_as: what is learned of an answer.
        base: arguments of the mixin and the base bandit to its right.
    """

    not_arguments: ClassVar[dict[str, str]] = {
        "select": "a comparison is of two key-terms, which `pairs` selects"
    }

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        pairs: PairSelection = BestDifference(),
        learn_as: LearnedAs = "difference",
        **base: Any,
    ) -> None:
        if "select" in base:
            raise TypeError(
                f"{type(self).__name__} has no argument 'select': {ComparisonMixin.not_arguments['select']}"
            )
        if learn_as not in get_args(LearnedAs):
            raise ValueError(f"learn_as must be one of {', '.join(get_args(LearnedAs))}, got {learn_as!r}")
        super().__init__(catalogue, num_users, **base)
        self.pairs = checked_part("pairs", PairSelection, pairs)
        self.learn_as = learn_as

    def question(self, asking: Asking) -> About:
        """The two key-terms that the rule picks."""
        first, second = self.pairs(asking).unbind(1)
        return Comparison(Terms(first), Terms(second))

    def learn_answer(self, context: Context, about: About, value: Tensor) -> None:
        """Learn who won, at the level that answers enter."""
        for learned, target in self._lessons(about, value):
            super().learn_answer(context, learned, target)

    def evidence(self, about: About, value: Tensor) -> Tensor:
        """[Q, D] `y x`, of all that is learned of an answer."""
        parts = [super(ComparisonMixin, self).evidence(*lesson) for lesson in self._lessons(about, value)]
        return torch.stack(parts).sum(0)

    def _lessons(self, about: About, value: Tensor) -> list[tuple[About, Tensor]]:
        """What is learned of answers [Q], and as which values [Q]."""
        if not isinstance(about, Comparison):
            raise ValueError(f"{type(self).__name__} compares key-terms, got {type(about).__name__}")
        first, second = (side.of for side in about.sides())
        turned = value < 0.5
        winner, loser = torch.where(turned, second, first), torch.where(turned, first, second)
        won = torch.where(value == 0.5, value, 1.0)  # [Q] 0.5: neither
        if self.learn_as == "difference":
            target = 2 * won - 1 if self.link.is_linear else won
            return [(Comparison(Terms(winner), Terms(loser)), target)]
        both: list[tuple[About, Tensor]] = [(Terms(winner), won), (Terms(loser), 1 - won)]
        return both if self.learn_as == "both" else both[:1]


class RelativeConUCB(ComparisonMixin, ConversationMixin, LinUCB):
    """ConUCB that compares key-terms (Xie et al., SIGIR 2021).

    Rule: arms as in `ConUCB` (Eq. 6 and 7); theta~ is learned from comparisons as `ComparisonMixin` says. The
    paper's names: Pos is `learn_as="winner"` with `pairs=BestTwoTerms()`, Pos&Neg "both" with the same,
    Difference "difference" with `BestDifference()`, or `BestThenDifference()` for its faster form.
    Symbols: lam `mix`, lam~ `term_ridge`, alpha `alpha`, alpha~ `term_alpha`, b(t) `schedule`.
    Differs: a key-term is never compared with itself (released code may; `BestTwoTerms(distinct=False)`). The
    released code's sharing of feedback between users is left out: it lacks M^-1 on its second term.

    A comparison says nothing of the level: learned as a difference, theta~ is known only up to what
    differences tell.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        pairs: which two key-terms to compare.
        learn_as: what is learned of an answer.
        mix: lam, how much the arms' own rewards count against the key-terms' guidance, in (0, 1).
        term_ridge: lam~, weight of the key-term level's penalty.
        alpha: factor of the arm level's width, a number or a theory value (`Lemma1`).
        term_alpha: factor of the key-term level's width, a number or a theory value (`Lemma3`).
        schedule: when to ask.
        representation: what the model sees of the arms; None: the catalogue's features.
        seed: seed of the policy's own random draws.
    """

    not_arguments: ClassVar[dict[str, str]] = {
        "link": "what `learn_as` makes of a comparison (1, 0, or a difference of 1) is for linear means"
    }

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        pairs: PairSelection = BestDifference(),
        learn_as: LearnedAs = "difference",
        mix: float = 0.5,
        term_ridge: float = 1.0,
        alpha: Alpha = 0.25,
        term_alpha: Alpha = 0.25,
        schedule: Schedule = LogSchedule(5),
        representation: Representation | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            pairs=pairs,
            learn_as=learn_as,
            mix=mix,
            term_ridge=term_ridge,
            alpha=alpha,
            term_alpha=term_alpha,
            schedule=schedule,
            representation=representation,
            seed=seed,
        )
