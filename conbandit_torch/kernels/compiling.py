"""How loops are compiled.

What is compiled is kept until its own file changes, so that a loop calls parts of its own file only.
"""

from __future__ import annotations

from numba import njit

from conbandit_torch.kernels.kept import can_keep

# Sums may be reordered, so that loops use vector instructions; NaN and infinity keep their meaning.
_RULES = {"reassoc", "contract", "nsz", "arcp"}
_KEPT = can_keep()
kernel = njit(parallel=True, cache=_KEPT, nogil=True, error_model="numpy", fastmath=_RULES)
part = njit(cache=_KEPT, nogil=True, error_model="numpy", fastmath=_RULES)
part_without_nan = njit(cache=_KEPT, nogil=True, error_model="numpy", fastmath=_RULES | {"nnan"})
