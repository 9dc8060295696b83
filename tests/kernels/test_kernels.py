"""Every compiled kernel against its definition in torch."""

import math
import os
import subprocess
import sys
import threading
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from conbandit_torch import Arms, Comparison, HLinUCB, Simulation, Stream, Terms
from conbandit_torch.core.blocks import look_up
from conbandit_torch.kernels import Chain, Regressions, all_threads, kernels_for, name_of, reference, using
from conbandit_torch.kernels.threads import Pace, kernel_threads
from conbandit_torch.models.inverses import NumericsError
from conbandit_torch.models.ridge import RidgeRegression
from tests.conftest import EXACT, small_world

compiled = pytest.importorskip("conbandit_torch.kernels.compiled", reason="numba is not installed")

TOLERANCE = {torch.float64: {"rtol": 1e-9, "atol": 1e-12}, torch.float32: {"rtol": 2e-4, "atol": 2e-5}}
sizes = st.integers(1, 9)
seeds = st.integers(0, 2**31)
dtypes = st.sampled_from([torch.float32, torch.float64])


def normal(seed, *shape, dtype=torch.float64):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape)).to(dtype)


def fed(users, dim, seed, dtype, observations=6, **arguments):
    """Regressions that have seen something."""
    model = RidgeRegression(users, dim, 0.7, 0.3, like=torch.empty(0, dtype=dtype), **arguments)
    with using("torch"):
        for number in range(observations):
            x = normal(seed + number, users, dim, dtype=dtype)
            model.update(slice(0, users), x, x.sum(1))
    return model


def copied(state):
    return Regressions(*(None if part is None else part.clone() for part in state))


def rows_of(seed, users, number):
    return torch.from_numpy(np.random.default_rng(seed).permutation(users)[:number])


@settings(max_examples=60, deadline=None)
@given(users=sizes, dim=sizes, seed=seeds, dtype=dtypes, everyone=st.booleans(), large=st.booleans())
def test_a_step_is_that_of_torch(users, dim, seed, dtype, everyone, large):
    """Rows whose gain is doubtful are left undone, and named, by both."""
    state = fed(users, dim, seed, dtype, root=True).state
    who = slice(0, users) if everyone else rows_of(seed, users, (users + 1) // 2)
    number = users if everyone else len(who)
    x, y = normal(seed + 100, number, dim, dtype=dtype), normal(seed + 101, number, dtype=dtype)
    if large:
        x[0] *= 1e8 / x[0].norm()
    one, other = copied(state), copied(state)
    undone = reference.rank_one(one, who, x, y, 0.3), compiled.rank_one(other, who, x, y, 0.3)
    named = [None if rows is None else rows.tolist() for rows in undone]
    assert named[0] == named[1]
    assert (undone[0] is not None) == large
    for name in (name for name in state._fields if name != "top"):  # which torch leaves as it was
        ours, theirs = getattr(other, name), getattr(one, name)
        torch.testing.assert_close(ours, theirs, **TOLERANCE[dtype])
    assert (other.top <= state.top).all()
    largest = torch.linalg.eigvalsh(other.inverse.double())[:, -1]
    assert (other.top.double() >= largest * (1 - 1e-5)).all()


def test_a_doubtful_step_is_taken_with_care_and_one_too_large_is_refused():
    for kernels in ("torch", "compiled"):
        with using(kernels):
            model = fed(3, 4, 0, torch.float64)
            before, x = model.gram.clone(), normal(1, 3, 4)
            x[1] *= 1e8
            model.update(slice(0, 3), x, torch.ones(3).double())
            expected = before + 0.3 * x[:, :, None] * x[:, None]
            torch.testing.assert_close(model.gram, expected)
            identity = torch.eye(4).double().expand(3, 4, 4)
            torch.testing.assert_close(model.inverse[[0, 2]] @ model.gram[[0, 2]], identity[:2])
            assert model.count.tolist() == [7, 7, 7]
            x[1] *= 1e200
            with pytest.raises(NumericsError, match="model 1: an observation with features of length"):
                model.update(slice(0, 3), x, torch.ones(3).double())


@settings(max_examples=40, deadline=None)
@given(users=sizes, dim=sizes, seed=seeds, dtype=dtypes)
def test_roots_and_products_are_those_of_torch(users, dim, seed, dtype):
    model = fed(users, dim, seed, dtype, root=True)
    who, x = rows_of(seed, users, (users + 1) // 2), normal(seed, (users + 1) // 2, dim, dtype=dtype)
    for scale, plus in ((1.0, None), (0.7, model.solution)):
        ours, theirs = (
            kernels.products(model.root, who, x, scale=scale, plus=plus) for kernels in (compiled, reference)
        )
        torch.testing.assert_close(ours, theirs, **TOLERANCE[dtype])
    one, other = copied(model.state), copied(model.state)
    reference.rank_one(one, who, x, x.sum(1), 0.3)
    compiled.rank_one(other, who, x, x.sum(1), 0.3)
    torch.testing.assert_close(other.root, one.root, **TOLERANCE[dtype])


def scores(table, arms, theta, extra, chain):
    """All of them, as Eq. 7 has them."""
    x = look_up(table, arms)
    total = (x * theta[:, None]).sum(2) + (0 if extra is None else extra)
    v = x
    for inverse, factor, basis in zip(chain.inverses, chain.factors, (None, *chain.bases), strict=False):
        v = v if basis is None else v @ basis
        solved = torch.bmm(v, inverse[chain.who])
        total = total + torch.as_tensor(factor).view(-1, 1) * (v * solved).sum(2).clamp_min(0).sqrt()
        v = solved
    return total


def a_choice(users, pool, dim, seed, dtype, levels, with_extra, per_row, scale=1.0, coarse=None):
    """Of the levels behind the first, all have `coarse` features; None: as many as there are."""
    sizes = [dim if level == 0 or coarse is None else coarse for level in range(levels)]
    models = [
        fed(users, size, seed + 10 * level, dtype, observations=level * 4) for level, size in enumerate(sizes)
    ]
    with using("compiled"):  # which keeps bounds that are tight
        for model in models:
            x = normal(seed, users, model.dim, dtype=dtype)
            model.update(slice(0, users), x, x.sum(1))
    factor = normal(seed, users, dtype=dtype).abs() if per_row else 0.6
    chain = Chain(
        slice(0, users),
        tuple(model.inverse for model in models),
        tuple(model.top for model in models),
        tuple(factor * (level + 1) for level in range(levels)),
        tuple(
            None if coarse is None else normal(seed + 20 + level, *sizes[level : level + 2], dtype=dtype)
            for level in range(levels - 1)
        ),
    )
    table = scale * normal(seed + 5, 2 * pool, dim, dtype=dtype)
    arms = torch.from_numpy(np.random.default_rng(seed).integers(0, 2 * pool, (users, pool)))
    extra = normal(seed + 7, users, pool, dtype=dtype).abs() if with_extra else None
    return table, arms, normal(seed + 6, users, dim, dtype=dtype), extra, chain


@pytest.mark.parametrize("kernels", [compiled, reference], ids=["compiled", "torch"])
@settings(max_examples=80, deadline=None)
@given(
    users=sizes,
    pool=st.sampled_from([1, 2, 7, 40]),
    dim=sizes,
    seed=seeds,
    levels=st.integers(0, 3),
    with_extra=st.booleans(),
    per_row=st.booleans(),
    known=st.booleans(),
    coarse=st.sampled_from([None, 1, 3]),
)
def test_a_pruned_choice_is_the_first_of_the_highest_scores(
    kernels, users, pool, dim, seed, levels, with_extra, per_row, known, coarse
):
    """Arms repeat within a pool, so that there are ties."""
    choice = a_choice(users, pool, dim, seed, torch.float64, levels, with_extra, per_row, coarse=coarse)
    every = scores(*choice)
    found = kernels.choose(*choice, choice[0].norm(dim=1) if known else None)
    best = every.max(1).values
    near = every >= best[:, None] - 1e-9 * (1 + best.abs()[:, None])  # equal, but for rounding
    if coarse is None or (kernels is compiled and levels < 3):
        assert found.tolist() == near.int().argmax(1).tolist()
    else:  # torch rounds products with a basis by where a row is
        assert near.gather(1, found[:, None]).all()


@pytest.mark.parametrize("kernels", [compiled, reference], ids=["compiled", "torch"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ties_go_to_the_first_position(kernels, dtype):
    table, arms, theta, _, chain = a_choice(4, 6, 5, 3, dtype, 2, False, False)
    arms[:] = torch.tensor([5, 2, 2, 7, 2, 5])
    alone = scores(table, arms, theta, None, chain)
    assert kernels.choose(table, arms, theta, None, chain).tolist() == alone.argmax(1).tolist()
    table[:] = table[0]
    assert kernels.choose(table, arms, theta, None, chain).tolist() == [0] * 4


@pytest.mark.parametrize("kernels", [compiled, reference], ids=["compiled", "torch"])
@pytest.mark.parametrize("where", ["theta", "table", "extra", "inverse"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_number_that_is_not_finite_is_found(kernels, where, value):
    table, arms, theta, extra, chain = a_choice(3, 5, 4, 1, torch.float64, 2, True, False)
    {"theta": theta, "table": table, "extra": extra, "inverse": chain.inverses[0][1]}[where][-1, 0] = value
    if where == "table":
        arms = arms % (len(table) - 1)
        arms[-1, 2] = len(table) - 1
    found = kernels.choose(table, arms, theta, extra, chain)
    row = 1 if where == "inverse" else 2
    assert found[row] == -1 and (found[:1] >= 0).all()


def test_no_rows_are_no_trouble():
    model = fed(3, 4, 0, torch.float64)
    nobody, x = torch.empty(0, dtype=torch.int64), torch.empty(0, 4).double()
    arms = torch.empty(0, 5, dtype=torch.int64)
    chain = Chain(nobody, (model.inverse,), (model.top,), (1.0,))
    for kernels in (compiled, reference):
        assert kernels.rank_one(copied(model.state), nobody, x, x[:, 0], 1.0) is None
        assert kernels.choose(model.moment, arms, x, None, chain).shape == (0,)
        assert kernels.products(model.inverse, nobody, x).shape == (0, 4)
        assert kernels.dots(model.moment, arms, model.moment, nobody).shape == (0, 5)
        assert kernels.picked(model.moment, arms, nobody).shape == (0, 4)
        mean, regret = kernels.pulled(model.moment, arms, model.moment, nobody, nobody, clip=True)
        assert mean.shape == regret.shape == (0,)
        assert kernels.subsets(Stream(0, ""), nobody, nobody, 2, 9).shape == (0, 2)


@settings(max_examples=40, deadline=None)
@given(users=sizes, pool=sizes, dim=sizes, seed=seeds, dtype=dtypes, clip=st.booleans())
def test_means_and_regrets_are_those_of_torch(users, pool, dim, seed, dtype, clip):
    table, arms, _, _, _ = a_choice(users, pool, dim, seed, dtype, 0, False, False)
    theta, shown = normal(seed, users, dim, dtype=dtype), torch.arange(users) % pool
    for who in (slice(0, users), torch.arange(users).flip(0)):
        ours, theirs = (k.dots(table, arms, theta, who) for k in (compiled, reference))
        torch.testing.assert_close(ours, theirs, **TOLERANCE[dtype])
        ours, theirs = (k.pulled(table, arms, theta, who, shown, clip=clip) for k in (compiled, reference))
        torch.testing.assert_close(ours, theirs, **TOLERANCE[dtype])
        assert (ours[1] >= 0).all()
    ours, theirs = (k.picked(table, arms, shown) for k in (compiled, reference))
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("position", [-1, 6])
def test_a_position_beyond_the_pool_is_an_error(position):
    table, arms, theta, _, _ = a_choice(3, 6, 4, 1, torch.float64, 0, False, False)
    shown = torch.tensor([0, position, 1])
    with pytest.raises(RuntimeError, match="out of bounds"):
        compiled.picked(table, arms, shown)
    with pytest.raises(ValueError, match="positions among the 6 candidates"):
        compiled.pulled(table, arms, theta, slice(0, 3), shown, clip=False)


def test_memory_that_a_tensor_gets_anew_is_found_anew():
    matrices, vectors = torch.eye(3).repeat(2, 1, 1), torch.ones(2, 3)
    compiled.products(matrices, slice(0, 2), vectors)
    matrices.share_memory_()
    matrices *= 2
    assert torch.equal(compiled.products(matrices, slice(0, 2), vectors), 2 * vectors)
    matrices.data = torch.zeros_like(matrices)
    assert torch.equal(compiled.products(matrices, slice(0, 2), vectors), 0 * vectors)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(-(2**62), 2**62),
    count=st.sampled_from([1, 3, 50, 256]),
    factor=st.sampled_from([2, 3, 100, 2**25]),
    number=sizes,
)
def test_random_numbers_are_those_of_the_stream(seed, count, factor, number):
    stream = Stream(seed, "test")
    users = torch.from_numpy(np.random.default_rng(abs(seed)).integers(0, 2**40, number))
    rounds = users // 7
    population = factor * count + (count > 1)
    ours, theirs = (k.subsets(stream, users, rounds, count, population) for k in (compiled, reference))
    assert torch.equal(ours, theirs)
    assert compiled.draws_subsets(count, population)
    populations = count + users % (factor * count)  # of which every row has its own
    ours, theirs = (k.subsets_of(stream, users, rounds, count, populations) for k in (compiled, reference))
    assert torch.equal(ours, theirs)
    ours, theirs = (
        k.normal(stream, users, rounds, min(count, 50), torch.zeros(0).double())
        for k in (compiled, reference)
    )
    torch.testing.assert_close(ours, theirs, rtol=0, atol=4e-15)  # up to 6 in size


@settings(max_examples=30, deadline=None)
@given(users=sizes, size=st.integers(0, 6), seed=st.integers(0, 1000), dtype=dtypes)
def test_hidden_features_learn_and_widen_as_in_torch(users, size, seed, dtype):
    """Arms repeat among the rewards of a round, key-terms among its answers; a comparison may be of one."""
    found = []
    for kernels in ("torch", "compiled"):
        world = small_world(seed=seed, arms=12).to(dtype)
        policy = HLinUCB(world.catalogue, users, hidden_dim=size, seed=seed).to(dtype)
        representation = policy.representation
        with using(kernels):
            for number in range(3):
                arms = torch.from_numpy(np.random.default_rng(seed + number).integers(0, 4, users))
                theta = normal(seed + number, users, representation.dim, dtype=dtype)
                residual = normal(seed + number + 9, users, dtype=dtype)
                for about in (Arms(arms), Terms(arms), Comparison(Terms(arms), Terms(arms.flip(0)))):
                    representation.learn(about, theta, residual)
            pool = torch.arange(12).expand(users, 12)
            directions = theta[:, representation.catalogue.dim :]
            width = kernels_for(theta).hidden_widths(representation.model.inverse, pool, directions, 0.3)
        model = representation.model
        found.append([representation.table, model.gram, model.inverse, model.moment, model.solution, width])
        found[-1] += [
            model.log_det,
            model.count,
            torch.tensor([float(representation._last_change)], dtype=torch.float64),
        ]
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs.to(ours.dtype), **TOLERANCE[dtype])


def test_a_hidden_matrix_that_is_not_positive_definite_is_an_error_that_names_the_arm():
    world = small_world()
    policy = HLinUCB(world.catalogue, 2, hidden_dim=3)
    policy.representation.model.gram[5] = -1
    arms = Arms(torch.tensor([5, 1]))
    terms = Terms(world.catalogue.terms_of(torch.tensor([5])).target[:1].expand(2))
    theta = torch.ones(2, policy.representation.dim)
    for kernels, about in product(("torch", "compiled"), (arms, terms)):
        with using(kernels), pytest.raises(NumericsError, match="hidden features of arm 5"):
            policy.representation.learn(about, theta, torch.ones(2))


def test_results_depend_neither_on_threads_nor_on_the_batch():
    users, dim, pool = 40, 11, 15
    threads = torch.get_num_threads()
    table, arms, theta, _, chain = a_choice(users, pool, dim, 2, torch.float32, 2, False, False)
    x, y = normal(1, users, dim, dtype=torch.float32), normal(2, users, dtype=torch.float32)
    found = []
    try:
        for number in (1, 2):
            torch.set_num_threads(number)
            state = fed(users, dim, 0, torch.float32, root=True).state
            compiled.rank_one(state, slice(0, users), x, y, 0.3)
            means = compiled.pulled(table, arms, theta, slice(0, users), arms[:, 0] % pool, clip=False)
            hidden = fed(2 * pool, 3, 5, torch.float32)  # a regression per arm, some of which come twice
            change = compiled.hidden_step(
                hidden.state, table.clone(), arms[:, 0], x[:, :3].contiguous(), y, 0.7
            )
            found.append([*state, compiled.choose(table, arms, theta, None, chain), *means])
            found[-1] += [*hidden.state[:6], torch.tensor(change)]
    finally:
        torch.set_num_threads(threads)
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, **EXACT)
    state = fed(users, dim, 0, torch.float32, root=True).state
    for user in range(users):
        alone = torch.tensor([user])
        compiled.rank_one(state, alone, x[alone], y[alone], 0.3)
    for one, other in zip(state, found[0], strict=False):
        torch.testing.assert_close(one, other, **EXACT)


def test_kernels_are_chosen_for_a_while_and_a_result_names_them():
    tensor = torch.zeros(1)
    assert kernels_for(tensor) is compiled
    with using("torch"):
        assert kernels_for(tensor) is reference and name_of("cpu") == "torch"
    assert name_of("cpu").startswith("numba ") and name_of("cuda") == "torch"
    assert kernels_for(torch.zeros(1, device="meta")) is reference
    world = small_world()
    with pytest.raises(ValueError, match="kernels must be one of auto, compiled, torch, got 'fast'"):
        Simulation(HLinUCB(world.catalogue, 7), world, rounds=1, kernels="fast")


def test_torch_keeps_one_thread_while_kernels_run_and_gets_them_back():
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with using("auto", single_torch_thread=True):
            assert torch.get_num_threads() == 1
            with all_threads():
                assert torch.get_num_threads() == 2
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def test_runs_in_two_threads_leave_torch_its_number_of_threads():
    """One starts while the other runs, and ends after it."""
    inside, seen = [threading.Barrier(2) for _ in range(3)], {}

    def first():
        with using("auto", single_torch_thread=True):
            inside[0].wait()
            inside[1].wait()  # the second is in
        seen["first"] = torch.get_num_threads()
        inside[2].wait()

    def second():
        inside[0].wait()
        with using("auto", single_torch_thread=True):
            seen["kernels"] = kernel_threads()
            inside[1].wait()
            inside[2].wait()  # the first has left
        seen["second"] = torch.get_num_threads()

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for runs in ((first, second), (lambda: seen.update(later=torch.get_num_threads()),)):
            started = [threading.Thread(target=one) for one in runs]
            for one in started:
                one.start()
            for one in started:
                one.join()
    finally:
        torch.set_num_threads(threads)
    assert seen == {"kernels": 2, "first": 2, "second": 2, "later": 2}


FIRST_KERNEL = """
import torch
from conbandit_torch.kernels import kernels_for

torch.set_num_threads(1)
matrix = torch.eye(2)
kernels_for(matrix).products(matrix[None], slice(0, 1), matrix[:1])
print(torch.get_num_threads())
"""


def test_the_first_kernel_leaves_torch_its_number_of_threads():
    """OpenMP is shared: numba's threads, as they start, would be torch's too."""
    environment = os.environ | {"NUMBA_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", FIRST_KERNEL], capture_output=True, text=True, env=environment
    )
    assert done.stdout == "1\n", done.stderr


FORKED = """
import os, torch
from conbandit_torch import LinUCB, Simulation, Synthetic
from conbandit_torch.kernels import name_of

def play():
    world = Synthetic(4, 30, 6, 5, pool=4, seed=0)
    Simulation(LinUCB(world.catalogue, world.num_users), world, rounds=3).run()
    return name_of("cpu")

before = play()
child = os.fork()
if child == 0:
    print(play(), flush=True)
    os._exit(0)
print(before, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_process_that_forks_after_kernels_ran_goes_on_with_torch_and_says_so():
    """OpenMP's threads are not in the child: numba would end it."""
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True)
    layer = "numba" if "torch alone" not in done.stderr else "torch"
    child, parent, code = done.stdout.split()[0], " ".join(done.stdout.split()[1:-1]), done.stdout.split()[-1]
    assert child.startswith(layer) and parent.startswith("numba") and code == "0"


def test_threads_that_wait_for_each_other_give_way_to_one_until_they_are_faster_again():
    pace, used = Pace(), []
    for call in range(Pace.FIRST + 3 * Pace.KEPT):
        threads = pace.pick(2)
        used.append(threads)
        busy = call < Pace.FIRST + 2 * Pace.KEPT - Pace.KEPT // 2
        pace.took({1: 1.0, 2: 20.0 if busy else 0.6}[threads])
    kept = [used[Pace.FIRST + n * Pace.KEPT :][2 * Pace.TRIED : Pace.KEPT] for n in range(3)]
    assert [set(window) for window in kept] == [{1}, {1}, {2}]
    assert set(used[: Pace.FIRST]) == {2}
