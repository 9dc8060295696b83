"""Products of many small matrices and vectors at once."""

from __future__ import annotations

import torch
from torch import Tensor

from conbandit_torch.records import rows_per_block


def weighted_norm(vectors: Tensor, solved: Tensor) -> Tensor:
    """`|v|_{M^-1} = sqrt(v^T M^-1 v)` from v and `M^-1 v`: [..., D] -> [...]."""
    # Rounding can leave a zero vector's square a hair below 0.
    return (vectors * solved).sum(-1).clamp_min(0).sqrt()


def quadratic(matrices: Tensor, vectors: Tensor) -> Tensor:
    """`v_k^T H_b v_k` for all matrices and vectors: [B, D, D], [K, D] -> [B, K].

    It is the product of H_b and v_k v_k^T, both laid out flat: one large matrix product for all of them,
    in runs of vectors so that the outer products stay small.
    """
    flat = matrices.flatten(1)
    runs = vectors.split(rows_per_block(flat.shape[1]))
    outer = ((run[:, :, None] * run[:, None, :]).flatten(1) for run in runs)
    return torch.cat([flat @ products.T for products in outer], dim=1)


def dot(rows: Tensor, vectors: Tensor) -> Tensor:
    """Products of n rows a model with the model's vector: [B, n, D], [B, D] -> [B, n]."""
    return torch.bmm(vectors[:, None], rows.transpose(1, 2)).squeeze(1)
