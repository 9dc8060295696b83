"""SIGINT and SIGTERM as requests to stop after the current round."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_on_signals(stop: Callable[[], None], *, may_insist: bool) -> Iterator[None]:
    """While inside, the signals call `stop` and nothing else; one that was held back calls it on entry.

    Args:
        stop: called once; must return, or raise, at once.
        may_insist: whether a second signal interrupts at once. A worker's process gets the terminal's signal
            as well as the one that its parent passes on, so there it must not.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may have handlers
        return
    asked = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if not asked:
            asked = True
            stop()
        elif may_insist:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        with let_in():
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def hold_back_from_children() -> Iterator[None]:
    """Processes started inside get the signals when they let them in, and not before.

    One that is still importing would die of them, and joblib kills all its workers when it loses one.
    """
    if sys.platform != "win32":
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()  # joblib would start it inside, and that undoes the blocking
    with _delivery(False):
        yield


def let_in() -> AbstractContextManager[None]:
    """Get the signals inside, also one that was held back before."""
    return _delivery(True)


@contextmanager
def _delivery(wanted: bool) -> Iterator[None]:
    """Whether the signals reach this thread; what it starts, processes and threads, inherits that."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK if wanted else signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def pass_on_to_children() -> None:
    """Tell all processes that this one has started, and theirs, to stop."""
    import psutil

    for child in psutil.Process(os.getpid()).children(recursive=True):
        try:
            child.terminate()
        except psutil.NoSuchProcess:
            continue
