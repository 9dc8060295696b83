"""Who may write: one process, or several that have different users."""

from __future__ import annotations

import os
import socket
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from conbandit_torch.live.tables import BLOCK, Tables

if TYPE_CHECKING:
    from sqlalchemy import Connection


_PATIENCE = 10.0  # seconds


class OwnedError(RuntimeError):
    """Another process has the store, or the user."""


def owner_for(connection: Connection, tables: Tables, path: Path | None, alone: bool) -> Owner:
    """The owner of a store in this database."""
    if connection.dialect.name == "postgresql":
        return PostgresOwner(connection, tables, alone)
    return FileOwner(connection, tables, path)


class Owner(ABC):
    """This process, as a store's only writer or as that of some users."""

    shared = False

    @abstractmethod
    def register(self) -> None:
        """Be the owner from now on; the tables are there."""

    def has_ids(self, count: int) -> bool:
        """Whether the next ids are at hand, without the database."""
        return True

    @abstractmethod
    def next_ids(self, count: int) -> list[int]:
        """The ids of the next events, in ascending order."""

    @abstractmethod
    def claim(self, names: Sequence[str], new: list[dict[str, Any]]) -> list[int]:
        """The numbers of people, who are this process's from now on.

        Args:
            names: theirs.
            new: where to put those who are new, if the store is to write them with the next events.
        """

    def forget(self, name: str) -> None:  # noqa: B027
        """A person is not in the store any more."""

    @abstractmethod
    def release(self) -> None:
        """Let others be the owner."""


class FileOwner(Owner):
    """The only writer of an SQLite file, or of a database in memory."""

    def __init__(self, connection: Connection, tables: Tables, path: Path | None) -> None:
        self._connection, self._tables = connection, tables
        self._lock: FileLock | None = None
        if path is None:
            return
        beside = path.with_name(path.name + ".lock")
        holder = path.with_name(path.name + ".holder")
        lock = FileLock(beside, timeout=0)
        try:
            lock.acquire()
        except Timeout:
            who = holder.read_text(encoding="utf-8") if holder.exists() else "another process"
            raise OwnedError(
                f"{path} is in use by {who}: one process at a time may write to an SQLite store; several "
                "can share one in PostgreSQL"
            ) from None
        holder.write_text(_who(), encoding="utf-8")
        self._lock = lock

    def register(self) -> None:
        """Look where numbers and ids go on."""
        from sqlalchemy import func, select

        users, events = self._tables.users, self._tables.events
        last = self._connection.execute(select(func.max(events.c.id))).scalar()
        self._next = 0 if last is None else last + 1
        found = self._connection.execute(select(users.c.name, users.c.number)).fetchall()
        self._numbers = {name: number for name, number in found if name is not None}
        self._people = 1 + max((number for _, number in found), default=-1)
        self._connection.commit()

    def next_ids(self, count: int) -> list[int]:
        """Those after the last."""
        self._next += count
        return list(range(self._next - count, self._next))

    def claim(self, names: Sequence[str], new: list[dict[str, Any]]) -> list[int]:
        """Everybody is this process's."""
        for name in names:
            if name not in self._numbers:
                self._numbers[name] = self._people
                new.append({"number": self._people, "name": name, "owner": None})
                self._people += 1
        return [self._numbers[name] for name in names]

    def forget(self, name: str) -> None:
        """If the person comes again, they get a new number."""
        del self._numbers[name]

    def release(self) -> None:
        """Unlock the file."""
        if self._lock is not None:
            self._lock.release()


class PostgresOwner(Owner):
    """A writer of a PostgreSQL store, of all users or of those it has claimed.

    PostgreSQL holds its locks as long as the connection lives, by which events are written too: a process
    that has lost its connection has lost its users, and can write nothing any more.
    """

    def __init__(self, connection: Connection, tables: Tables, alone: bool) -> None:
        from sqlalchemy import text

        self._connection, self._tables = connection, tables
        self.shared = not alone
        self._key = zlib.crc32(tables.name.encode()) - 2**31
        # One process at a time makes the tables, which errors about owners look into.
        connection.execute(text(f"SELECT pg_advisory_xact_lock({self._key}, -1)"))
        tables.create(connection)
        kind = "pg_try_advisory_lock" if alone else "pg_try_advisory_lock_shared"
        if not self._locked(f"SELECT {kind}({self._key}, 0)", self._holders):
            reason = (
                "this policy's users share what is learned, so that one process must have the whole store"
                if alone
                else "that process has the whole store"
            )
            who = " and ".join(map(self._describe, self._holders())) or "another process"
            raise OwnedError(f"the store is in use by {who}: {reason}")
        self._block = range(0)

    def _locked(self, query: str, holders: Callable[[], list[int]]) -> bool:
        """Whether a lock was got; PostgreSQL takes a moment to see that a process was killed."""
        from sqlalchemy import text

        deadline = time.monotonic() + _PATIENCE
        while not (got := self._connection.execute(text(query)).scalar()):
            owners = holders()
            if not all(map(self._has_ended, owners)) or time.monotonic() > deadline:
                break
            time.sleep(0.02)
        return bool(got)

    def _has_ended(self, owner: int) -> bool:
        """Whether an owner's process was one of this machine, and is not there any more."""
        from psutil import pid_exists

        found = self._row(owner)
        return found is None or (found.host == socket.gethostname() and not pid_exists(found.process))

    def _row(self, owner: int) -> Any:
        from sqlalchemy import select

        owners = self._tables.owners
        return self._connection.execute(select(owners).where(owners.c.id == owner)).fetchone()

    def register(self) -> None:
        """Have a number among the owners, and a lock by which others see that this process lives."""
        from sqlalchemy import text

        owners = self._tables.owners
        row = {"host": socket.gethostname(), "process": os.getpid(), "since": time.time()}
        self._id = self._connection.execute(owners.insert().returning(owners.c.id), row).scalar()
        self._connection.commit()
        self._connection.execute(text(f"SELECT pg_advisory_lock({self._key}, {self._id})"))
        self._connection.commit()

    def has_ids(self, count: int) -> bool:
        """Whether they are in the block that was got last."""
        return len(self._block) >= count

    def next_ids(self, count: int) -> list[int]:
        """From blocks, which PostgreSQL hands out in ascending order."""
        ids: list[int] = []
        while len(ids) < count:
            if not self._block:
                first = self._connection.scalar(self._tables.ids)
                self._connection.commit()
                self._block = range(first, first + BLOCK)
            some = min(count - len(ids), len(self._block))
            ids += self._block[:some]
            self._block = self._block[some:]
        return ids

    def claim(self, names: Sequence[str], new: list[dict[str, Any]]) -> list[int]:
        """People who are new, and those of processes that have ended."""
        from sqlalchemy import select
        from sqlalchemy.dialects.postgresql import insert

        users = self._tables.users
        try:
            rows = [{"name": name, "owner": self._id} for name in sorted(set(names))]
            self._connection.execute(insert(users).on_conflict_do_nothing(), rows)
            query = select(users.c.name, users.c.number, users.c.owner).where(users.c.name.in_(names))
            found = self._connection.execute(query.order_by(users.c.number).with_for_update()).fetchall()
            others = {owner for _, _, owner in found} - {self._id}
            for owner in others:
                self._expect_ended(owner, [name for name, _, its in found if its == owner])
            if others:
                mine = users.c.number.in_([number for _, number, _ in found])
                self._connection.execute(users.update().where(mine).values(owner=self._id))
                self._block = range(0)  # ids go on after those of the processes that have ended
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise
        numbers = {name: number for name, number, _ in found}
        return [numbers[name] for name in names]

    def _expect_ended(self, owner: int | None, names: list[str]) -> None:
        """Refuse people whom a living process has."""
        if owner is None:
            return
        if not self._locked(f"SELECT pg_try_advisory_xact_lock({self._key}, {owner})", lambda: [owner]):
            raise OwnedError(
                f"user {names[0]!r} is served by {self._describe(owner)}: send them there; a user belongs to "
                "one process at a time"
            )

    def _describe(self, owner: int) -> str:
        found = self._row(owner)
        return "another process" if found is None else f"process {found.process} on {found.host}"

    def _holders(self) -> list[int]:
        """The owners who are connected."""
        from sqlalchemy import text

        query = text(
            "SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid > 0 "
            f"AND classid::bigint = {self._key % 2**32}"
        )
        return [row[0] for row in self._connection.execute(query)]

    def release(self) -> None:
        """The locks go with the connection."""


def _who() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"
