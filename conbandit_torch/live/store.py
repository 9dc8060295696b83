"""Events in a database: what is acknowledged is on the disk."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conbandit_torch.core.errors import DataError
from conbandit_torch.live.owners import OwnedError, Owner, owner_for
from conbandit_torch.live.records import Event
from conbandit_torch.live.tables import FORMAT, Tables, open_engine

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from torch import Tensor

_AT_ONCE = 500  # ids in a query: databases limit them
_ROWS = 20_000  # events that are read at once
_PART = 2**24  # bytes of a snapshot's part


class StoreError(RuntimeError):
    """The database refused, or is gone; nothing of what was being written is acknowledged."""


@contextmanager
def opening(engine: Engine) -> Iterator[None]:
    """Say which database cannot be opened, and why."""
    from sqlalchemy.exc import DBAPIError

    try:
        yield
    except DBAPIError as error:
        engine.dispose()
        place = engine.url.render_as_string(hide_password=True)
        raise StoreError(f"{place} cannot be opened: {str(error.orig).partition(chr(10))[0]}") from error
    except BaseException:
        engine.dispose()
        raise


class Store:
    """Events, people and snapshots in a database.

    Events are appended in memory and committed in groups: whoever waits first commits for all who have
    appended by then. So fifty threads wait for one disk.

    Args:
        where: path of an SQLite file, a SQLAlchemy URL, or None: in memory.
        name: the tables' names begin with it.
        alone: whether one process must have all users.
    """

    def __init__(self, where: str | Path | None, name: str, alone: bool) -> None:
        self._engine, path = open_engine(where)
        self.in_memory = path is None and self._engine.dialect.name == "sqlite"
        self._busy = threading.RLock()  # around the connection
        self._queue = threading.Lock()  # around what waits to be written
        self._turn = threading.Condition()  # on which those wait for whom somebody commits
        self._committing = False
        self._pending: list[Event] = []
        self._new_users: list[dict[str, Any]] = []
        self.appended = self._committed = 0  # events and people
        self._failed: BaseException | None = None
        self.tables = Tables(name)
        with opening(self._engine):
            self._connection = self._engine.connect()
            try:
                self.owner: Owner = owner_for(self._connection, self.tables, path, alone)
                self.tables.create(self._connection)
                self.owner.register()
            except BaseException:
                self._connection.close()
                raise

    @property
    def failed(self) -> bool:
        """Whether the database failed; then nothing can be written any more."""
        return self._failed is not None

    @property
    def shared(self) -> bool:
        """Whether other processes may have other users of this store."""
        return self.owner.shared

    # What is written

    def claim(self, names: Sequence[str]) -> list[int]:
        """The numbers of people who may be new; from now on they are this process's."""
        with self._guarded():
            numbers = self.owner.claim(names, self._new_users)
            with self._queue:
                self.appended += len(names)
            return numbers

    def next_ids(self, count: int) -> list[int]:
        """The ids of the next events."""
        if self.owner.has_ids(count):
            return self.owner.next_ids(count)
        with self._guarded():
            return self.owner.next_ids(count)

    def append(self, events: Sequence[Event]) -> None:
        """Have events written with the next commit; `appended` is what to `wait` for."""
        self._check()
        with self._queue:
            self._pending += events
            self.appended += len(events)

    def wait(self, ticket: int) -> None:
        """Return when all that was appended up to the ticket is on the disk.

        Whoever comes while nobody commits does it for all. The others sleep until a commit has ended, so that
        nobody whose events are on the disk waits for the next one.
        """
        if self._committed >= ticket:
            return
        with self._turn:
            while self._committing and self._committed < ticket:
                self._turn.wait()
            if self._committed >= ticket:
                return
            self._committing = True
        try:
            self.flush()
        finally:
            with self._turn:
                self._committing = False
                self._turn.notify_all()

    def flush(self) -> None:
        """Commit all that was appended."""
        with self._guarded():
            with self._queue:  # taken whole: others append to the next list meanwhile
                events, self._pending = self._pending, []
                goal = self.appended
            users, self._new_users = self._new_users, []
            if users:
                self._connection.execute(self.tables.insert_users, users)
            if events:
                self.tables.write(self._connection, events)
            if users or events:
                self._connection.commit()
            self._committed = goal

    def forget(self, name: str, event: Event) -> None:
        """Delete a person's events and name, and all snapshots; an event without a name tells of it."""
        with self._guarded():
            (user,) = self.claim([name])
            self.flush()
            for statement in self.tables.forgetting(user):
                self._connection.execute(statement)
            self.tables.write(self._connection, [event])
            self._connection.commit()
            for statement in self.tables.after_forgetting(self._engine.dialect.name):
                self._connection.execute(statement)
            self._connection.commit()
            self.owner.forget(name)

    # What is read

    def about(self, wanted: dict[str, Any]) -> None:
        """Write down what the store is about, or refuse another policy than that of its events."""
        wanted = {"format": FORMAT, **wanted}
        with self._guarded():
            found = self._read(self.tables.select_about())
            if not found:
                rows = [{"key": key, "value": json.dumps(value)} for key, value in wanted.items()]
                self._connection.execute(self.tables.about.insert(), rows)
                self._connection.commit()
                return
            known = {key: json.loads(value) for key, value in found}
        for key, value in wanted.items():
            if known.get(key) != value:
                raise DataError(
                    f"the store's events are of another {key.replace('_', ' ')}: {known.get(key)} there, "
                    f"{value} now; open it with what it was made with, or make a new store"
                )

    def names(self) -> list[tuple[int, str | None]]:
        """The numbers and names of all people ever seen, in order; who was forgotten has no name."""
        return [(number, name) for number, name in self._read(self.tables.select_users())]

    def knows(self, name: str) -> bool:
        """Whether there is a person of this name."""
        return bool(self._read(self.tables.select_number(name)))

    def name_of(self, number: int) -> str:
        """The name of a person."""
        rows = self._read(self.tables.select_name(number))
        return str(rows[0][0])

    def additions(self, until: int | None = None) -> list[bytes]:
        """What was added to the catalogue, up to an event."""
        return [row[0] for row in self._read(self.tables.select_additions(until))]

    def batches(
        self, after: int = -1, users: Sequence[int] | None = None
    ) -> Iterator[list[tuple[Event, Event | None]]]:
        """Batches of events later than `after`, in order, each event with what it answers or rewards.

        Args:
            after: id of an event.
            users: numbers of people; None: everybody.
        """
        size, limit = len(Event._fields), _ROWS
        while True:
            rows = self._read(self.tables.select_with_origins(after, users).limit(limit))
            pairs = [(Event(*row[:size]), None if row[size] is None else Event(*row[size:])) for row in rows]
            found = [list(batch) for _, batch in groupby(pairs, key=lambda pair: pair[0].batch)]
            if len(rows) < limit:
                yield from found
                return
            if len(found) == 1:
                limit *= 2  # until the whole batch fits
                continue
            yield from found[:-1]  # the last may be cut
            after = found[-2][-1][0].id

    def origins(self, ids: Sequence[int]) -> tuple[dict[int, Event], set[int]]:
        """The questions or decisions of these ids, and those that have their answer or reward already."""
        found: dict[int, Event] = {}
        settled: set[int] = set()
        with self._busy:
            self.flush()
            for start in range(0, len(ids), _AT_ONCE):
                some = ids[start : start + _AT_ONCE]
                found |= {row[0]: Event(*row) for row in self._read(self.tables.select_events(some))}
                settled |= {row[0] for row in self._read(self.tables.select_settled(some))}
        return found, settled

    # Snapshots

    def write_snapshot(self, event: int, state: dict[str, Tensor]) -> None:
        """Keep the state after an event, in place of the last snapshot."""
        from conbandit_torch.live.snapshots import parts_of

        with self._guarded():
            self.flush()
            self._connection.execute(self.tables.snapshots.delete())
            for part, data in enumerate(parts_of(state, _PART)):
                row = {"event": event, "part": part, "data": data}
                self._connection.execute(self.tables.snapshots.insert(), row)
            self._connection.commit()

    def read_snapshot(self) -> tuple[int, dict[str, Tensor]] | None:
        """The last snapshot, and the event after which it was taken."""
        from conbandit_torch.live.snapshots import joined

        with self._busy:
            rows = self._read(self.tables.select_snapshot())
        return (rows[0][0], joined(row[1] for row in rows)) if rows else None

    def reopened(self) -> None:
        """Make way for another of the same database, which knows all that was acknowledged.

        Raises:
            StoreError: it was in memory, and is gone.
        """
        if self.in_memory:
            self._check()
        self.close()

    def close(self) -> None:
        """Commit what is left, and let others have the store."""
        with self._busy:
            try:
                if self._failed is None:
                    self.flush()
            finally:
                self.owner.release()
                self._connection.close()
                self._engine.dispose()
                self._failed = self._failed or StoreError("the store is closed")

    def _read(self, statement: Any) -> list[Any]:
        with self._guarded():
            rows = self._connection.execute(statement).fetchall()
            self._connection.commit()  # no transaction stays open over a reading
            return list(rows)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """One thread at a time has the connection; after a failure, nobody.

        What is in memory is then ahead of the database, or may be.
        """
        with self._busy:
            self._check()
            try:
                yield
            except OwnedError:
                raise
            except BaseException as error:
                if self._failed is None:
                    self._failed = StoreError(f"the database failed: {str(error).partition(chr(10))[0]}")
                raise self._failed from error

    def _check(self) -> None:
        if self._failed is not None:
            raise StoreError(f"{self._failed}: open the store again") from self._failed
