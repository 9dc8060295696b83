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
        add: adds items to the beliefs, as an event's body says.
        snapshot_every: events between snapshots.
    """

    def __init__(
        self,
        beliefs: Beliefs,
        open_store: Callable[[], Store],
        about: dict[str, Any],
        add: Callable[[bytes], None],
        snapshot_every: int,
    ) -> None:
        self.beliefs, self._open_store, self._about, self._add = beliefs, open_store, about, add
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
            self._rebuild()
        except BaseException:
            self.store.close()
            raise

    @contextmanager
    def changing(self) -> Iterator[None]:
        """One caller at a time. After an error half-way the beliefs are built anew, at the next call."""
        with self._lock:
            if self._closed:
                raise ValueError("this Recommender is closed")
            if self.store.failed:
                self.store.close()
                self._open()
            elif self._stale:
                self._rebuild()
            yield

    def wait(self, ticket: int) -> None:
        """Return when what was recorded is on the disk."""
        self.store.wait(ticket)

    def admit(self, names: Sequence[str]) -> list[int]:
        """The people's numbers in the store; those who are new are let in."""
        unknown = [name for name in names if name not in self.numbers]
        if unknown:
            numbers = self.store.claim(unknown)
            for name, number in zip(unknown, numbers, strict=True):
                self.numbers[name], self.names[number] = number, name
                self.beliefs.admit(number)
            if self.store.shared:  # they may have been another process's
                self._replay(-1, numbers)
        return [self.numbers[name] for name in names]

    def next_id(self) -> int:
        """The id of the next event."""
        return self.store.next_id()

    def record(self, batch: Sequence[Event], origins: Sequence[Event] = ()) -> int:
        """Let events happen: one call of the policy; gives what to `wait` for.

        Args:
            batch: the events.
            origins: the questions that they answer, or the decisions that they reward.
        """
        self._stale = True
        self.beliefs.apply(batch, origins)
        ticket = self.store.append(batch)
        self._stale = False
        for event in batch:
            if event.about is not None:
                self._recent.pop(event.about, None)
            elif event.kind in ("asked", "shown"):
                self._recent[event.id] = event
        while len(self._recent) > _RECENT:
            self._recent.popitem(last=False)
        self._last = batch[-1].id
        self._since += len(batch)
        if self._since >= self.snapshot_every and not self.store.shared:
            self._snapshot_if_quiet()
        return ticket

    def record_addition(self, event: Event) -> int:
        """Let items be added, as an event says; gives what to `wait` for."""
        self._stale = True
        self._add(event.body or b"")
        ticket = self.store.append([event])
        self._stale, self._last = False, event.id
        return ticket

    def knows(self, name: str) -> bool:
        """Whether a person was here before."""
        return name in self.numbers or (self.store.shared and self.store.knows(name))

    def origins(self, ids: Sequence[int]) -> tuple[dict[int, Event], set[int]]:
        """Questions or decisions by their ids, and those that have their answer or reward already."""
        found = {one: self._recent[one] for one in ids if one in self._recent}
        if len(found) == len(ids):
            return found, set()
        return self.store.origins(ids)

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
        self.store.forget(name)
        del self.numbers[name], self.names[number]
        if self.beliefs.policy.users_are_independent:
            self.beliefs.forget(number)
            self._recent = OrderedDict((one, e) for one, e in self._recent.items() if e.user != number)
            self._stale = False
        else:
            self._rebuild()

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

    def _rebuild(self) -> None:
        """The state from the last snapshot, and the events since."""
        self.beliefs.reset()
        self._recent.clear()
        self._last, self._since = -1, 0
        self.numbers, self.names = {}, {}
        if not self.store.shared:
            self.numbers = self.store.users()
            self.names = {number: name for name, number in self.numbers.items()}
            self._load_snapshot()
            for number in self.store.numbers():
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
            self._add(body)
        self.beliefs.load(state)
        self._last = event

    def _replay(self, after: int, users: Sequence[int] | None) -> None:
        for batch in self.store.batches(after, users):
            events = [event for event, _ in batch]
            if events[0].kind == "items":
                self._add(events[0].body or b"")
            else:
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
