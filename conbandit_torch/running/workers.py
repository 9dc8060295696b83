"""Calls a function for many items, several at a time: in this process, in others, or on a Ray cluster."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from threading import Event
from typing import Any, Literal, TypeVar

from conbandit_torch.running.signals import hold_back_from_children

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

Backend = Literal["local", "ray"]


class Crashed:
    """In place of a result: the process that the call ran in died."""

    reason = "its process died: killed, or out of memory?"


def results_of(
    function: Callable[[ItemT], ResultT],
    items: Iterable[ItemT],
    jobs: int,
    backend: Backend = "local",
    stopping: Event | None = None,
) -> Iterator[tuple[ItemT, ResultT | Crashed]]:
    """Every item with its result, as soon as it is known; `Crashed` in place of a result that never came.

    Items are taken one by one, when there is room for another, so that an item may depend on results
    of earlier ones. A call that takes its process down costs no other call.

    In another process SIGINT and SIGTERM are held back until the function lets them in (see `signals`).

    Args:
        function: what to call; sent to other processes by pickle, as the items are.
        items: what to call it with.
        jobs: how many calls at a time; 1 on the local backend stays in this process.
        backend: "local", or "ray" for a Ray cluster: the one at RAY_ADDRESS, or one that is started here.
        stopping: once set, no further item is taken, and what a dying process takes with it is lost.
    """
    stopping = Event() if stopping is None else stopping
    items = _until(stopping, items)
    if backend == "ray":
        return _on_ray(function, items, jobs, stopping)
    if jobs == 1:
        return ((item, function(item)) for item in items)
    return _in_processes(function, items, jobs, stopping)


def _until(stopping: Event, items: Iterable[ItemT]) -> Iterator[ItemT]:
    for item in items:
        if stopping.is_set():
            return
        yield item


def _in_processes(
    function: Callable[[ItemT], ResultT], items: Iterator[ItemT], jobs: int, stopping: Event
) -> Iterator[tuple[ItemT, ResultT | Crashed]]:
    from joblib import Parallel, delayed
    from joblib.externals.loky import get_reusable_executor
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    def results(todo: Iterable[tuple[int, ItemT]], at_a_time: int) -> Iterator[tuple[int, ResultT]]:
        calls = (delayed(_in_worker)(os.getpid(), function, number, item) for number, item in todo)
        options = {"return_as": "generator_unordered", "batch_size": 1, "pre_dispatch": at_a_time}
        with hold_back_from_children():
            pairs: Iterator[tuple[int, ResultT]] = Parallel(n_jobs=at_a_time, **options)(calls)
        return pairs

    running: dict[int, ItemT] = {}
    count = 0

    def taken() -> Iterator[tuple[int, ItemT]]:
        nonlocal count
        for item in items:
            count += 1
            running[count] = item
            yield count, item

    while True:
        try:
            for number, result in results(taken(), jobs):
                yield running.pop(number), result
            if stopping.is_set():  # an idle worker still holds the signal, and would give it to its next call
                get_reusable_executor().shutdown(kill_workers=True)
            return
        except TerminatedWorkerError:
            pass
        # One process died and took the pool with it. Which call did it shows when each runs alone.
        for number, item in dict(running).items():
            try:
                if stopping.is_set():
                    raise TerminatedWorkerError
                _, result = next(results([(number, item)], 2))
            except TerminatedWorkerError:
                yield running.pop(number), Crashed()
            else:
                yield running.pop(number), result


def _on_ray(
    function: Callable[[ItemT], ResultT], items: Iterable[ItemT], jobs: int, stopping: Event
) -> Iterator[tuple[ItemT, ResultT | Crashed]]:
    import ray

    if not ray.is_initialized():
        ray.init(log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
    # A dead worker's call is not repeated: it would most likely die again.
    call: Any = ray.remote(max_retries=0)(_numbered)
    shared = ray.put(function)
    running: dict[Any, ItemT] = {}

    def finished(enough: int) -> Iterator[tuple[ItemT, ResultT | Crashed]]:
        while len(running) > enough:
            done, _ = ray.wait(list(running), timeout=1.0)
            if stopping.is_set():  # the cluster ends what this process has started when it ends
                yield from ((item, Crashed()) for item in running.values())
                running.clear()
                return
            if not done:
                continue
            (reference,) = done
            item = running.pop(reference)
            try:
                yield item, ray.get(reference)[1]
            except ray.exceptions.RayTaskError:
                raise  # the function's own error
            except ray.exceptions.RayError:
                yield item, Crashed()

    for item in items:
        running[call.remote(shared, 0, item)] = item
        yield from finished(jobs - 1)
    yield from finished(0)


def _in_worker(
    parent: int, function: Callable[[ItemT], ResultT], number: int, item: ItemT
) -> tuple[int, ResultT]:
    result = _numbered(function, number, item)
    if os.getppid() != parent:  # it was killed: nobody waits for this, or sends any more
        os._exit(0)
    return result


def _numbered(function: Callable[[ItemT], ResultT], number: int, item: ItemT) -> tuple[int, ResultT]:
    return number, function(item)
