"""The step of hidden features for weights of both signs: its formula, and that it never makes things worse."""

import numpy as np
import pytest
import torch

from conbandit_torch import Answer, Arms, Catalogue, Comparison, HConLinUCB, Hidden, Question, Terms
from conbandit_torch.testing import decisions
from tests.conftest import ALGEBRA, weights
from tests.helpers.hidden import hidden_world

N, K, D, L = 14, 5, 3, 2


def catalogue_of(seed, terms_per_arm=2):
    rng = np.random.default_rng(seed)
    W = np.zeros((N, K))
    for arm in range(N):
        first = arm % K  # every key-term has an arm
        chosen = [first, *rng.permutation(np.delete(range(K), first))][: rng.integers(1, terms_per_arm + 1)]
        W[arm, chosen] = rng.uniform(0.1, 1.0, size=len(chosen))
    return Catalogue(rng.normal(size=(N, D)), W)


def hidden_of(catalogue, seed, ridge):
    hidden = Hidden(L, ridge=ridge, init_scale=0.7)
    hidden.attach(catalogue, seed)
    return hidden


def asked(seed, number, kind):
    """Comparisons, many of the same pair, some of a thing with itself; or rewards and answers without a sign."""
    rng = np.random.default_rng(seed)
    few = [torch.from_numpy(rng.integers(0, 4, size=number)) for _ in range(2)]
    many = [torch.from_numpy(rng.integers(0, N, size=number)) for _ in range(2)]
    return {
        "comparisons of key-terms": lambda: Comparison(*map(Terms, few)),
        "comparisons of arms": lambda: Comparison(*map(Arms, many)),
        "key-terms": lambda: Terms(few[0]),
        "arms": lambda: Arms(many[0]),
    }[kind]()


KINDS = ["comparisons of key-terms", "comparisons of arms", "key-terms", "arms"]


class Batch:
    """Q observations, with the preferences that predict them: v is to explain what they leave."""

    def __init__(self, seed, number, kind, scale):
        rng = np.random.default_rng(seed + 100)
        self.about = asked(seed, number, kind)
        self.theta = torch.from_numpy(scale * rng.normal(size=(number, D + L)))
        self.value = torch.from_numpy(rng.normal(size=number))

    def residual(self, hidden):
        return self.value - (self.about.features(hidden) * self.theta).sum(1)

    def error(self, hidden):
        return float(self.residual(hidden).square().sum())

    def arms(self, catalogue):
        return self.about.edges(catalogue).target.unique()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("number", [1, 60])
def test_a_step_never_increases_the_squared_error_of_the_answers(kind, scale, number):
    """At any size of theta and with any number of answers at once; with a ridge that hardly counts.

    Every step starts from C = ridge I, as a refit does, twenty of them from each start."""
    for seed in range(12):
        catalogue = catalogue_of(seed)
        hidden = hidden_of(catalogue, seed, ridge=1e-9)
        batch = Batch(seed, number, kind, scale)
        errors = [batch.error(hidden)]
        for _ in range(20):
            hidden.model.reset_rows(batch.arms(catalogue))
            hidden.learn(batch.about, batch.theta, batch.residual(hidden))
            errors.append(batch.error(hidden))
        steps = np.diff(errors)
        assert (steps <= 1e-6 * errors[0] + 1e-12).all(), (seed, errors)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("ridge", [0.1, 2.0])
def test_a_step_never_increases_the_error_and_the_penalty(kind, scale, ridge):
    """sum (answer - prediction)^2 + ridge sum |v|^2, of the arms that the answers are about."""
    for seed in range(12):
        catalogue = catalogue_of(seed)
        hidden = hidden_of(catalogue, seed, ridge)
        batch = Batch(seed, 40, kind, scale)
        arms = batch.arms(catalogue)
        values = []
        for _ in range(15):
            values.append(batch.error(hidden) + ridge * float(hidden.hidden[arms].square().sum()))
            hidden.model.reset_rows(arms)
            hidden.learn(batch.about, batch.theta, batch.residual(hidden))
        assert (np.diff(values) <= 1e-9 * values[0]).all(), (seed, values)
        assert values[-1] < values[0]


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_step_equals_its_formula(kind, overlap):
    """C_a += S |w_a| t t^T, d_a += t (w_a rho + S |w_a| v_a^T t), one observation and one arm at a time.

    An arm on both sides of a comparison has the difference for its weight; of a thing that is compared with
    itself nothing is learned."""
    catalogue = catalogue_of(0, terms_per_arm=3 if overlap else 1)
    hidden = hidden_of(catalogue, 0, ridge=0.6)
    batch = Batch(0, 30, kind, 1.0)
    if isinstance(batch.about, Comparison) and not overlap:
        apart = (batch.about.first.of != batch.about.second.of).nonzero().squeeze(1)
        batch.about, batch.theta, batch.value = (
            batch.about.take(apart),
            batch.theta[apart],
            batch.value[apart],
        )
    W = weights(catalogue)
    P, V = W / W.sum(0), hidden.hidden.numpy().copy()
    C, d = np.tile(0.6 * np.eye(L), (N, 1, 1)), np.zeros((N, L))
    touched = set()
    residual = batch.residual(hidden).numpy()
    for ids, theta, rho in zip(batch.about.ids().tolist(), batch.theta.numpy(), residual, strict=True):
        w = np.zeros(N)
        for sign, side, thing in zip((1, -1), batch.about.sides(), ids, strict=False):
            w += sign * (P[:, thing] if isinstance(side, Terms) else np.eye(N)[thing])
        S, t = np.abs(w).sum(), theta[D:]
        for arm in np.flatnonzero(w):
            C[arm] += S * abs(w[arm]) * np.outer(t, t)
            d[arm] += t * (w[arm] * rho + S * abs(w[arm]) * V[arm] @ t)
            touched.add(int(arm))
    hidden.learn(batch.about, batch.theta, batch.residual(hidden))
    np.testing.assert_allclose(hidden.model.gram, C, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(hidden.model.moment, d, rtol=1e-9, atol=1e-12)
    for arm in range(N):
        V[arm] = np.linalg.solve(C[arm], d[arm]) if arm in touched else V[arm]
    np.testing.assert_allclose(hidden.hidden, V, rtol=1e-9, atol=1e-12)


def test_a_comparison_is_learned_at_the_level_that_answers_enter():
    world = hidden_world()
    policy = HConLinUCB(world.catalogue, 4, hidden_dim=2, init_scale=0.1, ridge=0.5)
    about = Comparison(Terms(torch.tensor([0, 1])), Terms(torch.tensor([2, 5])))
    x = about.features(policy.representation)
    before = policy.representation.hidden.clone()
    policy.listen(
        world.observe(), Question(torch.tensor([3, 1]), about), Answer(torch.tensor([1.0, 0.0]).double())
    )
    assert policy.arm_model.count.tolist() == [0, 1, 0, 1] and policy.asked.tolist() == [0, 1, 0, 1]
    torch.testing.assert_close(policy.arm_model.moment[3], x[0], **ALGEBRA)
    outer = 0.5 * torch.eye(5).double() + x[1].outer(x[1])
    torch.testing.assert_close(policy.arm_model.gram[1], outer, **ALGEBRA)
    moved = (policy.representation.hidden != before).any(1).nonzero().flatten().tolist()
    assert moved and set(moved) <= set(about.edges(world.catalogue).target.tolist())


def test_refits_from_rewards_answers_and_comparisons_decrease_the_training_objective():
    """One level: theta and v take turns on one and the same objective."""
    world = hidden_world(noise=0.3)
    policy = HConLinUCB(
        world.catalogue, 4, hidden_dim=2, init_scale=0.3, refit_every=10**6, ridge=0.5, hidden_ridge=0.4
    )
    generator = torch.Generator().manual_seed(0)
    for _ in range(25):
        decisions(policy, world, 1)
        context = world.observe()
        sides = [Terms(torch.randint(7, (4,), generator=generator)) for _ in range(2)]
        question = Question(slice(None), Comparison(*sides))
        policy.listen(context, question, world.answer(context, question))
    entries = [*policy.log.entries(), *policy.answers.entries()]
    assert sorted(type(about).__name__ for _, about, _ in entries) == ["Arms", "Comparison", "Terms"]
    touched = torch.cat([about.edges(world.catalogue).target for _, about, _ in entries]).unique()

    def objective():
        theta, hidden = policy.coefficients(), policy.representation.hidden
        error = sum(
            (values - (about.features(policy.representation) * theta[users]).sum(1)).square().sum()
            for users, about, values in entries
        )
        return float(error + 0.5 * theta.square().sum() + 0.4 * hidden[touched].square().sum())

    values = []
    for _ in range(12):
        policy.refit()
        values.append(objective())
    assert (np.diff(values) <= 1e-12 * values[0]).all(), values
    assert values[-1] < 0.99 * values[0]
