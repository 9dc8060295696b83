"""Key-terms that span all others well: a barycentric spanner, and the rule that asks about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from conbandit_torch.conversation.asking import Asking
from conbandit_torch.conversation.term_rules import Selection, one_hot
from conbandit_torch.core.catalogue import Catalogue


@dataclass(frozen=True)
class BarycentricSpanner(Selection):
    """A key-term of a barycentric spanner, each with equal probability (ConLinUCB-BS, Wang et al. 2023).

    Rule: uniform over a C-approximate barycentric spanner of the x~_k (Awerbuch, Kleinberg 2008), which is
    computed once, from the features that the catalogue has.
    Symbols: C `approximation`.
    Differs: where the x~_k do not span all D dimensions, it is a spanner of those that they do. Learned
    hidden features do not count: the spanner stays what it was at the start.

    Args:
        approximation: C, above 1: every key-term is a combination of the spanner's with coefficients of at
            most C in absolute value.
    """

    approximation: float = 2.0
    _known: WeakKeyDictionary[Catalogue, Tensor] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if not 1 < self.approximation < float("inf"):
            raise ValueError(f"approximation must be above 1 and finite, got {self.approximation}")

    def scores(self, asking: Asking) -> Tensor:
        """[B, K] 1 for the key-term drawn, 0 for all others."""
        catalogue = asking.catalogue
        if catalogue not in self._known:
            self._known[catalogue] = spanner(catalogue.term_features, self.approximation)
        members = self._known[catalogue].to(asking.asked.device)
        # The counter is the user's question.
        drawn = asking.stream("term").integers(asking.context.users, asking.asked, 1, len(members))  # [B, 1]
        return one_hot(members[drawn], catalogue.num_terms)

    def __getstate__(self) -> dict[str, float]:
        return {"approximation": self.approximation}

    def __setstate__(self, state: dict[str, float]) -> None:
        self.__dict__ |= state | {"_known": WeakKeyDictionary()}


def spanner(vectors: Tensor, approximation: float = 2.0) -> Tensor:
    """[R] rows of `vectors` [K, D], of rank R, that are a C-approximate barycentric spanner of all rows.

    Every row is a combination of those with coefficients in [-C, C]. A row that needs a larger coefficient c
    takes the place of the member it belongs to, which multiplies the determinant by c: so this ends.
    """
    from scipy.linalg import qr

    rows: np.ndarray = vectors.detach().cpu().double().numpy()
    _, triangle, pivots = qr(rows.T, mode="economic", pivoting=True)
    size = np.abs(np.diag(triangle))
    rank = max(1, int((size > size[0] * max(rows.shape) * np.finfo(np.float32).eps).sum()))
    members = np.array(pivots[:rank])
    while True:
        coefficients = rows @ np.linalg.pinv(rows[members])  # [K, R]
        row, member = np.unravel_index(np.abs(coefficients).argmax(), coefficients.shape)
        if np.abs(coefficients[row, member]) <= approximation:
            return torch.from_numpy(np.sort(members)).to(vectors.device)
        members[member] = row
