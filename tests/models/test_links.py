"""Links: what an observation is to a regression, exact fits, bounds, and what is refused."""

import numpy as np
import pytest
import torch

from conbandit_torch import (
    Arms,
    Comparison,
    ConLinUCB,
    ConLogisticUCB,
    Identity,
    LinUCB,
    Logistic,
    LogisticUCB,
    NoConversation,
    Terms,
    play_round,
)
from conbandit_torch.testing import decisions
from tests.conftest import ALGEBRA, EXACT, small_world, weights
from tests.reference import logistic as reference


def clicking(**changes):
    return small_world(**({"feedback": "logistic", "scale": 3.0} | changes))


def play(policy, world, rounds):
    return [play_round(policy, world) for _ in range(rounds)]


def drawn(*shape):
    return torch.linspace(-1.5, 1.2, int(np.prod(shape))).mul(7).sin().view(shape).double()


@pytest.mark.parametrize("answer", ["mean of items", "at the mean"])
@pytest.mark.parametrize("deviation", [0.0, 0.2])
def test_the_gradient_of_an_answer_is_that_of_autograd(answer, deviation, world):
    link, catalogue = Logistic(answer=answer, answer_deviation=deviation), world.catalogue
    theta, value = drawn(3, 6).requires_grad_(), torch.tensor([0.0, 1.0, 0.3]).double()
    about = Terms(torch.tensor([1, 4, 4]))
    x, y = link.several(about, catalogue, catalogue, theta.detach(), value)
    mean = link.means(about, catalogue, catalogue, theta)
    if answer == "mean of items":
        P = weights(catalogue) / weights(catalogue).sum(0)
        each = torch.sigmoid(catalogue.arm_features @ theta.T)  # [N, Q]
        expected = (torch.tensor(P[:, [1, 4, 4]]) * each).sum(0)
    else:
        expected = torch.sigmoid((catalogue.term_features[[1, 4, 4]] * theta).sum(1))
    torch.testing.assert_close(mean, expected)
    (gradient,) = torch.autograd.grad(mean.sum(), theta)
    variance = torch.full_like(mean, deviation**2) if deviation else mean * (1 - mean)
    torch.testing.assert_close(x, gradient / variance.sqrt()[:, None].detach())
    surprise = (value - mean) / variance.sqrt()
    torch.testing.assert_close(y - (x * theta).sum(1).detach(), surprise.detach())


def test_a_comparison_is_a_click_on_the_difference(world):
    link, catalogue = Logistic(), world.catalogue
    theta, value = drawn(2, 6), torch.tensor([1.0, 0.0]).double()
    for side in (Terms, Arms):
        about = Comparison(side(torch.tensor([1, 2])), side(torch.tensor([5, 0])))
        x = about.features(catalogue)
        torch.testing.assert_close(
            link.several(about, catalogue, catalogue, theta, value), link.single(about, x, theta, value)
        )
        mean = torch.sigmoid((x * theta).sum(1))
        torch.testing.assert_close(link.means(about, catalogue, catalogue, theta), mean)


def test_rewards_are_clicks_also_where_answers_are_graded(world):
    """An exact fit of the log must weigh a reward as the step that first learned it did."""
    catalogue, value = world.catalogue, torch.tensor([1.0, 0.0]).double()
    about, theta = Arms(torch.tensor([3, 8])), drawn(2, 6)
    graded, clicks = (
        link.several(about, catalogue, catalogue, theta, value)
        for link in (Logistic(answer_deviation=0.2), Logistic())
    )
    torch.testing.assert_close(graded, clicks, **EXACT)


def test_an_exact_fit_is_the_maximum_of_the_penalised_likelihood():
    world = clicking()
    policy = LogisticUCB(world.catalogue, 7, ridge=0.4, link=Logistic(refit_every=30, refit_steps=12))
    log = [[] for _ in range(7)]
    for played in play(policy, world, 30):
        rewards = played.outcome.feedback[0].reward.tolist()
        for user, (arm, reward) in enumerate(zip(played.arm_ids.tolist(), rewards, strict=True)):
            log[user].append(reference.Arm(world.catalogue.arm_features[arm].numpy(), reward))
    for user in range(7):
        theta = policy.coefficients()[user].numpy()
        slope = 0.4 * theta
        for seen in log[user]:
            slope = slope - seen.x * (seen.value - seen.mean(theta))
        np.testing.assert_allclose(slope, 0 * slope, atol=1e-6)
        M, _ = reference.sums(log[user], theta, 0.4, 1.0)
        np.testing.assert_allclose(policy.arm_model.gram[user], M, rtol=1e-5)


def test_a_fit_of_one_level_takes_rewards_and_answers():
    world = clicking()
    policy = ConLinUCB(world.catalogue, 7, link=Logistic(refit_every=10, refit_steps=12))
    play(policy, world, 10)
    assert policy.arm_model.count.tolist() == [20] * 7  # 10 rewards, 10 answers
    before = policy.coefficients().clone()
    policy.rebuild()
    torch.testing.assert_close(policy.coefficients(), before, rtol=1e-6, atol=1e-6)


def test_fits_in_runs_of_users_are_the_same(monkeypatch):
    world, again = clicking(), clicking()
    policy, other = (ConLogisticUCB(w.catalogue, 7) for w in (world, again))
    play(policy, world, 12)
    monkeypatch.setattr("conbandit_torch.models.newton.BLOCK_ELEMENTS", 8)
    play(other, again, 12)
    torch.testing.assert_close(policy.coefficients(), other.coefficients(), **ALGEBRA)


def test_separable_clicks_with_a_tiny_ridge_stay_within_the_bound():
    """All clicks of one sign per arm can be explained by ever longer theta; ridge 1e-6 hardly minds."""
    world = clicking(scale=1000.0)  # as good as certain
    policy = LogisticUCB(world.catalogue, 7, ridge=1e-6, link=Logistic(bound=20.0))
    for _ in range(60):
        play_round(policy, world)
        assert float(policy.coefficients().norm(dim=1).max()) <= 20.0 * (1 + 1e-9)
    assert float(policy.diagnostics(world.observe())["link/share_at_bound"]) > 0
    assert policy.scores(world.observe()).isfinite().all()


def test_rewards_outside_0_and_1_count_as_the_nearest(world):
    one, other = (LogisticUCB(world.catalogue, 7) for _ in range(2))
    context, arm = world.observe(), torch.zeros(7, dtype=torch.int64)
    one.update(context, arm, torch.tensor([-3.0, 0.2, 5.0, 1.0, 0.0, 1.5, -0.1]).double())
    other.update(context, arm, torch.tensor([0.0, 0.2, 1.0, 1.0, 0.0, 1.0, 0.0]).double())
    assert torch.equal(one.coefficients(), other.coefficients())


def test_predictions_are_probabilities():
    world = clicking()
    policy = LogisticUCB(world.catalogue, 7)
    play(policy, world, 20)
    context = world.observe()
    expected = torch.sigmoid((context.arm_features * policy.coefficients()[:, None]).sum(2))
    torch.testing.assert_close(policy.predict(context), expected)


def test_the_link_is_a_part_of_any_linear_policy():
    one, other = clicking(), clicking()
    same = LinUCB(one.catalogue, 7, alpha=0.5, ridge=0.3, link=Logistic())
    assert decisions(same, one) == decisions(LogisticUCB(other.catalogue, 7), other)


def test_without_questions_it_is_the_base_at_the_arm_levels_prior():
    one, other = clicking(), clicking()
    silent = ConLogisticUCB(one.catalogue, 7, mix=0.4, term_alpha=0.0, schedule=NoConversation(), alpha=0.3)
    base = LogisticUCB(other.catalogue, 7, alpha=0.3)
    base.arm_model.set_prior(ridge=0.6, weight=0.4)
    assert decisions(silent, one, 25) == decisions(base, other, 25)


def test_an_identity_is_what_every_linear_policy_has(world):
    assert LinUCB(world.catalogue, 7).link == Identity()
    with pytest.raises(TypeError, match="link must be a Link, got 'logistic'"):
        LinUCB(world.catalogue, 7, link="logistic")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"answer": "median"}, "answer must be 'mean of items' or 'at the mean', got 'median'"),
        ({"bound": 0.0}, "bound must be above 0"),
        ({"answer_deviation": -1.0}, "answer_deviation must be a number of at least 0"),
        ({"refit_steps": 0}, "refit_steps must be at least 1"),
        ({"refit_every": 0}, "refit_every must be at least 1"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Logistic(**arguments)


@pytest.mark.slow
def test_clicks_are_learned_faster_than_by_a_linear_model():
    def regret(policy, **arguments):
        world = clicking(users=40, arms=300, terms=30, dim=8, pool=20, seed=2)
        made = policy(world.catalogue, 40, **arguments)
        return sum(float(played.outcome.regret.mean()) for played in play(made, world, 300))

    assert regret(LogisticUCB) < 0.7 * regret(LinUCB, alpha=0.25)
