"""What kernels are handed: tensors and numbers, never a policy."""

from __future__ import annotations

from dataclasses import dataclass
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
    """

    gram: Tensor
    inverse: Tensor
    moment: Tensor
    solution: Tensor
    log_det: Tensor
    counts: Tensor
    top: Tensor


@dataclass(frozen=True)
class Chain:
    """The widths of a chain of levels: `sum_i factor_i |v_i|_{G_i^-1}`, `v_0 = x`, `v_{i+1} = G_i^-1 v_i`.

    Attributes:
        who: which models the rows have.
        inverses: [U, D, D] G_i^-1 of every level.
        tops: [U] bounds on their largest eigenvalues.
        factors: a number per level, or [B] of them, not negative; weights and ridges are in them.
    """

    who: Index
    inverses: tuple[Tensor, ...]
    tops: tuple[Tensor, ...]
    factors: tuple[Tensor | float, ...]
