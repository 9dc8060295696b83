"""What a `Recommender` gives to its callers, and the events that it writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

Kind = Literal["term", "item", "comparison"]


@dataclass(frozen=True)
class Asked:
    """A question to a person.

    Attributes:
        id: by which it is answered.
        user: who is asked.
        kind: about a key-term, about an item, or which of two is liked better.
        names: what it is about: one name, or the two that are compared.
    """

    id: int
    user: str
    kind: Kind
    names: tuple[str, ...]


@dataclass(frozen=True)
class Shown:
    """An item that was recommended to a person; a decision whose reward may come later, or never.

    Attributes:
        id: by which it is rewarded.
        user: whom it is shown to.
        item: its name.
        place: 0 for the first item of a slate, 1 for the second, and so on.
        round: how often something had been recommended to the user before.
    """

    id: int
    user: str
    item: str
    place: int
    round: int


@dataclass(frozen=True)
class Reason:
    """An answer or a reward, and what it adds to a score.

    Attributes:
        kind: what it was: "reward", or an answer about a "term", an "item" or a "comparison".
        names: what it was about.
        value: what came.
        effect: the part of the estimate that it brings in; a negative one speaks against the item.
    """

    kind: Literal["reward", "term", "item", "comparison"]
    names: tuple[str, ...]
    value: float
    effect: float


@dataclass(frozen=True)
class Explanation:
    """Why an item has its score.

    Attributes:
        user: for whom.
        item: which.
        estimate: the expected reward; None: the policy has no opinion.
        width: how uncertain that is, as the policy weighs it; None: it does not say.
        reasons: what was answered and rewarded, the largest effect first. With linear means the effects of
            all of it and `rest` sum to the estimate.
        rest: the part of the estimate that no single observation brings in: what the policy knew before, and
            what features that are learned have moved since.
    """

    user: str
    item: str
    estimate: float | None
    width: float | None
    reasons: tuple[Reason, ...]
    rest: float | None

    def only(self, most: int) -> Explanation:
        """The same with at most so many reasons."""
        return replace(self, reasons=self.reasons[:most])


@dataclass(frozen=True)
class Belief:
    """What is believed of a key-term.

    Attributes:
        term: its name.
        estimate: how much it is liked, on the scale of rewards.
        width: how uncertain that is: the width of `x~` in all levels, with factors of 1 (Eq. 7).
        sure: the share of a new user's width that is gone, from 0 to 1.
    """

    term: str
    estimate: float
    width: float
    sure: float


@dataclass(frozen=True)
class Profile:
    """What is believed of a person's taste.

    Attributes:
        user: whose.
        beliefs: of all key-terms, the most liked first; empty, if the policy has no such beliefs.
        middle: the mean estimate over the key-terms. Those above it count as liked, those below as disliked.
    """

    user: str
    beliefs: tuple[Belief, ...]
    middle: float

    def liked(self, most: int = 5) -> Sequence[Belief]:
        """The key-terms liked best."""
        return [belief for belief in self.beliefs[:most] if belief.estimate > self.middle]

    def disliked(self, most: int = 5) -> Sequence[Belief]:
        """The key-terms liked least, the least first."""
        return [belief for belief in self.beliefs[::-1][:most] if belief.estimate < self.middle]


@dataclass(frozen=True)
class Happened:
    """An event as people read it.

    Attributes:
        id: of the event.
        time: seconds since 1970.
        user: to whom it happened.
        kind: "asked", "answer", "shown" or "reward".
        about: id of the question that is answered, or of the decision that is rewarded.
        question: of what kind the question is; None: it is about no question.
        names: the item shown or rewarded, or what the question is about.
        value: the answer or the reward; None of an answer: the person does not know.
        round: how often something had been recommended to the user before.
        place: of an item in its slate.
        candidates: names of what could be shown, where something was.
    """

    id: int
    time: float
    user: str
    kind: str
    about: int | None
    question: Kind | None
    names: tuple[str, ...]
    value: float | None
    round: int
    place: int | None
    candidates: tuple[str, ...] | None


class Event(NamedTuple):
    """One row of the store: something that happened.

    Attributes:
        id: larger than those of all earlier events of the user.
        batch: id of the first event of the batch; a batch was one call of the policy.
        kind: "asked", "answer", "shown", "reward", "items" (which were added), or "forgotten".
        user: the person's number in the store.
        about: id of the question that is answered, or of the decision that is rewarded.
        round: how often something had been recommended to the user before.
        what: what a question is about: "term", "item", "terms" or "items" (two, compared).
        first: id of the item shown, or of what is asked about.
        second: id of what it is compared with.
        value: the answer, or the reward; None: the person does not know.
        place: of an item in its slate.
        candidates: ids of what could be shown, four bytes each; None: all there were.
        pool: how many those were.
        body: what was added to the catalogue.
        time: seconds since 1970.
    """

    id: int
    batch: int
    kind: str
    user: int | None
    time: float
    about: int | None = None
    round: int | None = None
    what: str | None = None
    first: int | None = None
    second: int | None = None
    value: float | None = None
    place: int | None = None
    candidates: bytes | None = None
    pool: int | None = None
    body: bytes | None = None
