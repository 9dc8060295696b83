"""Tensors in safetensors files, which can carry no code, are never half-written and survive a crash."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from conbandit_torch.core.errors import DataError
from conbandit_torch.core.files import replacing
from conbandit_torch.core.seals import file_digest


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, str]) -> str:
    """Write tensors, with texts about them; returns the file's digest."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    # Copies: safetensors refuses tensors that share memory.
    copies = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    try:
        with replacing(path) as unfinished:
            save_file(copies, unfinished, {"format": "pt", **about})  # what others' readers look for
            return file_digest(unfinished)
    except SafetensorError as error:  # its kind of "no space left"
        raise OSError(f"{path}: {error}") from None


def read_tensors(path: Path, digest: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a file, and the texts about them.

    Args:
        path: the file.
        digest: what `write_tensors` gave.

    Raises:
        DataError: if the file is missing, or not what was written.
    """
    from safetensors import SafetensorError, safe_open

    try:
        if file_digest(path) != digest:
            raise DataError(f"{path} is damaged, or was changed: it is not what was written there")
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None
    except SafetensorError as error:
        raise DataError(f"{path} is not a safetensors file ({error})") from None
