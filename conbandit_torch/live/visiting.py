"""Who is here: what each person was asked and shown, and what comes next."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from conbandit_torch.core.randomness import Stream
from conbandit_torch.live.recommender import Recommender
from conbandit_torch.live.records import Asked, Happened
from conbandit_torch.live.visitors import Visitor, counter_of

_AT_HAND = 10_000  # people whose state is kept in memory; that of others is read again
_LARGEST_POOL = 500  # candidates of a round; of larger catalogues, as many are drawn


@dataclass(frozen=True)
class Card:
    """What people see of an item.

    Attributes:
        item: its name.
        terms: its key-terms.
        details: anything else, such as a year, by name.
    """

    item: str
    terms: tuple[str, ...]
    details: Mapping[str, str]


@dataclass(frozen=True)
class Offer:
    """An item on the table.

    Attributes:
        decision: by which a reaction is given.
        card: what people see of it.
        reward: the reaction; None: there was none yet.
    """

    decision: int
    card: Card
    reward: float | None


@dataclass(frozen=True)
class Turn:
    """What a person is asked or shown now.

    Attributes:
        question: to be answered first; None: there is none.
        shown: the items on the table; none while there is a question.
        answered: questions answered so far, "don't know" included.
        rated: items that the person has reacted to.
        liked: the sum of those reactions.
    """

    question: Asked | None
    shown: tuple[Offer, ...]
    answered: int
    rated: int
    liked: float


@dataclass
class Visit:
    """A person's state, which follows from what happened."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    slate: dict[int, str] = field(default_factory=dict)  # items on the table, by decision
    rewards: dict[int, float] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    rounds: int = 0
    answered: int = 0

    def note(self, happened: Happened) -> None:
        """Take in one event."""
        if happened.kind == "shown":
            if happened.place == 0:
                self.slate, self.rounds = {}, happened.round + 1
            self.slate[happened.id] = happened.names[0]
            self.seen.add(happened.names[0])
        elif happened.kind == "reward" and happened.value is not None and happened.about is not None:
            self.rewards[happened.about] = happened.value
        elif happened.kind == "answer":
            self.answered += 1


class Visits:
    """The states of the people who are here.

    Args:
        cards: what people see of the items, by name.
        slate: items that are shown at a time.
        seed: of the order of candidates, by which ties are broken: not everybody is shown the first first.
    """

    def __init__(self, cards: Mapping[str, Card], slate: int, seed: int) -> None:
        self._cards, self._slate, self._seed = cards, slate, seed
        self._visits: OrderedDict[str, Visit] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, recommender: Recommender, visitor: Visitor) -> Visit:
        """A person's state."""
        with self._lock:
            visit = self._visits.get(visitor.user)
            if visit is not None:
                self._visits.move_to_end(visitor.user)
                return visit
        visit = Visit()
        for happened in recommender.history(visitor.user):
            visit.note(happened)
        if visit.slate.keys() <= visit.rewards.keys():
            visit.slate = {}
        with self._lock:
            visit = self._visits.setdefault(visitor.user, visit)
            while len(self._visits) > _AT_HAND:
                self._visits.popitem(last=False)
        return visit

    def drop(self, visitor: Visitor) -> None:
        """Keep nothing of a person."""
        with self._lock:
            self._visits.pop(visitor.user, None)

    def turn(self, recommender: Recommender, visitor: Visitor, *, move_on: bool) -> Turn:
        """What the person is asked or shown now."""
        visit = self.of(recommender, visitor)
        with visit.lock:
            if move_on:
                visit.slate = {}
            question = None
            if not visit.slate:
                candidates = self._candidates(visit, visitor)
                question = recommender.ask(visitor.user, candidates)
                if question is None:
                    (slate,) = recommender.recommend_many([visitor.user], [candidates], self._slate)
                    visit.slate = {shown.id: shown.item for shown in slate}
                    visit.seen |= set(visit.slate.values())
                    visit.rounds += 1
            shown = tuple(
                Offer(decision, self._cards[item], visit.rewards.get(decision))
                for decision, item in visit.slate.items()
            )
            rewards = visit.rewards.values()
            return Turn(question, shown, visit.answered, len(rewards), sum(rewards))

    def answer(self, recommender: Recommender, visitor: Visitor, question: int, value: float | None) -> None:
        """Learn an answer."""
        visit = self.of(recommender, visitor)
        with visit.lock:
            recommender.answer(visitor.user, question, value)
            visit.answered += 1

    def react(self, recommender: Recommender, visitor: Visitor, decision: int, reward: float) -> None:
        """Learn a reaction."""
        visit = self.of(recommender, visitor)
        with visit.lock:
            recommender.feedback(decision, reward, user=visitor.user)
            visit.rewards[decision] = reward

    def _candidates(self, visit: Visit, visitor: Visitor) -> list[str]:
        """What the person has not seen yet, in a random order; once they have seen all, everything."""
        names = [name for name in self._cards if name not in visit.seen]
        if len(names) < self._slate:
            visit.seen.clear()
            names = list(self._cards)
        draw = Stream(self._seed, "candidates").uniform(counter_of(visitor.user), visit.rounds, len(names))
        return [names[place] for place in draw[0].argsort(stable=True)[:_LARGEST_POOL].tolist()]
