"""What a hook or a caller hands over, checked: shapes, dtypes and finite numbers."""

from __future__ import annotations

from math import isfinite

import torch
from torch import Tensor

_SMALL = 2**28  # bytes that any machine has


def expect_memory(what: str, needed: int) -> None:
    """Refuse to make arrays that the machine has no memory left for, before half a minute is spent on it.

    Args:
        what: what would need the memory, with its sizes.
        needed: bytes.
    """
    if needed < _SMALL:
        return
    from psutil import virtual_memory

    memory = virtual_memory()
    if needed > memory.available:
        raise ValueError(
            f"{what} would need {needed / 2**30:,.1f} GiB of memory; this machine has "
            f"{memory.total / 2**30:,.1f}, of which {memory.available / 2**30:,.1f} are free"
        )


def expect_rows(name: str, tensor: Tensor, rows: int) -> None:
    """Refuse a tensor that does not hold one value for each of so many rows."""
    if tensor.shape != (rows,):
        raise ValueError(f"{name} must be [{rows}], one value per row, got shape {list(tensor.shape)}")


def expect_positions(arm: Tensor, rows: int, pool: int) -> None:
    """Refuse arms that are not given by their position among the row's candidates, one per row."""
    expect_rows("arm", arm, rows)
    if not arm.is_cpu or not rows:  # on a GPU looking would wait for the device
        return
    least, most = map(int, arm.aminmax())
    if least < 0 or most >= pool:
        raise ValueError(
            f"arm must hold positions among the {pool} candidates, from 0 to {pool - 1}, got "
            f"{least if least < 0 else most}; a position in the row, not an arm's id"
        )


def expect_tensor(
    source: str, given: Tensor, shape: tuple[int, ...], dtype: torch.dtype | None = None, hint: str = ""
) -> Tensor:
    """What a hook, `source`, has given, if shape and dtype are right; `hint` says what else may be wrong."""
    if not isinstance(given, Tensor):
        raise TypeError(f"{source} must give a tensor {list(shape)}, got {type(given).__name__}{hint}")
    if given.shape != shape:
        raise ValueError(f"{source} must give {list(shape)} numbers, got {list(given.shape)}{hint}")
    if dtype is not None and given.dtype != dtype:
        raise ValueError(f"{source} must give {dtype}, got {given.dtype}{hint}")
    return given


def all_finite(values: Tensor) -> bool:
    """Whether no value is NaN or infinite."""
    # The sum of finite numbers is finite, or so large that one must look closer; it takes far less time.
    return isfinite(float(values.sum())) or bool(values.isfinite().all())


def highest(scores: Tensor, shape: tuple[int, ...], source: str) -> Tensor:
    """[B] position of every row's highest score, the first of equals; `source` gave them, for errors."""
    if not expect_tensor(source, scores, shape).is_floating_point():
        raise ValueError(f"{source} must give floating-point numbers, got {scores.dtype}")
    best, position = scores.max(1)  # NaN if any is
    # On a GPU looking would wait for the device.
    if best.device.type == "cpu" and not all_finite(best):
        row = int((~best.isfinite()).nonzero()[0])
        raise ValueError(f"{source} must give finite numbers, got {float(best[row])} in row {row}")
    return position
