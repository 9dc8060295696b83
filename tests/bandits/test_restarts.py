"""Policies that forget users who have changed: who is forgotten, when, and what happens then."""

import math

import pytest
import torch

from conbandit_torch import (
    AbruptChange,
    ArmCon,
    AskAgainConLinUCB,
    AskAgainConUCB,
    ConLogisticUCB,
    Context,
    ConUCB,
    ConversationMixin,
    DiscountedConUCB,
    HConUCB,
    LinearSchedule,
    LinUCB,
    Random,
    RestartingLinUCB,
    RestartMixin,
    Synthetic,
    play_round,
)
from conbandit_torch.testing import check_policy, decisions
from tests.conftest import ALGEBRA

NERVOUS = {"patience": 1.05, "growth": 1.2}  # forgets at the least surprise


def world(**how):
    return Synthetic(**({"users": 40, "arms": 200, "terms": 20, "dim": 12, "pool": 12, "seed": 1} | how))


def on(policy):
    return type(f"Restarting{policy.__name__}", (RestartMixin, policy), {})


@pytest.mark.parametrize(
    "policy",
    [on(policy) for policy in (LinUCB, ConUCB, ArmCon, HConUCB, ConLogisticUCB, DiscountedConUCB)],
    ids=lambda c: c.__name__,
)
def test_it_stands_over_any_linear_policy_and_keeps_the_contract(policy):
    check_policy(policy, **NERVOUS)


def test_it_may_stand_under_a_conversation_too():
    under = type("Under", (ConversationMixin, RestartingLinUCB), {})
    over, changing = on(ConUCB), {"drift": AbruptChange(at=30)}
    one, other = world(**changing), world(**changing)
    first = decisions(under(one.catalogue, 40, alpha=0.25), one, 50)
    assert first == decisions(over(other.catalogue, 40), other, 50)


def test_who_has_changed_is_forgotten_soon_and_nobody_else():
    """At most one in twenty goes unnoticed: what they like now is close to what they liked."""
    changing = world(drift=AbruptChange(at=60, share=0.5))
    start = changing.theta.clone()
    policy = AskAgainConUCB(changing.catalogue, 40)
    decisions(policy, changing, 60)
    assert not policy.restarts.any()
    decisions(policy, changing, 10)
    changed = (changing.preferences() != start).any(1)
    assert changed.any() and not changed.all()
    assert (policy.restarts <= changed).all() and policy.restarts.sum() >= 0.95 * changed.sum()
    assert torch.equal(policy.start >= 60, policy.restarts == 1)


def test_a_forgotten_user_is_as_new_but_for_the_reward_that_gave_it_away():
    changing = world(drift=AbruptChange(at=60))
    policy = AskAgainConLinUCB(changing.catalogue, 40, ridge=0.1)
    played = []
    for _ in range(75):
        played.append(play_round(policy, changing))
    for user in range(0, 40, 7):
        fresh = AskAgainConLinUCB(changing.catalogue, 40, ridge=0.1)
        began = int(policy.start[user])
        assert began >= 60
        for number in range(began, 75):
            one = played[number]
            context = one.context.take(torch.tensor([user]))
            for question, answer in one.dialogue if number > began else ():
                row = (torch.arange(40)[question.rows] == user).nonzero().squeeze(1)
                if len(row):
                    fresh.learn_answer(context, question.about.take(row), answer.value[row])
            fresh.update(context, one.arm[[user]], one.outcome.feedback[0].reward[[user]])
        torch.testing.assert_close(policy.coefficients()[user], fresh.coefficients()[user], **ALGEBRA)


def test_the_schedule_begins_again():
    """Of the log schedule: 5 questions in the third round after the start, as in a user's third round."""
    changing = world(drift=AbruptChange(at=60))
    policy = AskAgainConLinUCB(changing.catalogue, 40, ridge=0.1)
    asked = torch.zeros(80, 40, dtype=torch.int64)
    for number in range(80):
        for question, _ in play_round(policy, changing).dialogue:
            asked[number, question.rows] += 1
    began = policy.start
    everyone = torch.arange(40)
    assert (asked[began + 2, everyone] == 5).all() and (asked[began + 1, everyone] == 0).all()
    assert (asked[2] == 5).all()


def test_asking_again_costs_far_less_regret_than_going_on():
    """After the change, no more than half as much again as before it; others lose a multiple."""

    def regret(policy, **arguments):
        changing = world(drift=AbruptChange(at=150))
        made = policy(changing.catalogue, 40, **arguments)
        lost = [float(play_round(made, changing).outcome.regret.mean()) for _ in range(300)]
        return sum(lost[:150]), sum(lost[150:])

    again, silent, going_on = regret(AskAgainConUCB), regret(RestartingLinUCB, alpha=0.25), regret(ConUCB)
    assert again[1] < 1.5 * again[0]
    assert again[1] < silent[1] < 0.3 * going_on[1]


@pytest.mark.parametrize(
    "how", [{}, {"normalise": True}, {"noise": 1.0}], ids=["plain", "normalised", "noisy"]
)
def test_false_alarms_are_as_rare_as_promised(how):
    """400 users, 100 rounds: with at least 200 rounds between false alarms, at most 200 of them are expected;
    slack of five standard errors of a count."""
    still = world(users=400, **how)
    policy = RestartingLinUCB(still.catalogue, 400, patience=200.0)
    decisions(policy, still, 100)
    assert int(policy.restarts.sum()) <= 200 + 5 * math.sqrt(200)


def test_rewards_decided_before_the_start_are_left_out():
    changing = world(drift=AbruptChange(at=60))
    policy = RestartingLinUCB(changing.catalogue, 40, ridge=0.1)
    decisions(policy, changing, 70)
    before = {name: value.clone() for name, value in policy.state_dict().items()}
    now = changing.observe()
    early = Context(now.users, now.arms, rounds=policy.start - 1, catalogue=changing.catalogue)
    arm, reward = torch.zeros(40, dtype=torch.int64), torch.ones(40).double()
    policy.update(early, arm, reward)
    for name, value in policy.state_dict().items():
        assert torch.equal(value, before[name]), name
    policy.update(
        Context(now.users, now.arms, rounds=policy.start, catalogue=changing.catalogue), arm, reward
    )
    assert (policy.arm_model.count == before["arm_model.count"] + 1).all()


def test_a_world_without_noise_gives_no_alarm():
    still = world(noise=0.0)
    policy = RestartingLinUCB(still.catalogue, 40, ridge=1e-3)
    decisions(policy, still, 120)
    assert policy.larger.isfinite().all() and policy.lower.isfinite().all() and not policy.restarts.any()


def test_diagnostics_tell_how_often_users_were_forgotten():
    changing = world(drift=AbruptChange(at=60))
    policy = RestartingLinUCB(changing.catalogue, 40, ridge=0.1)
    decisions(policy, changing, 70)
    assert float(policy.diagnostics(changing.observe())["restarts/mean"]) == 1.0


def test_bad_arguments_are_refused():
    still = world()
    for name, above in (("patience", 1), ("growth", 1), ("shift", 0)):
        for value in (float(above), math.inf, math.nan):
            with pytest.raises(ValueError, match=f"{name} must be above {above} and finite"):
                AskAgainConUCB(still.catalogue, 40, **{name: value})
    with pytest.raises(TypeError, match="LinUCB has no argument .schedule."):
        RestartingLinUCB(still.catalogue, 40, schedule=LinearSchedule())
    with pytest.raises(TypeError, match="RestartMixin needs a LinearBandit, and Random is none"):
        type("Wrong", (RestartMixin, Random), {})
