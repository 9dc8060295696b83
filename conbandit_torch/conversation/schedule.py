"""When to ask: the conversation frequency b(t)."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor


class Schedule(ABC):
    """`b(t)`: how many questions a user may have been asked by the end of their t-th round.

    In user-round t the user is asked `floor(b(t)) - floor(b(t-1))` questions, before the arm is
    chosen. To write your own, implement `total`.
    """

    @abstractmethod
    def total(self, rounds: Tensor) -> Tensor:
        """`b(t)` of each `t = rounds` [B], int64 from 1 on. It must not decrease with t."""


class LogSchedule(Schedule):
    """`b(t) = Q floor(log t)`.

    Args:
        questions: Q, asked whenever log t passes a whole number.
    """

    def __init__(self, questions: float = 5) -> None:
        self.questions = _not_negative("questions", questions)

    def total(self, rounds: Tensor) -> Tensor:
        """`b(t)` of each t."""
        return self.questions * rounds.double().log().floor()


class LinearSchedule(Schedule):
    """`b(t) = Q floor(t / every)`.

    Args:
        questions: Q, asked every so many rounds.
        every: rounds between conversations.
    """

    def __init__(self, questions: float = 1, every: int = 50) -> None:
        self.questions = _not_negative("questions", questions)
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every}")
        self.every = every

    def total(self, rounds: Tensor) -> Tensor:
        """`b(t)` of each t."""
        return self.questions * (rounds // self.every)


class NoConversation(Schedule):
    """`b(t) = 0`: nobody is ever asked."""

    def total(self, rounds: Tensor) -> Tensor:
        """`b(t)` of each t."""
        return torch.zeros_like(rounds)


def _not_negative(name: str, value: float) -> float:
    if not 0 <= value < float("inf"):
        raise ValueError(f"{name} must be a number of at least 0, got {value}")
    return value
