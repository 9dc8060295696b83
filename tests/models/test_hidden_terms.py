"""Hidden features on key-terms: the minimum, what is learned of whom, and what is refused."""

import copy

import numpy as np
import pytest
import torch

from conbandit_torch import (
    Catalogue,
    ConUCB,
    HConLinUCB,
    HConUCB,
    HiddenOnTerms,
    HLinUCB,
    LinThompson,
    LinUCB,
    Logistic,
    LogSchedule,
    RefitSchedule,
    play_round,
)
from conbandit_torch.testing import check_policy, decisions
from tests.conftest import EXACT, weights
from tests.helpers.hidden import hidden_world
from tests.reference.logistic import mu


@pytest.fixture(autouse=True)
def to_the_last_digit(monkeypatch):
    monkeypatch.setattr("conbandit_torch.models.hidden_terms.TOLERANCE", 1e-10)


def on_terms(size=2, **changes):
    own = {"ridge": 0.6, "residual_ridge": 3.0, "alpha": 0.3, "refit_every": 4, "sweeps": 1, "steps": 500}
    return HiddenOnTerms(size, **(own | changes))


def play(policy, world, rounds):
    """Rounds, with all (user, weights over arms, value) that were observed: rewards, and answers."""
    graph, number = weights(world.catalogue), world.catalogue.num_arms
    share = graph / graph.sum(0)
    rewards, answers = [], []
    for _ in range(rounds):
        played = play_round(policy, world)
        for question, answer in played.dialogue:
            users = played.context.users[question.rows].tolist()
            terms, values = question.about.of.tolist(), answer.value.tolist()
            answers += [(u, share[:, k], r) for u, k, r in zip(users, terms, values, strict=True)]
        (feedback,) = played.outcome.feedback
        shown = np.eye(number)[played.arm_ids.numpy()]
        rewards += list(zip(played.context.users.tolist(), shown, feedback.reward.tolist(), strict=True))
    return rewards, answers


def reference_refit(policy, start, theta, theta_term, rewards, answers, ridge, residual_ridge, units=None):
    """[K + N, L] g and u: one dense system of normal equations, summed observation by observation.

    Of clicks it is that of the loss to second order, where g and u are `units`.
    """
    X, W = policy.catalogue.arm_features.numpy(), weights(policy.catalogue)
    number, size = sum(W.shape), policy.representation.size
    penalty = np.repeat([ridge] * W.shape[1] + [residual_ridge] * len(W), size)
    gram, moment = np.diag(penalty), penalty * start.flatten()
    for group, preferences in ((rewards, theta), (answers, theta_term)):
        for user, over_arms, value in group:
            taste, hidden = np.split(preferences[user], [X.shape[1]])
            over_units = np.concatenate((over_arms @ W, over_arms))
            row = np.outer(over_units, hidden).flatten()  # the prediction is row times the unknowns
            left = value - over_arms @ X @ taste
            if units is not None:
                m = mu(over_arms @ X @ taste + row @ units.flatten())
                s = np.sqrt(m * (1 - m))
                left = (np.clip(value, 0, 1) - m) / s + s * row @ units.flatten()
                row = s * row
            gram += np.outer(row, row)
            moment += row * left
    return np.linalg.solve(gram, moment).reshape(number, size)


@pytest.mark.parametrize("policy_class", [HLinUCB, HConUCB, HConLinUCB])
def test_a_refit_equals_a_dense_reference(policy_class):
    world = hidden_world()
    more = {} if policy_class is HLinUCB else {"schedule": LogSchedule(2)}
    policy = policy_class(world.catalogue, 4, representation=on_terms(refit_every=10**6), **more)
    start = policy.representation.units.numpy().copy()
    rewards, answers = play(policy, world, 15)
    assert bool(answers) == (policy_class is not HLinUCB)
    theta, *term = (each.numpy() for each in policy.thetas(slice(0, 4)))
    expected = reference_refit(policy, start, theta, term[0] if term else theta, rewards, answers, 0.6, 3.0)
    policy.refit()
    found = policy.representation.units.numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    hidden = weights(world.catalogue) @ expected[:7] + expected[7:]
    np.testing.assert_allclose(policy.representation.hidden, hidden, rtol=1e-6, atol=1e-8)
    phi = np.concatenate((world.catalogue.arm_features.numpy(), policy.representation.hidden.numpy()), 1)
    if policy_class is HConLinUCB:  # theta is built anew, on the new phi
        for user in range(4):
            own = [(w, r) for u, w, r in rewards + answers if u == user]
            rows = np.array([w @ phi for w, _ in own])
            M, b = np.eye(phi.shape[1]) + rows.T @ rows, rows.T @ np.array([r for _, r in own])
            np.testing.assert_allclose(policy.theta(slice(0, 4))[user], np.linalg.solve(M, b), atol=1e-8)


@pytest.mark.parametrize("policy_class", [HLinUCB, HConUCB, HConLinUCB])
def test_a_refit_to_clicks_equals_a_dense_reference(policy_class):
    world = hidden_world()
    more = {} if policy_class is HLinUCB else {"schedule": LogSchedule(2)}
    link = Logistic(answer="at the mean", refit_every=None)
    policy = policy_class(
        world.catalogue, 4, representation=on_terms(refit_every=10**6), link=link, seed=3, **more
    )
    start = policy.representation.units.numpy().copy()
    rewards, answers = play(policy, world, 15)
    for _ in range(2):  # the second time from where the first has led to
        units = policy.representation.units.numpy().copy()
        theta, *term = (each.numpy() for each in policy.thetas(slice(0, 4)))
        own = start, theta, term[0] if term else theta, rewards, answers, 0.6, 3.0
        expected = reference_refit(policy, *own, units)
        policy.refit()
        np.testing.assert_allclose(policy.representation.units, expected, rtol=1e-6, atol=1e-8)
    assert not np.allclose(units, start)


def test_the_width_is_that_of_the_majorised_matrices():
    world = hidden_world()
    policy = HConLinUCB(world.catalogue, 4, representation=on_terms(refit_every=10**6))
    rewards, answers = play(policy, world, 15)
    theta, W = policy.theta(slice(0, 4)).numpy(), weights(world.catalogue)
    C = [ridge * np.eye(2) for ridge in [0.6] * W.shape[1] + [3.0] * len(W)]
    for user, over_arms, _ in rewards + answers:
        over_units = np.concatenate((over_arms @ W, over_arms))
        for unit, weight in enumerate(over_units):
            C[unit] += over_units.sum() * weight * np.outer(theta[user][-2:], theta[user][-2:])
    policy.refit()
    context = world.observe()
    theta = policy.theta(context.who)
    found = policy.extra(context, theta)
    for row, arms in enumerate(context.arms.tolist()):
        for column, a in enumerate(arms):
            parts = np.concatenate((W[a] ** 2, np.eye(len(W))[a]))
            S = sum(part * np.linalg.inv(own) for part, own in zip(parts, C, strict=True))
            hidden = theta[row, -2:].numpy()
            np.testing.assert_allclose(found[row, column], 0.3 * np.sqrt(hidden @ S @ hidden), rtol=1e-9)


def test_a_refit_teaches_arms_that_nobody_has_seen():
    world = hidden_world(arms=60)
    policy = HConLinUCB(world.catalogue, 4, representation=on_terms(refit_every=10**6))
    rewards, _ = play(policy, world, 6)
    seen = {int(shown.argmax()) for _, shown, _ in rewards}
    unseen = [a for a in range(60) if a not in seen]
    before = policy.representation.hidden[unseen].clone()
    policy.refit()
    moved = (policy.representation.hidden[unseen] - before).norm(dim=1)
    assert len(unseen) > 10 and bool((moved > 1e-3).all())


def test_an_arm_without_key_terms_has_a_residual_only():
    world = hidden_world()
    graph = weights(world.catalogue)
    graph[0] = 0
    catalogue = Catalogue(world.catalogue.arm_features, graph)
    policy = LinUCB(catalogue, 4, representation=on_terms())
    assert policy.representation.hidden[0].eq(0).all() and policy.representation.hidden[1:].ne(0).any(1).all()
    decisions(policy, world, 12)
    torch.testing.assert_close(policy.representation.hidden[0], policy.representation.units[7], **EXACT)


@pytest.mark.parametrize("policy_class", [HLinUCB, HConUCB, HConLinUCB, LinThompson, ConUCB])
def test_it_keeps_the_contract_as_a_part_of_any_linear_policy(policy_class):
    check_policy(lambda *a, seed: policy_class(*a, representation=on_terms(steps=20), seed=seed))


def test_the_same_policy_by_two_names():
    worlds = hidden_world(), hidden_world()
    one = HLinUCB(worlds[0].catalogue, 4, representation=on_terms())
    other = LinUCB(worlds[1].catalogue, 4, representation=on_terms())
    assert decisions(one, worlds[0], 20) == decisions(other, worlds[1], 20)


def test_a_catalogue_that_grows_keeps_what_was_learned():
    world = hidden_world()
    policy = HConLinUCB(world.catalogue, 4, representation=on_terms())
    decisions(policy, world, 12)
    old = copy.deepcopy(policy.representation)
    more = torch.zeros(2, 8, dtype=torch.float64)
    more[0, 0] = more[1, 7] = 1
    policy.extend(world.catalogue.extended(world.catalogue.arm_features[:2], more))
    new = policy.representation
    torch.testing.assert_close(new.hidden[:25], old.hidden, **EXACT)
    torch.testing.assert_close(new.hidden[25], old.units[0], **EXACT)
    torch.testing.assert_close(new.spread[:25], old.spread, **EXACT)


def test_a_policy_that_was_saved_between_refits_shows_the_same_diagnostics():
    world = hidden_world()
    policy, restored = (LinUCB(world.catalogue, world.num_users, representation=on_terms()) for _ in range(2))
    play(policy, world, 5)  # refit after round 4
    restored.load_state_dict(policy.state_dict())
    context = world.observe()
    ours, theirs = (one.diagnostics(context) for one in (restored, policy))
    assert float(theirs["hidden/squared_error"]) > 0
    for name in theirs.keys() - {"hidden/refit_seconds"}:
        torch.testing.assert_close(ours[name], theirs[name], **EXACT)


def test_refits_are_frequent_at_first_and_rare_later():
    schedule = RefitSchedule(every=2, growth=0.1)
    due = [t for t in range(1, 1001) if schedule.due(t)]
    assert due[:10] == list(range(2, 21, 2))
    gaps = np.diff(due)
    assert gaps[-1] == pytest.approx(0.1 * due[-2], rel=0.1) and (np.diff(gaps[10:]) >= -1).all()
    assert [t for t in range(1, 61) if RefitSchedule(20, growth=0).due(t)] == [20, 40, 60]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: on_terms(size=0), "size must be at least 1, got 0"),
        (lambda c: on_terms(residual_ridge=0.0), "residual_ridge must be above 0 and finite, got 0.0"),
        (lambda c: on_terms(alpha=-1.0), "alpha must be a number of at least 0, got -1.0"),
        (lambda c: on_terms(refit_every=0), "refit_every must be at least 1, got 0"),
        (lambda c: RefitSchedule(growth=-1.0), "growth must be a number of at least 0"),
        (
            lambda c: HConLinUCB(c, 4, hidden_dim=3, representation=on_terms()),
            "hidden_dim and a representation",
        ),
        (
            lambda c: HLinUCB(Catalogue(c.arm_features), 4, representation=on_terms()),
            "the catalogue has none",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(hidden_world().catalogue)
