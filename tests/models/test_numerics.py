"""Numbers that misbehave are refused with their place, or handled exactly; never hidden."""

import numpy as np
import pytest
import torch

from conbandit_torch import (
    ArmCon,
    Bandit,
    Catalogue,
    ConUCB,
    HConUCB,
    LinUCB,
    RidgeRegression,
    Selection,
    Simulation,
    play_round,
)
from conbandit_torch.core.screen import FeedbackError
from conbandit_torch.models.inverses import NumericsError
from tests.conftest import ALGEBRA, small_world


class Spoiled:
    """An environment that gives one bad reward (round 4, user 2) or answer (first question, user 3)."""

    def __init__(self, environment, reward=None, answer=None):
        self.environment, self.reward, self.answered = environment, reward, answer
        pull, reply = environment.pull, environment.answer
        environment.pull = lambda context, arm: self.pull(pull(context, arm))
        environment.answer = lambda context, question: self.answer(reply(context, question))

    def pull(self, outcome):
        if self.reward is not None and int(self.environment.rounds[0]) == 4:
            outcome.feedback[0].reward[2] = self.reward
        return outcome

    def answer(self, answer):
        if self.answered is not None:
            answer.value[3] = self.answered
            self.answered = None
        return answer


def simulation(cls, bad_feedback="stop", rounds=8, **spoiled):
    environment = small_world()
    Spoiled(environment, **spoiled)
    policy = cls(environment.catalogue, environment.num_users)
    return Simulation(policy, environment, rounds=rounds, log_every=4, bad_feedback=bad_feedback)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("cls", [LinUCB, ConUCB, HConUCB, ArmCon])
def test_a_bad_reward_is_refused_with_user_round_and_value(cls, value):
    with pytest.raises(
        FeedbackError, match=f"the reward of user 2 in its round 4 is {value}; it must be finite"
    ):
        simulation(cls, reward=value).run()


@pytest.mark.parametrize("cls", [ConUCB, HConUCB, ArmCon])
def test_a_bad_answer_is_refused_with_user_round_and_value(cls):
    with pytest.raises(FeedbackError, match="the answer of user 3 in its round 3 is nan"):
        simulation(cls, answer=float("nan")).run()


@pytest.mark.parametrize("cls", [ConUCB, HConUCB, ArmCon])
def test_bad_feedback_can_be_skipped_and_is_counted(cls):
    run = simulation(cls, "skip", reward=float("nan"), answer=float("inf"))
    records = run.run()
    assert int(run.screen.skipped) == 2
    assert records[-1].details["feedback/skipped"] == 2
    assert all(np.isfinite([r.reward, r.regret, r.cumulative_regret]).all() for r in records)
    for value in run.policy.state_dict().values():
        assert value.isfinite().all()
    # The round counts, the question counts, and nothing was learned from either.
    assert run.environment.rounds.tolist() == [8] * 7
    assert len(set(run.policy.asked.tolist())) == 1
    if cls is ConUCB:
        assert run.policy.arm_model.count.tolist() == [8, 8, 7, 8, 8, 8, 8]
        asked = run.policy.asked[0]
        assert run.policy.term_model.count.tolist() == [asked, asked, asked, asked - 1, asked, asked, asked]


def test_features_too_large_for_the_precision_are_refused():
    catalogue = Catalogue(torch.tensor([[1e200, 1.0], [1.0, 0.0]], dtype=torch.float64), torch.eye(2))
    environment = small_world(dim=2, arms=20)
    environment.catalogue = catalogue
    policy = LinUCB(catalogue, environment.num_users)
    with pytest.raises(
        ValueError, match="features are too large for torch.float32: scale them, or use 64-true"
    ):
        Simulation(policy, environment, rounds=3)


def model(dtype, ridge=1.0, dim=3):
    return RidgeRegression(2, dim, ridge, like=torch.zeros(1, dtype=dtype))


def test_features_whose_squares_overflow_are_refused_not_hidden():
    regression = model(torch.float32)
    with pytest.raises(NumericsError, match="model 1: an observation with features of length 1e\\+25"):
        regression.update(torch.tensor([1]), torch.tensor([[1e25, 0.0, 0.0]]), torch.ones(1))


@pytest.mark.parametrize("ridge", [1e-2, 1e-4, 1e-6])
def test_observations_far_larger_than_the_ridge_cost_no_digits(ridge):
    """Without the exact step, 1e-6 would leave errors of the order of 1 in float32."""
    generator = torch.Generator().manual_seed(0)
    regression = model(torch.float32, ridge)
    total = ridge * torch.eye(3, dtype=torch.float64)
    for _ in range(30):
        x = torch.randn(1, 3, generator=generator)
        regression.update(torch.tensor([0]), x, torch.ones(1))
        total += x.double().T @ x.double()
        difference = regression.inverse[0].double() @ total - torch.eye(3)
        size = torch.linalg.eigvalsh(total)
        assert difference.abs().max() < 1e-3 + 1.2e-7 * size[-1] / size[0]  # M itself is rounded to float32


def test_a_ridge_below_the_precision_is_refused_once_it_matters():
    regression = model(torch.float32, 1e-12)
    with pytest.raises(NumericsError, match="not positive definite any more in torch.float32, after 1 obs"):
        regression.update(torch.tensor([0]), torch.tensor([[1.0, 2.0, 3.0]]), torch.ones(1))


def test_lost_definiteness_is_reported_at_the_refresh():
    regression = model(torch.float64)
    regression.gram[1, 0, 0] = -1
    with pytest.raises(NumericsError, match="matrix M of model 1 is not positive definite any more"):
        regression.refresh(torch.tensor([0, 1]))


def test_a_drifted_inverse_is_mended_from_the_matrix():
    """An inverse that has lost definiteness, while M has not: the step is made from an exact one."""
    regression, exact = model(torch.float64), model(torch.float64)
    regression.inverse[0] = -torch.eye(3)
    for which in (regression, exact):
        which.update(torch.tensor([0]), torch.tensor([[1.0, 2.0, 3.0]]).double(), torch.ones(1).double())
    torch.testing.assert_close(regression.inverse, exact.inverse, **ALGEBRA)


@pytest.mark.parametrize("scale", [1e-18, 1e-6, 1e6])
def test_tiny_and_large_features_give_the_decisions_of_float64(scale):
    """Features and ridge scaled together are the same problem: decisions must not change."""
    decisions = []
    for dtype, factor in ((torch.float64, 1.0), (torch.float32, scale)):
        environment = small_world()
        environment.catalogue.arm_features *= factor
        environment.theta /= factor
        policy = LinUCB(environment.catalogue, environment.num_users, ridge=factor**2, alpha=0.3 / 1.0)
        environment.to(dtype), policy.to(dtype)
        decisions.append([play_round(policy, environment).arm_ids.tolist() for _ in range(12)])
    agree = np.mean(np.array(decisions[0]) == np.array(decisions[1]))
    assert agree > 0.95  # float32 may break a near-tie otherwise


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_same_arm_again_and_again(dtype):
    """In float32 M alone would be indefinite after 4,000 rounds, and M^-1 b have lost all digits."""
    regression = model(dtype, 0.1)
    x = torch.tensor([[0.3, -1.2, 2.0]], dtype=dtype)
    for _ in range(5000):
        regression.update(torch.tensor([0]), x, torch.tensor([0.7], dtype=dtype))
    row = x.double().numpy()
    exact = np.linalg.inv(0.1 * np.eye(3) + 5000 * row.T @ row)
    rounding = 1e-7 if dtype == torch.float64 else 1e-4
    np.testing.assert_allclose(regression.inverse[0].numpy(), exact, rtol=rounding, atol=rounding)
    theta = exact @ (5000 * 0.7 * row[0])
    np.testing.assert_allclose(regression.coefficients()[0].numpy(), theta, rtol=rounding)


@pytest.mark.parametrize("ridge", [0.0, -1.0, float("nan"), float("inf")])
def test_ridges_without_an_inverse_are_refused(ridge):
    with pytest.raises(ValueError, match="ridge"):
        model(torch.float64, ridge)


@pytest.mark.parametrize("mix", [0.0, 1.0, float("nan")])
def test_mixes_without_two_levels_are_refused(mix, world):
    with pytest.raises(ValueError, match="mix must be in"):
        ConUCB(world.catalogue, world.num_users, mix=mix)


class Odd(Bandit):
    result = None

    def scores(self, context):
        return type(self).result(context)

    def learn(self, context, arm, reward):
        pass


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda context: torch.zeros(len(context)), "Odd.scores must give \\[7, 9\\] numbers, got \\[7\\]"),
        (lambda context: torch.zeros(7, 8), "Odd.scores must give \\[7, 9\\] numbers, got \\[7, 8\\]"),
        (
            lambda context: torch.full((7, 9), float("nan")),
            "Odd.scores must give finite numbers, got nan in row 0",
        ),
        (
            lambda context: torch.zeros(7, 9).index_fill(0, torch.tensor([4]), float("inf")),
            "got inf in row 4",
        ),
    ],
)
def test_scores_that_cannot_be_ranked_are_refused(world, result, message, monkeypatch):
    monkeypatch.setattr(Odd, "result", staticmethod(result))
    with pytest.raises(ValueError, match=message):
        play_round(Odd(world.catalogue, world.num_users), world)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (
            lambda c, k: torch.zeros(len(c), k + 1),
            "Wrong.scores must give \\[7, 12\\] numbers, got \\[7, 13\\]",
        ),
        (
            lambda c, k: torch.full((len(c), k), float("nan")),
            "Wrong.scores must give finite numbers, got nan",
        ),
    ],
)
def test_a_selection_rule_that_cannot_be_followed_is_refused(world, result, message):
    class Wrong(Selection):
        def scores(self, asking):
            return result(asking, asking.catalogue.num_terms)

    policy = ConUCB(world.catalogue, world.num_users, select=Wrong())
    with pytest.raises(ValueError, match=message):
        for _ in range(3):
            play_round(policy, world)
