"""Digests by which states and data can be seen to be equal."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from conbandit_torch.core.processes import ALONE, Processes


def fingerprint(tensors: Mapping[str, Tensor], processes: Processes = ALONE) -> str:
    """A digest of all values, of all processes, by which two states can be seen to be equal bit for bit."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return " ".join(gather_digests(digest.hexdigest(), processes))


def gather_digests(digest: str, processes: Processes) -> list[str]:
    """The digests of all processes, by rank."""
    own = torch.tensor([list(bytes.fromhex(digest))], dtype=torch.uint8, device=processes.device)
    return [bytes(row).hex() for row in processes.gather(own)[0].tolist()]


def data_digest(module: nn.Module) -> str:
    """A digest of what an environment is given, before its users are split and its numbers converted."""
    return fingerprint(dict(module.named_buffers()))


def catalogue_digest(catalogue: nn.Module) -> str:
    """A digest of a catalogue's arms and graph, the same in any precision of at least float32."""
    kept = ("arm_features", "_arm_offsets", "_arm_terms", "_arm_weights")
    tensors = (catalogue.get_buffer(name) for name in kept)
    rounded = (tensor.float() if tensor.is_floating_point() else tensor for tensor in tensors)
    return fingerprint(dict(zip(kept, rounded, strict=True)))
