"""Between the names that people use and the ids that a policy uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from conbandit_torch.core.errors import nearest
from conbandit_torch.live.records import Asked, Event, Happened, Kind, Shown

_KINDS: dict[str, Kind] = {"term": "term", "item": "item", "terms": "comparison", "items": "comparison"}

Pool = tuple[bytes | None, int]
"""Ids of candidates, four bytes each, or None for all; and how many they are."""


class Names:
    """Names that stand for the ids 0, 1, 2, ...; each once.

    Args:
        kind: what is named, for errors.
        names: the names, in the order of their ids.
    """

    def __init__(self, kind: str, names: Iterable[str]) -> None:
        self.kind = kind
        self.all: list[str] = []
        self._ids: dict[str, int] = {}
        self.add(list(names))

    def __len__(self) -> int:
        return len(self.all)

    def add(self, names: Sequence[str]) -> None:
        """Name the next ids."""
        self.check_new(names)
        self._ids.update(zip(names, range(len(self.all), len(self.all) + len(names)), strict=True))
        self.all += names

    def check_new(self, names: Sequence[str]) -> None:
        """Refuse names that are no texts, empty, or known."""
        seen: set[str] = set()
        for name in names:
            expect_text(f"the name of one {self.kind}", name)
            if name in self._ids or name in seen:
                raise ValueError(f"two {self.kind}s are called {name!r}: every name must be given once")
            seen.add(name)

    def id_of(self, name: str) -> int:
        """The id of a name.

        Raises:
            ValueError: there is no such name; says which is near.
        """
        return self.ids_of([name])[0]

    def ids_of(self, names: Sequence[str]) -> list[int]:
        """The ids of several names, each given once."""
        try:
            ids = list(map(self._ids.__getitem__, names))
        except (KeyError, TypeError):
            wrong = next(name for name in names if not isinstance(name, str) or name not in self._ids)
            close = nearest(wrong, self.all)
            hint = f" (did you mean {close!r}?)" if close else ""
            raise ValueError(f"there is no {self.kind} {wrong!r}{hint}") from None
        if len(set(ids)) != len(ids):
            again = next(name for name in names if list(names).count(name) > 1)
            raise ValueError(f"{self.kind} {again!r} is given twice")
        return ids


class Vocabulary:
    """The names of items and key-terms, and events as people read them.

    Args:
        items: names of the items.
        terms: names of the key-terms.
    """

    def __init__(self, items: Sequence[str], terms: Sequence[str]) -> None:
        self.items, self.terms = Names("item", items), Names("key-term", terms)

    def pool(self, candidates: Sequence[str] | None) -> Pool:
        """What may be shown; None: everything."""
        if candidates is None:
            return None, len(self.items)
        if isinstance(candidates, str) or not len(candidates):
            raise ValueError(f"candidates must be a list of names of items, got {candidates!r}")
        ids = self.items.ids_of(candidates)
        return np.array(ids, np.int32).tobytes(), len(ids)

    def names(self, event: Event) -> tuple[str, ...]:
        """What an item or a question is called."""
        known = self.terms if event.what in ("term", "terms") else self.items
        return tuple(known.all[one] for one in (event.first, event.second) if one is not None)

    def asked(self, user: str, event: Event) -> Asked:
        """A question."""
        return Asked(event.id, user, _KINDS[event.what or "term"], self.names(event))

    def shown(self, user: str, event: Event) -> Shown:
        """A decision."""
        (item,) = self.names(event)
        return Shown(event.id, user, item, event.place or 0, event.round or 0)

    def happened(self, user: str, event: Event, origin: Event | None) -> Happened:
        """Any event but an addition, with what it answers or rewards."""
        what = event if origin is None else origin
        pool = None
        if event.candidates is not None:
            pool = tuple(self.items.all[one] for one in np.frombuffer(event.candidates, np.int32).tolist())
        elif event.kind == "shown":
            pool = tuple(self.items.all[: event.pool])
        return Happened(
            id=event.id,
            time=event.time,
            user=user,
            kind=event.kind,
            about=event.about,
            question=_KINDS.get(what.what or ""),
            names=self.names(what),
            value=event.value,
            round=what.round or 0,
            place=what.place,
            candidates=pool if event.kind == "shown" else None,
        )


def expect_text(what: str, given: object) -> None:
    """Refuse a name that is no text, empty, or nothing that a database can hold."""
    if not isinstance(given, str) or not given:
        raise ValueError(f"{what} must be a text, got {given!r}")
    if "\0" in given or (not given.isascii() and any("\ud800" <= letter <= "\udfff" for letter in given)):
        raise ValueError(f"{what} must be a text without null characters and half letters, got {given!r}")
