"""What happened to people, with names: for their pages, for reports and for logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, cast

from conbandit_torch.core.errors import DataError
from conbandit_torch.live.additions import unpacked
from conbandit_torch.live.records import Event
from conbandit_torch.live.tables import Tables, open_engine

Happening = Literal["asked", "answer", "shown", "reward"]


class Happened(NamedTuple):
    """Something that happened to a person.

    Attributes:
        id: of the event.
        kind: a question or an item came to the person, or an answer or a reward from them.
        names: the key-terms or items that it is about.
        value: the answer, or the reward; None: the person does not know, or nothing came from them.
        round: of the question or of the item: how often something had been recommended before.
        place: of an item in its slate; 0 of all else.
        about: id of the question or of the item that an answer or a reward is about; else its own id.
        time: seconds since 1970.
    """

    id: int
    kind: Happening
    names: tuple[str, ...]
    value: float | None
    round: int
    place: int
    about: int
    time: float


def happened(event: Event, origin: Event | None, items: Sequence[str], terms: Sequence[str]) -> Happened:
    """An event with the names that it is about."""
    came = event if origin is None else origin  # the question or the item
    names = terms if came.what is not None and came.what.startswith("term") else items
    ids = [one for one in (came.first, came.second) if one is not None]
    return Happened(
        event.id,
        cast(Happening, event.kind),
        tuple(names[one] for one in ids),
        event.value,
        came.round or 0,
        came.place or 0,
        came.id,
        event.time,
    )


def read_history(
    where: str | Path, name: str, items: Sequence[str], terms: Sequence[str]
) -> Iterator[tuple[str, Happened]]:
    """Everything in a store, each with whose it is, in order. The store may be in use; nothing is written.

    Args:
        where: path of an SQLite file, or a SQLAlchemy URL of PostgreSQL.
        name: what the tables' names in the database begin with.
        items: names of the items that the store began with.
        terms: names of the key-terms that it began with.
    """
    from sqlalchemy import inspect

    if isinstance(where, Path) and not where.is_file():
        raise DataError(f"{where}: no such store")
    engine, _ = open_engine(where)
    tables, size = Tables(name), len(Event._fields)
    items, terms = list(items), list(terms)
    try:
        with engine.connect() as connection:
            if not inspect(connection).has_table(tables.events.name):
                raise DataError(f"{tables.events.name}: the database has no such table")
            names = {row[0]: row[1] for row in connection.execute(tables.select_users())}
            rows = connection.execute(tables.select_with_origins(-1, None))
            for row in rows:
                event = Event(*row[:size])
                if event.kind == "items":
                    added = unpacked(event.body or b"")
                    items += added.items
                    terms += added.terms
                elif names.get(event.user) is not None:
                    origin = None if row[size] is None else Event(*row[size:])
                    yield names[event.user], happened(event, origin, items, terms)
    finally:
        engine.dispose()
