"""The folder of a study: the names of all that is in it, and its tables.

- `study.yaml`: the config, resolved
- `items.csv`, `terms.csv`: what is recommended and asked about
- `visitors.db`: who takes part, and with which policy; in PostgreSQL, if the events are
- `<policy>/people.db`: the policy's events; likewise
- `<policy>/events.out.tfevents.*`: its curves
- `report.md`: made by `conbandit report`
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import yaml

from conbandit_torch.core.errors import ConfigError
from conbandit_torch.live.history import read_history
from conbandit_torch.live.records import Happened
from conbandit_torch.live.visiting import Card
from conbandit_torch.live.visitors import Visitor, Visitors
from conbandit_torch.running.folder import STUDY

ITEMS = "items.csv"
TERMS = "terms.csv"
_VISITORS = "visitors.db"
_EVENTS = "people.db"
_SEPARATOR = "|"


def events_of(folder: Path, policy: str, store: str | None) -> str | Path:
    """Where a policy's events are: in a database that was given, or in the folder."""
    return store or folder / policy / _EVENTS


def visitors_of(folder: Path, store: str | None) -> str | Path:
    """Where those who take part are listed."""
    return store or folder / _VISITORS


def table_name(policies: Sequence[str], policy: str) -> str:
    """What the names of a policy's tables begin with."""
    return f"policy{policies.index(policy)}"


def items_table(cards: Iterable[Card]) -> str:
    """The items as `Table` reads them."""
    cards = list(cards)
    columns = list(dict.fromkeys(column for card in cards for column in card.details))
    plain = not any(_SEPARATOR in term for card in cards for term in card.terms)
    return as_csv(
        ["item", "terms", *columns],
        (
            [
                card.item,
                _SEPARATOR.join(card.terms) if plain else json.dumps(card.terms),
                *(card.details.get(column, "") for column in columns),
            ]
            for card in cards
        ),
    )


def terms_table(terms: Sequence[str]) -> str:
    """The key-terms, in the order of their ids."""
    return as_csv(["term"], ([term] for term in terms))


def as_csv(heading: list[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as text."""
    file = StringIO(newline="")
    table = csv.writer(file, lineterminator="\n")
    table.writerow(heading)
    table.writerows(rows)
    return file.getvalue()


class KeptStudy:
    """A study as its folder has it, while it goes on or afterwards. Nothing is written.

    Args:
        folder: of `conbandit serve` or `conbandit chat`.
        store: the URL of the database that its events are in; None: SQLite files in the folder.
    """

    def __init__(self, folder: Path, store: str | None = None) -> None:
        path = folder / STUDY
        if not path.is_file():
            raise ConfigError(f"{folder}: holds no study; `conbandit serve CONFIG --out {folder}` makes one")
        self.folder, self._store = folder, store
        if store is None and not (folder / _VISITORS).is_file():
            raise ConfigError(f"{folder}: its events are not here: give the database with --store")
        self.policies: list[str] = list(yaml.safe_load(path.read_text(encoding="utf-8"))["policies"])

    def visitors(self) -> list[Visitor]:
        """All who take part."""
        table = Visitors(visitors_of(self.folder, self._store), self.policies)
        try:
            return table.all()
        finally:
            table.close()

    def events(self, policy: str) -> Iterator[Happened]:
        """All that happened with a policy."""
        items, terms = (_first_column(self.folder / name) for name in (ITEMS, TERMS))
        where = events_of(self.folder, policy, self._store)
        yield from read_history(where, table_name(self.policies, policy), items, terms)


def _first_column(path: Path) -> list[str]:
    with path.open(encoding="utf-8", newline="") as file:
        return [row[0] for row in csv.reader(file)][1:]
