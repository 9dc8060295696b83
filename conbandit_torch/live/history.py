"""The events of a store that may be in use: for reports and for logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from conbandit_torch.core.errors import DataError
from conbandit_torch.live.additions import unpacked
from conbandit_torch.live.records import Event, Happened
from conbandit_torch.live.tables import Tables, open_engine
from conbandit_torch.live.vocabulary import Vocabulary


def read_history(
    where: str | Path, name: str, items: Sequence[str], terms: Sequence[str]
) -> Iterator[Happened]:
    """Everything in a store, in order, of those who were not forgotten. Nothing is written.

    Args:
        where: path of an SQLite file, or a SQLAlchemy URL of PostgreSQL.
        name: what the tables' names in the database begin with.
        items: names of the items that the store began with.
        terms: names of the key-terms that it began with.
    """
    from sqlalchemy import inspect

    if isinstance(where, Path) and not where.is_file():
        return
    engine, _ = open_engine(where)
    tables, size, vocabulary = Tables(name), len(Event._fields), Vocabulary(items, terms)
    try:
        with engine.connect() as connection:
            if not inspect(connection).has_table(tables.events.name):
                raise DataError(f"{tables.events.name}: the database has no such table")
            names = {row[0]: row[1] for row in connection.execute(tables.select_users())}
            for row in connection.execute(tables.select_with_origins(-1, None)):
                event, user = Event(*row[:size]), names.get(row[Event._fields.index("user")])
                if event.kind == "items":
                    added = unpacked(event.body or b"")
                    vocabulary.items.add(added.items)
                    vocabulary.terms.add(added.terms)
                elif user is not None:
                    origin = None if row[size] is None else Event(*row[size:])
                    yield vocabulary.happened(user, event, origin)
    finally:
        engine.dispose()
