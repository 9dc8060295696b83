"""Digests by which files and states can be seen to be equal."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from conbandit_torch.core.processes import ALONE, Processes

if TYPE_CHECKING:
    pass


def fingerprint(tensors: dict[str, Tensor], processes: Processes = ALONE) -> str:
    """A digest of all values, of all processes, by which two states can be seen to be equal bit for bit."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return " ".join(gather_digests(digest.hexdigest(), processes))


def gather_digests(digest: str, processes: Processes) -> list[str]:
    """The digests of all processes, by rank."""
    own = torch.tensor([list(bytes.fromhex(digest))], dtype=torch.uint8, device=processes.device)
    return [bytes(row).hex() for row in processes.gather(own)[0].tolist()]


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()
