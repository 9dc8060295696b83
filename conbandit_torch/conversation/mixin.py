"""The conversation mixins: they add questions to any base bandit, from the left.

    class ConUCB(ConversationMixin, LinUCB): ...

`ConversationMixin` asks about key-terms, `ArmConversationMixin` about arms.
"""

from __future__ import annotations

from abc import abstractmethod
from inspect import Parameter, signature
from typing import Any, TypeVar

import torch
from torch import Tensor

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.bandits.candidates import Candidates
from conbandit_torch.bandits.linear import SAMPLE, LinearBandit
from conbandit_torch.conversation.estimator import Estimator, TwoLevels
from conbandit_torch.conversation.schedule import LogSchedule, Schedule
from conbandit_torch.conversation.selection import OptimalTerm, Selection
from conbandit_torch.core.blocks import EVERY_ROW, Index, add_at, rows_of
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.checks import expect_rows, expect_tensor
from conbandit_torch.core.context import Context
from conbandit_torch.core.questions import Question
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.ridge import RidgeRegression

PartT = TypeVar("PartT")


class AskingMixin(Bandit):
    """When to ask: a user in round t has `floor(b(t))` less the questions asked so far to go."""

    asked: Tensor  # [U] questions that each user has been asked

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
            if issubclass(base, Bandit) and not issubclass(base, AskingMixin):
                bandits.append(base.__name__)

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        schedule: Schedule | None = None,
        **base: Any,
    ) -> None:
        super().__init__(catalogue, num_users, **base)
        self.schedule = _checked("schedule", Schedule, LogSchedule() if schedule is None else schedule)
        self.register_buffer("asked", torch.zeros_like(self.rounds))

    def ask(self, context: Context) -> Question | None:
        """One question to every user who has some to go; None when nobody has."""
        self._check(context)
        source = f"{type(self.schedule).__name__}.due"
        due = expect_tensor(source, self.schedule.due(self, context), (len(context),), torch.bool)
        rows = due.nonzero().squeeze(1)
        somebody = len(rows) > 0
        if not self.users_are_independent:  # all processes learn from an answer, whoever is asked
            somebody = self.processes.any(somebody)
        if not somebody:
            return None
        return self.question(context, EVERY_ROW if len(rows) == len(context) else rows)

    @abstractmethod
    def question(self, context: Context, rows: Index) -> Question:
        """What to ask these rows."""

    def listen(self, context: Context, question: Question, answer: Tensor) -> None:
        """Learn from the answers, and count the questions."""
        self._check(context)
        heard = context.take(question.rows)
        expect_rows("question", question.about, len(heard))
        expect_rows("answer", answer, len(heard))
        good = self.finite("answer", answer, heard)
        self.hear(heard.take(good), question.take(good), rows_of(answer, good))
        add_at(self.asked, heard.who, 1)

    @abstractmethod
    def hear(self, context: Context, question: Question, answer: Tensor) -> None:
        """Learn from the answers [Q] of the Q rows of `context`."""


class ArmConversationMixin(AskingMixin):
    """Asks about arms: extra arms of A_t, chosen by the base's own rule, that cost no regret.

    The answer is the arm's reward and is learned like one; the same arm may be asked again.

    Args:
        catalogue: arms; key-terms are not used.
        num_users: U.
        schedule: when to ask; None: `LogSchedule(5)`.
        base: the base bandit's own arguments.
    """

    def question(self, context: Context, rows: Index) -> Question:
        """The arms that the base would show."""
        return Question(rows, positions=self.choose(context.take(rows)))

    def hear(self, context: Context, question: Question, answer: Tensor) -> None:
        """Learn an answer like a reward."""
        if question.positions is None:
            raise ValueError(f"{type(self).__name__} asks about arms, got a question about key-terms")
        self.learn(context, question.positions, answer)


class ConversationMixin(AskingMixin, LinearBandit):
    """Asks about key-terms, and lets the answers guide any linear base bandit.

    Three parts, each replaceable: when to ask (`schedule`), what to ask (`select`), how an answer is
    learned (`estimator`). The base need not know: the mixin gives its theta another centre, weighs its
    arm-level width and adds the centre's own; of a base that samples, the centre is sampled too. All it asks
    of a base's constructor is to take `ridge` and `weight` and to hand them on to `LinearBandit`.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        mix: lam of the two-level estimator; None: 0.5.
        term_ridge: lam~ of the two-level estimator; None: 1.0.
        term_alpha: alpha~ of the two-level estimator; None: 0.25.
        schedule: when to ask; None: `LogSchedule(5)`.
        select: what to ask; None: the class's own rule, `OptimalTerm` unless it says otherwise.
        estimator: how an answer is learned; None: the class's own, `TwoLevels(mix, term_ridge, term_alpha)`
            unless it says otherwise.
        ridge: the arm level's ridge, for estimators that leave it free (`OneLevel`).
        base: the base bandit's own arguments.
    """

    default_select: type[Selection] = OptimalTerm
    default_estimator: type[Estimator] = TwoLevels

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__bases__:
            if issubclass(base, Bandit) and not issubclass(base, LinearBandit):
                raise TypeError(
                    f"class {cls.__name__}: ConversationMixin needs a LinearBandit to guide, and "
                    f"{base.__name__} is none; ArmConversationMixin works with any Bandit"
                )
            arguments = signature(base.__init__).parameters
            takes_all = any(argument.kind is Parameter.VAR_KEYWORD for argument in arguments.values())
            if not takes_all and not {"ridge", "weight"} <= arguments.keys():
                raise TypeError(
                    f"class {cls.__name__}: {base.__name__}.__init__ must take ridge and weight, which the "
                    f"estimator sets, and hand them on to LinearBandit; it takes {', '.join(arguments)}"
                )

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        mix: float | None = None,
        term_ridge: float | None = None,
        term_alpha: Alpha | None = None,
        schedule: Schedule | None = None,
        select: Selection | None = None,
        estimator: Estimator | None = None,
        ridge: float | None = None,
        **base: Any,
    ) -> None:
        if catalogue.num_terms == 0:
            raise ValueError(f"{type(self).__name__} asks about key-terms, but the catalogue has none")
        two_levels = {"mix": mix, "term_ridge": term_ridge, "term_alpha": term_alpha}
        given = {name: value for name, value in two_levels.items() if value is not None}
        if estimator is not None and given:
            raise ValueError(
                f"{', '.join(given)} and estimator are given: the first belong to TwoLevels, so write "
                "either mix=... or estimator=TwoLevels(mix=...)"
            )
        if given and self.default_estimator is not TwoLevels:
            raise ValueError(
                f"{', '.join(given)} must not be given: {type(self).__name__} has "
                f"{self.default_estimator.__name__}, and they belong to TwoLevels"
            )
        if estimator is None:
            estimator = self.default_estimator(**given)
        _checked("estimator", Estimator, estimator)
        if "weight" in base:
            raise ValueError("weight must not be given: the estimator sets it")
        arm_ridge, arm_weight = estimator.arm_level(ridge)
        super().__init__(catalogue, num_users, schedule=schedule, ridge=arm_ridge, weight=arm_weight, **base)
        if (self.arm_model.ridge, self.arm_model.weight) != (arm_ridge, arm_weight):
            raise ValueError(
                f"{type(self).__name__}: the base must hand ridge={arm_ridge} and weight={arm_weight} on to "
                f"LinearBandit, which got {self.arm_model.ridge} and {self.arm_model.weight}"
            )
        self.estimator = estimator
        self.select = _checked("select", Selection, self.default_select() if select is None else select)
        self.term_model = estimator.term_model(self)

    @property
    def answer_model(self) -> RidgeRegression:
        """The regression that answers enter."""
        return self.arm_model if self.term_model is None else self.term_model

    def question(self, context: Context, rows: Index) -> Question:
        """The key-terms that the selection rule picks."""
        return Question(rows, terms=self.select(self, context.take(rows)))

    def hear(self, context: Context, question: Question, answer: Tensor) -> None:
        """Learn the answers about key-terms."""
        if question.terms is None:
            raise ValueError(f"{type(self).__name__} asks about key-terms, got a question about arms")
        self.learn_terms(context, question.terms, answer)

    def centre(self, who: Index) -> Tensor | None:
        """[B, D] the estimator's centre, given the base's."""
        return self.estimator.centre(self, who, super().centre(who))

    def answer_theta(self, who: Index) -> Tensor:
        """[B, D] the preferences of the level that answers enter."""
        return self.estimator.answer_theta(self, who)

    def radius(self, candidates: Candidates) -> Tensor:
        """[B, A] the arm level's width, given the base's."""
        return self.estimator.radius(super().radius(candidates))

    def bonus(self, candidates: Candidates) -> Tensor:
        """[B, A] what the estimator adds, and what the base adds."""
        own = self.estimator.bonus(self, candidates)  # first, because it needs `candidates.solved`
        base = super().bonus(candidates)
        return base if own is None else base + own

    def lookahead(self, context: Context) -> tuple[Tensor, RidgeRegression]:
        """(P [B, A, D], G): what a selection rule needs to know of the estimator."""
        return self.estimator.vectors(self, context), self.answer_model

    def diagnostics(self, context: Context) -> dict[str, Tensor]:
        """The base's, and the mean width that answers can shrink, over the first users' candidates."""
        some = context.take(SAMPLE)
        vectors, model = self.lookahead(some)
        norm = model.norm(some.who, vectors)
        return super().diagnostics(context) | {"width/term": norm.mean()}


def _checked(name: str, kind: type, part: PartT) -> PartT:
    """The part, if it is of the kind."""
    if not isinstance(part, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, got {part!r}")
    return part
