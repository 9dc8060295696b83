"""What is added to a catalogue, as an event keeps it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from conbandit_torch.core.catalogue import Catalogue


@dataclass(frozen=True)
class Addition:
    """New items and key-terms.

    Attributes:
        items: names, n of them.
        terms: names, m of them.
        features: [n, D] the items'.
        weights: [n, K + m] the items' key-terms; None: none.
    """

    items: Sequence[str]
    terms: Sequence[str]
    features: Tensor
    weights: Tensor | None

    def extended(self, catalogue: Catalogue) -> Catalogue:
        """The catalogue with them.

        Raises:
            ValueError: they do not fit.
        """
        if len(self.features) != len(self.items):
            raise ValueError(
                f"features must have a row for each of {len(self.items)} items, got {len(self.features)}"
            )
        number = 0 if self.weights is None else self.weights.shape[1] - catalogue.num_terms
        if number != len(self.terms):
            raise ValueError(
                f"weights must have {catalogue.num_terms} columns for the key-terms that there are, and "
                f"{len(self.terms)} for new ones, got {catalogue.num_terms + number}"
            )
        return catalogue.extended(
            self.features, self.weights, arm_names=tuple(self.items), term_names=tuple(self.terms)
        )


def packed(
    items: Sequence[str], terms: Sequence[str], features: Tensor, weights: Tensor | np.ndarray | None
) -> bytes:
    """An addition as safetensors."""
    from safetensors.torch import save

    tensors = {"features": features.contiguous()}
    if weights is not None:
        tensors["weights"] = torch.as_tensor(weights).to_dense().contiguous()
    return save(tensors | {"names": _as_tensor({"items": list(items), "terms": list(terms)})})


def unpacked(body: bytes) -> Addition:
    """What `packed` gave."""
    from safetensors.torch import load

    tensors = load(body)
    names = json.loads(bytes(tensors["names"].tolist()).decode())
    return Addition(names["items"], names["terms"], tensors["features"], tensors.get("weights"))


def _as_tensor(names: dict[str, list[str]]) -> Tensor:
    return torch.tensor(list(json.dumps(names).encode()), dtype=torch.uint8)
