"""Shared by all tests: a small world and the three tolerances."""

import os
import tempfile
import time
from pathlib import Path

# The tests' tensors are small, and the tests run side by side: one thread each, in child processes too.
os.environ["OMP_NUM_THREADS"] = "1"
# What tests prepare of real data does not go into the user's own cache.
os.environ["CONBANDIT_CACHE"] = str(Path(tempfile.gettempdir()) / "conbandit_torch-tests")

import numpy as np
import pytest
import torch

from conbandit_torch import Synthetic
from conbandit_torch.kernels import using

GOLDEN = Path(__file__).parent / "golden"
REPOSITORY = Path(__file__).parent.parent

EXACT = {"rtol": 0, "atol": 0}  # the same arithmetic in the same order
ALGEBRA = {"rtol": 1e-9, "atol": 1e-9}  # the same numbers by another route, in float64
# Statistical tolerances depend on the sample: each is explained where it is used.


def small_world(**changes):
    sizes = {"users": 7, "arms": 60, "terms": 12, "dim": 6, "pool": 9, "max_terms": 3, "seed": 3}
    return Synthetic(**(sizes | changes))


def weights(catalogue):
    """W [N, K], dense."""
    W = np.zeros((catalogue.num_arms, catalogue.num_terms))
    edges = catalogue.terms_of(torch.arange(catalogue.num_arms))
    W[edges.owner, edges.target] = edges.weight
    return W


def wait_for(condition, seconds=180):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def pytest_addoption(parser):
    choices = ("auto", "compiled", "torch")
    parser.addoption(
        "--kernels", choices=choices, default="auto", help="that tests run on, if they do not say"
    )


@pytest.fixture(autouse=True, scope="session")
def kernels_of_the_session(request):
    with using(request.config.getoption("--kernels")):
        yield


@pytest.fixture
def world():
    return small_world()


torch.set_num_threads(1)
