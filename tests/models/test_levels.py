"""The chain of levels against its formulas in NumPy, one user and one vector at a time."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from conbandit_torch import (
    CoFineUCB,
    ConCoFineUCB,
    ConThompson,
    ConUCB,
    EpsilonGreedy,
    Greedy,
    HLinUCB,
    Lemma1,
    Level,
    LinThompson,
    LinUCB,
    RidgeRegression,
    play_round,
)
from conbandit_torch.kernels import reference, using
from conbandit_torch.models import levels as chain
from tests.conftest import ALGEBRA, small_world

U, D, VECTORS = 3, 6, 5
CHAINS = {  # the length of every level's vectors, and whether there is a basis between a level and the one before
    "one": [(D, False)],
    "two": [(D, False), (D, False)],
    "two, with a basis": [(D, False), (4, True)],
    "three": [(D, False), (D, False), (D, False)],
    "three, with a basis at the end": [(D, False), (D, False), (3, True)],
    "three, with a basis in the middle": [(D, False), (4, True), (4, False)],
    "three, with two bases": [(D, False), (4, True), (3, True)],
    "two, with a square basis": [(D, False), (D, True)],
}
FACTORS = (0.4, 0.9, 1.7)


class Known:
    """A level in NumPy: G and b of every user, ridge, weight, factors [U], basis."""

    def __init__(self, level):
        model = level.model
        self.G, self.b = model.gram.numpy(), model.moment.numpy()
        self.ridge, self.weight = model.ridge, model.weight
        by_theory = isinstance(level.factor, Lemma1)
        who = slice(0, U)
        self.factor = level.factor(model, who).numpy() if by_theory else np.full(U, float(level.factor))
        self.P = np.eye(model.dim) if level.basis is None else level.basis.numpy()
        self.top = [  # what `RidgeRegression.top` says: the smaller of two norms
            min(np.linalg.norm(np.linalg.inv(G), np.inf), np.linalg.norm(np.linalg.inv(G))) for G in self.G
        ]


def make(name, factors=FACTORS, root=False):
    """A chain whose models have seen different things, and the same in NumPy."""
    rng = np.random.default_rng(len(name))
    levels, before = [], D
    for number, (dim, has_basis) in enumerate(CHAINS[name]):
        like = torch.empty(0).double()
        model = RidgeRegression(U, dim, 0.5 + number, 0.8 - 0.2 * number, root=root, like=like)
        for _ in range(4 + 3 * number):
            who = torch.from_numpy(rng.permutation(U)[:2])
            model.update(
                who, torch.from_numpy(rng.normal(size=(2, dim))), torch.from_numpy(rng.normal(size=2))
            )
        basis = torch.from_numpy(rng.normal(size=(before, dim))) if has_basis else None
        levels.append(Level(f"level {number}", model, factors[number], basis))
        before = dim
    return levels, [Known(level) for level in levels]


def vectors(seed=0):
    return np.random.default_rng(seed).normal(size=(U, VECTORS, D))


def thetas(known, user, centre):
    """theta_i = G_i^-1 (b_i + ridge_i P_{i+1} theta_{i+1})."""
    found = []
    for level in reversed(known):
        found.insert(0, np.linalg.inv(level.G[user]) @ (level.b[user] + level.ridge * centre))
        centre = level.P @ found[0]
    return found


def reaches(known, user, x):
    """v_0 = x, v_{i+1} = ridge_i P_{i+1}^T G_i^-1 v_i."""
    found = [x]
    for level, inner in pairwise(known):
        found.append(level.ridge * inner.P.T @ np.linalg.inv(level.G[user]) @ found[-1])
    return found


def widths(known, user, x):
    """weight_i factor_i |v_i|_{G_i^-1}."""
    return [
        level.weight * level.factor[user] * np.sqrt(v @ np.linalg.inv(level.G[user]) @ v)
        for level, v in zip(known, reaches(known, user, x), strict=True)
    ]


@pytest.mark.parametrize("who", [slice(0, U), slice(1, 3), torch.tensor([2, 0])], ids=str)
@pytest.mark.parametrize("name", CHAINS)
def test_estimates_equal_numpy(name, who):
    levels, known = make(name)
    centre = np.random.default_rng(1).normal(size=(U, levels[-1].model.dim))
    for given in (None, torch.from_numpy(centre)[who]):
        found = chain.estimates(levels, who, given)
        assert len(found) == len(levels)
        for row, user in enumerate(torch.arange(U)[who].tolist()):
            expected = thetas(known, user, 0 * centre[user] if given is None else centre[user])
            for ours, theirs in zip(found, expected, strict=True):
                np.testing.assert_allclose(ours[row], theirs, rtol=1e-9)


@pytest.mark.parametrize("who", [slice(0, U), torch.tensor([2, 0])], ids=str)
@pytest.mark.parametrize("name", CHAINS)
def test_reach_equals_numpy(name, who):
    levels, known = make(name)
    x = torch.from_numpy(vectors())[who]
    for to in range(len(levels)):
        found = chain.reach(levels, who, x, to)
        for row, user in enumerate(torch.arange(U)[who].tolist()):
            expected = [reaches(known, user, one)[to] for one in x[row].numpy()]
            np.testing.assert_allclose(found[row], expected, rtol=1e-9)


@pytest.mark.parametrize("name", [name for name in CHAINS if name != "one"])
def test_reach_is_how_the_score_moves_with_the_estimate_of_a_level(name):
    levels, _ = make(name)
    who, x = slice(0, U), torch.from_numpy(vectors())
    for to in range(1, len(levels)):
        move = torch.from_numpy(np.random.default_rng(2).normal(size=(U, levels[to].model.dim)))
        outer = levels[:to]
        moved = chain.estimates(outer, who, levels[to].lifted(move))[0] - chain.estimates(outer, who)[0]
        change = torch.einsum("und,ud->un", x, moved)
        expected = torch.einsum("und,ud->un", chain.reach(levels, who, x, to), move)
        torch.testing.assert_close(change, expected, **ALGEBRA)


@pytest.mark.parametrize("who", [slice(0, U), torch.tensor([2, 0])], ids=str)
@pytest.mark.parametrize(
    "factors",
    [FACTORS, (0.0, 0.9, 1.7), (0.4, 0.0, 1.7), (0.4, 0.9, 0.0), (0.0, 0.0, 1.7), (0.4, Lemma1(), 0.3)],
    ids=str,
)
@pytest.mark.parametrize("name", CHAINS)
def test_width_equals_numpy(name, factors, who):
    levels, known = make(name, factors)
    x = torch.from_numpy(vectors())[who]
    before = x.clone()
    found = chain.width(levels, who, x)
    torch.testing.assert_close(x, before, rtol=0, atol=0)  # nothing is overwritten
    if found is None:
        assert not any(factors[: len(levels)])
        return
    for row, user in enumerate(torch.arange(U)[who].tolist()):
        expected = [sum(widths(known, user, one)) for one in x[row].numpy()]
        np.testing.assert_allclose(found[row], expected, rtol=1e-9)


def test_two_levels_have_the_width_of_equation_7():
    """lam alpha |x|_{M^-1} + (1-lam) alpha~ |M^-1 x|_{M~^-1}."""
    world = small_world()
    policy = ConUCB(world.catalogue, 7, mix=0.3, alpha=0.4, term_alpha=0.7)
    for _ in range(12):
        play_round(policy, world)
    context = world.observe()
    found = chain.width(policy.levels(), context.who, context.arm_features)
    for user in range(7):
        M = np.linalg.inv(policy.arm_model.gram[user].numpy())
        M_term = np.linalg.inv(policy.term_model.gram[user].numpy())
        for a, x in enumerate(context.arm_features[user].numpy()):
            width = 0.3 * 0.4 * np.sqrt(x @ M @ x) + 0.7 * 0.7 * np.sqrt(x @ M @ M_term @ M @ x)
            np.testing.assert_allclose(found[user, a], width, rtol=1e-9)


@pytest.mark.parametrize("policy_class", [LinUCB, ConUCB, CoFineUCB, ConCoFineUCB])
def test_a_score_is_the_mean_and_the_width(policy_class):
    world = small_world()
    policy = policy_class(world.catalogue, 7)
    for _ in range(12):
        play_round(policy, world)
    context = world.observe()
    width = chain.width(policy.levels(), context.who, context.arm_features)
    torch.testing.assert_close(policy.scores(context), policy.predict(context) + width, **ALGEBRA)
    torch.testing.assert_close(policy.coefficients(), policy.thetas(context.who)[0], rtol=0, atol=0)


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("name", CHAINS)
def test_deviation_equals_numpy(name, root):
    """delta_i = factor_i W_i z_i + ridge_i G_i^-1 P_{i+1} delta_{i+1}, with W_i what the model draws with."""
    levels, known = make(name, root=root)
    rng, who = np.random.default_rng(3), slice(0, U)
    normals = [torch.from_numpy(rng.normal(size=(U, level.model.dim))) for level in levels]
    found = chain.deviation(levels, who, normals)
    drawn = [level.model.deviation(who, z).numpy() for level, z in zip(levels, normals, strict=True)]
    for user in range(U):
        delta = np.zeros(levels[-1].model.dim)
        for level, own in reversed(list(zip(known, drawn, strict=True))):
            here = level.factor[user] * own[user] + level.ridge * np.linalg.inv(level.G[user]) @ delta
            delta = level.P @ here
        np.testing.assert_allclose(found[user], here, rtol=1e-9)


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("name", CHAINS)
def test_deviations_have_the_covariance_of_all_levels(name, root):
    """sum_i factor_i^2 B_i G_i^-1 B_i^T, where B_i is how theta_0 moves with theta_i; seen with unit vectors."""
    levels, known = make(name, (*FACTORS[:1], Lemma1(), *FACTORS[2:]), root=root)
    found = 0
    for number, level in enumerate(levels):
        columns = []
        for unit in torch.eye(level.model.dim).double():
            normals = [torch.zeros(U, other.model.dim).double() for other in levels]
            normals[number] = unit.expand(U, -1)
            columns.append(chain.deviation(levels, slice(0, U), normals))
        part = torch.stack(columns, dim=2)  # [U, D, D_i]
        found = found + part @ part.mT
    for user in range(U):
        B, expected = np.eye(D), np.zeros((D, D))
        for number, level in enumerate(known):
            inverse = np.linalg.inv(level.G[user])
            expected += level.factor[user] ** 2 * B @ inverse @ B.T
            if number + 1 < len(known):
                B = B @ (level.ridge * inverse) @ known[number + 1].P
        np.testing.assert_allclose(found[user], expected, rtol=1e-9, atol=1e-12)


PLAIN_CHAINS = [name for name in CHAINS if "bas" not in name]


@pytest.mark.parametrize("factors", [FACTORS, (0.0, 0.9, 0.0), (0.4, Lemma1(), 1.7)], ids=str)
@pytest.mark.parametrize("name", PLAIN_CHAINS)
def test_no_width_is_above_slope_times_length(name, factors):
    """For many vectors, of many lengths, and those along which the arms' level knows least."""
    levels, known = make(name, factors)
    worst = np.stack([np.linalg.eigh(G)[1].T for G in known[0].G])  # [U, D, D]
    many = np.random.default_rng(4).normal(size=(U, 500, D)) * 10.0 ** np.linspace(-3, 3, 500)[:, None]
    x = torch.from_numpy(np.concatenate((worst, many), axis=1))
    width = chain.width(levels, slice(0, U), x)
    if width is None:
        width = torch.zeros(x.shape[:2])
    own = chain.widths(levels, slice(0, U))
    torch.testing.assert_close(reference.width(own, torch.arange(U), x), width.double(), **ALGEBRA)
    bound = reference.slope(own, U, x)[:, None] * x.norm(dim=2)
    assert (width <= bound * (1 + 1e-12)).all()


def test_the_bound_is_reached_before_anything_is_seen():
    """All matrices are multiples of the identity then: with bounds on eigenvalues that are tight, so is this."""
    like = torch.empty(0).double()
    levels = [Level("theta", RidgeRegression(1, D, 0.5, 0.5, like=like), 0.4)]
    x = torch.from_numpy(vectors()[:1])
    bound = reference.slope(chain.widths(levels, slice(0, 1)), 1, x)[:, None] * x.norm(dim=2)
    torch.testing.assert_close(chain.width(levels, slice(0, 1), x), bound, **ALGEBRA)


@pytest.mark.parametrize("name", [name for name in CHAINS if "bas" in name])
def test_kernels_take_chains_with_a_basis(name):
    levels, _ = make(name, FACTORS)
    x, taken = torch.from_numpy(vectors()), chain.widths(levels, slice(0, U))
    widths = chain.width(levels, slice(0, U), x)
    torch.testing.assert_close(reference.width(taken, torch.arange(U), x), widths, **ALGEBRA)
    bound = reference.slope(taken, U, x)[:, None] * x.norm(dim=2)
    assert (widths <= bound * (1 + 1e-9)).all()


# A rule pays for the products that it uses.


@pytest.mark.parametrize(
    ("factors", "solved"),
    [
        ((0.0, 0.0, 0.0), (0, 0, 0)),
        ((0.4, 0.0, 0.0), (1, 0, 0)),
        ((0.4, 0.9, 0.0), (1, 1, 0)),
        ((0.0, 0.9, 0.0), (1, 1, 0)),  # the way to a level leads through those before it
        ((0.0, 0.0, 1.7), (1, 1, 1)),
        (FACTORS, (1, 1, 1)),
    ],
)
def test_levels_behind_the_last_with_a_factor_take_no_product(factors, solved):
    levels, _ = make("three, with two bases", factors)
    calls = [0, 0, 0]
    for number, level in enumerate(levels):

        def solve(who, x, number=number, original=level.model.solve):
            calls[number] += 1
            return original(who, x)

        level.model.solve = solve
    width = chain.width(levels, slice(0, U), torch.from_numpy(vectors()))
    assert tuple(calls) == solved
    assert (width is None) == (solved == (0, 0, 0))


@pytest.mark.parametrize(
    ("policy_class", "arguments", "products"),
    [
        (Greedy, {}, 0),
        (EpsilonGreedy, {}, 0),
        (LinThompson, {}, 0),
        (ConThompson, {}, 0),
        (LinUCB, {}, 1),
        (LinUCB, {"alpha": 0.0}, 0),
        (HLinUCB, {}, 1),
        (ConUCB, {}, 2),
        (ConUCB, {"term_alpha": 0.0}, 1),
        (ConUCB, {"alpha": 0.0, "term_alpha": 0.0}, 0),
        (CoFineUCB, {}, 2),
        (CoFineUCB, {"coarse_alpha": 0.0}, 1),
        (ConCoFineUCB, {}, 3),
    ],
)
def test_a_rule_pays_for_the_products_it_uses(policy_class, arguments, products, monkeypatch):
    """Products of the candidates [A, D_i] with a matrix [D_i, D_i], per choice."""
    world = small_world()
    policy = policy_class(world.catalogue, world.num_users, **arguments)
    for _ in range(12):
        play_round(policy, world)
    context = world.observe()
    multiply, made = torch.bmm, []

    def counted(left, right):
        if left.shape[1] == context.arms.shape[1] and right.shape[1] == right.shape[2]:
            made.append(tuple(right.shape))
        return multiply(left, right)

    monkeypatch.setattr(torch, "bmm", counted)
    with using("torch"):
        policy.choose(context)
    assert len(made) == products
