"""The files in which numba keeps compiled kernels; what is damaged there, or of other sources, is removed.

numba checks nothing that it reads back: an index that a power failure has emptied fails every run, code with
a flipped bit is run, and a process that is killed between index and code can leave an index that names the
code of other sources. So a list of digests is kept beside the files, from when everything had been compiled.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import torch
from filelock import FileLock
from llvmlite.binding import get_host_cpu_name  # type: ignore[import-untyped]

from conbandit_torch.core.files import write_atomically
from conbandit_torch.core.seals import file_digest, sealed, text_digest, unsealed

_PYTHON = f".py{sys.version_info.major}{sys.version_info.minor}{getattr(sys, 'abiflags', '')}"

_log = logging.getLogger(__name__)


def can_keep() -> bool:
    """Whether numba finds a folder that it may write into."""
    try:
        numba.njit(cache=True)(_nothing)
    except RuntimeError:
        _log.warning("numba finds no folder for compiled kernels: every process compiles its own")
        return False
    return True


def _nothing() -> None: ...


class Kept:
    """The kept kernels of one source file.

    Args:
        source: the file.
        kernel: one of its kernels, by which numba says where it keeps them.
    """

    def __init__(self, source: Path, kernel: Any) -> None:
        where = kernel.stats.cache_path
        self._source, self._folder = source, None if where is None else Path(str(where))
        self._stamp = None if where is None else kernel._cache._impl.locator.get_source_stamp()
        self._done: set[torch.dtype] = set()  # in this process

    def is_complete(self, dtype: torch.dtype) -> bool:
        """Whether every kernel has been compiled for the type."""
        return dtype in self._done or (self._folder is not None and self._list(dtype).exists())

    @contextlib.contextmanager
    def compiling(self, dtype: torch.dtype) -> Iterator[None]:
        """While one process compiles every kernel for the type, others wait."""
        if self._folder is None:
            yield
            self._done.add(dtype)
            return
        with contextlib.ExitStack() as held:
            with contextlib.suppress(OSError):  # nobody may write there: compiled again next time
                held.enter_context(FileLock(self._folder / f"{self._source.stem}.lock"))
            yield
            with contextlib.suppress(OSError):
                digests = {path.name: file_digest(path) for path in self._files(".*.nbc")}
                write_atomically(self._list(dtype), sealed(digests))
        self._done.add(dtype)

    def mend(self) -> None:
        """Remove what is not what was compiled from the present source; to be called before a kernel runs."""
        if self._folder is None:
            return
        for index in self._files(".nbi"):
            if not self._is_of_present_source(index):
                self._remove([index, *self._folder.glob(f"{index.stem}.*.nbc")])
        lists = [path for path in map(self._list, (torch.float32, torch.float64)) if path.exists()]
        if not all(self._is_as_listed(path) for path in lists):
            _log.warning("%s: compiled kernels are damaged; they are compiled again", self._folder)
            self._remove([*lists, *self._files(".nbi"), *self._files(".*.nbc")])

    def _files(self, ending: str) -> list[Path]:
        """Those of this Python: another one beside it keeps its own there, of its own numba."""
        assert self._folder is not None
        return sorted(self._folder.glob(f"{self._source.stem}.*{_PYTHON}{ending}"))

    def _list(self, dtype: torch.dtype) -> Path:
        """Digests of all kernels, from this source, for this processor."""
        assert self._folder is not None
        about = (
            f"{self._source.stem} {_PYTHON} {numba.__version__} {get_host_cpu_name()} {self._stamp} {dtype}"
        )
        return self._folder / f"compiled-{text_digest(about)[:16]}"

    def _is_of_present_source(self, index: Path) -> bool:
        try:
            with index.open("rb") as file:  # as numba reads it
                version, rest = pickle.load(file), file.read()
            stamp: Any = pickle.loads(rest)[0] if version == numba.__version__ else None
        except Exception:  # whatever damage leads to
            return False
        return bool(stamp == self._stamp)

    def _is_as_listed(self, path: Path) -> bool:
        try:
            digests = unsealed(path.read_text(encoding="utf-8"))
            return all(file_digest(path.parent / name) == digest for name, digest in digests.items())
        except (OSError, ValueError):
            return False

    def _remove(self, paths: list[Path]) -> None:
        for path in paths:
            with contextlib.suppress(OSError):
                path.unlink()
