"""What an earlier run left in its folder for a resume: how it ran, and its config."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conbandit_torch.core.errors import ConfigError
from conbandit_torch.core.seals import is_as_sealed, unsealed
from conbandit_torch.running.folder import EXPERIMENT, HOW


def how_it_ran(folder: Path) -> dict[str, Any]:
    """Threads, jobs, backend and processes of the last run into the folder."""
    try:
        how = unsealed((folder / HOW).read_text(encoding="utf-8"))
        numbers = {key: int(how[key]) for key in ("threads", "jobs", "devices", "num_nodes")}
        return numbers | {"backend": str(how["backend"])}
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        problem = f"no results folder, {HOW} is missing or damaged" if folder.exists() else "no such folder"
        remedy = f"; `conbandit run CONFIG --out {folder}` goes on" if (folder / EXPERIMENT).exists() else ""
        raise ConfigError(f"{folder}: {problem}{remedy}") from None


def experiment_of(folder: Path) -> Path:
    """The folder's `experiment.yaml`, if it is what a run has written there.

    Raises:
        ConfigError: if it is missing, damaged or edited: a resume goes on with what ran and nothing else.
    """
    path = folder / EXPERIMENT
    try:
        intact = is_as_sealed(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        intact = False
    if not intact:
        raise ConfigError(
            f"{path}: is missing, or not what the run wrote there (its first line has a digest of the rest): "
            f"`conbandit run CONFIG --out {folder}` goes on with a config, which may be this file"
        )
    return path
