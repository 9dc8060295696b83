"""The tables, and the statements on them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conbandit_torch.core.errors import ConfigError
from conbandit_torch.live.records import Event

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

FORMAT = 1
BLOCK = 1000  # ids that a process gets at once from PostgreSQL


def open_engine(where: str | Path | None) -> tuple[Engine, Path | None]:
    """An engine with one connection, and the path of the file if it is SQLite's."""
    try:
        import sqlalchemy
    except ImportError:
        raise ConfigError("a Recommender needs SQLAlchemy: pip install sqlalchemy") from None
    if where is None:
        url = sqlalchemy.URL.create("sqlite")
    elif isinstance(where, str) and "://" in where:
        url = sqlalchemy.make_url(where)
    else:
        url = sqlalchemy.URL.create("sqlite", database=str(where))
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    kind = url.get_backend_name()
    if kind not in ("sqlite", "postgresql"):
        raise ConfigError(f"store must be in SQLite or PostgreSQL, got {url.render_as_string()}")
    if kind == "postgresql":
        try:
            return sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool), None
        except ModuleNotFoundError as error:
            hint = "pip install 'conbandit-torch[postgres]'"
            raise ConfigError(f"a store in PostgreSQL needs {error.name}: {hint}") from None
    engine = sqlalchemy.create_engine(
        url, poolclass=sqlalchemy.StaticPool, connect_args={"check_same_thread": False, "timeout": 30}
    )
    sqlalchemy.event.listen(engine, "connect", _prepare_sqlite)
    path = Path(url.database) if url.database and url.database != ":memory:" else None
    return engine, path


_SQLITE = {
    "journal_mode": "WAL",
    "synchronous": "FULL",  # a commit is on the disk
    "secure_delete": "ON",  # who is forgotten leaves no bytes behind
    "journal_size_limit": 2**26,
}


def _prepare_sqlite(connection: Any, _: Any) -> None:
    for name, value in _SQLITE.items():
        connection.execute(f"PRAGMA {name} = {value}")


class Tables:
    """The tables of a store.

    Args:
        name: what the tables' names begin with.
    """

    def __init__(self, name: str) -> None:
        from sqlalchemy import (
            BigInteger,
            Column,
            Double,
            Identity,
            Index,
            Integer,
            LargeBinary,
            MetaData,
            Sequence,
            SmallInteger,
            String,
            Table,
            Text,
        )

        self.metadata = MetaData()
        self._insert: tuple[str, bool] | None = None  # of an event, and whether it takes values by position
        number = BigInteger().with_variant(Integer, "sqlite")
        self.users = Table(
            f"{name}_users",
            self.metadata,
            Column("number", number, Identity(start=0, minvalue=0), primary_key=True),
            Column("name", Text, unique=True),  # NULL: the person was forgotten
            Column("owner", Integer),
        )
        self.events = Table(
            f"{name}_events",
            self.metadata,
            Column("id", number, primary_key=True, autoincrement=False),
            Column("batch", number, nullable=False),
            Column("kind", String(16), nullable=False),
            Column("user", number),
            Column("time", Double, nullable=False),
            Column("about", number),
            Column("round", Integer),
            Column("what", String(16)),
            Column("first", Integer),
            Column("second", Integer),
            Column("value", Double),
            Column("place", SmallInteger),
            Column("candidates", LargeBinary),
            Column("pool", Integer),
            Column("body", LargeBinary),
        )
        # One answer per question, one reward per decision: the database says so too.
        Index(f"{name}_events_about", self.events.c.about, unique=True)
        Index(f"{name}_events_user", self.events.c.user, self.events.c.id)
        self.snapshots = Table(
            f"{name}_snapshots",
            self.metadata,
            Column("event", number, primary_key=True, autoincrement=False),
            Column("part", Integer, primary_key=True, autoincrement=False),
            Column("data", LargeBinary, nullable=False),
        )
        self.about = Table(
            f"{name}_about",
            self.metadata,
            Column("key", String(32), primary_key=True),
            Column("value", Text, nullable=False),
        )
        self.owners = Table(
            f"{name}_owners",
            self.metadata,
            Column("id", Integer, primary_key=True, autoincrement=True),
            Column("host", Text),
            Column("process", Integer),
            Column("since", Double),
        )
        self.ids = Sequence(f"{name}_ids", start=0, minvalue=0, increment=BLOCK, metadata=self.metadata)
        self.name = name

    def create(self, connection: Connection) -> None:
        """Make what is missing."""
        self.metadata.create_all(connection)
        connection.commit()

    def write(self, connection: Connection, events: Sequence[Event]) -> None:
        """Insert events, whose fields are in the order of the table's columns."""
        if self._insert is None:
            compiled = self.events.insert().compile(dialect=connection.dialect, column_keys=Event._fields)
            self._insert = str(compiled), compiled.positiontup is not None
        statement, by_position = self._insert
        # As the driver takes it, which saves half the time of a small commit.
        rows = [tuple(event) if by_position else event._asdict() for event in events]
        connection.exec_driver_sql(statement, rows)

    @cached_property
    def insert_users(self) -> Any:
        """Takes people as mappings."""
        return self.users.insert()

    def select_about(self) -> Any:
        """What the store is about."""
        from sqlalchemy import select

        return select(self.about.c.key, self.about.c.value)

    def select_users(self) -> Any:
        """Numbers and names, in order."""
        from sqlalchemy import select

        return select(self.users.c.number, self.users.c.name).order_by(self.users.c.number)

    def select_number(self, name: str) -> Any:
        """The number of a person."""
        from sqlalchemy import select

        return select(self.users.c.number).where(self.users.c.name == name)

    def select_name(self, number: int) -> Any:
        """The name of a person."""
        from sqlalchemy import select

        return select(self.users.c.name).where(self.users.c.number == number)

    def select_additions(self, until: int | None) -> Any:
        """What was added to the catalogue, in order."""
        from sqlalchemy import select

        query = select(self.events.c.body).where(self.events.c.kind == "items")
        if until is not None:
            query = query.where(self.events.c.id <= until)
        return query.order_by(self.events.c.id)

    def select_events(self, ids: Sequence[int]) -> Any:
        """Events of these ids."""
        from sqlalchemy import select

        return select(*(self.events.c[name] for name in Event._fields)).where(self.events.c.id.in_(ids))

    def select_settled(self, ids: Sequence[int]) -> Any:
        """Those of the ids that have their answer or reward."""
        from sqlalchemy import select

        return select(self.events.c.about).where(self.events.c.about.in_(ids))

    def select_with_origins(self, after: int, users: Sequence[int] | None) -> Any:
        """Events in order, each with the event that it is about."""
        from sqlalchemy import select

        origin = self.events.alias()
        columns = [table.c[name] for table in (self.events, origin) for name in Event._fields]
        joined = self.events.outerjoin(origin, origin.c.id == self.events.c.about)
        query = select(*columns).select_from(joined).where(self.events.c.id > after)
        if users is not None:
            query = query.where(self.events.c.user.in_(users))
        return query.order_by(self.events.c.id)

    def select_snapshot(self) -> Any:
        """All parts of the last snapshot."""
        from sqlalchemy import select

        return select(self.snapshots.c.event, self.snapshots.c.data).order_by(self.snapshots.c.part)

    def forgetting(self, user: int) -> list[Any]:
        """Delete what there is of a person; their number stays, so that nobody else gets it."""
        return [
            self.events.delete().where(self.events.c.user == user),
            self.users.update().where(self.users.c.number == user).values(name=None),
            self.snapshots.delete(),
        ]

    def after_forgetting(self, dialect: str) -> list[Any]:
        """Have SQLite empty its log of changes, in which the person still is."""
        from sqlalchemy import text

        return [text("PRAGMA wal_checkpoint(TRUNCATE)")] if dialect == "sqlite" else []
