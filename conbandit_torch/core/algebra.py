"""Arithmetic with many small matrices and vectors at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import torch
from torch import Tensor

from conbandit_torch.core.blocks import rows_per_block


def sqrt_(squares: Tensor) -> Tensor:
    """Square roots, in place, of sums of squares, which rounding can leave a hair below 0."""
    return squares.clamp_min_(0).sqrt_()


def weighted_norm(vectors: Tensor, solved: Tensor) -> Tensor:
    """`|v|_{M^-1} = sqrt(v^T M^-1 v)` from v and `M^-1 v`: [..., D] -> [...]."""
    return sqrt_((vectors * solved).sum(-1))


def weighted_norm_(vectors: Tensor, solved: Tensor) -> Tensor:
    """`weighted_norm` that overwrites `solved`, which saves an array of its size."""
    return sqrt_(solved.mul_(vectors).sum(-1))


def quadratic(matrices: Tensor, vectors: Tensor) -> Tensor:
    """`v_k^T H_b v_k` for all symmetric matrices and all vectors: [B, D, D], [K, D] -> [B, K].

    It is the product of H_b and v_k v_k^T, both laid out flat: one large matrix product for all of them,
    in runs of vectors so that the outer products stay small. What is above the diagonal counts twice, and
    what is below it not at all, which halves the work. For few matrices the outer products would take longer
    than they save.
    """
    if 2 * len(matrices) <= vectors.shape[1]:
        some = matrices.split(rows_per_block(vectors.numel()))
        return torch.cat([(vectors @ own).mul_(vectors).sum(-1) for own in some])
    row, column, cell, times = _above_diagonal(vectors.shape[1], vectors.device)
    flat = matrices.flatten(1).index_select(1, cell).mul_(times)  # [B, D (D+1) / 2]
    runs = vectors.split(rows_per_block(flat.shape[1]))
    products = (run.index_select(1, row) * run.index_select(1, column) for run in runs)
    return torch.cat([large_product(flat, product) for product in products], dim=1)


@lru_cache(maxsize=8)
def _above_diagonal(size: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rows, columns and flat positions of what is on or above a diagonal, and how often it counts."""
    row, column = torch.triu_indices(size, size, device=device)
    return row, column, row * size + column, torch.where(row == column, 1, 2)


def large_product(left: Tensor, right: Tensor) -> Tensor:
    """`left right^T`: [m, D], [n, D] -> [m, n].

    Large ones in float32 are oneDNN's: on AMD's processors the product that torch comes with takes twice as
    long (115 against 230 thousand million operations per second and core, with AVX-512).
    """
    large = left.numel() * len(right) >= 10**8  # below, getting ready for the sizes takes longer
    if large and left.is_cpu and left.dtype == torch.float32 and torch.backends.mkldnn.is_available():
        return torch.nn.functional.linear(left.to_mkldnn(), right.to_mkldnn()).to_dense()
    return left @ right.T


def largest_eigenvalue(matrices: Tensor) -> Tensor:
    """[B] a bound on the largest eigenvalue of symmetric matrices [B, D, D]: the smaller of two norms."""
    if not matrices.shape[1]:
        return matrices.new_zeros(len(matrices))
    return matrices.abs().sum(2).amax(1).minimum(torch.linalg.matrix_norm(matrices))


def dot(rows: Tensor, vectors: Tensor) -> Tensor:
    """Products of n rows per model with the model's vector: [B, n, D], [B, D] -> [B, n]."""
    return torch.bmm(vectors.unsqueeze(1), rows.transpose(1, 2)).squeeze_(1)


def shrink_root_(root: Tensor, x: Tensor, weight: float) -> Tensor:
    """Roots W of M^-1, `W W^T = M^-1`, become roots of `(M + weight x x^T)^-1`, in place: [B, D, D], [B, D].

    Potter's step: with u = W^T x and gain = 1 + weight |u|^2 the new root is W - c W u u^T, where
    c = weight / (gain + sqrt(gain)); its square is what the Sherman-Morrison formula gives.
    """
    row = torch.bmm(x.unsqueeze(1), root)  # [B, 1, D] u^T
    gain = row.square().sum(2, keepdim=True).mul_(weight).add_(1)
    column = torch.bmm(root, row.mT).div_(gain + gain.sqrt())  # [B, D, 1]
    return root.addcmul_(column, row, value=-weight)


def runs_of_like_size(counts: Tensor, width: int) -> Iterator[Tensor]:
    """Positions of `counts`, largest first, in runs that stay small when padded to their largest."""
    order = counts.argsort(descending=True)
    sizes = counts[order].tolist()
    start = 0
    while start < len(sizes):
        rows = rows_per_block(sizes[start] * width)
        yield order[start : start + rows]
        start += rows
