"""Rows of per-user state, and work in blocks of rows, so that work arrays stay bounded."""

from __future__ import annotations

import torch
from torch import Tensor

Index = Tensor | slice
"""Rows of a per-user tensor: ids, or a slice, which views the state instead of copying it."""


EVERY_ROW = slice(None)


BLOCK_ELEMENTS = 2**20  # work arrays hold at most about this many numbers (or one row)


def rows_per_block(row_size: int) -> int:
    """How many rows of `row_size` numbers to work on at once, so that work arrays stay bounded."""
    return max(1, BLOCK_ELEMENTS // max(1, row_size))


def look_up(table: Tensor, ids: Tensor) -> Tensor:
    """`table[ids]`, several times as fast for ids [B, A]: [N, ...] -> [B, A, ...]."""
    return table.index_select(0, ids.reshape(-1)).view(*ids.shape, *table.shape[1:])


def as_table(x: Tensor) -> tuple[Tensor, Tensor]:
    """[B A, D] the vectors x [B, A, D] as rows of a table, and [B, A] which row each is."""
    number, pool, dim = x.shape
    return x.reshape(-1, dim), torch.arange(number * pool, device=x.device).view(number, pool)


def rows_of(tensor: Tensor, rows: Index) -> Tensor:
    """`tensor[rows]`, or the tensor itself if those are all."""
    return tensor if rows is EVERY_ROW else tensor[rows]


def add_at(state: Tensor, rows: Index, value: Tensor | int) -> None:
    """`state[rows] += value`; a slice is a view, which Python would copy onto itself once more."""
    if isinstance(rows, slice):
        everyone = rows.start == 0 and rows.stop == state.shape[0]
        (state if everyone else state[rows]).add_(value)
    else:
        state[rows] += value
