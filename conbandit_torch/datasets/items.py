"""A catalogue of items as one CSV file: no feedback, no users, no library but Python's own."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.errors import DataError, nearest

FILMS = "films"
"""The catalogue that comes with this package: well-known films, facts only."""

_FOLDER = Path(__file__).parent / "catalogues"
_ITEM, _TERMS, _YEAR = "item", "terms", "year"
_SEPARATOR = "|"
_DECADE = 0.5  # weight of an item's decade beside its key-terms, each of which weighs 1
_LONGEST = 200  # characters of a name: it must fit on a button
_MOST_ITEMS = 100_000


@dataclass(frozen=True)
class Items:
    """Items as people read them.

    Attributes:
        path: the file.
        names: N distinct names.
        terms: the key-terms of every item, at least one.
        details: the further columns of every item, such as a year and a director, by the column's name.
    """

    path: Path
    names: tuple[str, ...]
    terms: tuple[tuple[str, ...], ...]
    details: tuple[dict[str, str], ...]

    def catalogue(self) -> Catalogue:
        """The items as arms.

        An arm's features are 1 for every key-term it has and 0.5 for its decade (if there is a column
        `year`), scaled to length 1.
        """
        own = sorted({name for names in self.terms for name in names})
        decades = sorted({decade for row in self.details if (decade := _decade(row))})
        columns = {name: column for column, name in enumerate([*own, *decades])}
        features = torch.zeros(len(self.names), len(columns), dtype=torch.float64)  # [N, D]
        for row, (terms, details) in enumerate(zip(self.terms, self.details, strict=True)):
            features[row, [columns[name] for name in terms]] = 1.0
            if decade := _decade(details):
                features[row, columns[decade]] = _DECADE
        weights: Tensor = features[:, : len(own)].bool().double()  # [N, K]
        return Catalogue(
            torch.nn.functional.normalize(features, dim=1),
            weights,
            arm_names=self.names,
            term_names=own,
            feature_names=list(columns),
        )


def read_items(items: str | Path) -> Items:
    """The items of a CSV file with the columns `item` and `terms` (`a|b`), and any others for people to read.

    Args:
        items: the file, or "films" for the catalogue of this package.
    """
    path = _find(items)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file, strict=True)
            columns = [str(name).strip() for name in table.fieldnames or []]
            for needed in (_ITEM, _TERMS):
                if needed not in columns:
                    close = nearest(needed, columns)
                    hint = f" (did you mean {close!r}?)" if close else ""
                    raise DataError(f"{path}: line 1: no column {needed!r}{hint}; it has {columns}")
            rows = [(table.line_num, row) for row in table]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: not a CSV file in UTF-8: {error}") from None
    if not rows or len(rows) > _MOST_ITEMS:
        raise DataError(f"{path}: expected 1 to {_MOST_ITEMS:,} items, got {len(rows):,}")
    names: dict[str, int] = {}
    terms, details = [], []
    for line, row in rows:
        if None in row or None in row.values():
            raise DataError(f"{path}: line {line}: expected {len(columns)} fields, as line 1 has")
        fields = {str(column).strip(): str(value).strip() for column, value in row.items()}
        name = fields.pop(_ITEM)
        own = tuple(
            dict.fromkeys(term for one in fields.pop(_TERMS).split(_SEPARATOR) if (term := one.strip()))
        )
        if not name or not own:
            raise DataError(f"{path}: line {line}: every item needs a name and a key-term")
        if name in names:
            raise DataError(f"{path}: line {line}: item {name!r} is on line {names[name]} already")
        for text in (name, *own):
            if len(text) > _LONGEST or not text.isprintable():
                raise DataError(
                    f"{path}: line {line}: names are at most {_LONGEST} printable characters, "
                    f"got {text[:50]!r}"
                )
        names[name] = line
        terms.append(own)
        details.append({column: value for column, value in fields.items() if value})
    return Items(path, tuple(names), tuple(terms), tuple(details))


def _find(items: str | Path) -> Path:
    path = Path(items).expanduser()
    if str(items) == FILMS and not path.exists():
        return _FOLDER / f"{FILMS}.csv"
    if not path.is_file():
        raise DataError(f"{path}: no such file; {FILMS!r} is the catalogue of this package")
    return path


def _decade(details: dict[str, str]) -> str | None:
    year = details.get(_YEAR, "")
    return f"the {year[:-1]}0s" if year.isdecimal() and len(year) == 4 else None
