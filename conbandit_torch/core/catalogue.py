"""The arms, the key-terms and the sparse graph between them."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from conbandit_torch.core.attributes import buffer
from conbandit_torch.core.blocks import EVERY_ROW, Index
from conbandit_torch.core.checks import all_finite


class Edges(NamedTuple):
    """Arm-key-term edges of several queries, laid end to end.

    Attributes:
        owner: [E] which query (its position) the edge belongs to.
        target: [E] the key-term (or arm) at the edge's other end.
        weight: [E] `w_{a,k}` (or the share `p_{a,k}`) of the edge.
    """

    owner: Tensor
    target: Tensor
    weight: Tensor


class Catalogue(nn.Module):
    """What is known of arms and key-terms; never of a user.

    With the graph's weights `w_{a,k}` scaled so that every arm's sum to 1, a key-term spreads over
    its arms as `p_{a,k} = w_{a,k} / sum_{a'} w_{a',k}`, and its feature is `x~_k = sum_a p_{a,k} x_a`.

    The tensors are buffers, so a catalogue moves with `.to()`; they are not part of a `state_dict`,
    because they are data, not learned state.

    Args:
        arm_features: [N, D] one row per arm.
        weights: [N, K] arm-key-term weights, dense or a sparse tensor. Rows are scaled to sum to
            1. An arm without key-terms is legal, a key-term without arms is not. None: no key-terms.
        arm_names: N names, for people.
        term_names: K names, for people.
        feature_names: D names, for people, and to hide features by.
    """

    arm_features: Tensor = buffer()  # [N, D]
    term_features: Tensor = buffer()  # [K, D]
    _arm_offsets: Tensor  # [N + 1]
    _arm_terms: Tensor  # [E]
    _arm_weights: Tensor  # [E]
    _term_offsets: Tensor  # [K + 1]
    _term_arms: Tensor  # [E]
    _term_shares: Tensor  # [E]

    def __init__(
        self,
        arm_features: Tensor | np.ndarray,
        weights: Tensor | np.ndarray | None = None,
        *,
        arm_names: Sequence[str] | None = None,
        term_names: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        features = torch.tensor(arm_features) if isinstance(arm_features, np.ndarray) else arm_features
        if features.ndim != 2 or 0 in features.shape:
            raise ValueError(f"arm_features must be [N, D], got shape {list(features.shape)}")
        if not features.is_floating_point():
            raise ValueError(f"arm_features must be floating point, got {features.dtype}")
        if not all_finite(features):
            bad = (~features.isfinite()).any(1).nonzero().flatten()
            raise ValueError(f"arm_features holds NaN or infinity, in rows {_some(bad)}")
        self.register_buffer("arm_features", features.contiguous(), persistent=False)

        if weights is None:
            weights = features.new_zeros(len(features), 0)
        weights = torch.as_tensor(weights)
        if weights.ndim != 2:
            raise ValueError(f"weights must be [N, K], got shape {list(weights.shape)}")
        edges = weights.to_sparse_coo().coalesce()
        arms, terms = edges.indices()
        self.num_arms, self.num_terms = edges.shape
        w = edges.values().to(features)
        keep = w != 0
        arms, terms, w = arms[keep], terms[keep], w[keep]
        self._check_graph(arms, terms, w)
        w = w / w.new_zeros(self.num_arms).index_add_(0, arms, w)[arms]
        share = w / w.new_zeros(self.num_terms).index_add_(0, terms, w)[terms]

        # The graph twice, by arm (coalesced order) and by key-term, each as offsets into flat lists.
        by_term = terms.argsort(stable=True)
        for name, value in {
            "_arm_offsets": _offsets(arms, self.num_arms),
            "_arm_terms": terms,
            "_arm_weights": w,
            "_term_offsets": _offsets(terms, self.num_terms),
            "_term_arms": arms[by_term],
            "_term_shares": share[by_term],
        }.items():
            self.register_buffer(name, value, persistent=False)
        self.register_buffer("term_features", self.average(features), persistent=False)

        self.arm_names = _names("arm_names", arm_names, self.num_arms, "arm")
        self.term_names = _names("term_names", term_names, self.num_terms, "term")
        self.feature_names = _names("feature_names", feature_names, self.dim, "feature")

    def __repr__(self) -> str:
        terms = f"{self.num_terms:,} key-terms"
        return f"Catalogue({self.num_arms:,} arms, {terms}, {self.dim} features in {self.arm_features.dtype})"

    @property
    def dim(self) -> int:
        """`D`, the length of an arm's feature vector."""
        return self.arm_features.shape[1]

    @property
    def all_arms(self) -> Tensor:
        """[N] the ids of all arms."""
        return torch.arange(self.num_arms, device=self.arm_features.device)

    def arms(self, ids: Index = EVERY_ROW) -> Tensor:
        """[n, D] features of arms."""
        return self.arm_features[ids]

    def terms(self, ids: Index = EVERY_ROW) -> Tensor:
        """[n, D] features of key-terms."""
        return self.term_features[ids]

    @classmethod
    def from_tensors(
        cls, tensors: dict[str, Tensor], arm_names: Sequence[str], term_names: Sequence[str]
    ) -> Catalogue:
        """The catalogue whose `named_buffers` these were, bit for bit."""
        arms, offsets = tensors["arm_features"], tensors["_arm_offsets"]
        owner = torch.arange(len(arms), device=arms.device).repeat_interleave(offsets.diff())
        edges = torch.stack((owner, tensors["_arm_terms"]))
        size = (len(arms), len(tensors["term_features"]))
        graph = torch.sparse_coo_tensor(edges, tensors["_arm_weights"], size, check_invariants=False)
        catalogue = cls(arms, graph, arm_names=arm_names, term_names=term_names)
        for name, value in tensors.items():  # weights that are scaled once more may differ in the last digit
            setattr(catalogue, name, value)
        return catalogue

    def restricted_to(self, columns: Tensor) -> Catalogue:
        """These arms, key-terms and graph, with only some of the features."""
        part = copy.copy(self)
        part._buffers = {
            name: value[:, columns]
            if name in ("arm_features", "term_features") and value is not None
            else value
            for name, value in self._buffers.items()
        }
        part.feature_names = tuple(self.feature_names[column] for column in columns.tolist())
        return part

    def seen_as(self, arm_features: Tensor) -> Catalogue:
        """These arms, key-terms and graph, with other features [N, D']."""
        other = copy.copy(self)
        other._buffers = {
            **self._buffers,
            "arm_features": arm_features,
            "term_features": self.average(arm_features),
        }
        return other

    def extended(
        self,
        arm_features: Tensor,
        weights: Tensor | None = None,
        *,
        arm_names: Sequence[str] | None = None,
        term_names: Sequence[str] | None = None,
    ) -> Catalogue:
        """A catalogue with more arms at the end, and more key-terms if `weights` has columns for them.

        A key-term that gains arms has another feature from then on.

        Args:
            arm_features: [n, D] the new arms'.
            weights: [n, K'] the new arms' key-terms, K' at least K; None: they have none.
            arm_names: n names of the new arms.
            term_names: K' - K names of the new key-terms.
        """
        if arm_features.ndim != 2 or arm_features.shape[1] != self.dim:
            raise ValueError(f"arm_features must be [n, {self.dim}], got {list(arm_features.shape)}")
        number = len(arm_features)
        if weights is None:
            weights = arm_features.new_zeros(number, self.num_terms)
        weights = torch.as_tensor(weights)
        if weights.ndim != 2 or len(weights) != number or weights.shape[1] < self.num_terms:
            raise ValueError(
                f"weights must be [{number}, K'] with K' at least {self.num_terms}, got {list(weights.shape)}"
            )
        new = weights.to_sparse_coo().coalesce()
        rows, terms = new.indices()
        own = torch.arange(self.num_arms, device=terms.device).repeat_interleave(self._arm_offsets.diff())
        edges = torch.stack((torch.cat((own, rows + self.num_arms)), torch.cat((self._arm_terms, terms))))
        values = torch.cat((self._arm_weights, new.values().to(self._arm_weights)))
        size = (self.num_arms + number, weights.shape[1])
        names = tuple(f"arm {self.num_arms + i}" for i in range(number)) if arm_names is None else arm_names
        added = size[1] - self.num_terms
        terms_named = (
            tuple(f"term {self.num_terms + i}" for i in range(added)) if term_names is None else term_names
        )
        return Catalogue(
            torch.cat((self.arm_features, arm_features.to(self.arm_features))),
            torch.sparse_coo_tensor(edges, values, size, check_invariants=False),
            arm_names=(*self.arm_names, *names),
            term_names=(*self.term_names, *terms_named),
            feature_names=self.feature_names,
        )

    def check_extension(self, other: Catalogue) -> None:
        """Refuse a catalogue that does not begin with this one's arms and have its key-terms."""
        number = self.num_arms
        if other.num_arms < number or not torch.equal(other.arm_features[:number], self.arm_features):
            raise ValueError("the catalogue does not begin with the arms that the policy knows")
        if other.num_terms < self.num_terms:
            raise ValueError(
                f"the catalogue has {other.num_terms} key-terms, and the policy knows {self.num_terms}"
            )

    def terms_of(self, arms: Tensor) -> Edges:
        """Key-terms and weights `w_{a,k}` of each arm in `arms` [n]."""
        owner, position = _expand(self._arm_offsets, arms)
        return Edges(owner, self._arm_terms[position], self._arm_weights[position])

    def arms_of(self, terms: Tensor) -> Edges:
        """Arms and shares `p_{a,k}` of each key-term in `terms` [n]."""
        owner, position = _expand(self._term_offsets, terms)
        return Edges(owner, self._term_arms[position], self._term_shares[position])

    def average(self, values: Tensor, terms: Tensor | None = None) -> Tensor:
        """Averages `sum_a p_{a,k} values_a` of per-arm values [N, D]: of `terms` [n], or of all K."""
        if terms is not None:
            edges = self.arms_of(terms)
            total = values.new_zeros(len(terms), values.shape[1])
            return total.index_add_(0, edges.owner, edges.weight[:, None] * values[edges.target])
        size = (self.num_terms, self.num_arms)
        parts = (self._term_offsets, self._term_arms, self._term_shares)
        _hear_of_beta()
        return torch.sparse_csr_tensor(*parts, size, check_invariants=False) @ values.contiguous()

    def _check_graph(self, arms: Tensor, terms: Tensor, weights: Tensor) -> None:
        if self.num_arms != len(self.arm_features):
            raise ValueError(
                f"weights must be [N, K] with N = {len(self.arm_features)} arms as in arm_features, "
                f"got {self.num_arms} rows"
            )
        bad = (~(weights.isfinite() & (weights > 0))).nonzero().flatten()
        if len(bad):
            arm, term = int(arms[bad[0]]), int(terms[bad[0]])
            raise ValueError(
                f"weights must be finite and not negative; weights[{arm}, {term}] is {float(weights[bad[0]])}"
            )
        orphans = (torch.bincount(terms, minlength=self.num_terms) == 0).nonzero().flatten()
        if len(orphans):
            raise ValueError(
                f"weights: every key-term needs an arm, but none has key-terms {_some(orphans)}; "
                "leave those columns out"
            )


def _offsets(sorted_or_not: Tensor, size: int) -> Tensor:
    """Where each id's run starts once ids are sorted: [size + 1]."""
    counts = torch.bincount(sorted_or_not, minlength=size)
    return torch.cat((counts.new_zeros(1), counts.cumsum(0)))


def _expand(offsets: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """All flat positions that belong to `ids` [n]: their owners [E] and the positions [E]."""
    start, stop = offsets[ids], offsets[ids + 1]
    counts = stop - start
    owner = torch.arange(len(ids), device=ids.device).repeat_interleave(counts)
    within = torch.arange(len(owner), device=ids.device) - (counts.cumsum(0) - counts)[owner]
    return owner, start[owner] + within


def _names(argument: str, names: Sequence[str] | None, size: int, kind: str) -> tuple[str, ...]:
    if names is None:
        return tuple(f"{kind} {i}" for i in range(size))
    if len(names) != size:
        raise ValueError(f"{argument} must hold {size} names, got {len(names)}")
    return tuple(names)


def _some(ids: Tensor) -> str:
    shown = ", ".join(str(i) for i in ids[:5].tolist())
    return shown if len(ids) <= 5 else f"{shown}, ... ({len(ids)} in all)"


@cache
def _hear_of_beta() -> None:
    """torch says once a process that its CSR tensors are in beta; not to the user."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        torch.sparse_csr_tensor([0, 1], [0], [1.0], (1, 1), check_invariants=False)
