"""Paired tests of what policies did on the same seeds, and Holm's correction of many of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np

KeyT = TypeVar("KeyT", bound=Hashable)

LEVEL = 0.05


def paired_p(one: np.ndarray, other: np.ndarray) -> float:
    """Two-sided paired t test of values [S] at the same seeds.

    NaN with fewer than two seeds, or where the differences have no spread.
    """
    from scipy.special import stdtr  # scipy.stats takes half a second to import

    differences = one - other
    count = len(differences)
    scale = max(np.abs(one).max(initial=0), np.abs(other).max(initial=0))
    if count < 2 or np.isnan(differences).any() or np.ptp(differences) <= 1e-12 * scale:
        return float("nan")
    t = differences.mean() / (differences.std(ddof=1) / np.sqrt(count))
    return float(2 * stdtr(count - 1, -abs(t)))


def holm(p_values: Mapping[KeyT, float]) -> dict[KeyT, float]:
    """Holm's correction: all are tested, and one error in all of them is to be unlikely; NaN stays NaN."""
    tested = sorted((key for key, p in p_values.items() if not np.isnan(p)), key=lambda key: p_values[key])
    corrected, largest = dict(p_values), 0.0
    for rank, key in enumerate(tested):
        largest = max(largest, min(1.0, p_values[key] * (len(tested) - rank)))
        corrected[key] = largest
    return corrected
