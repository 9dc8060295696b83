"""Which kernels run: compiled ones on a CPU where numba is installed, torch everywhere else."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from typing import Literal

import torch
from torch import Tensor

from conbandit_torch.kernels import reference
from conbandit_torch.kernels.signatures import KernelModule
from conbandit_torch.kernels.threads import threads_for_kernels

Kernels = Literal["auto", "compiled", "torch"]
TORCH = "torch"

_log = logging.getLogger(__name__)
_asked: ContextVar[Kernels] = ContextVar("kernels", default="auto")
_forked_too_late = False  # whether this process has inherited threads that are not here
_problem = ""  # why there are no compiled kernels


def kernels_for(tensor: Tensor) -> KernelModule:
    """The kernels for data like this: the module `reference`, or `compiled`."""
    if not tensor.is_cpu or _asked.get() == "torch":
        return reference
    return _compiled() or reference


def name_of(device: torch.device | str) -> str:
    """What a result says of the kernels that run on the device."""
    on_cpu = torch.device(device).type == "cpu"
    if not on_cpu or _asked.get() == "torch" or _compiled() is None:
        return TORCH
    from importlib.metadata import version  # slow, and needed once per job

    return f"numba {version('numba')}"


@contextmanager
def using(kernels: Kernels, *, single_torch_thread: bool = False) -> Iterator[None]:
    """Run these kernels for a while.

    Args:
        kernels: "torch", "compiled", or "auto": compiled where that is possible.
        single_torch_thread: where compiled kernels run, they take all of torch's threads, and torch itself
            keeps one; `all_threads` gives them back around large products.

    Raises:
        ValueError: compiled kernels are asked for, and there are none.
    """
    if kernels == "compiled" and _compiled() is None:
        raise ValueError(f"kernels: compiled cannot run: {_problem}")
    token = _asked.set(kernels)
    compiled = kernels != "torch" and _compiled() is not None
    try:
        with threads_for_kernels(torch_keeps_one=single_torch_thread and compiled):
            yield
    finally:
        _asked.reset(token)


def warm(tensor: Tensor) -> None:
    """Compile what was never compiled on this machine, before a clock runs; says so if there is something."""
    kernels_for(tensor).warm(tensor.dtype)


@cache
def _compiled() -> KernelModule | None:
    if _forked_too_late:
        return _without("this process was forked after compiled kernels had run")
    if find_spec("numba") is None:
        return _without("numba is not installed (pip install numba)")
    # Threads of OpenMP spin while they wait for the next kernel, for milliseconds, which starves everybody
    # on a busy machine, and sleep at once if told to be passive, which costs on an idle one. So: spin for
    # the time between two kernels of a round, then sleep. OpenMP reads this once, when it is loaded.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    try:
        from conbandit_torch.kernels import compiled  # numba takes a while to import
    except Exception as error:  # numba of another NumPy, of another processor, or half installed
        return _without(f"numba cannot be imported ({type(error).__name__}: {error})")
    for kept in compiled.KEPT:
        kept.mend()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)
    return compiled


def _without(problem: str) -> KernelModule | None:
    global _problem
    _problem = problem
    _log.warning("%s: everything runs on torch alone, several times slower", problem)
    return None


def _after_fork() -> None:
    """GNU's OpenMP does not survive a fork once its threads run: numba would end the process."""
    global _forked_too_late
    from conbandit_torch.kernels.calling import threads_run_in_openmp

    if threads_run_in_openmp():
        _forked_too_late = True
        _compiled.cache_clear()
