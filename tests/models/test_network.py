"""A network trained by autograd is a representation, on which any linear bandit stands and converses."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from conbandit_torch import (
    ConNeuralLinear,
    ConUCB,
    Curved,
    LinUCB,
    Logistic,
    Network,
    NeuralLinear,
    NeuralThompson,
    Stream,
    Terms,
    play_round,
)
from conbandit_torch.models.inverses import NumericsError
from conbandit_torch.testing import check_policy
from tests.conftest import ALGEBRA, small_world
from tests.reference import network as reference

FAST = {"steps": 6, "batch": 8, "hidden": 5, "outputs": 3, "refit_every": 4}


def play(policy, world, rounds):
    with torch.no_grad():
        return [play_round(policy, world) for _ in range(rounds)]


@pytest.mark.parametrize("kind", [NeuralLinear, ConNeuralLinear, NeuralThompson])
def test_training_equals_the_reference(kind):
    world = small_world(users=4, arms=25, terms=7, pool=6, users_per_round=3)
    policy = kind(world.catalogue, 4, representation=Network(**FAST), seed=2)
    seen = policy.representation
    log = []
    for played in play(policy, world, 3):
        users = played.context.users.tolist()
        for arm, user, reward in zip(played.arm_ids.tolist(), users, *_rewards(played), strict=True):
            log.append((0, user, "arm", arm, reward))
        for question, answer in played.dialogue:
            assert isinstance(question.about, Terms)
            asked = played.context.take(question.rows).users.tolist()
            rows = zip(asked, question.about.of.tolist(), answer.value.tolist(), strict=True)
            log += [(1, user, "term", term, value) for user, term, value in rows]
    context = world.observe()
    network, scale = copy.deepcopy(seen.network), seen.scale.clone()
    arm = policy.choose(context)
    feedback = world.pull(context, arm).feedback[0]
    before = copy.deepcopy(policy)
    before.representation.refit_every = None
    before.update(context, arm, feedback.reward)  # learned, not yet trained
    for row, user in enumerate(context.users.tolist()):
        shown = int(context.arms[row, arm[row]])
        log.append((0, user, "arm", shown, float(feedback.reward[row])))
    policy.update(context, arm, feedback.reward)
    assert int(seen.trainings) == 1
    log.sort(key=lambda entry: entry[:2])  # rewards first, and one user after the other
    levels = {0: 0, 1: policy.answer_level}
    thetas = {
        (group, user): before.thetas(torch.tensor([user]))[levels[group]][0]
        for group, user in {entry[:2] for entry in log}
    }
    batches = Stream(2, "network batches").integers(torch.arange(6), 0, 8, len(log)).tolist()
    reference.train(network, scale, world.catalogue, log, thetas, batches, rate=0.01, decay=0.01)
    for own, expected in zip(seen.network.parameters(), network.parameters(), strict=True):
        np.testing.assert_allclose(own.detach(), expected.detach(), **ALGEBRA)
    np.testing.assert_allclose(seen.scale, reference.rescaled(network, world.catalogue, 0.7), **ALGEBRA)
    # Every user's regression is that of the log on the new features.
    for user in {entry[1] for entry in log}:
        M = policy.arm_model.ridge * np.eye(seen.dim)
        for _, owner, what, thing, _ in log:
            if owner == user and what == "arm":
                x = seen.arms()[thing].numpy()
                M += policy.arm_model.weight * np.outer(x, x)
        np.testing.assert_allclose(policy.arm_model.gram[user], M, **ALGEBRA)


def _rewards(played):
    return [played.outcome.feedback[0].reward.tolist()]


def test_a_key_term_is_the_mean_of_its_encoded_arms(world):
    policy = NeuralLinear(world.catalogue, world.num_users, representation=Network(**FAST))
    seen = policy.representation
    edges = world.catalogue.arms_of(torch.tensor([3]))
    expected = (edges.weight[:, None] * seen.arms()[edges.target]).sum(0)
    torch.testing.assert_close(seen.terms()[3], expected)


@pytest.mark.slow
def test_it_keeps_the_contract():
    """Training often enough for the contract's short runs; exported policies' is checked where all are."""
    check_policy(lambda *args, seed: ConUCB(*args, representation=Network(**FAST), seed=seed))


def test_it_trains_by_the_loss_of_the_link():
    world = small_world(feedback="logistic", scale=3.0)
    policy = LinUCB(world.catalogue, 7, representation=Network(**FAST), link=Logistic())
    play(policy, world, 9)
    tags = policy.diagnostics(world.observe())
    assert 0.3 < float(tags["network/loss_before"]) < 1.0  # log 2 where nothing is known
    assert ((policy.predict(world.observe()) > 0) & (policy.predict(world.observe()) < 1)).all()


def test_training_lowers_the_loss_and_the_log_shows_it():
    world = Curved(users=10, arms=100, terms=10, dim=4, pool=10, seed=1)
    policy = NeuralLinear(world.catalogue, 10, representation=Network(refit_every=30, steps=100))
    play(policy, world, 30)
    tags = policy.diagnostics(world.observe())
    assert float(tags["network/loss_after"]) < 0.7 * float(tags["network/loss_before"])
    assert tags["network/outputs"].shape == (100, 16)


def test_a_network_of_ones_own_is_trained_and_embeddings_can_be_left_out():
    world = small_world(dim=256, arms=40)
    own = nn.Sequential(nn.Linear(256, 8), nn.Tanh(), nn.Linear(8, 4))
    seen = Network(own, keep_features=False, steps=5, batch=16, refit_every=2)
    policy = LinUCB(world.catalogue, 7, representation=seen)
    before = own[0].weight.detach().clone()
    play(policy, world, 2)
    assert policy.arm_model.dim == 4
    assert not torch.equal(own[0].weight, before)


@pytest.mark.parametrize("dim", [256, 384])
@pytest.mark.parametrize("kind", [LinUCB, NeuralLinear, ConNeuralLinear])
def test_embeddings_are_features_like_any_other(kind, dim):
    """Every user's theta equals that of plain least squares on what the model sees, at these sizes too."""
    world = small_world(users=3, arms=40, dim=dim)
    given = {} if kind is LinUCB else {"representation": Network(**FAST)}
    policy = kind(world.catalogue, 3, **given)
    log = [(played.arm_ids, played.outcome.feedback[0].reward) for played in play(policy, world, 9)]
    phi = policy.representation.arms()
    assert policy.arm_model.dim == phi.shape[1] == dim + (0 if kind is LinUCB else 3)
    if kind is not ConNeuralLinear:
        for user in range(3):
            x = torch.stack([phi[arms[user]] for arms, _ in log])
            rewards = torch.stack([reward[user] for _, reward in log])
            gram = torch.eye(phi.shape[1]).double() + x.T @ x
            expected = torch.linalg.solve(gram, x.T @ rewards)
            torch.testing.assert_close(policy.coefficients()[user], expected, rtol=1e-7, atol=1e-9)
    assert policy.scores(world.observe()).isfinite().all()


def test_weights_come_from_the_seed_or_are_kept():
    world = small_world()

    def weights(seed, **arguments):
        torch.manual_seed(9)
        own = nn.Linear(6, 3)
        start = own.weight.detach().clone().double()
        state = torch.get_rng_state()
        NeuralLinear(world.catalogue, 7, representation=Network(own, **arguments), seed=seed)
        assert torch.equal(torch.get_rng_state(), state)  # torch's generator is left alone
        return start, own.weight.detach()

    assert torch.equal(weights(1)[1], weights(1)[1])
    assert not torch.equal(weights(1)[1], weights(2)[1])
    start, kept = weights(1, redraw=False)
    assert torch.equal(kept, start)


class Flat(nn.Module):
    def forward(self, x):
        return x.sum(1)


class Broken(nn.Module):
    def forward(self, x):
        return x / 0


@pytest.mark.parametrize(
    ("network", "error", "message"),
    [
        (Flat(), ValueError, r"must make \[n, m\] numbers of \[n, 6\] features.*it made \[2\]"),
        (nn.Linear(5, 3), ValueError, r"must make \[n, m\] numbers of \[n, 6\] features.*shapes"),
        (Broken(), NumericsError, "makes NaN or infinity"),
        ("an MLP", TypeError, "network must be a torch.nn.Module, got 'an MLP'"),
    ],
)
def test_a_network_that_cannot_be_used_is_refused_in_words(world, network, error, message):
    with pytest.raises(error, match=message):
        NeuralLinear(world.catalogue, 7, representation=Network(network))


def test_a_training_that_diverges_says_so():
    world = small_world()
    seen = Network(**(FAST | {"learning_rate": 1e200}))
    policy = NeuralLinear(world.catalogue, 7, representation=seen)
    with pytest.raises(NumericsError, match="lower learning_rate"):
        play(policy, world, 8)


@pytest.mark.parametrize(
    ("name", "value"),
    [("hidden", 0), ("outputs", 0), ("steps", 0), ("batch", 0), ("length", 0.0), ("learning_rate", 0.0)],
)
def test_sizes_of_nothing_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        Network(**{name: value})


@pytest.mark.slow
def test_it_learns_what_a_linear_policy_cannot():
    def regret(policy, **arguments):
        world = Curved(users=20, arms=200, terms=20, dim=6, pool=20, seed=1)
        made = policy(world.catalogue, 20, **arguments)
        return sum(float(played.outcome.regret.mean()) for played in play(made, world, 150))

    seen = {"hidden": 32, "outputs": 8, "steps": 100}
    assert regret(NeuralLinear, representation=Network(**seen)) < 0.7 * regret(LinUCB, alpha=0.25)
