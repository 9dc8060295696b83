"""Batched ridge regression against NumPy, one model at a time."""

import numpy as np
import pytest
import torch

from conbandit_torch import RidgeRegression
from conbandit_torch.core.algebra import weighted_norm
from tests.conftest import ALGEBRA, EXACT

U, D = 5, 4


def observations(count, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        who = rng.permutation(U)[: rng.integers(1, U + 1)]
        yield who, rng.normal(size=(len(who), D)), rng.normal(size=len(who))


def make(**kwargs):
    return RidgeRegression(U, D, **({"ridge": 0.7, "weight": 0.3, "like": torch.empty(0).double()} | kwargs))


def fed(model, count):
    """The model after some observations, and the same in NumPy."""
    M, b = np.tile(0.7 * np.eye(D), (U, 1, 1)), np.zeros((U, D))
    for who, x, y in observations(count):
        model.update(torch.from_numpy(who), torch.from_numpy(x), torch.from_numpy(y))
        for user, xi, yi in zip(who, x, y, strict=True):
            M[user] += 0.3 * np.outer(xi, xi)
            b[user] += 0.3 * yi * xi
    return M, b


@pytest.mark.parametrize("refresh_every", [1, 7, 10_000])
def test_coefficients_norms_and_determinants_equal_numpy(refresh_every):
    model = make(refresh_every=refresh_every)
    M, b = fed(model, 60)
    centre = np.random.default_rng(1).normal(size=(U, D))
    vectors = np.random.default_rng(2).normal(size=(U, 3, D))
    who = slice(0, U)
    for user in range(U):
        theta = np.linalg.solve(M[user], b[user] + 0.7 * centre[user])
        np.testing.assert_allclose(model.coefficients(who, torch.from_numpy(centre))[user], theta, rtol=1e-9)
        np.testing.assert_allclose(model.coefficients()[user], np.linalg.solve(M[user], b[user]), rtol=1e-9)
        solved = model.solve(who, torch.from_numpy(vectors))
        np.testing.assert_allclose(solved[user], vectors[user] @ np.linalg.inv(M[user]), rtol=1e-9)
        norms = [np.sqrt(v @ np.linalg.inv(M[user]) @ v) for v in vectors[user]]
        np.testing.assert_allclose(weighted_norm(torch.from_numpy(vectors), solved)[user], norms, rtol=1e-9)
        np.testing.assert_allclose(model.norm(who, torch.from_numpy(vectors))[user], norms, rtol=1e-9)
        log_det = np.linalg.slogdet(M[user])[1] - D * np.log(0.7)
        np.testing.assert_allclose(model.log_det[user], log_det, rtol=1e-9)


def square(model):
    """[U, D, D] the covariance of `deviation`, which shows the columns of a root when it is given unit vectors."""
    units = torch.eye(D).double()
    columns = [model.deviation(slice(0, U), unit.expand(U, D)) for unit in units]
    root = torch.stack(columns, dim=2)
    return root @ root.mT


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("refresh_every", [1, 7, 10_000])
def test_deviations_have_the_covariance_of_the_inverse(root, refresh_every):
    model = make(refresh_every=refresh_every, root=root)
    M, _ = fed(model, 60)
    x = np.random.default_rng(3).normal(size=(U, D))
    model.update(slice(0, U), torch.from_numpy(x), torch.zeros(U).double())
    M += 0.3 * x[:, :, None] * x[:, None, :]
    np.testing.assert_allclose(square(model), np.linalg.inv(M), rtol=1e-9, atol=1e-12)
    table = torch.ones(1, D).double()
    model.rebuild(torch.tensor([0, 0]), table, torch.tensor([0, 0]), torch.zeros(2).double())
    M[0] += 2 * 0.3
    model.reset(torch.tensor([1, 3]))
    M[[1, 3]] = 0.7 * np.eye(D)
    np.testing.assert_allclose(square(model), np.linalg.inv(M), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("refresh_every", [100, 10_000])
def test_a_root_stays_exact_in_float32_where_the_same_arms_are_shown_for_ever(refresh_every):
    """With a refresh it is M^-1 that is believed there; the error is that of 2,000 steps of eps / 2, or less."""
    model = make(ridge=0.1, weight=1.0, refresh_every=refresh_every, root=True, like=torch.empty(0))
    arms = torch.randn(3, D, generator=torch.manual_seed(0))
    M = 0.1 * torch.eye(D).double()
    for t in range(2000):
        model.update(slice(0, U), arms[t % 3].expand(U, D), torch.zeros(U))
        M += arms[t % 3].double().outer(arms[t % 3].double())
    exact = M.inverse()
    torch.testing.assert_close(
        square(model)[0].double() / exact.max(), exact / exact.max(), rtol=0, atol=2000 * 6e-8
    )


def test_roots_of_a_model_are_the_same_whichever_of_matrix_and_inverse_is_believed():
    """In float32 M^-1 is believed where the same arms were shown for ever, in float64 M; draws must agree."""
    like = {"like": torch.empty(0)}, {"like": torch.empty(0).double()}
    single, double = (make(ridge=0.1, refresh_every=500, root=True, **kind) for kind in like)
    arms = torch.randn(3, D, generator=torch.manual_seed(0))
    for t in range(500):
        for model in (single, double):
            if t == 499:
                model.root += 1  # only a refresh can take this away
            model.update(
                slice(0, U), arms[t % 3].expand(U, D).to(model.moment), torch.zeros(U).to(model.moment)
            )
    torch.testing.assert_close(single.root.double(), double.root, rtol=0, atol=1e-3)
    torch.testing.assert_close(double.root @ double.root.mT, double.gram.inverse(), **ALGEBRA)


@pytest.mark.parametrize("root", [False, True])
def test_update_leaves_other_users_untouched(root):
    model = make(root=root)
    model.update(torch.tensor([1, 3]), torch.ones(2, D).double(), torch.ones(2).double())
    fresh = make(root=root)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value[[0, 2, 4]], fresh.state_dict()[name][[0, 2, 4]], **EXACT)
    assert model.count.tolist() == [0, 1, 0, 1, 0]


@pytest.mark.parametrize("root", [False, True])
def test_a_slice_and_the_same_ids_give_the_same_state(root):
    by_slice, by_ids = make(refresh_every=3, root=root), make(refresh_every=3, root=root)
    for _, x, y in observations(20):
        count = len(y)
        x, y = torch.from_numpy(x), torch.from_numpy(y)
        by_slice.update(slice(0, count), x, y)
        by_ids.update(torch.arange(count), x, y)
    for name, value in by_slice.state_dict().items():
        torch.testing.assert_close(value, by_ids.state_dict()[name], **ALGEBRA)


def test_refresh_depends_on_a_models_own_count_only():
    """Feeding users together or apart, in another order, refreshes them after the same observations."""
    refreshed = []

    class Watched(RidgeRegression):
        def refresh(self, who):
            refreshed.extend((int(u), int(self.count[u])) for u in who)
            super().refresh(who)

    def watched():
        refreshed.clear()
        return Watched(U, D, refresh_every=4, like=torch.empty(0).double())

    together = watched()
    for _, _, _ in observations(12):
        together.update(slice(0, U), torch.ones(U, D).double(), torch.ones(U).double())
    batched = set(refreshed)
    apart = watched()
    for user in reversed(range(U)):
        for _ in range(12):
            apart.update(torch.tensor([user]), torch.ones(1, D).double(), torch.ones(1).double())
    assert batched == set(refreshed) == {(user, count) for user in range(U) for count in (4, 8, 12)}


def test_an_idle_user_close_to_its_refresh_costs_others_nothing(monkeypatch):
    model = make(refresh_every=5)
    model.count[0] = 4
    looked = []
    original = torch.Tensor.__mod__
    monkeypatch.setattr(
        torch.Tensor, "__mod__", lambda self, n: (looked.append(len(self)), original(self, n))[1]
    )
    for _ in range(3):
        model.update(torch.tensor([2]), torch.ones(1, D).double(), torch.ones(1).double())
    assert looked == [1, 1, 1]


def test_a_rebuilt_model_is_refreshed_when_due():
    model = make(refresh_every=5)
    everyone, x, y = slice(0, U), torch.ones(U, D).double(), torch.ones(U).double()
    model.update(everyone, x, y)
    ids = torch.arange(U).repeat(3)
    model.rebuild(ids, x, ids, torch.ones(len(ids)).double())
    model.inverse += 1.0  # an error that only a refresh can take away
    model.update(everyone, x, y)
    assert model.count.tolist() == [5] * U
    torch.testing.assert_close(model.inverse, torch.linalg.inv(model.gram), **ALGEBRA)


@pytest.mark.parametrize("root", [False, True])
def test_rebuilding_from_a_ragged_history_equals_one_update_after_another(root):
    ids, rows = torch.tensor([3, 1, 3, 3, 0, 1, 3]), torch.tensor([2, 0, 1, 2, 2, 1, 0])
    generator = torch.Generator().manual_seed(0)
    table, targets = (
        torch.randn(3, D, generator=generator).double(),
        torch.randn(7, generator=generator).double(),
    )
    at_once, in_turn = make(root=root), make(root=root)
    at_once.rebuild(ids, table, rows, targets)
    for i in range(7):
        in_turn.update(ids[[i]], table[rows[[i]]], targets[[i]])
    torch.testing.assert_close(square(at_once), square(in_turn), **ALGEBRA)  # the roots themselves differ
    for name, value in in_turn.state_dict().items():
        if name != "root":
            torch.testing.assert_close(at_once.state_dict()[name], value, **ALGEBRA)
    at_once.reset(torch.tensor([1, 3]))
    fresh = make(root=root).state_dict()
    for name, value in at_once.state_dict().items():
        torch.testing.assert_close(value[[1, 2, 3, 4]], fresh[name][[1, 2, 3, 4]], **EXACT)


def test_a_loaded_state_is_refreshed_when_due():
    source = make(refresh_every=5)
    for _ in range(4):
        source.update(slice(0, U), torch.ones(U, D).double(), torch.ones(U).double())
    target = make(refresh_every=5)
    target.update(slice(0, U), torch.ones(U, D).double(), torch.ones(U).double())
    target.load_state_dict(source.state_dict())
    target.inverse += 1.0  # an error that only a refresh can take away
    target.update(slice(0, U), torch.ones(U, D).double(), torch.ones(U).double())
    torch.testing.assert_close(target.inverse, torch.linalg.inv(target.gram), **ALGEBRA)


def test_refresh_keeps_float32_from_drifting():
    """After 4,000 updates the float32 inverse is still that of its own M; without refresh it is worse."""
    errors = {}
    for refresh_every in (250, 10**9):
        generator = torch.Generator().manual_seed(0)
        model = RidgeRegression(3, 10, ridge=0.5, refresh_every=refresh_every)
        for _ in range(4_000):
            x = torch.randn(3, 10, generator=generator)
            model.update(slice(0, 3), x, x.sum(1))
        exact = torch.linalg.inv(model.gram.double())
        errors[refresh_every] = float((model.inverse - exact).norm() / exact.norm())
    assert errors[250] < 1e-5
    assert errors[250] < errors[10**9]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ridge": 0.0}, "ridge must be above 0 and finite, got 0.0"),
        ({"ridge": float("nan")}, "ridge must be above 0"),
        ({"ridge": 1e-300, "like": torch.empty(0)}, "ridge is 1e-300: that, or its inverse, is too large"),
        ({"weight": -1.0}, "weight must be above 0 and finite, got -1.0"),
        ({"refresh_every": 0}, "refresh_every must be at least 1, got 0"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)
