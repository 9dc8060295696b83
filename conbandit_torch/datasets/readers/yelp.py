"""The Yelp academic data set, of any release."""

from __future__ import annotations

import ast
import warnings
from array import array
from collections.abc import Iterator
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from conbandit_torch.core.errors import DataError
from conbandit_torch.datasets.base import Dataset, Interactions, Reader
from conbandit_torch.datasets.reading.faults import LARGEST, shown
from conbandit_torch.datasets.reading.files import expand, need, read_json_lines
from conbandit_torch.datasets.reading.source import EventList, Ids, Labels, Source, check_least

_BUSINESS, _REVIEW = (
    tuple(f"{prefix}{kind}.json" for prefix in ("yelp_academic_dataset_", ""))
    for kind in ("business", "review")
)


class Yelp(Reader):
    """Yelp reviews of the businesses of one category.

    Key-terms are the other categories of a business: the chosen one, which all have, would tell nothing.
    Side features are categories, city and attributes, one-hot, and the stars and the number of reviews that
    the business file has. Thresholds are counted once, on the whole review file (a user's on businesses of
    any category), and their defaults are those of [Zhang20].

    Args:
        path: the folder with the `business` and `review` files, gzipped or not.
        min_user_feedback: reviews that a user must have written.
        min_item_feedback: reviews that a business must have.
        category: businesses that have it are the items; None: all.
        positive_from: stars from which on a review is 1; with fewer it is 0.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        min_user_feedback: int = 100,
        min_item_feedback: int = 50,
        category: str | None = "Restaurants",
        positive_from: float = 4.0,
    ) -> None:
        check_least(min_user_feedback=min_user_feedback, min_item_feedback=min_item_feedback)
        self.path = expand(path)
        self.min_user_feedback, self.min_item_feedback = min_user_feedback, min_item_feedback
        self.category, self.positive_from = category, positive_from

    def files(self) -> list[Path]:
        """Businesses and reviews."""
        return [need(self.path, *_BUSINESS), need(self.path, *_REVIEW)]

    def read(self) -> Dataset:
        """Everything, after the thresholds."""
        business_file, review_file = self.files()
        every, items = Ids(), Ids()
        titles, stars, numbers = list[str](), list[float](), list[float]()
        categories, cities, attributes = Labels(), Labels(), Labels()
        for where, record in _records(business_file):
            business = _text(where, record, "business_id")
            if every.find_one(business) >= 0:
                raise DataError(f"{where}: business {shown(business)} is there a second time")
            every.position(business)
            own = _categories(where, record.get("categories"))
            if self.category is not None and self.category not in own:
                continue
            item = items.position(business)
            titles.append(_text(where, record, "name"))
            stars.append(_number(where, record, "stars"))
            numbers.append(_number(where, record, "review_count"))
            cities.add(item, ", ".join((f"city: {_text(where, record, 'city')}", record.get("state") or "")))
            for name in own:
                if name != self.category:
                    categories.add(item, name)
            for name in _attributes(where, record.get("attributes")):
                attributes.add(item, name)
        if not len(items):
            raise DataError(
                f"{business_file}: none of {len(every)} businesses has category {self.category!r}"
            )
        users, feedback = _reviews(review_file, items)
        found = len(items)
        return Source(
            self.path,
            users=users.names(),
            items=items.names(),
            titles=titles,
            terms=[categories.matrix(found)],
            labels=[cities.matrix(found), attributes.matrix(found)],
            numbers={},
            feedback_numbers={"stars": np.array(stars), "reviews": np.array(numbers)},
            feedback=feedback,
            counts={
                "businesses": len(every),
                f"businesses of category {self.category or 'any'}": found,
                "users": len(users),
                "reviews": len(feedback.users),
            },
        ).narrowed(self.min_user_feedback, self.min_item_feedback, needs_terms=self.needs_terms)


def _reviews(path: Path, items: Ids) -> tuple[Ids, Interactions]:
    users = Ids()
    # Arrays, not lists of Python's numbers: 20 bytes a review.
    who, what, stars, times = array("i"), array("i"), array("f"), array("q")
    for where, record in _records(path):
        who.append(users.position(_text(where, record, "user_id")))
        what.append(items.find_one(_text(where, record, "business_id")))
        stars.append(_number(where, record, "stars"))
        times.append(_seconds(where, _text(where, record, "date")))
    events = EventList()
    events.add(np.array(who, np.int32), np.array(what, np.int32), stars, times)
    return users, events.feedback()


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(file and line, object)."""
    for line, record in read_json_lines(path):
        yield f"{path}: line {line}", record


def _text(where: str, record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    if not isinstance(value, str):
        raise DataError(f"{where}: {key}: expected text, got {shown(value) if key in record else 'nothing'}")
    return value


def _number(where: str, record: dict[str, Any], key: str) -> float:
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        got = shown(value) if key in record else "nothing"
        raise DataError(f"{where}: {key}: expected a number, got {got}")
    return float(value)


def _seconds(where: str, text: str) -> int:
    """Seconds since 1970 of `2016-03-09` or `2016-03-09 18:30:00`."""
    try:
        return int(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp())
    except (ValueError, OverflowError):
        raise DataError(f"{where}: date: expected one such as 2016-03-09, got {shown(text)}") from None


def _categories(where: str, value: Any) -> list[str]:
    """A list in old releases, text with commas in new ones, null where there is none."""
    names = value.split(",") if isinstance(value, str) else value
    if names is None:
        return []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataError(f"{where}: categories: expected text or a list of text, got {shown(value)}")
    return [name.strip() for name in names if name.strip()]


def _attributes(where: str, value: Any) -> list[str]:
    """`name` of what is true, `name=value` of other values, `name.part` of what has parts."""
    if value is None:
        return []
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):  # "BikeParking: True"
        value = {name: setting.strip() for name, _, setting in (entry.partition(":") for entry in value)}
    if not isinstance(value, dict):
        raise DataError(f"{where}: attributes: expected an object, got {shown(value)}")
    found = []
    for name, setting in value.items():
        setting = _literal(setting)
        parts = setting if isinstance(setting, dict) else {"": setting}
        for part, content in parts.items():
            content = _literal(content)
            label = f"attribute: {name}{'.' if part else ''}{part}"
            if content is True:
                found.append(label)
            elif isinstance(content, str) and content.strip().lower() not in ("", "none"):
                found.append(f"{label}={content.strip()}")
            elif isinstance(content, int | float) and content is not False and abs(content) <= LARGEST:
                found.append(f"{label}={content:g}")
    return found


def _literal(value: Any) -> Any:
    """The value itself or, of text, what Python's notation stands for: True, u'free', {'garage': False}."""
    return _evaluated(value) if isinstance(value, str) else value


@lru_cache(maxsize=2**14)  # the same few values come again and again
def _evaluated(text: str) -> Any:
    if len(text) > 1000:
        return text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            return ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return text
