"""Sums per user of a replayed log, from which intervals over users and off-policy estimates are made.

Results are read without torch, so this module does not import it.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, fields
from io import StringIO
from pathlib import Path

import numpy as np

from conbandit_torch.core.files import write_atomically


@dataclass(frozen=True)
class UserSums:
    """What replay of a log gave, user by user.

    With w = 1 / propensity where the policy showed what was served and 0 elsewhere, r the click, and q what
    a model expects of the arm shown:

    Attributes:
        events: [U] events that the policy decided in.
        counted: [U] those in which it showed what was served.
        clicks: [U] clicks of these.
        weight: [U] sum of w; 0 for all, as what follows, where propensities are not known.
        square: [U] sum of w^2.
        earned: [U] sum of w r.
        robust: [U] sum of q + w (r - q).
    """

    events: np.ndarray
    counted: np.ndarray
    clicks: np.ndarray
    weight: np.ndarray
    square: np.ndarray
    earned: np.ndarray
    robust: np.ndarray


USER_COLUMNS = tuple(one.name for one in fields(UserSums))


def write_user_sums(path: Path, sums: UserSums) -> None:
    """Write a line per user, without losing a digit."""
    text = StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("user", *USER_COLUMNS))
    columns = (getattr(sums, name).tolist() for name in USER_COLUMNS)
    for user, row in enumerate(zip(*columns, strict=True)):
        table.writerow((user, *(int(value) if value == int(value) else repr(value) for value in row)))
    write_atomically(path, text.getvalue())


def read_user_sums(path: Path) -> UserSums:
    """What `write_user_sums` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    if tuple(header) != ("user", *USER_COLUMNS):
        raise ValueError(f"its columns are {', '.join(header)}")
    table = np.array(rows, dtype=np.float64).reshape(len(rows), len(header))
    return UserSums(*table.T[1:])
