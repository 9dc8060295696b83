"""Feedback that is not finite never reaches a policy: it is refused with its place, or left out and counted."""

import pytest
import torch

from conbandit_torch import Answer, Context, ConUCB, Feedback, Outcome, Question, Terms, play_round
from conbandit_torch.core.screen import STRICT, FeedbackError, Screen
from tests.conftest import EXACT, small_world

BAD = [float("nan"), float("inf"), float("-inf")]


def context_of(world, users, rounds):
    users, rounds = torch.tensor(users), torch.tensor(rounds)
    return Context(users, world.pools(users, rounds), rounds=rounds, catalogue=world.catalogue)


def rewarded(world, users, rounds, reward):
    context = context_of(world, users, rounds)
    return Feedback(context, torch.arange(len(users)), torch.tensor(reward))


def test_finite_feedback_passes_as_it_is(world):
    outcome = Outcome([rewarded(world, [5, 0], [3, 1], [0.5, 1.0])], regret=torch.zeros(2))
    context = outcome.feedback[0].context
    question, answer = Question(slice(None), Terms(torch.tensor([0, 1]))), Answer(torch.ones(2))
    for screen in (STRICT, Screen("skip")):
        assert screen.outcome(outcome) is outcome
        assert screen.answer(context, question, answer) is answer
        assert int(screen.skipped) == 0


@pytest.mark.parametrize("value", BAD)
def test_a_bad_reward_is_refused_with_user_and_round_also_where_it_comes_late(world, value):
    late = Outcome(
        [rewarded(world, [5, 0], [3, 1], [0.5, 1.0]), rewarded(world, [2, 6], [0, 8], [0.5, value])], None
    )
    message = (
        f"the reward of user 6 in its round 9 is {value}; it must be finite .`bad_feedback: skip` leaves"
    )
    with pytest.raises(FeedbackError, match=message):
        STRICT.outcome(late)


@pytest.mark.parametrize("value", BAD)
def test_bad_rewards_are_left_out_and_counted(world, value):
    good = rewarded(world, [5, 0], [3, 1], [0.5, 1.0])
    mixed = rewarded(world, [2, 6, 1], [0, 8, 4], [value, 0.5, value])
    none = rewarded(world, [4], [0], [value])
    screen, regret = Screen("skip"), torch.zeros(1)
    outcome = screen.outcome(Outcome([good, mixed, none], regret))
    assert outcome.feedback[0] is good and outcome.regret is regret
    assert outcome.feedback[1].context.users.tolist() == [6]
    assert outcome.feedback[1].context.rounds.tolist() == [8]
    assert outcome.feedback[1].arm.tolist() == [1] and outcome.feedback[1].reward.tolist() == [0.5]
    torch.testing.assert_close(outcome.feedback[1].context.arms, mixed.context.arms[[1]], **EXACT)
    assert [len(feedback.context) for feedback in outcome.feedback[2:]] in ([], [0])
    assert int(screen.skipped) == 3
    twin = Screen("skip")
    twin.load_state_dict(screen.state_dict())
    assert int(twin.skipped) == 3


@pytest.mark.parametrize("value", BAD)
def test_a_bad_answer_is_refused_with_user_and_round_of_the_row_that_was_asked(world, value):
    context = context_of(world, [5, 0, 3], [3, 1, 6])
    question = Question(torch.tensor([2, 0]), Terms(torch.tensor([0, 1])))
    for known in (None, torch.tensor([True, True])):
        with pytest.raises(FeedbackError, match=f"the answer of user 5 in its round 4 is {value}"):
            STRICT.answer(context, question, Answer(torch.tensor([0.5, value]), known))


@pytest.mark.parametrize("value", BAD)
def test_a_bad_answer_becomes_one_that_is_not_known(world, value):
    context = context_of(world, [5, 0, 3], [3, 1, 6])
    question = Question(torch.tensor([2, 0, 1]), Terms(torch.tensor([0, 1, 2])))
    screen = Screen("skip")
    passed = screen.answer(context, question, Answer(torch.tensor([0.5, value, 1.0])))
    assert passed.known.tolist() == [True, False, True] and int(screen.skipped) == 1
    some = Answer(torch.tensor([0.5, value, 1.0]), torch.tensor([False, True, True]))
    passed = screen.answer(context, question, some)
    assert passed.known.tolist() == [False, False, True] and int(screen.skipped) == 2


def test_what_is_not_known_may_hold_anything(world):
    context = context_of(world, [5, 0], [3, 1])
    question = Question(slice(None), Terms(torch.tensor([0, 1])))
    unknown = Answer(torch.tensor([torch.nan, 1.0]), torch.tensor([False, True]))
    for screen in (STRICT, Screen("skip")):
        assert screen.answer(context, question, unknown) is unknown
        assert int(screen.skipped) == 0


def test_a_policy_is_told_nothing_of_what_was_left_out():
    world, screen = small_world(), Screen("skip")
    pull, reply = world.pull, world.answer

    def spoiled(context, arm):
        outcome = pull(context, arm)
        outcome.feedback[0].reward[::2] = torch.nan
        return outcome

    def evaded(context, question):
        answer = reply(context, question)
        answer.value[1::2] = torch.inf
        return answer

    world.pull, world.answer = spoiled, evaded
    policy = ConUCB(world.catalogue, 7)
    for _ in range(4):
        play_round(policy, world, screen)
    assert policy.arm_model.count.tolist() == [0, 4, 0, 4, 0, 4, 0]
    assert policy.term_model.count.tolist() == [5, 0, 5, 0, 5, 0, 5]
    assert policy.asked.tolist() == [5] * 7
    assert int(screen.skipped) == 4 * 4 + 5 * 3
