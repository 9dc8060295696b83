"""How many threads torch and the compiled kernels have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

_given: ContextVar[int | None] = ContextVar("threads", default=None)  # to the run, while there is one


@contextmanager
def threads_for_kernels(*, torch_keeps_one: bool) -> Iterator[None]:
    """Remember how many threads torch has, for the kernels; torch itself may keep a single one meanwhile.

    Two pools of threads that wait for each other cost more than torch's small calls gain.
    """
    threads = torch.get_num_threads()
    token = _given.set(threads)
    if torch_keeps_one:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if torch_keeps_one:
            torch.set_num_threads(threads)
        _given.reset(token)


@contextmanager
def all_threads() -> Iterator[None]:
    """Let torch use all threads for a while: around refits and other large products."""
    most, now = _given.get(), torch.get_num_threads()
    if most is None or most == now:
        yield
        return
    torch.set_num_threads(most)
    try:
        yield
    finally:
        torch.set_num_threads(now)


def kernel_threads() -> int:
    """How many threads compiled kernels use: as many as torch was given."""
    return _given.get() or torch.get_num_threads()
