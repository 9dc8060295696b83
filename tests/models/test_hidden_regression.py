"""The arms' small regressions against NumPy, one arm at a time."""

import numpy as np
import pytest
import torch

from conbandit_torch.models.hidden_regression import HiddenRegression
from conbandit_torch.models.ridge import NumericsError
from tests.conftest import EXACT

N, L = 7, 3


def make(dim=L):
    return HiddenRegression(N, dim, 0.4, torch.empty(0).double())


def told(model, rounds=5):
    """The model after some rounds, in which arms repeat; C and d in NumPy; the arms that were told of."""
    rng = np.random.default_rng(0)
    C, d = np.tile(0.4 * np.eye(L), (N, 1, 1)), np.zeros((N, L))
    for _ in range(rounds):
        arms, w, y = rng.integers(0, N - 2, size=9), rng.normal(size=(9, L)), rng.normal(size=9)
        model.add(torch.from_numpy(arms), model.products(torch.from_numpy(w), torch.from_numpy(y)))
        for arm, wi, yi in zip(arms, w, y, strict=True):
            C[arm] += np.outer(wi, wi)
            d[arm] += yi * wi
    return C, d, torch.arange(N - 2)


@pytest.mark.parametrize("block", [2**20, 2 * L * (L + 1)])
def test_solutions_and_inverses_equal_numpy(block, monkeypatch):
    monkeypatch.setattr("conbandit_torch.core.blocks.BLOCK_ELEMENTS", block)
    model = make()
    C, d, arms = told(model)
    v = model.solve(arms)
    for arm in arms.tolist():
        np.testing.assert_allclose(v[arm], np.linalg.solve(C[arm], d[arm]), rtol=1e-9)
        np.testing.assert_allclose(model.inverse[arm], np.linalg.inv(C[arm]), rtol=1e-9)
    torch.testing.assert_close(model.inverse[N - 1], torch.eye(L).double() / 0.4)


def test_only_what_is_reset_is_forgotten():
    model, fresh = make(), make()
    arms = told(model)[2]
    model.solve(arms)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.reset(torch.tensor([0, 3]))
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value[[0, 3]], getattr(fresh, name)[[0, 3]], **EXACT)
        torch.testing.assert_close(value[[1, 2, 4]], before[name][[1, 2, 4]], **EXACT)
        assert not torch.equal(before[name][[0, 3]], value[[0, 3]])


@pytest.mark.parametrize("broken", [-1.0, float("nan")])
def test_a_matrix_that_is_not_positive_definite_is_an_error_that_names_the_arm(broken):
    model = make()
    model.sums[5, 0, 0] = broken
    with pytest.raises(
        NumericsError, match="matrix C of arm 5's hidden features .* hidden_ridge 0.4: raise it"
    ):
        model.solve(torch.tensor([2, 5]))


def test_there_may_be_no_hidden_features():
    model = make(dim=0)
    nothing = torch.zeros(2, 0).double()
    model.add(torch.tensor([1, 1]), model.products(nothing, torch.ones(2).double()))
    assert model.solve(torch.tensor([1])).shape == (1, 0)
