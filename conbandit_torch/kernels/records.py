"""What kernels are handed: tensors and numbers, never a policy."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from conbandit_torch.core.blocks import Index


class Regressions(NamedTuple):
    """The state of many ridge regressions, which a kernel changes in place.

    Attributes:
        gram: [U, D, D] M.
        inverse: [U, D, D] M^-1.
        moment: [U, D] b.
        solution: [U, D] M^-1 b.
        log_det: [U] log(det M / det(ridge I)).
        counts: [U] observations.
        top: [U] at least the largest eigenvalue of M^-1.
        root: [U, D, D] W with W W^T = M^-1; None: there are none.
    """

    gram: Tensor
    inverse: Tensor
    moment: Tensor
    solution: Tensor
    log_det: Tensor
    counts: Tensor
    top: Tensor
    root: Tensor | None = None


class Chain(NamedTuple):
    """The widths of a chain of levels: `sum_i factor_i |v_i|_{G_i^-1}`.

    There `v_0 = x` and `v_{i+1} = P^T G_i^-1 v_i`.

    Attributes:
        who: which models the rows have.
        inverses: [U, D, D] G_i^-1 of every level.
        tops: [U] bounds on their largest eigenvalues.
        factors: a number per level, or [B] of them, not negative; weights and ridges are in them.
        bases: [D, m] P of every level but the first, if it has one, else None.
    """

    who: Index
    inverses: tuple[Tensor, ...]
    tops: tuple[Tensor, ...]
    factors: tuple[Tensor | float, ...]
    bases: tuple[Tensor | None, ...] = ()
