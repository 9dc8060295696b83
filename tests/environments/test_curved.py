"""Logistic feedback, and a truth that is not linear in what policies see."""

import pytest
import torch

from conbandit_torch import Curved, Question, Terms
from conbandit_torch.core.randomness import Stream
from tests.conftest import small_world, weights


def test_logistic_clicks_have_the_probability_of_the_sigmoid():
    world = small_world(users=2000, feedback="logistic", scale=2.0)
    context = world.observe()
    mean = torch.sigmoid(2 * (context.arm_features * world.theta[:, None]).sum(2))
    torch.testing.assert_close(world.expected(context), mean)
    arm = torch.zeros(2000, dtype=torch.int64)
    outcome = world.pull(context, arm)
    torch.testing.assert_close(outcome.regret, mean.amax(1) - mean[:, 0])
    reward = outcome.feedback[0].reward
    assert set(reward.tolist()) == {0.0, 1.0}
    error = (reward - mean[:, 0]).mean()  # of 2000 draws, with a standard deviation of at most 0.0112
    assert abs(float(error)) < 4 * 0.0112


def test_a_logistic_answer_has_the_mean_of_its_items_probabilities():
    world = small_world(users=2000, feedback="logistic", scale=2.0)
    context, term = world.observe(), torch.full((2000,), 3)
    P = torch.tensor(weights(world.catalogue))
    each = torch.sigmoid(2 * world.catalogue.arm_features @ world.theta.T)  # [N, U]
    expected = (P[:, 3:4] / P[:, 3].sum() * each).sum(0)
    torch.testing.assert_close(world.mean(context, Terms(term)), expected)
    value = world.answer(context, Question(slice(None), Terms(term))).value
    assert set(value.tolist()) == {0.0, 1.0}
    assert abs(float((value - expected).mean())) < 4 * 0.0112


def test_scale_belongs_to_logistic_feedback():
    with pytest.raises(ValueError, match="scale is of logistic feedback, and feedback is 'linear'"):
        small_world(scale=2.0)
    with pytest.raises(ValueError, match="scale must be above 0"):
        small_world(scale=0.0, feedback="logistic")
    torch.testing.assert_close(
        small_world(scale=2.0, feedback="logistic").preferences(), 2 * small_world().theta
    )


def test_curved_means_are_linear_in_cosines_that_nobody_sees():
    sizes = {"users": 5, "arms": 40, "terms": 8, "dim": 4, "pool": 6, "seed": 2}
    world = Curved(**sizes, units=3, steepness=0.7)
    first = 0.7 * Stream(2, "curved first layer").normal(torch.arange(4), 0, 3)
    context = world.observe()
    assert context.arm_features.shape == (5, 6, 4)
    hidden = torch.cos(context.arm_features @ first)  # [U, A, 3]
    mean = (hidden * world.theta[:, None]).sum(2)
    torch.testing.assert_close(world.expected(context), mean)
    arm = torch.ones(5, dtype=torch.int64)
    torch.testing.assert_close(world.pull(context, arm).regret, mean.amax(1) - mean[:, 1])
    term = torch.tensor([0, 1, 2, 3, 3])
    P = torch.tensor(weights(world.catalogue))
    means = torch.cos(world.catalogue.arm_features @ first) @ world.theta.T  # [N, U]
    expected = torch.stack([P[:, k] / P[:, k].sum() @ means[:, u] for u, k in enumerate(term.tolist())])
    torch.testing.assert_close(world.mean(context, Terms(term)), expected)
    assert world.preferences() is None


def test_curved_refuses_what_it_cannot_be():
    with pytest.raises(ValueError, match="units must be at least 1"):
        Curved(users=2, arms=9, terms=3, dim=2, pool=2, max_terms=2, units=0)
    with pytest.raises(ValueError, match="steepness must be"):
        Curved(users=2, arms=9, terms=3, dim=2, pool=2, max_terms=2, steepness=-1.0)
