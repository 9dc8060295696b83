"""Checkpoints: everything that a run needs to go on exactly, safe to load, and never half-written.

A checkpoint is a folder `checkpoints/<round>` with the state's tensors as a safetensors file, a format that
can carry no code, and a manifest with the format's version, what the state came from, the file's digest and
its own checksum. It is written under another name and renamed when it is complete and on the disk. The
last two are kept. If users are split over processes, each process has its own file in it.
"""

from __future__ import annotations

import logging
import re
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from conbandit_torch.core.digests import gather_digests
from conbandit_torch.core.files import UNFINISHED, make_folder, naming, sync
from conbandit_torch.core.processes import ALONE, Processes
from conbandit_torch.core.seals import file_digest, sealed, unsealed
from conbandit_torch.running.folder import MANIFEST
from conbandit_torch.running.origin import Origin

FORMAT = 2
KEPT = 2

_log = logging.getLogger(__name__)


class CheckpointError(Exception):
    """A checkpoint that cannot be used, and why."""


class OtherFormatError(CheckpointError):
    """A checkpoint of another version of this package, in a format that this one does not read."""


class OtherProcessesError(CheckpointError):
    """A checkpoint of a run with more or fewer processes."""


class SavedState(NamedTuple):
    """A simulation's state.

    Attributes:
        round: rounds played.
        tensors: the state, by name.
        origin: what it came from, if it was read from a checkpoint.
    """

    round: int
    tensors: dict[str, Tensor]
    origin: Origin = Origin()


class Manifest(NamedTuple):
    """What a checkpoint says of itself.

    Attributes:
        round: rounds played.
        states: digests of the processes' files, by rank.
        origin: what the state came from.
    """

    round: int
    states: list[str]
    origin: Origin


def write_checkpoint(
    folder: Path, state: SavedState, processes: Processes = ALONE, origin: Origin | None = None
) -> Path:
    """Write `folder/<round>`; older checkpoints than the last two are removed afterwards."""
    final = folder / f"{state.round:09d}"
    unfinished = folder / (final.name + UNFINISHED)
    if processes.is_first:
        make_folder(folder)
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
    processes.wait()
    path = unfinished / _state_file(processes.rank)
    _save(path, state.tensors)
    digests = gather_digests(file_digest(path), processes)
    if processes.is_first:
        about = asdict(origin or Origin())
        manifest = {"format": FORMAT, "round": state.round, "states": digests, "origin": about}
        with naming(unfinished / MANIFEST):
            (unfinished / MANIFEST).write_text(sealed(manifest), encoding="utf-8")
        for written in (unfinished / MANIFEST, unfinished):
            sync(written)
        shutil.rmtree(final, ignore_errors=True)
        unfinished.rename(final)
        sync(folder)
        for old in list_checkpoints(folder)[KEPT:]:
            shutil.rmtree(old, ignore_errors=True)
    processes.wait()
    return final


def _save(path: Path, tensors: dict[str, Tensor]) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        with naming(path):
            save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:  # its kind of "no space left"
        raise OSError(f"{path}: {error}") from None
    sync(path)


def _state_file(rank: int) -> str:
    return f"state-{rank}.safetensors" if rank else "state.safetensors"


def list_checkpoints(folder: Path) -> list[Path]:
    """The complete checkpoints of a folder, newest first."""
    found = [path for path in folder.glob("*") if re.fullmatch("[0-9]+", path.name) and path.is_dir()]
    return sorted(found, key=lambda path: int(path.name), reverse=True)


def read_manifest(path: Path) -> Manifest:
    """What a checkpoint says of itself.

    Raises:
        CheckpointError: if it is damaged, or of another format; with the name and the reason.
    """
    try:
        manifest = unsealed((path / MANIFEST).read_text(encoding="utf-8"))
        version = manifest["format"]
        if version == FORMAT:
            return Manifest(
                int(manifest["round"]), [str(one) for one in manifest["states"]], Origin(**manifest["origin"])
            )
    except OSError as error:
        raise CheckpointError(f"{path}: no checkpoint ({error.strerror} {MANIFEST})") from None
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        earlier = _format_without_checksum(path)
        if earlier is None:
            raise CheckpointError(f"{path}: {MANIFEST} is damaged: {error}") from None
        version = earlier
    raise OtherFormatError(
        f"{path}: format {version}, and this version of conbandit_torch reads format {FORMAT}: use the "
        "version that wrote it, or remove the folder to start the job anew"
    )


def _format_without_checksum(path: Path) -> int | None:
    """The format of the manifests that had no checksum, if this is one."""
    text = (path / MANIFEST).read_text(encoding="utf-8", errors="replace")
    first = r'\{"format": 1, "round": \d+, "sha256": "\w{64}", "others": \[.*\]\}'
    return 1 if re.fullmatch(first, text) else None


def read_checkpoint(path: Path, processes: Processes = ALONE) -> SavedState:
    """This process's state in a checkpoint.

    Raises:
        CheckpointError: if it is damaged, foreign or of another format; with the name and the reason.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    manifest = read_manifest(path)
    if len(manifest.states) != processes.size:
        raise OtherProcessesError(
            f"{path}: was written by {len(manifest.states)} processes, and this run has {processes.size}: "
            "use as many"
        )
    file = path / _state_file(processes.rank)
    try:
        if file_digest(file) != manifest.states[processes.rank]:
            raise CheckpointError(f"{path}: {file.name} is damaged: its checksum is not the manifest's")
        return SavedState(manifest.round, load_file(file), manifest.origin)
    except OSError as error:
        raise CheckpointError(f"{path}: {file.name}: {error.strerror or error}") from None
    except SafetensorError as error:
        raise CheckpointError(f"{path}: {file.name} is not a safetensors file ({error})") from None


def latest_checkpoint(
    folder: Path, processes: Processes = ALONE, origin: Origin | None = None
) -> SavedState | None:
    """The newest checkpoint that can be read; None if there is none.

    Damaged ones are reported and passed over: a run goes on to the same results from any checkpoint, only
    later. One of another format, of another number of processes, or from other data than `origin` says, is
    an error; one of another version of this package is reported.
    """
    for path in list_checkpoints(folder):
        state = None
        try:
            if origin is not None:
                held = read_manifest(path).origin
                held.refuse_other_data(origin, path)
                held.warn_of_other_version(origin, path)
            state = read_checkpoint(path, processes)
        except (OtherFormatError, OtherProcessesError):
            raise
        except CheckpointError as error:
            _log.warning("%s; going on from the one before it, if any", error)
        if not processes.any(state is None):
            return state
    return None
