"""When to ask: the conversation frequency b(t)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from conbandit_torch.conversation.asking import Asking
from conbandit_torch.core.checks import expect_tensor


class Schedule(ABC):
    """`b(t)`: how many questions a user may have been asked by the end of their t-th round.

    In user-round t the user is asked `floor(b(t)) - floor(b(t-1))` questions, before the arm is
    chosen. To write your own, implement `total`; one that looks at more than t overrides `due` as well.
    """

    @abstractmethod
    def total(self, rounds: Tensor) -> Tensor:
        """`b(t)` of each `t = rounds` [B], int64 from 1 on. It must not decrease with t."""

    def due(self, asking: Asking) -> Tensor:
        """[B] whether each row has a question to go now."""
        source = f"{type(self).__name__}.total"
        total = expect_tensor(source, self.total(asking.rounds + 1), (len(asking),))
        if len(total) and total.device.type == "cpu":  # on a GPU looking would wait for the device
            least, most = (float(value) for value in total.aminmax())  # NaN if any is
            if not (least >= 0 and most < float("inf")):
                bad = most if least >= 0 else least
                raise ValueError(f"{source} must give finite numbers of at least 0, got {bad}")
        return total.floor() > asking.asked


@dataclass(frozen=True)
class LogSchedule(Schedule):
    """`b(t) = Q floor(log t)`.

    Args:
        questions: Q, asked whenever log t passes a whole number.
    """

    questions: float = 5

    def __post_init__(self) -> None:
        expect_not_negative("questions", self.questions)

    def total(self, rounds: Tensor) -> Tensor:
        """`b(t)` of each t."""
        return self.questions * rounds.double().log().floor()


@dataclass(frozen=True)
class LinearSchedule(Schedule):
    """`b(t) = Q floor(t / every)`.

    Args:
        questions: Q, asked every so many rounds.
        every: rounds between conversations.
    """

    questions: float = 1
    every: int = 50

    def __post_init__(self) -> None:
        expect_not_negative("questions", self.questions)
        if self.every < 1:
            raise ValueError(f"every must be at least 1, got {self.every}")

    def total(self, rounds: Tensor) -> Tensor:
        """`b(t)` of each t."""
        return self.questions * (rounds // self.every)


@dataclass(frozen=True)
class NoConversation(Schedule):
    """`b(t) = 0`: nobody is ever asked."""

    def total(self, rounds: Tensor) -> Tensor:
        """`b(t)` of each t."""
        return torch.zeros_like(rounds)


@dataclass(frozen=True)
class WhileUncertain(Schedule):
    """Ask only while the answer is worth it: while some key-term is little known.

    Rule: ask while `max_k |x~_k|_{G^-1} > threshold`, up to `per_round` questions per round on average since
    the first, and `questions` in all.
    Symbols: G is the matrix of the level that answers enter.
    Differs: ours; no paper has it.

    Args:
        threshold: the radius above which a question is worth asking.
        questions: the most questions a user is ever asked.
        per_round: the most questions per round, on average since the user's first.
    """

    threshold: float = 0.5
    questions: int = 50
    per_round: float = 1

    def __post_init__(self) -> None:
        for name in ("threshold", "questions", "per_round"):
            expect_not_negative(name, getattr(self, name))

    def total(self, rounds: Tensor) -> Tensor:
        """The most questions that could have been asked by the end of round t."""
        return (self.per_round * rounds).clamp_max(self.questions)

    def due(self, asking: Asking) -> Tensor:
        """[B] whether there is a question to go, and some key-term to ask about."""
        due = super().due(asking)
        if not bool(due.any()):
            return due
        return due & (asking.map(lambda block: block.radii().amax(1)) > self.threshold)


def expect_not_negative(name: str, value: float) -> None:
    """Refuse an argument that is no number of at least 0."""
    if not 0 <= value < float("inf"):
        raise ValueError(f"{name} must be a number of at least 0, got {value}")
