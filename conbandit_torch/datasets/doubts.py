"""What looks wrong with data that could be read: nothing that must be, but what a person should look at."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from conbandit_torch.datasets.base import Dataset

_FEW = 10  # of fewer items or values nothing can be told
_NEARLY_ALL = 0.5  # share of items with a value of their own from which on a column tells them apart
_MUCH = 0.1  # share of feedback on unknown items from which on ids seem not to meet


def doubts(data: Dataset, positive_from: float, has_negatives: bool) -> list[str]:
    """Sentences, one for everything that looks wrong.

    Args:
        data: what was read.
        positive_from: feedback of at least this value is 1.
        has_negatives: whether feedback below that is expected.
    """
    return [*_feedback(data, positive_from, has_negatives), *_terms(data), *_columns(data)]


def _feedback(data: Dataset, positive_from: float, has_negatives: bool) -> list[str]:
    found = []
    values = data.feedback.values
    positive = values >= np.float32(positive_from)
    if has_negatives and positive.all():
        found.append(
            f"All feedback is positive: its values are from {values.min():g} to {values.max():g}, and "
            f"positive_from is {positive_from:g}. Give another or, if there are no negatives, "
            "has_negatives: false (where the reader has these options)."
        )
    elif has_negatives and not positive.any():
        found.append(
            f"No feedback is positive: its highest value is {values.max():g}, and positive_from is "
            f"{positive_from:g}."
        )
    unknown = data.counts.get("feedback on unknown items (dropped)", 0)
    if unknown > _MUCH * (unknown + len(values)):
        found.append(
            f"{unknown:,} events are on items that the table of items does not have: do the ids of the two "
            "files meet?"
        )
    return found


def _terms(data: Dataset) -> list[str]:
    items, terms = data.item_terms.shape
    own = np.diff(data.item_terms.indptr)  # [N] key-terms of each item
    if items < _FEW:
        return []
    if terms > _NEARLY_ALL * items:
        return [
            f"There are {terms:,} key-terms for {items:,} items, so that an answer tells of hardly more than "
            "one item: is the separator another, or should min_term_count (or the like) be higher?"
        ]
    if own.max() == 1:
        return ["Every item has exactly one key-term: if there should be several, the separator is another."]
    return []


def _columns(data: Dataset) -> list[str]:
    """One-hot columns, called `column: value`, whose values hardly come twice."""
    times = np.asarray(data.side.getnnz(axis=0))
    values, filled = defaultdict[str, int](int), defaultdict[str, int](int)
    terms = set(data.terms)
    for name, count in zip(data.side_names, times.tolist(), strict=True):
        column, colon, _ = name.partition(": ")
        if colon and name not in terms:
            values[column] += 1
            filled[column] += count
    return [
        f"Column {column!r} has {number:,} values for {filled[column]:,} items, nearly one for each: leave "
        "it out (ignore), or name it as embedding if it holds vectors."
        for column, number in values.items()
        if number > max(_FEW, _NEARLY_ALL * filled[column])
    ]
