"""How many threads torch and the compiled kernels have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

import torch

_given: ContextVar[int | None] = ContextVar("threads", default=None)  # to the run, while there is one
_lock = Lock()
_before, _runs = (
    0,
    0,
)  # torch's threads before the first of the runs that go on in this process, and their number


@contextmanager
def threads_for_kernels(*, torch_keeps_one: bool) -> Iterator[None]:
    """Remember how many threads torch has, for the kernels; torch itself may keep a single one meanwhile.

    Two pools of threads that wait for each other cost more than torch's small calls gain. Runs in several
    threads of the process share the number: one that starts while another keeps torch to one thread has what
    that one had, and the last to end leaves it.
    """
    global _before, _runs
    with _lock:
        threads = _before if _runs else torch.get_num_threads()
        if torch_keeps_one:
            _before, _runs = threads, _runs + 1
    token = _given.set(threads)
    if torch_keeps_one:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if torch_keeps_one:
            torch.set_num_threads(threads)
            with _lock:
                _runs -= 1
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


class Pace:
    """Finds out, again and again, whether one thread is faster than all of them, and keeps to the faster.

    On a busy machine threads wait for one that is not running, for longer than a kernel takes. Results do not
    depend on the number: every row of a kernel is one sequential loop.
    """

    FIRST, TRIED, KEPT = 64, 16, 1024  # calls before the first trial, in a trial of each, and between trials

    def __init__(self) -> None:
        self._calls = -self.FIRST  # in these kernels are loaded
        self._one = self._all = 0.0  # seconds that each took in the last trial
        self._alone = False  # whether one thread was faster

    def pick(self, most: int) -> int:
        """How many threads the next call has, of at most so many."""
        phase = self._calls % self.KEPT if self._calls >= 0 else self.KEPT
        if phase == 0:
            self._one = self._all = 0.0
        alone = self._alone if phase >= 2 * self.TRIED else phase < self.TRIED
        return 1 if alone else most

    def took(self, seconds: float) -> None:
        """Learn what the call took that `pick` was asked about."""
        phase = self._calls % self.KEPT if self._calls >= 0 else self.KEPT
        if phase < self.TRIED:
            self._one += seconds
        elif phase < 2 * self.TRIED:
            self._all += seconds
            self._alone = self._one < self._all
        self._calls += 1
