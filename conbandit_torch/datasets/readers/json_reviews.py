"""Reviews as JSON lines, as Amazon's and Goodreads' are published."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from conbandit_torch.core.errors import DataError
from conbandit_torch.datasets.base import Dataset, Reader
from conbandit_torch.datasets.reading.faults import LARGEST, shown
from conbandit_torch.datasets.reading.files import expand, need, read_json_lines
from conbandit_torch.datasets.reading.source import EventList, Ids, Labels, Source, check_least

# The keys of Amazon's releases of 2014, 2018 and 2023, and of Goodreads.
_USER = ("user", "user_id", "reviewerID")
_ITEM = ("item", "book_id", "parent_asin", "asin")
_VALUE = ("value", "rating", "overall", "stars")
_TIME = ("time", "timestamp", "unixReviewTime", "date_added")
_TERMS = ("terms", "categories", "category", "popular_shelves", "genres")


class JsonReviews(Reader):
    """Two files of JSON objects, one per line: reviews, and items with their categories.

    Keys are those of Amazon (2014, 2018, 2023) and Goodreads; others may be named. Key-terms may be a list of
    names, of lists of names, of objects with `name` (Goodreads' shelves), or an object whose keys they are.
    Reviews without stars (0 at Goodreads) are left out. Thresholds are counted once.

    Args:
        path: the folder.
        feedback: name of the file of reviews, gzipped or not.
        items: name of the file of items.
        terms: the items' key of key-terms; None: the usual ones.
        min_user_feedback: reviews that a user must have written.
        min_item_feedback: reviews that an item must have.
        min_term_count: items that must have a key-term; rarer ones are left out.
        positive_from: stars from which on a review is 1; with fewer it is 0.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        feedback: str = "reviews.jsonl",
        items: str = "meta.jsonl",
        terms: str | None = None,
        min_user_feedback: int = 1,
        min_item_feedback: int = 1,
        min_term_count: int = 2,
        positive_from: float = 4.0,
    ) -> None:
        check_least(
            min_user_feedback=min_user_feedback,
            min_item_feedback=min_item_feedback,
            min_term_count=min_term_count,
        )
        self.path, self.feedback, self.items, self.terms = expand(path), feedback, items, terms
        self.min_user_feedback, self.min_item_feedback = min_user_feedback, min_item_feedback
        self.min_term_count, self.positive_from = min_term_count, positive_from

    def files(self) -> list[Path]:
        """Reviews and items."""
        return [need(self.path, self.feedback), need(self.path, self.items)]

    def read(self) -> Dataset:
        """Everything, after the thresholds."""
        reviews_file, items_file = self.files()
        items, titles, labels = Ids(), list[str](), Labels()
        for line, record in read_json_lines(items_file):
            where = f"{items_file}: line {line}"
            name = _id(where, record, _ITEM)
            if items.find_one(name) >= 0:
                raise DataError(f"{where}: item {shown(name)} is there a second time")
            item = items.position(name)
            titles.append(str(record.get("title") or name))
            given = _value(where, record, (self.terms,) if self.terms else _TERMS, needed=False)
            for term in dict.fromkeys(_names(where, given)):
                labels.add(item, term)
        users, events, without = Ids(), EventList(), 0
        rows: list[tuple[int, int, float, int]] = []
        for line, record in read_json_lines(reviews_file):
            where = f"{reviews_file}: line {line}"
            stars = _number(where, _value(where, record, _VALUE))
            if stars == 0:
                without += 1
                continue
            moment = _value(where, record, _TIME, needed=False)
            user = users.position(_id(where, record, _USER))
            item = items.find_one(_id(where, record, _ITEM))
            rows.append((user, item, stars, _seconds(where, moment)))
            if len(rows) == 2**16:  # arrays take less than Python's numbers
                _move(rows, events)
        _move(rows, events)
        feedback = events.feedback()
        return Source(
            self.path,
            users=users.names(),
            items=items.names(),
            titles=titles,
            terms=[labels.matrix(len(items), self.min_term_count)],
            labels=[],
            numbers={},
            feedback_numbers={},
            feedback=feedback,
            counts={
                "users": len(users),
                "items": len(items),
                "reviews": len(feedback.users),
                "reviews without stars (dropped)": without,
            },
        ).narrowed(self.min_user_feedback, self.min_item_feedback, needs_terms=self.needs_terms)


def _move(rows: list[tuple[int, int, float, int]], events: EventList) -> None:
    if rows:
        user, item, stars, time = zip(*rows, strict=True)
        events.add(np.array(user, np.int32), np.array(item, np.int32), stars, time)
    rows.clear()


def _value(where: str, record: dict[str, Any], keys: tuple[str, ...], *, needed: bool = True) -> Any:
    """The value of the first of the keys that is there and not empty."""
    for key in keys:
        if record.get(key) not in (None, "", [], {}):
            return record[key]
    if needed:
        raise DataError(f"{where}: there is no {' or '.join(keys)}; it has {', '.join(record)[:200]}")
    return None


def _id(where: str, record: dict[str, Any], keys: tuple[str, ...]) -> str:
    value = _value(where, record, keys)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise DataError(f"{where}: expected an id, text or a whole number, got {shown(value)}")
    return str(value)


def _number(where: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        raise DataError(f"{where}: expected a number of stars, got {shown(value)}")
    return float(value)


def _names(where: str, value: Any) -> Iterator[str]:
    """Names in a list, in lists of lists, in objects with `name`, or an object's keys."""
    if value is None:
        return
    if isinstance(value, str):
        if value.strip():
            yield value.strip()
    elif isinstance(value, dict):
        yield from (_names(where, value["name"]) if "name" in value else (str(key) for key in value))
    elif isinstance(value, list):
        for one in value:
            yield from _names(where, one)
    else:
        raise DataError(f"{where}: expected names of key-terms, got {shown(value)}")


def _seconds(where: str, value: Any) -> int:
    """Seconds since 1970 of a number (above 1e11: of milliseconds) or a date; 0 of nothing."""
    if value is None:
        return 0
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15:
        return int(value // 1000 if abs(value) > 1e11 else value)
    for read in (_goodreads, datetime.fromisoformat):
        try:
            moment = read(value)
            return int(moment.replace(tzinfo=moment.tzinfo or timezone.utc).timestamp())
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
    raise DataError(f"{where}: expected seconds or a date, got {shown(value)}")


def _goodreads(text: str) -> datetime:
    return datetime.strptime(text, "%a %b %d %H:%M:%S %z %Y")  # Fri Nov 09 11:25:59 -0800 2012
