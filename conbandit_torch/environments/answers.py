"""How people answer: what they feel about a key-term, and what they say of it.

An answer has two steps. `felt` is what a person expects of the thing asked about. `said` is what the person
makes of that: with noise, in grades, or not at all. Models that change one step stand around another one
(`of`), so that a person is a chain: `Graded(5, of=BestShare(0.2))`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from conbandit_torch.core.catalogue import Edges
from conbandit_torch.core.questions import Answer
from conbandit_torch.core.randomness import Stream


@dataclass(frozen=True)
class Asked:
    """What an answer model is told of one side of Q questions.

    Attributes:
        users: [Q] who is asked.
        numbers: [Q] how many questions each of them was asked before.
        binary: whether answers are 0 or 1 by chance, with the probability that is felt.
        mean: gives `sum_a p_a E[r_a]` [Q] over the arms of what is asked about (Eq. 4).
        items: gives these arms as edges, and `E[r_a]` [E] of each.
        respond: adds the noise to what is felt [Q]; where answers are 0 or 1, draws them.
        stream: reproducible random numbers, by purpose.
    """

    users: Tensor
    numbers: Tensor
    binary: bool
    mean: Callable[[], Tensor]
    items: Callable[[], tuple[Edges, Tensor]]
    respond: Callable[[Tensor], Tensor]
    stream: Callable[[str], Stream]

    def __len__(self) -> int:
        return len(self.users)

    def ends(self, low: float | None, high: float | None) -> tuple[float, float]:
        """The ends of the scale: those given, or the world's own for None."""
        ends = (0.0 if self.binary else -1.0) if low is None else low, 1.0 if high is None else high
        if not ends[0] < ends[1]:
            raise ValueError(f"low must be below high, got {ends[0]} and {ends[1]}: give both")
        return ends

    def middle(self, given: float | None) -> float:
        """Where people are undecided: as given, or the middle of the world's own scale for None."""
        return sum(self.ends(None, None)) / 2 if given is None else given


class AnswerModel(ABC):
    """How people answer. To write your own, implement `felt`, or `said`, or both.

    The world's own scale reaches from 0 to 1 where answers are 0 or 1 by chance, and from -1 to 1 elsewhere.
    """

    @abstractmethod
    def felt(self, asked: Asked) -> Tensor:
        """[Q] what each person feels about the thing asked about."""

    def said(self, asked: Asked, felt: Tensor) -> Answer:
        """What each person says who feels `felt` [Q]."""
        return Answer(asked.respond(felt))

    def __call__(self, asked: Asked) -> Answer:
        """The answers."""
        return self.said(asked, self.felt(asked))


@dataclass(frozen=True)
class ItemMean(AnswerModel):
    """The mean over the key-term's items.

    Rule: `sum_a p_{a,k} E[r_a] + eps~`   (Eq. 4).
    Symbols: none.
    Differs: nothing known.
    """

    def felt(self, asked: Asked) -> Tensor:
        """[Q] the mean."""
        return asked.mean()


@dataclass(frozen=True)
class BestShare(AnswerModel):
    """The mean over the best of the key-term's items: people think of those they like.

    Rule: `sum_{a in B} p_{a,k} E[r_a] / sum_{a in B} p_{a,k}`, B the ceil(share n) best of its n items for
    this user.
    Symbols: none.
    Differs: ours, after a survey (Hier-UCB, CIKM 2022): people rated categories closer to the mean of the
    best 20 % of their items than to the mean of all. Weights are those of Eq. 4, so that a share of 1 is
    `ItemMean`.

    Args:
        share: how much of the items counts, in (0, 1].
    """

    share: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ValueError(f"share must be in (0, 1], got {self.share}")

    def felt(self, asked: Asked) -> Tensor:
        """[Q] the mean of the best."""
        return _mean_of_best(asked, lambda count: (self.share * count - 1e-9).ceil())  # 0.2 of 15 are 3


@dataclass(frozen=True)
class BestItem(AnswerModel):
    """The key-term's best item: people think of the one that they like most.

    Rule: `max_a E[r_a]` over the key-term's items.
    Symbols: none.
    Differs: ours.
    """

    def felt(self, asked: Asked) -> Tensor:
        """[Q] the best."""
        return _mean_of_best(asked, torch.ones_like)


class _Altered(AnswerModel):
    """Another model's answers, altered."""

    of: AnswerModel

    def felt(self, asked: Asked) -> Tensor:
        """[Q] as in the other model."""
        return self.of.felt(asked)

    def said(self, asked: Asked, felt: Tensor) -> Answer:
        """As in the other model."""
        return self.of.said(asked, felt)


@dataclass(frozen=True)
class Biased(_Altered):
    """People who feel more (or less) about key-terms than about their items, each by an offset of their own.

    Rule: `felt + o_u` with `o_u ~ N(offset, spread^2)`, drawn once per user; where answers are 0 or 1, the
    probability is clipped to [0, 1].
    Symbols: none.
    Differs: ours. People answered 0.4 of 5 points above the mean of their item ratings in a survey (Hier-UCB,
    CIKM 2022).

    Args:
        offset: the users' mean offset.
        spread: standard deviation of the users' offsets.
        of: whose answers they are.
    """

    offset: float = 0.2
    spread: float = 0.0
    of: AnswerModel = ItemMean()

    def __post_init__(self) -> None:
        if not math.isfinite(self.offset):
            raise ValueError(f"offset must be a finite number, got {self.offset}")
        if not 0 <= self.spread < math.inf:
            raise ValueError(f"spread must be a number of at least 0, got {self.spread}")

    def felt(self, asked: Asked) -> Tensor:
        """[Q] with the user's offset."""
        felt = self.of.felt(asked)
        own = self.offset + self.spread * asked.stream("offset").normal(asked.users, 0, 1).squeeze(1)
        shifted = felt + own.to(felt)
        return shifted.clamp(0, 1) if asked.binary else shifted


@dataclass(frozen=True)
class Graded(_Altered):
    """Answers in grades, such as one to five stars.

    Rule: the nearest of `levels` values, evenly spaced from `low` to `high`. Where answers are 0 or 1, the
    probability is graded instead of drawn.
    Symbols: none.
    Differs: ours.

    Args:
        levels: how many grades there are, at least 2.
        low: what the lowest grade stands for; None: the low end of the world's own scale.
        high: what the highest grade stands for; None: the high end of the world's own scale.
        of: whose answers they are.
    """

    levels: int = 5
    low: float | None = None
    high: float | None = None
    of: AnswerModel = ItemMean()

    def __post_init__(self) -> None:
        if self.levels < 2:
            raise ValueError(f"levels must be at least 2, got {self.levels}")
        _check_scale(self.low, self.high)

    def said(self, asked: Asked, felt: Tensor) -> Answer:
        """The nearest grade."""
        low, high = asked.ends(self.low, self.high)
        exact = replace(asked, respond=_as_felt) if asked.binary else asked
        answer = self.of.said(exact, felt)
        step = (high - low) / (self.levels - 1)
        grade = ((answer.value - low) / step).round().clamp(0, self.levels - 1)
        return replace(answer, value=low + step * grade)


@dataclass(frozen=True)
class YesNo(_Altered):
    """Answers of two kinds: yes or no.

    Rule: `high` if the answer is above the middle of `low` and `high`, else `low`. Where answers are 0 or 1
    already, nothing changes.
    Symbols: none.
    Differs: ours.

    Args:
        low: what "no" stands for; None: the low end of the world's own scale.
        high: what "yes" stands for; None: the high end of the world's own scale.
        of: whose answers they are.
    """

    low: float | None = None
    high: float | None = None
    of: AnswerModel = ItemMean()

    def __post_init__(self) -> None:
        _check_scale(self.low, self.high)

    def said(self, asked: Asked, felt: Tensor) -> Answer:
        """Yes or no."""
        low, high = asked.ends(self.low, self.high)
        answer = self.of.said(asked, felt)
        yes = answer.value > (low + high) / 2
        return replace(answer, value=torch.where(yes, high, low).to(answer.value))


@dataclass(frozen=True)
class DontKnow(_Altered):
    """People who often have no answer where they are undecided.

    Rule: "don't know" with probability `most max(0, 1 - |felt - middle| / width)`. Nothing is learned, and
    the question counts. One draw per question: of a comparison, both sides must be known by it.
    Symbols: none.
    Differs: ours.

    Args:
        most: the probability in the middle, where it is highest.
        width: how far from the middle people always know.
        middle: where people are undecided; None: the middle of the world's own scale.
        of: whose answers they are.
    """

    most: float = 0.5
    width: float = 0.5
    middle: float | None = None
    of: AnswerModel = ItemMean()

    def __post_init__(self) -> None:
        if not 0 <= self.most <= 1:
            raise ValueError(f"most must be in [0, 1], got {self.most}")
        if not 0 < self.width < math.inf:
            raise ValueError(f"width must be above 0 and finite, got {self.width}")
        _check_middle(self.middle)

    def said(self, asked: Asked, felt: Tensor) -> Answer:
        """As in the other model, or "don't know"."""
        answer = self.of.said(asked, felt)
        distance = (felt - asked.middle(self.middle)).abs()
        chance = self.most * (1 - distance / self.width).clamp_min(0)
        known = asked.stream("don't know").uniform(asked.users, asked.numbers, 1).squeeze(1) >= chance
        return replace(answer, known=known if answer.known is None else answer.known & known)


@dataclass(frozen=True)
class Corrupted(_Altered):
    """People whose first answers say the opposite.

    Rule: the first n answers of every user become `2 middle - answer`: around 0, their sign is flipped.
    Symbols: n `first`.
    Differs: ours.

    Args:
        first: n, how many answers of every user are turned.
        middle: around which; None: the middle of the world's own scale.
        of: whose answers they are.
    """

    first: int = 10
    middle: float | None = None
    of: AnswerModel = ItemMean()

    def __post_init__(self) -> None:
        if self.first < 0:
            raise ValueError(f"first must be at least 0, got {self.first}")
        _check_middle(self.middle)

    def said(self, asked: Asked, felt: Tensor) -> Answer:
        """The opposite, at first."""
        answer = self.of.said(asked, felt)
        turned = 2 * asked.middle(self.middle) - answer.value
        return replace(answer, value=torch.where(asked.numbers < self.first, turned, answer.value))


def compared(first: Answer, second: Answer) -> Answer:
    """Which of two is said to be liked better: 1 for the first, 0 for the second, 0.5 if they are equal."""
    one, other = first.value, second.value
    known = first.known if second.known is None else second.known
    if first.known is not None and second.known is not None:
        known = first.known & second.known
    return Answer((one > other).to(one) + 0.5 * (one == other), known)


def _mean_of_best(asked: Asked, how_many: Callable[[Tensor], Tensor]) -> Tensor:
    """[Q] the weighted mean over the best items of each question, `how_many` of their number [Q]."""
    edges, means = asked.items()
    count = torch.bincount(edges.owner, minlength=len(asked))  # [Q]
    order = means.argsort(descending=True, stable=True)
    order = order[edges.owner[order].argsort(stable=True)]  # question by question, the best item first
    owner = edges.owner[order]
    place = torch.arange(len(order), device=order.device) - (count.cumsum(0) - count)[owner]
    best = place < how_many(count)[owner]
    owner, weight = owner[best], edges.weight[order][best]
    total, all_weight = (means.new_zeros(len(asked)) for _ in range(2))
    total.index_add_(0, owner, weight * means[order][best])
    return total / all_weight.index_add_(0, owner, weight)


def _as_felt(felt: Tensor) -> Tensor:
    return felt


def _check_scale(low: float | None, high: float | None) -> None:
    for name, value in {"low": low, "high": high}.items():
        if value is not None and not math.isfinite(value):
            raise ValueError(f"{name} must be a finite number, got {value}")
    if not (-1.0 if low is None else low) < (1.0 if high is None else high):
        raise ValueError(f"low must be below high, got {low} and {high}")


def _check_middle(middle: float | None) -> None:
    if middle is not None and not math.isfinite(middle):
        raise ValueError(f"middle must be a finite number, got {middle}")
