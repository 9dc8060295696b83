"""Questions about key-terms, for any linear bandit."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.bandits.linear import SAMPLE, LinearBandit
from conbandit_torch.conversation.asking import Asking
from conbandit_torch.conversation.mixins import AskingMixin, checked_part
from conbandit_torch.conversation.schedules import LogSchedule, Schedule
from conbandit_torch.conversation.term_rules import OptimalTerm, Selection
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.context import Context
from conbandit_torch.core.questions import About, Arms, Terms


class KeyTermMixin(AskingMixin, LinearBandit):
    """Asks about key-terms; what an answer changes is the subclass's business (`answer_level`).

    Two parts, each replaceable: when to ask (`schedule`) and what to ask (`select`).

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        schedule: when to ask.
        select: what to ask.
        base: the base bandit's own arguments.
    """

    not_arguments: ClassVar[dict[str, str]] = {  # what one might look for, and why it is not there
        "estimator": "the class says where answers go: ConLinUCB, or a class of your own with OneLevelMixin, "
        "has one level; ConUCB, or one with ConversationMixin, has two",
        "weight": "the conversation sets it",
    }

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__bases__:
            if issubclass(base, Bandit) and not issubclass(base, LinearBandit):
                raise TypeError(
                    f"class {cls.__name__}: questions about key-terms need a LinearBandit to guide, and "
                    f"{base.__name__} is none; ArmConversationMixin works with any Bandit"
                )

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        schedule: Schedule = LogSchedule(5),
        select: Selection = OptimalTerm(),
        **base: Any,
    ) -> None:
        if catalogue.num_terms == 0:
            raise ValueError(f"{type(self).__name__} asks about key-terms, but the catalogue has none")
        super().__init__(catalogue, num_users, schedule=schedule, **base)
        self.select = checked_part("select", Selection, select)

    @property
    def draws(self) -> bool:
        """If the base does, or the rule that selects key-terms."""
        return super().draws or self.select.draws

    def question(self, asking: Asking) -> About:
        """The key-terms that the selection rule picks."""
        return Terms(self.select(asking))

    def learn_answer(self, context: Context, about: About, value: Tensor) -> None:
        """Learn the answers at the level that they enter."""
        if any(isinstance(side, Arms) for side in about.sides()):
            raise ValueError(f"{type(self).__name__} asks about key-terms, got a question about arms")
        super().learn_answer(context, about, value)

    def diagnostics(self, context: Context) -> dict[str, Tensor]:
        """The base's, and the mean width that answers can shrink, over the first users' candidates."""
        asking = self.asking(context.take(SAMPLE))
        norm = asking.model.norm(asking.models, asking.reach())
        return super().diagnostics(context) | {"width/term": norm.mean()}
