"""How compiled loops are called: on the memory that tensors have, by as many threads as pay."""

from __future__ import annotations

from functools import cache
from threading import RLock, local
from time import perf_counter
from typing import Any
from weakref import ReferenceType, ref

import numba
import numpy as np
import torch
from torch import Tensor

from conbandit_torch.core.blocks import Index
from conbandit_torch.kernels.threads import Pace, kernel_threads

NO_IDS = np.zeros(0, dtype=np.int64)
_pace = Pace()
_MOST_THREADS: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
_known: dict[int, tuple[ReferenceType[Tensor], int, np.ndarray]] = {}  # by the tensor's id
_here = local()  # how many threads numba has been told to use, which it remembers per thread
_ONE_AT_A_TIME = RLock()  # some of numba's pools of threads end the process if two threads enter them


def run(kernel: Any, *arguments: Any) -> Any:
    """Call a kernel that has threads; one call at a time in the whole process."""
    with _ONE_AT_A_TIME:
        most = kernel_threads()
        threads = _pace.pick(most) if most > 1 else most
        if threads != getattr(_here, "threads", 0):  # asking numba would take longer
            _launch_threads()
            numba.set_num_threads(min(threads, _MOST_THREADS))
            _here.threads = threads
        if most == 1:
            return kernel(*arguments)
        start = perf_counter()
        result = kernel(*arguments)
        _pace.took(perf_counter() - start)
        return result


@cache
def _launch_threads() -> None:
    """Start numba's threads, and leave torch its number: OpenMP, which they share, would give it numba's."""
    threads = torch.get_num_threads()
    numba.get_num_threads()  # starts them
    torch.set_num_threads(threads)


def threads_run_in_openmp() -> bool:
    """Whether a kernel has run, and OpenMP has its threads."""
    try:
        return bool(numba.threading_layer() == "omp")  # type: ignore[attr-defined]
    except ValueError:  # none has run
        return False


def array(tensor: Tensor) -> np.ndarray:
    """The tensor's own memory, if it is contiguous: another layout would be another kernel to compile."""
    return tensor.numpy() if tensor.is_contiguous() else tensor.contiguous().numpy()


def kept(tensor: Tensor) -> np.ndarray:
    """The own memory of a tensor that comes again every round, or that is changed: found once, then known."""
    known = _known.get(id(tensor))
    if known is not None and known[0]() is tensor and known[1] == tensor.data_ptr():
        return known[2]
    key, own = id(tensor), tensor.numpy()
    _known[key] = ref(tensor, lambda _: _known.pop(key, None)), tensor.data_ptr(), own
    return own


def models(who: Index) -> tuple[np.ndarray, int]:
    """Ids, or where a run of them begins."""
    if isinstance(who, slice):
        return NO_IDS, who.start or 0
    return array(who), -1


@cache
def nothing(dtype: torch.dtype) -> tuple[np.ndarray, ...]:
    """Arrays without rows, of one, two and three dimensions, for what there is not."""
    return tuple(torch.empty(0, *shape, dtype=dtype).numpy() for shape in ((), (1,), (1, 1)))
