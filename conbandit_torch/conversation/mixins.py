"""When a policy asks, and what it tells the parts that decide about it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeVar

import torch
from torch import Tensor

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.conversation.asking import Asking
from conbandit_torch.conversation.schedules import LogSchedule, Schedule
from conbandit_torch.core.attributes import buffer
from conbandit_torch.core.blocks import EVERY_ROW, Index, add_at, rows_of
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.checks import expect_rows, expect_tensor
from conbandit_torch.core.context import Context
from conbandit_torch.core.questions import About, Answer, Arms, Question

PartT = TypeVar("PartT")


class AskingMixin(Bandit):
    """When to ask: a user in round t has `floor(b(t))` less the questions asked so far to go.

    Subclasses say what to ask (`question`) and how an answer is learned (`learn_answer`).

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        schedule: when to ask.
        base: the base bandit's own arguments.
    """

    asked: Tensor = buffer()  # [U] questions that each user has been asked

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        bandits: list[str] = []
        for base in cls.__bases__:
            if issubclass(base, AskingMixin) and bandits:
                given = ", ".join(b.__name__ for b in cls.__bases__)
                raise TypeError(
                    f"class {cls.__name__}({given}): swap {bandits[-1]} and {base.__name__}; the mixin "
                    f"stands left of the bandit: class {cls.__name__}({base.__name__}, {bandits[-1]})"
                )
            if "stands_over_any_base" in vars(base):
                continue
            if issubclass(base, Bandit) and not issubclass(base, AskingMixin):
                bandits.append(base.__name__)

    def __init__(
        self, catalogue: Catalogue, num_users: int, *, schedule: Schedule = LogSchedule(5), **base: Any
    ) -> None:
        super().__init__(catalogue, num_users, **base)
        self.schedule = checked_part("schedule", Schedule, schedule)
        self.register_rows("asked", torch.zeros((), dtype=torch.int64, device=catalogue.arm_features.device))

    def asking(self, context: Context) -> Asking:
        """What a schedule and a rule are told."""
        return Asking(
            context=context,
            catalogue=self.catalogue,
            asked=self.asked[context.who],
            rounds=(context.rounds - self.began(context)).clamp_min(0),  # a context may be an old one
            stream=self.stream,
            levels=self.levels(),
            answer_level=self.answer_level,
            representation=self.representation,
            thetas=self.thetas,
            models_of=self.models_of,
        )

    def ask(self, context: Context) -> Question | None:
        """One question to every user who has some to go; None when nobody has."""
        self._check(context)
        source = f"{type(self.schedule).__name__}.due"
        asking = self.asking(context)
        due = expect_tensor(source, self.schedule.due(asking), (len(context),), torch.bool)
        number = int(due.sum())
        if not self.anybody(number > 0):  # where users share something, all learn from an answer
            return None
        rows: Index = EVERY_ROW if number == len(context) else due.nonzero().squeeze(1)
        return Question(rows, self.question(asking.take(rows)))

    @abstractmethod
    def question(self, asking: Asking) -> About:
        """What to ask the users of the record."""

    def listen(self, context: Context, question: Question, answer: Answer) -> None:
        """Learn from the answers that are known, and count the questions."""
        self._check(context)
        heard = question.check(context, self.catalogue)
        expect_rows("answer", answer.value, len(heard))
        known = answer.rows
        self.learn_answer(heard.take(known), question.about.take(known), rows_of(answer.value, known))
        add_at(self.asked, heard.who, 1)


class ArmConversationMixin(AskingMixin):
    """Asks about arms: extra arms of A_t, chosen by the base's own rule, that cost no regret.

    The answer is the arm's reward and is learned like one; the same arm may be asked again.

    Args:
        catalogue: arms; key-terms are not used.
        num_users: U.
        schedule: when to ask.
        base: the base bandit's own arguments.
    """

    def question(self, asking: Asking) -> About:
        """The arms that the base would show."""
        asked = asking.context
        return Arms(asked.pick(self.choose(asked)).arms.squeeze(1))

    def learn_answer(self, context: Context, about: About, value: Tensor) -> None:
        """Learn an answer like a reward."""
        if not isinstance(about, Arms):
            raise ValueError(f"{type(self).__name__} asks about arms, got {type(about).__name__}")
        self.learn(context.showing(about.of), torch.zeros_like(about.of), value)


def checked_part(name: str, kind: type, part: PartT) -> PartT:
    """The part, if it is of the kind."""
    if not isinstance(part, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, got {part!r}")
    return part
