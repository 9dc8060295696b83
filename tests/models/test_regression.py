"""Batched ridge regression against NumPy, one model at a time."""

import numpy as np
import pytest
import torch

from conbandit_torch import ConUCB, RidgeRegression
from conbandit_torch.core.algebra import weighted_norm
from conbandit_torch.kernels import using
from conbandit_torch.models.inverses import NumericsError
from tests.conftest import ALGEBRA, EXACT, small_world

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
    model.reset_rows(torch.tensor([1, 3]))
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
    at_once.reset_rows(torch.tensor([1, 3]))
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


# Several observations of one model at once.


def repeated(repeats, seed=0):
    """Ids of which model 2 stands there `repeats` times and others less often, shuffled; features, targets."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.tensor([2] * repeats + [0] * (repeats // 2) + [4])
    ids = ids[torch.randperm(len(ids), generator=generator)]
    x = torch.randn(len(ids), D, generator=generator).double()
    return ids, x, torch.randn(len(ids), generator=generator).double()


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("repeats", [2, D, D + 1, 5 * D])
def test_an_id_that_repeats_is_as_many_updates_one_after_another(repeats, root):
    ids, x, y = repeated(repeats)
    at_once, in_turn = make(root=root), make(root=root)
    for model in (at_once, in_turn):
        fed(model, 10)
    at_once.update(ids, x, y)
    for i in range(len(ids)):
        in_turn.update(ids[[i]], x[[i]], y[[i]])
    torch.testing.assert_close(square(at_once), square(in_turn), **ALGEBRA)  # the roots themselves differ
    for name, value in in_turn.state_dict().items():
        if name != "root":
            torch.testing.assert_close(at_once.state_dict()[name], value, **ALGEBRA)


@pytest.mark.parametrize("repeats", [1, 3, 5 * D])
def test_what_a_model_becomes_does_not_depend_on_who_else_repeats(repeats):
    """Bit for bit, as the class promises: an exact inverse and a rank-one step differ by rounding."""
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(2, D, generator=generator), torch.randn(2, generator=generator)
    alone, in_company = make(like=torch.empty(0)), make(like=torch.empty(0))
    alone.update(torch.tensor([1, 1]), x, y)
    ids, others, targets = repeated(repeats)
    ids, others = torch.cat((ids, torch.tensor([1, 1]))), torch.cat((others.float(), x))
    in_company.update(ids, others, torch.cat((targets.float(), y)))
    for name, value in alone.state_dict().items():
        torch.testing.assert_close(in_company.state_dict()[name][1], value[1], **EXACT)


@pytest.mark.parametrize("repeats", [1, D + 3])
def test_a_weight_per_observation_equals_numpys_weighted_ridge(repeats):
    ids, x, y = repeated(repeats)
    weight = torch.rand(len(ids), generator=torch.Generator().manual_seed(3)).double() * 5
    weight[0] = 0.0
    model = make()
    model.update(ids, x, y, weight)
    for user in range(U):
        own = (ids == user).numpy()
        X, w = x.numpy()[own], 0.3 * weight.numpy()[own]  # beside the regression's own weight
        M, b = 0.7 * np.eye(D) + X.T @ (w[:, None] * X), X.T @ (w * y.numpy()[own])
        np.testing.assert_allclose(model.gram[user], M, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(model.moment[user], b, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(model.inverse[user], np.linalg.inv(M), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(model.coefficients()[user], np.linalg.solve(M, b), rtol=1e-9, atol=1e-12)
        assert int(model.count[user]) == own.sum()


def test_a_weight_of_1_is_no_weight():
    ids, x, y = repeated(3)
    plain, weighted = make(), make()
    plain.update(ids, x, y)
    weighted.update(ids, x, y, torch.ones(len(ids)).double())
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(weighted.state_dict()[name], value, **EXACT)


WRONG = [
    ((2, D + 1), (2,), None, r"features must be \[2, 4\], got \[2, 5\]"),
    ((1, D), (2,), None, r"features must be \[2, 4\], got \[1, 4\]"),
    ((D,), (2,), None, r"features must be \[2, 4\], got \[4\]"),
    ((2, D), (1,), None, r"targets must be \[2\], got \[1\]"),
    ((2, D), (2, 1), None, r"targets must be \[2\], got \[2, 1\]"),
    ((2, D), (2,), [1.0], r"weight must be \[2\], got \[1\]"),
    ((2, D), (2,), 1.0, r"weight must be \[2\], got \[\]"),
    ((2, D), (2,), [1.0, -0.1], "weight must hold .*numbers of at least 0"),
    ((2, D), (2,), [float("nan"), 1.0], "weight must hold .*numbers of at least 0"),
    ((2, D), (2,), [1.0, float("inf")], "weight must hold .*numbers of at least 0"),
]


@pytest.mark.parametrize("ids", [torch.tensor([3, 1]), torch.tensor([1, 1]), slice(1, 3)], ids=str)
@pytest.mark.parametrize(("features", "targets", "weight", "message"), WRONG)
def test_observations_that_do_not_fit_are_refused_and_nothing_is_learned(
    features, targets, weight, message, ids
):
    model, fresh = make(), make()
    given = None if weight is None else torch.tensor(weight).double()
    with pytest.raises(ValueError, match=message):
        model.update(ids, torch.ones(features).double(), torch.ones(targets).double(), given)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, fresh.state_dict()[name], **EXACT)


@pytest.mark.parametrize("repeats", [1, D, D + 1, 3 * D])
def test_observations_too_large_for_the_precision_are_refused_and_leave_the_model_usable(repeats):
    model = make(like=torch.empty(0))
    ids, x = torch.full((repeats,), 2), torch.full((repeats, D), 1e25)
    with pytest.raises(NumericsError, match="model 2"):
        model.update(ids, x, torch.ones(repeats))
    for name, value in model.state_dict().items():
        assert value.isfinite().all(), name
    model.update(torch.tensor([2]), torch.ones(1, D), torch.ones(1))


# The prior.


@pytest.mark.parametrize("root", [False, True])
def test_another_prior_is_as_if_built_with_it(root):
    late, early = make(ridge=2.0, weight=1.0, root=root), make(root=root)
    late.set_prior(0.7, 0.3)
    for model in (late, early):
        fed(model, 20)
        model.reset_rows(torch.tensor([1]))
        model.grow_rows(U + 2)
    assert (late.ridge, late.weight) == (0.7, 0.3)
    for name, value in early.state_dict().items():
        torch.testing.assert_close(late.state_dict()[name], value, **EXACT)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0,), "ridge must be above 0 and finite, got 0.0"),
        ((1.0, float("inf")), "weight must be above 0 and finite, got inf"),
        ((1.0, 0.0), "weight must be above 0 and finite, got 0.0"),
    ],
)
def test_a_bad_prior_is_refused_and_the_old_one_stays(arguments, message):
    model = make()
    with pytest.raises(ValueError, match=message):
        model.set_prior(*arguments)
    assert (model.ridge, model.weight) == (0.7, 0.3)


def test_a_prior_comes_before_the_first_observation():
    model = make()
    fed(model, 1)
    with pytest.raises(ValueError, match="set_prior comes before the first observation"):
        model.set_prior(1.0)


def test_the_bound_on_the_largest_eigenvalue_of_the_inverse_holds():
    model = make()
    for rounds in (0, 1, 40):
        fed(model, rounds)
        largest = torch.linalg.eigvalsh(model.inverse)[:, -1]
        top = model.top
        assert (top >= largest * (1 - 1e-12)).all() and (top <= largest * D**0.5 * (1 + 1e-12)).all()
    assert RidgeRegression(2, 0).top.tolist() == [0, 0]


# Sums of observations: the arms' small regressions of hidden features.

N, L = 7, 3


def of_arms(dim=L):
    like = torch.empty(0).double()
    return RidgeRegression(
        N, dim, 0.4, like=like, per="arm", one="hidden features of arm", ridge_name="hidden_ridge"
    )


def told(model, rounds=5, seed=0):
    """The model after some rounds, in which arms repeat; C and d in NumPy; the arms that were told of."""
    rng = np.random.default_rng(seed)
    C, d = np.tile(0.4 * np.eye(L), (N, 1, 1)), np.zeros((N, L))
    for _ in range(rounds):
        arms, w, y = rng.integers(0, N - 2, size=9), rng.normal(size=(9, L)), rng.normal(size=9)
        gram, moment = w[:, :, None] * w[:, None], y[:, None] * w
        model.add(*(torch.from_numpy(values) for values in (arms, gram, moment)))
        for arm, wi, yi in zip(arms, w, y, strict=True):
            C[arm] += np.outer(wi, wi)
            d[arm] += yi * wi
    return C, d, torch.arange(N - 2)


@pytest.mark.parametrize("block", [2**20, 2 * L * L])
def test_solutions_and_inverses_of_sums_equal_numpy(block, monkeypatch):
    monkeypatch.setattr("conbandit_torch.core.blocks.BLOCK_ELEMENTS", block)
    model = of_arms()
    C, d, arms = told(model)
    model.refresh(arms)
    for arm in arms.tolist():
        np.testing.assert_allclose(model.solution[arm], np.linalg.solve(C[arm], d[arm]), rtol=1e-9)
        np.testing.assert_allclose(model.inverse[arm], np.linalg.inv(C[arm]), rtol=1e-9)
        log_det = np.linalg.slogdet(C[arm])[1] - L * np.log(0.4)
        np.testing.assert_allclose(model.log_det[arm], log_det, rtol=1e-9)
    assert int(model.count.sum()) == 5 * 9
    torch.testing.assert_close(model.inverse[N - 1], torch.eye(L).double() / 0.4)


def test_sums_are_weighted_like_observations():
    by_sums, by_steps = make(), make()
    ids, x, y = repeated(3)
    by_sums.add(ids, x[:, :, None] * x[:, None], y[:, None] * x)
    by_sums.refresh(ids.unique())
    by_steps.update(ids, x, y)
    for name, value in by_steps.state_dict().items():
        torch.testing.assert_close(by_sums.state_dict()[name], value, **ALGEBRA)


def test_only_what_is_reset_is_forgotten():
    model, fresh = of_arms(), of_arms()
    arms = told(model)[2]
    model.refresh(arms)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.reset_rows(torch.tensor([0, 3]))
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value[[0, 3]], getattr(fresh, name)[[0, 3]], **EXACT)
        torch.testing.assert_close(value[[1, 2, 4]], before[name][[1, 2, 4]], **EXACT)
        assert not torch.equal(before[name][[0, 3]], value[[0, 3]])


@pytest.mark.parametrize("broken", [-1.0, float("nan")])
def test_a_matrix_that_is_not_positive_definite_is_an_error_that_names_the_arm(broken):
    model = of_arms()
    model.gram[5, 0, 0] = broken
    message = "the matrix M of hidden features of arm 5 is not .* with hidden_ridge 0.4: raise it"
    with pytest.raises(NumericsError, match=message):
        model.refresh(torch.tensor([2, 5]))


def test_there_may_be_no_features():
    model = of_arms(dim=0)
    model.add(torch.tensor([1, 1]), torch.zeros(2, 0, 0).double(), torch.zeros(2, 0).double())
    model.refresh(torch.tensor([1]))
    model.update(torch.tensor([1, 1]), torch.zeros(2, 0).double(), torch.ones(2).double())
    assert model.solution.shape == (N, 0) and model.count.tolist() == [0, 4, 0, 0, 0, 0, 0]


class TwoProcesses:
    """As two processes, of which the other is at the same place with a model of its own."""

    size = 2

    def __init__(self, other, ids):
        prior = 0.4 * torch.eye(L).double()
        self.theirs = [other.gram[ids] - prior, other.moment[ids], other.count[ids]]

    def sum(self, values):
        return values + self.theirs.pop(0)


def test_pooled_models_are_those_that_saw_everything():
    mine, theirs, whole = of_arms(), of_arms(), of_arms()
    told(mine, seed=0), told(theirs, seed=1)
    told(whole, seed=0), told(whole, seed=1)
    arms = torch.arange(N - 2)
    mine.pool(arms, TwoProcesses(theirs, arms))
    for model in (mine, whole):
        model.refresh(arms)
    for name, value in whole.state_dict().items():
        torch.testing.assert_close(mine.state_dict()[name], value, **ALGEBRA)


@pytest.mark.parametrize("wrong", [-1, 3, 1000])
def test_an_id_of_no_model_is_refused_and_teaches_nobody(wrong):
    """Compiled loops would read and write whatever memory lies there."""
    model = RidgeRegression(3, 2, root=True)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    ids, ones = torch.tensor([0, wrong]), torch.ones(2, 2)
    for call in (
        lambda: model.update(ids, ones, torch.ones(2)),
        lambda: model.coefficients(ids, ones),
        lambda: model.coefficients(ids),
        lambda: model.deviation(ids, ones),
    ):
        with pytest.raises(ValueError, match=f"ids must be models from 0 to 2, got {wrong}"):
            call()
    with pytest.raises(ValueError, match="ids must be models from 0 to 2, got 3"):
        model.coefficients(slice(0, 4), torch.ones(4, 2))
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_a_policy_for_fewer_users_than_the_world_has_decides_nothing():
    world = small_world()
    policy = ConUCB(world.catalogue, world.num_users - 1)
    for call in (policy.choose, policy.predict):
        with pytest.raises(ValueError, match="ids must be models from 0 to"):
            call(world.observe())


def test_a_refused_repeat_leaves_nothing_learned():
    model = RidgeRegression(3, 2)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    features = torch.tensor([[1.0, 0.0], [1e30, 1e30]])
    with pytest.raises(NumericsError, match="model 1: an observation with features of length"):
        model.update(torch.tensor([1, 1]), features, torch.ones(2))
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name


@pytest.mark.parametrize("kernels", ["auto", "torch"])
def test_a_centre_of_another_length_is_refused(kernels):
    model = RidgeRegression(3, 4)
    with using(kernels), pytest.raises(ValueError, match=r"centre must be \[3, 4\], got \[3, 5\]"):
        model.coefficients(slice(0, 3), torch.zeros(3, 5))
    with using(kernels), pytest.raises(ValueError, match=r"centre must be \[2, 4\], got \[3, 4\]"):
        model.coefficients(torch.tensor([0, 2]), torch.zeros(3, 4))
