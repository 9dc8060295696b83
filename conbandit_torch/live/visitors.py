"""Who takes part in a study, and with which policy: a table of its own, beside the policies' events."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from conbandit_torch.core.randomness import Stream
from conbandit_torch.live.tables import open_engine


class Visitor(NamedTuple):
    """Somebody who takes part.

    Attributes:
        number: counts those who ever took part, from 1 on.
        user: their name in the policies' stores.
        policy: the policy that they were given.
        joined: when they agreed to take part, in seconds since 1970.
    """

    number: int
    user: str
    policy: str
    joined: float


class Visitors:
    """The table of those who take part. One process writes it.

    Args:
        where: path of an SQLite file, a SQLAlchemy URL, or None: in memory.
        policies: names of the policies that visitors are given.
        seed: of the draws among policies that have equally few visitors.
    """

    def __init__(self, where: str | Path | None, policies: Sequence[str], seed: int = 0) -> None:
        self._engine, _ = open_engine(where)
        from sqlalchemy import Column, Double, Integer, MetaData, Table, Text

        self._policies, self._seed, self._lock = tuple(policies), seed, threading.RLock()
        metadata = MetaData()
        self._table = Table(
            "visitors",
            metadata,
            Column("number", Integer, primary_key=True, autoincrement=True),
            Column("user", Text, unique=True, nullable=False),
            Column("policy", Text, nullable=False),
            Column("joined", Double, nullable=False),
            sqlite_autoincrement=True,  # nobody gets the number of somebody who was forgotten
        )
        with self._engine.begin() as connection:
            metadata.create_all(connection)

    def find(self, user: str) -> Visitor | None:
        """A visitor by name; None if nobody is called so."""
        with self._lock, self._engine.begin() as connection:
            row = connection.execute(self._table.select().where(self._table.c.user == user)).first()
        return None if row is None else Visitor(*row)

    def all(self) -> list[Visitor]:
        """All who take part, in the order in which they came."""
        with self._lock, self._engine.begin() as connection:
            return [
                Visitor(*row)
                for row in connection.execute(self._table.select().order_by(self._table.c.number))
            ]

    def join(self, user: str, policy: str | None = None) -> Visitor:
        """Let somebody take part, on the disk when this returns; who does already stays with their policy.

        Args:
            user: their name.
            policy: theirs; None: one of those that have the fewest visitors, drawn at random.
        """
        with self._lock:
            known = self.find(user)
            if known is not None:
                return known
            given, now = self._least_used(user) if policy is None else policy, time.time()
            with self._engine.begin() as connection:
                row = {"user": user, "policy": given, "joined": now}
                made = connection.execute(self._table.insert().values(row)).inserted_primary_key
            return Visitor(int(made[0]) if made else 0, user, given, now)

    def leave(self, user: str) -> None:
        """Forget that somebody took part."""
        with self._lock, self._engine.begin() as connection:
            connection.execute(self._table.delete().where(self._table.c.user == user))

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def _least_used(self, user: str) -> str:
        counts = dict.fromkeys(self._policies, 0)
        for visitor in self.all():
            if visitor.policy in counts:
                counts[visitor.policy] += 1
        fewest = [policy for policy, count in counts.items() if count == min(counts.values())]
        return fewest[int(Stream(self._seed, "assignment").integers(counter_of(user), 0, 1, len(fewest)))]


def counter_of(user: str) -> Tensor:
    """[1] a number that stands for a name in random draws."""
    return torch.tensor([int.from_bytes(sha256(user.encode()).digest()[:7], "big")])
