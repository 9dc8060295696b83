"""Keeps a policy's state and the store of events in step."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from conbandit_torch.core.errors import DataError
from conbandit_torch.live.beliefs import Beliefs
from conbandit_torch.live.input import expect_lengths
from conbandit_torch.live.records import Event
from conbandit_torch.live.store import Store

_RECENT = 20_000  # open questions and decisions that are kept at hand; older ones are looked up in the store
_QUIET = 20  # a snapshot may take one part in so many of the time


class Ledger:
    """A policy's beliefs, and the store that they follow from.

    One lock is around all changes. An event changes the beliefs at once, and is acknowledged when it is in
    the database; if the database fails, the beliefs are built anew from it.

    Args:
        beliefs: before the first event.
        open_store: opens the store.
        about: what the store is about, to be refused if it was made for something else.
        snapshot_every: events between snapshots.
    """

    def __init__(
        self,
        beliefs: Beliefs,
        open_store: Callable[[], Store],
        about: dict[str, Any],
        snapshot_every: int,
    ) -> None:
        self.beliefs, self._open_store, self._about = beliefs, open_store, about
        self.snapshot_every = snapshot_every
        self._lock = threading.RLock()
        self._stale = self._closed = False
        self._recent: OrderedDict[int, Event] = OrderedDict()
        self._last, self._since = -1, 0  # the last event, and how many there were since the last snapshot
        self._snapshot_took, self._snapshot_time = 0.0, time.monotonic()
        self.numbers: dict[str, int] = {}  # of the people whom this process has
        self.names: dict[int, str] = {}
        self._open()

    def _open(self) -> None:
        self.store = self._open_store()
        try:
            self.store.about(self._about)
            self.rebuild(snapshot=True)
        except BaseException:
            self.store.close()
            raise

    @contextmanager
    def changing(self) -> Iterator[Beliefs]:
        """One caller at a time may change the beliefs; what they recorded is on the disk at the end.

        They wait for the disk outside of the lock, so that others go on, and one commit does for all.
        """
        with self.looking() as beliefs:
            store = self.store
            yield beliefs
            ticket = store.appended
        store.wait(ticket)

    @contextmanager
    def looking(self) -> Iterator[Beliefs]:
        """One caller at a time. After an error half-way the beliefs are built anew, at the next call."""
        with self._lock:
            if self._closed:
                raise ValueError("this Recommender is closed")
            if self.store.failed:
                self.store.reopened()
                self._open()
            elif self._stale:
                self.rebuild(snapshot=True)
            yield self.beliefs

    def admit(self, names: Sequence[str]) -> list[int]:
        """The people's numbers in the store; those who are new are let in."""
        unknown = [name for name in names if name not in self.numbers]
        if unknown:
            numbers = dict(zip(self.store.claim(unknown), unknown, strict=True))
            for number in sorted(numbers):  # rows are in order of numbers, as when a store is opened
                self.names[number], self.numbers[numbers[number]] = numbers[number], number
                self.beliefs.admit(number)
            if self.store.shared:  # they may have been another process's
                self._replay(-1, list(numbers))
        return [self.numbers[name] for name in names]

    def record(self, events: Sequence[Event], origins: Sequence[Event] = ()) -> list[Event]:
        """Let events happen, as one call of the policy; gives them with their ids.

        Args:
            events: of one kind, without ids.
            origins: the questions that they answer, or the decisions that they reward.
        """
        ids = self.store.next_ids(len(events))
        batch = [event._replace(id=one, batch=ids[0]) for one, event in zip(ids, events, strict=True)]
        self._stale = True
        self.beliefs.apply(batch, origins)
        self.store.append(batch)
        self._stale = False
        for event in batch:
            if event.about is not None:
                self._recent.pop(event.about, None)
            elif event.user is not None:
                self._recent[event.id] = event
        while len(self._recent) > _RECENT:
            self._recent.popitem(last=False)
        self._last = ids[-1]
        self._since += len(batch)
        if self._since >= self.snapshot_every:
            self._snapshot_if_quiet()
        return batch

    def knows(self, name: str) -> bool:
        """Whether a person was here before."""
        return name in self.numbers or (self.store.shared and self.store.knows(name))

    def origins(self, ids: Sequence[int]) -> tuple[dict[int, Event], set[int]]:
        """Questions or decisions by their ids, and those that have their answer or reward already."""
        found = {one: self._recent[one] for one in ids if one in self._recent}
        if len(found) == len(ids):
            return found, set()
        return self.store.origins([one for one in ids if 0 <= one < 2**63])  # what a database can hold

    def expect_open(self, ids: list[int], kind: str, users: Sequence[str] | None) -> list[Event]:
        """The questions or decisions, if each is open and its user's.

        Args:
            ids: theirs.
            kind: what is to come of them, "answer" or "reward".
            users: whose they must be; None: anybody's.
        """
        noun, origin = ("question", "asked") if kind == "answer" else ("decision", "shown")
        if users is not None:
            expect_lengths(**{"users": users, f"{noun}s": ids})
        if len(set(ids)) != len(ids):
            again = next(one for one in ids if ids.count(one) > 1)
            raise ValueError(f"{noun} {again} is given twice: it can have one {kind}")
        found, settled = self.origins(ids)
        for place, one in enumerate(ids):
            event = found.get(one)
            if event is None or event.user is None or event.kind != origin:
                raise ValueError(f"{noun} {one} was never {'asked' if noun == 'question' else 'made'}")
            if self.name_of(event.user) != (users[place] if users is not None else self.names[event.user]):
                raise ValueError(f"{noun} {one} is not one of user {users[place]!r}")  # type: ignore[index]
            if one in settled:
                raise ValueError(f"{noun} {one} has had its {kind} already")
        return [found[one] for one in ids]

    def history(self, name: str) -> Iterator[tuple[Event, Event]]:
        """A person's answers and rewards, each with what it answers or rewards."""
        if self.knows(name):
            self.store.flush()
            for batch in self.store.batches(users=self.admit([name])):
                for event, origin in batch:
                    if origin is not None and event.value is not None:
                        yield event, origin

    def name_of(self, number: int) -> str:
        """A person's name; in a shared store they may have been another process's until now."""
        if number not in self.names:
            name = self.store.name_of(number)
            self.admit([name])
        return self.names[number]

    def forget(self, name: str) -> None:
        """Delete all that there is of a person, and build the state from what remains."""
        (number,) = self.admit([name])
        self._stale = True
        (one,) = self.store.next_ids(1)
        self.store.forget(name, Event(one, one, "forgotten", number, time.time()))
        self._last, self._since = one, self._since + 1
        del self.numbers[name], self.names[number]
        if self.beliefs.policy.users_are_independent:
            self.beliefs.forget(number)
            self._recent = OrderedDict((one, e) for one, e in self._recent.items() if e.user != number)
            self._stale = False
        else:
            self.rebuild()

    def snapshot(self) -> None:
        """Keep the state, so that opening is quick."""
        if self._last >= 0 and not self.store.shared:
            start = time.monotonic()
            self.store.write_snapshot(self._last, self.beliefs.state())
            self._since, self._snapshot_time = 0, time.monotonic()
            self._snapshot_took = self._snapshot_time - start

    def _snapshot_if_quiet(self) -> None:
        if time.monotonic() - self._snapshot_time >= _QUIET * self._snapshot_took:
            self.snapshot()

    def rebuild(self, snapshot: bool = False) -> None:
        """The state from all events, or from the last snapshot and the events since."""
        self.beliefs.reset()
        self._recent.clear()
        self._last, self._since = -1, 0
        self.numbers, self.names = {}, {}
        if not self.store.shared:
            people = self.store.names()
            self.names = {number: name for number, name in people if name is not None}
            self.numbers = {name: number for number, name in self.names.items()}
            if snapshot:
                self._load_snapshot()
            for number, _ in people:
                self.beliefs.admit(number)
            self._replay(self._last, None)
        elif self.store.additions():
            raise DataError("items were added to this store: it must be opened with alone=True")
        self._stale = False

    def _load_snapshot(self) -> None:
        found = self.store.read_snapshot()
        if found is None:
            return
        event, state = found
        if len(state["book.rounds"]) < self.beliefs.policy.num_users:
            return  # of a policy that was built for fewer users: replay everything
        for body in self.store.additions(event):
            self.beliefs.add(body)
        self.beliefs.load(state)
        self._last = event

    def _replay(self, after: int, users: Sequence[int] | None) -> None:
        for batch in self.store.batches(after, users):
            events = [event for event, _ in batch]
            self.beliefs.apply(events, [origin for _, origin in batch if origin is not None])
            self._last = events[-1].id
            self._since += len(events)

    def close(self) -> None:
        """Keep a snapshot, and let others have the store."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                if not (self.store.failed or self._stale) and self._since:
                    self.snapshot()
            finally:
                self.store.close()
