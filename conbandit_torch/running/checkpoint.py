"""Checkpoints: everything that a run needs to go on exactly, safe to load, and never half-written.

A checkpoint is a folder `checkpoints/<round>` with the state's tensors as a safetensors file, a format that
can carry no code, and a manifest with the format's version and the file's checksum. It is written under
another name and renamed when it is complete. The last two are kept. If users are split over processes, each
process has a file of its own in it.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor

from conbandit_torch.core.digests import file_digest, gather_digests
from conbandit_torch.core.processes import ALONE, Processes

if TYPE_CHECKING:
    pass


FORMAT = 1


KEPT = 2


_MANIFEST = "manifest.json"


_log = logging.getLogger(__name__)


class CheckpointError(Exception):
    """A checkpoint that cannot be used, and why."""


class NewerFormatError(CheckpointError):
    """A checkpoint of a later version of this package."""


class OtherProcessesError(CheckpointError):
    """A checkpoint of a run with more or fewer processes."""


class SavedState(NamedTuple):
    """A simulation's state: rounds played, and tensors by name."""

    round: int
    tensors: dict[str, Tensor]


def write_checkpoint(folder: Path, state: SavedState, processes: Processes = ALONE) -> Path:
    """Write `folder/<round>`; older checkpoints than the last two are removed afterwards."""
    from safetensors.torch import save_file

    final = folder / f"{state.round:09d}"
    unfinished = folder / f"{final.name}.part"
    if processes.is_first:
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
    processes.wait()
    path = unfinished / _state_file(processes.rank)
    save_file({name: tensor.contiguous() for name, tensor in state.tensors.items()}, path)
    _sync(path)
    digests = gather_digests(file_digest(path), processes)
    if processes.is_first:
        manifest = {"format": FORMAT, "round": state.round, "sha256": digests[0], "others": digests[1:]}
        (unfinished / _MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
        for written in (unfinished / _MANIFEST, unfinished):
            _sync(written)
        shutil.rmtree(final, ignore_errors=True)
        unfinished.rename(final)
        _sync(folder)
        for old in list_checkpoints(folder)[KEPT:]:
            shutil.rmtree(old, ignore_errors=True)
    processes.wait()
    return final


def _state_file(rank: int) -> str:
    return f"state-{rank}.safetensors" if rank else "state.safetensors"


def list_checkpoints(folder: Path) -> list[Path]:
    """The complete checkpoints of a folder, newest first."""
    found = [path for path in folder.glob("*") if path.is_dir() and path.name.isdigit()]
    return sorted(found, key=lambda path: int(path.name), reverse=True)


def read_checkpoint(path: Path, processes: Processes = ALONE) -> SavedState:
    """This process's state in a checkpoint.

    Raises:
        CheckpointError: if it is damaged, foreign or of a newer format; with the name and the reason.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        manifest: Any = json.loads((path / _MANIFEST).read_text(encoding="utf-8"))
        version, number, digest = (manifest[key] for key in ("format", "round", "sha256"))
        digests = [digest, *manifest.get("others", [])]
    except OSError as error:
        raise CheckpointError(f"{path}: no checkpoint ({error.strerror} {_MANIFEST})") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise CheckpointError(f"{path}: {_MANIFEST} is damaged, or not of a checkpoint") from None
    if not isinstance(version, int) or not isinstance(number, int) or number < 0:
        raise CheckpointError(f"{path}: {_MANIFEST} is damaged: format {version!r}, round {number!r}")
    if version > FORMAT:
        raise NewerFormatError(
            f"{path}: format {version}, and this version of conbandit_torch reads up to {FORMAT}: update it"
        )
    if len(digests) != processes.size:
        raise OtherProcessesError(
            f"{path}: was written by {len(digests)} processes, and this run has {processes.size}: use as many"
        )
    file = path / _state_file(processes.rank)
    try:
        if file_digest(file) != digests[processes.rank]:
            raise CheckpointError(f"{path}: {file.name} is damaged: its checksum is not the manifest's")
        return SavedState(number, load_file(file))
    except OSError as error:
        raise CheckpointError(f"{path}: {file.name}: {error.strerror or error}") from None
    except SafetensorError as error:
        raise CheckpointError(f"{path}: {file.name} is no safetensors file ({error})") from None


def latest_checkpoint(folder: Path, processes: Processes = ALONE) -> SavedState | None:
    """The newest checkpoint that can be read; None if there is none.

    Damaged ones are reported and passed over: a run goes on to the same results from any checkpoint, only
    later. One of a newer format, or of another number of processes, is an error.
    """
    for path in list_checkpoints(folder):
        state = None
        try:
            state = read_checkpoint(path, processes)
        except (NewerFormatError, OtherProcessesError):
            raise
        except CheckpointError as error:
            _log.warning("%s; going on from the one before it, if any", error)
        if not processes.any(state is None):
            return state
    return None


def _sync(path: Path) -> None:
    """Make sure that the file, or the folder's list of files, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
