"""Names of items and key-terms, and their ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from conbandit_torch.core.errors import nearest


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
        self.add(names)

    def __len__(self) -> int:
        return len(self.all)

    def add(self, names: Iterable[str]) -> None:
        """Name the next ids."""
        names = list(names)
        self.check_new(names)
        self._ids.update(zip(names, range(len(self.all), len(self.all) + len(names)), strict=True))
        self.all += names

    def check_new(self, names: Sequence[str]) -> None:
        """Refuse names that are no texts, empty, or known."""
        seen: set[str] = set()
        for name in names:
            if not isinstance(name, str) or not name:
                raise ValueError(f"the name of an {self.kind} must be a text, got {name!r}")
            if name in self._ids or name in seen:
                raise ValueError(f"two {self.kind}s are called {name!r}: every name must be given once")
            seen.add(name)

    def id_of(self, name: str) -> int:
        """The id of a name.

        Raises:
            ValueError: there is no such name; says which is near.
        """
        try:
            return self._ids[name]
        except (KeyError, TypeError):
            close = nearest(name, self.all)
            hint = f" (did you mean {close!r}?)" if close else ""
            raise ValueError(f"there is no {self.kind} {name!r}{hint}") from None

    def ids_of(self, names: Sequence[str]) -> list[int]:
        """The ids of several names, each given once."""
        ids = [self.id_of(name) for name in names]
        if len(set(ids)) != len(ids):
            again = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"{self.kind} {again!r} is given twice")
        return ids
