"""States as safetensors, in parts of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import torch
from torch import Tensor


def parts_of(state: Mapping[str, Tensor], size: int) -> Iterator[bytes]:
    """The tensors, those that are large cut into runs of rows of at most about `size` bytes."""
    from safetensors.torch import save

    for name, tensor in state.items():
        tensor = tensor.detach().cpu()
        rows = max(1, size // max(1, tensor[0].nbytes)) if tensor.ndim and len(tensor) else 1
        blocks = tensor.split(rows) if tensor.ndim and len(tensor) else (tensor,)
        for block in blocks:
            yield save({name: block.clone().contiguous()})


def joined(parts: Iterable[bytes]) -> dict[str, Tensor]:
    """The tensors that were cut by `parts_of`."""
    from safetensors.torch import load

    found: dict[str, list[Tensor]] = {}
    for part in parts:
        for name, block in load(part).items():
            found.setdefault(name, []).append(block)
    return {name: blocks[0] if len(blocks) == 1 else torch.cat(blocks) for name, blocks in found.items()}
