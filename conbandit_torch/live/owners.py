"""Who may write: one process, or several that have different users."""

from __future__ import annotations

import os
import socket
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from conbandit_torch.live.tables import BLOCK, Tables

if TYPE_CHECKING:
    from sqlalchemy import Connection


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

    @abstractmethod
    def next_id(self) -> int:
        """The id of the next event."""

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

    def next_id(self) -> int:
        """The one after the last."""
        self._next += 1
        return self._next - 1

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
        self._connection, self._tables = connection, tables
        self.shared = not alone
        self._key = zlib.crc32(tables.name.encode()) - 2**31
        kind = "pg_try_advisory_lock" if alone else "pg_try_advisory_lock_shared"
        if not self._scalar(f"SELECT {kind}({self._key}, 0)"):
            reason = (
                "this policy's users share what is learned, so that one process must have the whole store"
                if alone
                else "that process has the whole store"
            )
            raise OwnedError(f"the store is in use by {self._holders()}: {reason}")
        self._block = range(0)

    def _scalar(self, text: str) -> Any:
        from sqlalchemy import text as sql

        found = self._connection.execute(sql(text)).scalar()
        self._connection.commit()
        return found

    def register(self) -> None:
        """Have a number among the owners, and a lock by which others see that this process lives."""
        owners = self._tables.owners
        row = {"host": socket.gethostname(), "process": os.getpid(), "since": time.time()}
        self._id = self._connection.execute(owners.insert().returning(owners.c.id), row).scalar()
        self._connection.commit()
        self._scalar(f"SELECT pg_advisory_lock({self._key}, {self._id})")

    def next_id(self) -> int:
        """From blocks, which PostgreSQL hands out in ascending order."""
        if not self._block:
            first = int(self._connection.execute(self._tables.ids).scalar_one())
            self._connection.commit()
            self._block = range(first, first + BLOCK)
        found, self._block = self._block[0], self._block[1:]
        return found

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
        from sqlalchemy import text

        if owner is None:
            return
        lock = text(f"SELECT pg_try_advisory_xact_lock({self._key}, {owner})")
        if not self._connection.execute(lock).scalar():
            raise OwnedError(
                f"user {names[0]!r} is served by {self._describe(owner)}: send them there; a user belongs to "
                "one process at a time"
            )

    def _describe(self, owner: int) -> str:
        from sqlalchemy import select

        owners = self._tables.owners
        found = self._connection.execute(select(owners).where(owners.c.id == owner)).fetchone()
        return "another process" if found is None else f"process {found.process} on {found.host}"

    def _holders(self) -> str:
        """Who is connected and has the lock."""
        from sqlalchemy import text

        query = text(
            "SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid > 0 "
            f"AND classid::bigint = {self._key % 2**32}"
        )
        ids = [row[0] for row in self._connection.execute(query)]
        return " and ".join(self._describe(one) for one in ids) or "another process"

    def release(self) -> None:
        """The locks go with the connection."""


def _who() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"
