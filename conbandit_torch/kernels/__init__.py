"""The few hot functions, on plain tensors: how a round is fast.

Each has a definition in torch (`reference`), which runs on every device, and a compiled version for CPUs
(`compiled`, loops in `loops`). Which one runs is decided here and nowhere else, and no algorithm knows. Both
give the same decisions in float64; in float32 last digits differ, so a result says which ran.

    with using("torch"):        # or "compiled"; "auto" is compiled where it can be
        simulation.run()
"""

from __future__ import annotations

from conbandit_torch.kernels.choice import (
    TORCH,
    Kernels,
    kernels_for,
    name_of,
    using,
    warm,
)
from conbandit_torch.kernels.records import Chain, Regressions
from conbandit_torch.kernels.threads import all_threads

__all__ = [
    "TORCH",
    "Chain",
    "Kernels",
    "Regressions",
    "all_threads",
    "kernels_for",
    "name_of",
    "using",
    "warm",
]
