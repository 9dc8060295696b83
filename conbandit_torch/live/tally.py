"""What everybody has done so far, kept up to date: for the admin page, TensorBoard and reports."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from conbandit_torch.live.records import Happened
from conbandit_torch.live.visitors import Visitor
from conbandit_torch.results.people import PersonSums, PolicySums, by_policy


class Tally:
    """Sums per person.

    Args:
        policies: their names.
        visitors: who takes part.
    """

    def __init__(self, policies: Sequence[str], visitors: Iterable[Visitor]) -> None:
        self._policies, self._lock = tuple(policies), threading.Lock()
        self._people: dict[str, PersonSums] = {}
        for visitor in visitors:
            self.join(visitor)

    def join(self, visitor: Visitor) -> None:
        """Somebody takes part."""
        with self._lock:
            self._people.setdefault(visitor.user, PersonSums(visitor.user, visitor.policy))

    def note(self, happened: Happened) -> None:
        """Take in one event; of those who have left, nothing."""
        with self._lock:
            person = self._people.get(happened.user)
            if person is None:
                return
            if happened.kind == "answer":
                person.answered += 1
            elif happened.kind == "reward":
                person.rated += 1
                person.reward += happened.value or 0.0

    def answered(self, visitor: Visitor) -> None:
        """One more answer."""
        with self._lock:
            self._people[visitor.user].answered += 1

    def rated(self, visitor: Visitor, reward: float) -> None:
        """One more reward."""
        with self._lock:
            person = self._people[visitor.user]
            person.rated += 1
            person.reward += reward

    def knows(self, visitor: Visitor) -> bool:
        """Whether somebody takes part."""
        with self._lock:
            return visitor.user in self._people

    def leave(self, visitor: Visitor) -> None:
        """Somebody was forgotten."""
        with self._lock:
            self._people.pop(visitor.user, None)

    def people(self) -> list[PersonSums]:
        """Everybody, as of now."""
        with self._lock:
            return [PersonSums(**vars(person)) for person in self._people.values()]

    def by_policy(self) -> list[PolicySums]:
        """What the people of each policy have done."""
        return by_policy(self.people(), self._policies)
