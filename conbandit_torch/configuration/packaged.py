"""The configs that come with this package, which a wheel carries. Without torch."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from conbandit_torch.core.errors import ConfigError, nearest

_ENDING = ".yaml"
_BOARD = "leaderboard"  # the folder whose files are no configs of experiments
_TIME = "Takes "  # how the line of a config's comment begins that says how long it takes


class PackagedConfig(NamedTuple):
    """A config of this package.

    Attributes:
        name: what commands call it, such as `paper/synthetic`.
        path: its file.
        shows: what it shows, from the comment at its top.
        takes: how long it takes, from the same comment.
    """

    name: str
    path: Path
    shows: str
    takes: str


def packaged_configs() -> list[PackagedConfig]:
    """All of them, those on the top level first."""
    folder = _folder()
    paths = sorted(_files(folder), key=lambda path: (len(path.parts), path))
    return [_described(path.relative_to(folder).with_suffix("").as_posix(), path) for path in paths]


def find_config(given: Path | str) -> Path:
    """The file that is meant: one that is there, or a config of this package by its name.

    Raises:
        ConfigError: if there is neither; names the nearest config.
    """
    path = Path(given)
    if path.exists():
        return path
    name = path.as_posix().removesuffix(_ENDING).removeprefix("configs/")
    folder = _folder()
    names = [one.relative_to(folder).with_suffix("").as_posix() for one in _files(folder)]
    if name in names:
        return folder / f"{name}{_ENDING}"
    close = nearest(name, names) or nearest(Path(name).name, [Path(one).name for one in names])
    hint = f" (did you mean {close!r}?)" if close else ""
    raise ConfigError(
        f"{path}: No such file or directory, and no config of this package{hint}; "
        "`conbandit configs` lists them"
    )


def board_folder() -> Path:
    """Where the package's leaderboard is: its protocol, policies and claims."""
    return _folder() / _BOARD


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(f"*{_ENDING}") if path.parent != folder / _BOARD]


def _folder() -> Path:
    """Where the configs are: in the package or, if it was installed from a clone to work on, beside it."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "configs", package.parent / "configs"):
        if (folder / f"quickstart{_ENDING}").is_file():
            return folder
    raise ConfigError(f"{package}: the package's configs are missing: install it again")


def _described(name: str, path: Path) -> PackagedConfig:
    """The first sentence of the comment at the top, and its line about time."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#"))
    takes = [line.strip() for line in lines if line.strip().startswith(_TIME)]
    text = " ".join(
        line.strip() for line in lines if not line.startswith("   ") and line.strip() not in takes
    )
    sentence = re.split(r"(?<=[.:;])\s", text, maxsplit=1)[0].rstrip(".:;")
    return PackagedConfig(name, path, sentence, takes[0].removeprefix(_TIME).rstrip(".") if takes else "")
