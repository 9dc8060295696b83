"""The common form of real data: what a reader gives, and what preparation makes of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor
from typing_extensions import Self

from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.datasets.events import LoggedEvents

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class Interactions(NamedTuple):
    """What users did, in the order of time; one entry an event.

    Attributes:
        users: [E] int32, positions in `Dataset.users`.
        items: [E] int32, positions in `Dataset.items`.
        values: [E] float32, stars, plays or clicks, as the source has them.
        times: [E] int64, seconds; 0 where the source has none.
    """

    users: np.ndarray
    items: np.ndarray
    values: np.ndarray
    times: np.ndarray


@dataclass(frozen=True)
class Dataset:
    """Users, items, key-terms and feedback, as a source has them after its thresholds.

    Attributes:
        users: [U] the source's user ids, as text.
        items: [N] the source's item ids, as text.
        titles: [N] items' names for people.
        terms: [K] key-terms' names.
        item_terms: [N, K] 1 where an item has a key-term.
        side: [N, F] side features: one-hot columns, and standardised numbers.
        side_names: [F] what the columns are.
        feedback: what users did.
        counts: what was read and what was dropped, with the reason, in reading order; for people.
        feedback_columns: how many side features, the last ones, sum up feedback: a mean rating, a number of
            plays.
        events: what was on offer and served, where the source says; `ReplayEvents` plays it.
    """

    users: np.ndarray
    items: np.ndarray
    titles: np.ndarray
    terms: np.ndarray
    item_terms: csr_matrix
    side: csr_matrix
    side_names: np.ndarray
    feedback: Interactions
    counts: dict[str, int] = field(default_factory=dict)
    feedback_columns: int = 0
    events: LoggedEvents | None = None


class Reader(ABC):
    """One source format.

    What a reader does depends on its attributes and its files alone: a cache of the result goes by these.

    Attributes:
        path: where the files are; not part of what is read.
        positive_from: feedback of at least this value is 1, other feedback 0.
        has_negatives: whether feedback below `positive_from` occurs; if not, unseen items stand in for it.
        needs_terms: whether items without key-terms are left out.
    """

    path: Path
    positive_from: float = 1.0
    has_negatives: bool = True
    needs_terms: bool = True

    @abstractmethod
    def files(self) -> list[Path]:
        """The files that `read` reads; a change of one makes a cache of the result stale."""

    @abstractmethod
    def read(self) -> Dataset:
        """Everything, after the reader's thresholds."""

    def keeping_all_items(self) -> Self:
        """A reader of the same that keeps items without key-terms, for where key-terms are made."""
        twin = copy(self)
        twin.needs_terms = False
        return twin


@dataclass(frozen=True)
class Prepared:
    """Data that environments run on.

    Attributes:
        features: [N, D] items' features, of length 1.
        item_terms: [2, G] int64, the item and the key-term of every edge; an item's have equal weights.
        theta: [U, D] users' preferences, by ridge regression on all feedback.
        users: [E] int64, whose event, in the order of time.
        items: [E] int64, on what.
        clicks: [E] float64, 1 or 0.
        times: [E] int64, when.
        user_names: U names.
        item_names: N names.
        term_names: K names.
        feature_names: D names of the features; empty: they are numbered.
        events: what was on offer and served, where the source says; `ReplayEvents` plays it.
    """

    features: Tensor
    item_terms: Tensor
    theta: Tensor
    users: Tensor
    items: Tensor
    clicks: Tensor
    times: Tensor
    user_names: list[str]
    item_names: list[str]
    term_names: list[str]
    feature_names: list[str] = field(default_factory=list)
    events: LoggedEvents | None = None

    def __post_init__(self) -> None:
        sizes = {"users": len(self.user_names), "items": len(self.item_names)}
        events = {name: getattr(self, name) for name in ("users", "items", "clicks", "times")}
        for name, ids in events.items():
            if ids.shape != self.users.shape:
                raise ValueError(
                    f"{name} must be [E], one per event, like users {list(self.users.shape)}, "
                    f"got {list(ids.shape)}"
                )
            if name in sizes and len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < sizes[name]:
                raise ValueError(
                    f"{name} must be from 0 to {sizes[name] - 1}, as there are {sizes[name]} names, got "
                    f"{int(ids.min())} to {int(ids.max())}"
                )

        if self.events is not None:
            for name, ids in {"users": self.events.users, "items": self.events.candidates}.items():
                if int(ids.max()) >= sizes[name]:
                    raise ValueError(f"events name {name} up to {int(ids.max())}, of {sizes[name]}")

    def catalogue(self) -> Catalogue:
        """The items as arms, with their key-terms."""
        weights = torch.ones(self.item_terms.shape[1], dtype=torch.float64)
        shape = (len(self.features), len(self.term_names))
        graph = torch.sparse_coo_tensor(self.item_terms, weights, shape, check_invariants=False)
        return Catalogue(
            self.features,
            graph,
            arm_names=self.item_names,
            term_names=self.term_names,
            feature_names=self.feature_names or None,
        )
