"""Key-terms that are made, for catalogues that have none, or few."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
import torch

from conbandit_torch.core.errors import DataError
from conbandit_torch.datasets.base import Prepared
from conbandit_torch.datasets.reading.files import need_libraries


class KeyTerms(ABC):
    """Where key-terms come from, in place of the source's own. To write your own, implement `made`.

    Items that the source gives no key-terms are kept then. What was made is kept on disk under the part's
    `repr`, which must tell all that it depends on, as that of a dataclass does.
    """

    @abstractmethod
    def made(self, prepared: Prepared) -> Prepared:
        """The data with other key-terms; every one of them must have an item."""


@dataclass(frozen=True)
class Clusters(KeyTerms):
    """Clusters of items with like features: an item has its cluster for its only key-term.

    Rule: k-means (Lloyd) on the prepared features, from `starts` starts by k-means++, of which the best is
    taken. Clusters are numbered from 1, the largest first. A cluster is named after its three most central
    items.
    Symbols: none.
    Differs: ours.

    Args:
        number: of clusters, K.
        starts: how often to start.
        seed: of the starts.
    """

    number: int = 200
    starts: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("number", "starts"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    def made(self, prepared: Prepared) -> Prepared:
        """The data with clusters for key-terms."""
        need_libraries()
        from sklearn.cluster import KMeans
        from threadpoolctl import threadpool_limits

        features = prepared.features.double().numpy()
        distinct = len(np.unique(features, axis=0))
        if self.number > distinct:
            raise DataError(
                f"Clusters: number={self.number} is more than the {distinct} items that differ in their "
                "features; lower number"
            )
        with threadpool_limits(1):  # sums in one order, however many threads there are
            fitted = KMeans(self.number, n_init=self.starts, random_state=self.seed).fit(features)
        label, centre = fitted.labels_, fitted.cluster_centers_
        sizes = np.bincount(label, minlength=self.number)
        order = np.argsort(-sizes, kind="stable")  # the largest first
        place = np.empty_like(order)
        place[order] = np.arange(self.number)
        away = np.linalg.norm(features - centre[label], axis=1)  # [N] from one's own centre
        names = []
        for number, cluster in enumerate(order[: int((sizes > 0).sum())], 1):
            own = np.flatnonzero(label == cluster)
            central = own[np.argsort(away[own], kind="stable")[:3]]
            names.append(f"cluster {number}: {', '.join(prepared.item_names[item] for item in central)}")
        edges = np.stack((np.arange(len(label)), place[label])).astype(np.int64)
        return replace(prepared, item_terms=torch.from_numpy(edges), term_names=names)
