"""Calls side by side: in processes and on Ray, and what a call that kills its process costs."""

import os
import signal
from functools import partial

import pytest

from conbandit_torch.running.workers import Crashed, results_of


def square(number):
    return number * number


def square_or_die(number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def square_that_leaves_a_file(folder, number):
    (folder / str(number)).touch()
    return number * number


def fail(number):
    raise LookupError(f"no {number}")


WAYS = [(1, "local"), (2, "local"), (2, "ray")]


@pytest.fixture(scope="module", autouse=True)
def stop_ray():
    yield
    import ray

    ray.shutdown()


@pytest.mark.parametrize(("jobs", "backend"), WAYS)
def test_every_item_comes_back_once_with_its_result(jobs, backend):
    assert sorted(results_of(square, range(7), jobs, backend)) == [(n, n * n) for n in range(7)]


@pytest.mark.parametrize(("jobs", "backend"), WAYS[1:])
def test_a_call_that_kills_its_process_costs_no_other_call(jobs, backend):
    results = dict(results_of(square_or_die, range(7), jobs, backend))
    assert isinstance(results.pop(3), Crashed)
    assert results == {n: n * n for n in range(7) if n != 3}


@pytest.mark.parametrize(("jobs", "backend"), WAYS)
def test_items_are_taken_only_when_there_is_room(tmp_path, jobs, backend):
    unfinished = []  # of the items that were taken before, whenever another is taken

    def items():
        for n in range(8):
            unfinished.append(n - len(list(tmp_path.iterdir())))
            yield n

    function = partial(square_that_leaves_a_file, tmp_path)
    assert len(list(results_of(function, items(), jobs, backend))) == len(unfinished) == 8
    # Those that run, and as many that wait for them: joblib takes an item for every process at a time.
    assert max(unfinished) < (2 * jobs if backend == "local" else jobs)


@pytest.mark.parametrize(("jobs", "backend"), WAYS)
def test_the_functions_own_error_is_raised(jobs, backend):
    with pytest.raises(LookupError, match="no 0"):
        list(results_of(fail, [0], jobs, backend))
