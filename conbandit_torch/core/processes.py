"""Users split over processes: each holds a run of them, and only what users share is exchanged.

Rank r of n holds users `r U / n` up to `(r + 1) U / n`, counted from 0 in its own state; random numbers are
drawn by their ids among all users, so that no user's rounds depend on the split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

ValueT = TypeVar("ValueT")


@dataclass(frozen=True)
class Processes:
    """The processes of a run, and how they exchange what they must. Every method is called by all of them.

    This class is a process that is alone. One that has others overrides `device`, `broadcast`, `wait`,
    `leave` and `_collect`, on which the rest stands (see `running.processes`).

    Attributes:
        rank: which one this is.
        size: how many there are.
        nodes: on how many machines.
    """

    rank: int = 0
    size: int = 1
    nodes: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this is the one that writes files and talks to people."""
        return self.rank == 0

    @property
    def device(self) -> torch.device:
        """Where tensors to be exchanged must be."""
        return torch.device("cpu")

    def share_of(self, users: int) -> slice:
        """This process's users, of `users` in all."""
        return slice(self.rank * users // self.size, (self.rank + 1) * users // self.size)

    def gather(self, *columns: Tensor) -> tuple[Tensor, ...]:
        """The rows of all processes, by rank: columns [n, ...]; n may differ from rank to rank."""
        if self.size == 1:
            return columns
        # All columns as bytes, side by side, so that one exchange does; padded, since all must be alike.
        rows = torch.cat([_as_bytes(column) for column in columns], dim=1)
        lengths = self._collect(torch.tensor([len(rows)], device=rows.device)).flatten().tolist()
        padded = rows.new_zeros(max(lengths), rows.shape[1])
        padded[: len(rows)] = rows
        parts = self._collect(padded)
        every = torch.cat([part[:length] for part, length in zip(parts, lengths, strict=True)])
        widths = [_as_bytes(column[:0]).shape[1] for column in columns]
        return tuple(
            piece.contiguous().view(column.dtype).reshape(len(every), *column.shape[1:])
            for piece, column in zip(every.split(widths, dim=1), columns, strict=True)
        )

    def sum(self, values: Tensor) -> Tensor:
        """The sum of all processes' values, which are of one shape."""
        return values if self.size == 1 else self._collect(values).sum(0)

    def any(self, flag: bool) -> bool:
        """Whether any process says so."""
        return flag if self.size == 1 else bool(self.sum(torch.tensor(int(flag), device=self.device)))

    def broadcast(self, value: ValueT) -> ValueT:
        """The first process's value, for all."""
        return value

    def wait(self) -> None:
        """Wait until all processes are here."""

    def leave(self) -> None:
        """End the exchange."""

    def _collect(self, values: Tensor) -> Tensor:
        """[size, ...] all processes' values."""
        return values[None]


ALONE = Processes()


def _as_bytes(column: Tensor) -> Tensor:
    """[n, ...] -> [n, bytes per row]."""
    return column.contiguous().reshape(len(column), column.shape[1:].numel()).view(torch.uint8)
