"""The signature of every kernel; the type checker holds both versions to them."""
# ruff: noqa: D102  (`reference` says what each does)

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from conbandit_torch.core.blocks import Index
from conbandit_torch.core.randomness import Stream
from conbandit_torch.kernels.records import Chain, Regressions


class KernelModule(Protocol):
    """`reference`, whose docstrings say what each function does, or `compiled`."""

    def rank_one(
        self, state: Regressions, who: Index, x: Tensor, y: Tensor, weight: float
    ) -> Tensor | None: ...
    def products(
        self, matrices: Tensor, who: Index, vectors: Tensor, *, scale: float = 1.0, plus: Tensor | None = None
    ) -> Tensor: ...
    def prunes(self, pool: int, levels: int) -> bool: ...
    def choose(
        self,
        table: Tensor,
        arms: Tensor,
        theta: Tensor,
        extra: Tensor | None,
        chain: Chain,
        lengths: Tensor | None = None,
    ) -> Tensor: ...
    def dots(self, table: Tensor, arms: Tensor, vectors: Tensor, who: Index) -> Tensor: ...
    def picked(self, table: Tensor, arms: Tensor, positions: Tensor) -> Tensor: ...
    def pulled(
        self, table: Tensor, arms: Tensor, theta: Tensor, who: Index, shown: Tensor, *, clip: bool
    ) -> tuple[Tensor, Tensor]: ...
    def normal(self, stream: Stream, users: Tensor, rounds: Tensor, count: int, like: Tensor) -> Tensor: ...
    def draws_subsets(self, count: int, population: int) -> bool: ...
    def subsets(
        self, stream: Stream, users: Tensor, rounds: Tensor, count: int, population: int
    ) -> Tensor: ...
    def subsets_of(
        self, stream: Stream, users: Tensor, rounds: Tensor, count: int, populations: Tensor
    ) -> Tensor: ...
    def hidden_widths(self, inverse: Tensor, arms: Tensor, directions: Tensor, factor: float) -> Tensor: ...
    def tally(self, sums: Tensor, regret: Tensor, reward: Tensor) -> None: ...
    def hidden_step(
        self,
        state: Regressions,
        table: Tensor,
        arms: Tensor,
        directions: Tensor,
        residuals: Tensor,
        ridge: float,
        spread: tuple[Tensor, Tensor, Tensor] | None = None,
    ) -> float | None: ...
    def warm(self, dtype: torch.dtype) -> None: ...
