"""MIND: Microsoft's news recommendation data set."""

from __future__ import annotations

import json
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from conbandit_torch.core.errors import DataError
from conbandit_torch.datasets.base import Dataset, Reader
from conbandit_torch.datasets.reading.faults import TEXT, expect_distinct, expect_filled, place, shown
from conbandit_torch.datasets.reading.files import expand, need, read_table, read_whole
from conbandit_torch.datasets.reading.logged import ReadLog
from conbandit_torch.datasets.reading.source import EventList, Ids, Labels, Source, check_least

if TYPE_CHECKING:
    import pandas as pd

_NEWS = ("news", "category", "subcategory", "title", "abstract", "url", "title entities", "abstract entities")
_BEHAVIOURS = ("impression", "user", "time", "history", "impressions")
_TIME = "%m/%d/%Y %I:%M:%S %p"  # 11/15/2019 8:55:22 AM


class MIND(Reader):
    """MIND news: impressions, and which of the news in them were clicked.

    Key-terms are categories, subcategories, and entities (of Wikidata) that enough titles mention; they are
    the side features too. One event is one piece of news in one impression: a click is 1, none 0. Impressions
    are `events` too, for `ReplayEvents`: each offers and serves its own news. The column of earlier clicks is
    not used: they have neither times nor alternatives. Thresholds are counted once.

    Args:
        path: the unpacked folder of one part, such as `MINDsmall_train`.
        min_user_feedback: events that a user must have.
        min_item_feedback: events that a piece of news must have.
        min_entity_count: titles that must mention an entity for it to be a key-term.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        min_user_feedback: int = 1,
        min_item_feedback: int = 0,
        min_entity_count: int = 1000,
    ) -> None:
        check_least(
            min_user_feedback=min_user_feedback,
            min_item_feedback=min_item_feedback,
            min_entity_count=min_entity_count,
        )
        self.path = expand(path)
        self.min_user_feedback, self.min_item_feedback = min_user_feedback, min_item_feedback
        self.min_entity_count = min_entity_count

    def files(self) -> list[Path]:
        """Behaviours and news."""
        return [need(self.path, "behaviors.tsv"), need(self.path, "news.tsv")]

    def read(self) -> Dataset:
        """Everything, after the thresholds."""
        behaviours, news_file = self.files()
        table = read_whole(news_file, dict.fromkeys(_NEWS, TEXT), separator="\t", header=False, quotes=False)
        expect_filled(news_file, table, "news")
        expect_distinct(news_file, "news", table, "news")
        news, users, events = Ids(table["news"]), Ids(), EventList()
        terms = self._terms(news_file, table)
        parts: list[tuple[np.ndarray, ...]] = []
        for piece in read_table(
            behaviours,
            dict.fromkeys(_BEHAVIOURS, TEXT),
            separator="\t",
            header=False,
            quotes=False,
            rows=2**14,
        ):
            expect_filled(behaviours, piece, "user")
            parts.append(_add(behaviours, piece, users, news, events))
        feedback = events.feedback()
        log = None
        if parts:
            who, times, lengths, items, clicks = (np.concatenate(part) for part in zip(*parts, strict=True))
            log = ReadLog(who, times, lengths, items, clicks)
        return Source(
            self.path,
            users=users.names(),
            items=news.names(),
            titles=table["title"].tolist(),
            terms=terms,
            labels=[],
            numbers={},
            feedback_numbers={},
            feedback=feedback,
            counts={
                "users": len(users),
                "news": len(news),
                "impressions": len(log.users) if log is not None else 0,
                "news in impressions": len(feedback.users),
            },
            log=log,
        ).narrowed(self.min_user_feedback, self.min_item_feedback, needs_terms=self.needs_terms)

    def _terms(self, path: Path, table: pd.DataFrame) -> list[Any]:
        """Categories, subcategories and frequent entities."""
        categories, subcategories, entities = Labels(), Labels(), Labels()
        names: dict[str, str] = {}  # entity's id to what people call it
        for item, name in enumerate(table["category"]):
            if name.strip():
                categories.add(item, name.strip())
        for item, name in enumerate(table["subcategory"]):
            if name.strip():
                subcategories.add(item, f"subcategory: {name.strip()}")
        for item, text in enumerate(table["title entities"]):
            own = _entities(path, table, item, text)
            names = own | names
            for entity in own:
                entities.add(item, entity)
        ids, matrix = entities.matrix(len(table), self.min_entity_count)
        shared = Counter(names[entity] for entity in ids)  # two entities may have one name
        labels = [
            f"entity: {names[entity]}" + (f" ({entity})" if shared[names[entity]] > 1 else "")
            for entity in ids
        ]
        return [categories.matrix(len(table)), subcategories.matrix(len(table)), (labels, matrix)]


def _entities(path: Path, table: pd.DataFrame, item: int, text: str) -> dict[str, str]:
    """Ids and names of the entities in a field."""
    if not text.strip():
        return {}
    try:
        return {str(entity["WikidataId"]): str(entity["Label"]) for entity in json.loads(text)}
    except (ValueError, TypeError, KeyError, RecursionError):
        raise DataError(
            f"{path}: line {place(table, table.index == item)}: title entities: expected a JSON list of "
            f"objects with Label and WikidataId, got {shown(text)}"
        ) from None


def _add(path: Path, piece: pd.DataFrame, users: Ids, news: Ids, events: EventList) -> tuple[np.ndarray, ...]:
    """Adds the events of a piece's impressions; returns the first columns of a `ReadLog`."""
    import pandas as pd

    times = pd.to_datetime(piece["time"], format=_TIME, errors="coerce")
    _refuse(path, piece, times.isna().to_numpy(), "time", "a time such as 11/15/2019 8:55:22 AM")
    shown_news = [text.split() for text in piece["impressions"]]
    lengths = np.array([len(own) for own in shown_news], np.int64)
    row = np.repeat(np.arange(len(piece)), lengths)  # [n] of every event
    # News come again and again: look at each once.
    codes, distinct = pd.factorize(np.array([*chain.from_iterable(shown_news)], object))
    wrong = np.array([word[-2:] not in ("-0", "-1") for word in distinct], bool)
    bad = lengths == 0
    bad[row[wrong[codes]]] = True
    expected = "news with clicks such as 'N1-0 N2-1' (a test set has none, and cannot be used)"
    _refuse(path, piece, bad, "impressions", expected)
    items = np.array([news.find_one(word[:-2]) for word in distinct], np.int32)
    clicks = np.array([word[-1] == "1" for word in distinct], np.float32)
    seconds = times.to_numpy().astype("datetime64[s]").astype(np.int64)
    who = users.positions(piece["user"])
    events.add(who[row], items[codes], clicks[codes], seconds[row])
    return who, seconds, lengths, items[codes], clicks[codes]


def _refuse(path: Path, piece: pd.DataFrame, bad: np.ndarray, column: str, expected: str) -> None:
    if bad.any():
        value = shown(piece[column].iloc[int(np.flatnonzero(bad)[0])])
        raise DataError(f"{path}: line {place(piece, bad)}: {column}: expected {expected}, got {value}")
