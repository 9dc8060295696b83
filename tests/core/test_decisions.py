"""Decisions whose rewards are still to come: in any order, once, never; saved while they are open."""

import copy

import pytest
import torch

from conbandit_torch import Context, ConUCB, LinUCB, OpenDecisions
from tests.conftest import ALGEBRA, EXACT, small_world

POOL = 9


def context_of(world, users, rounds):
    """Users who come in some of their rounds, with the candidates that they have then."""
    users, rounds = torch.tensor(users), torch.tensor(rounds)
    return Context(users, world.pools(users, rounds), rounds=rounds, catalogue=world.catalogue)


def opened(world):
    """Three calls of `open`: user 5 is in all of them, in different rounds."""
    waiting = OpenDecisions(world.catalogue, POOL)
    contexts = [
        context_of(world, [5, 0], [0, 0]),
        context_of(world, [2, 5, 6], [0, 1, 0]),
        context_of(world, [5], [2]),
    ]
    shown = [torch.tensor([3, 8]), torch.tensor([1, 0, 4]), torch.tensor([7])]
    ids = [waiting.open(context, arm) for context, arm in zip(contexts, shown, strict=True)]
    return waiting, contexts, shown, ids


def assert_same(feedback, context, arm, reward):
    assert feedback.context.users.tolist() == context.users.tolist()
    assert feedback.context.rounds.tolist() == context.rounds.tolist()
    torch.testing.assert_close(feedback.context.arms, context.arms, **EXACT)
    torch.testing.assert_close(feedback.context.arm_features, context.arm_features, **EXACT)
    assert torch.equal(torch.as_tensor(feedback.context.who), torch.as_tensor(context.who))
    assert feedback.arm.tolist() == arm.tolist()
    assert feedback.reward.tolist() == reward.tolist()


def test_decisions_are_numbered_as_they_are_made(world):
    waiting, _, _, ids = opened(world)
    assert torch.cat(ids).tolist() == [0, 1, 2, 3, 4, 5] and len(waiting) == 6


def test_a_reward_comes_back_with_the_context_it_was_decided_in(world):
    waiting, contexts, shown, ids = opened(world)
    for number in (1, 2, 0):
        reward = torch.arange(len(ids[number])) + 10.0 * number
        (feedback,) = waiting.settle(ids[number], reward)
        assert_same(feedback, contexts[number], shown[number], reward)
    assert len(waiting) == 0


def test_rewards_of_several_decisions_come_in_any_order_and_no_user_is_twice_in_one(world):
    """One feedback per call of `open`, in the order of the calls; rows in it as they were decided."""
    waiting, contexts, shown, _ = opened(world)
    found = waiting.settle(torch.tensor([5, 4, 0, 3]), torch.tensor([5.0, 4.0, 0.0, 3.0]))
    assert [one.context.users.tolist() for one in found] == [[5], [5, 6], [5]]
    assert_same(found[0], contexts[0].take(torch.tensor([0])), shown[0][:1], torch.tensor([0.0]))
    assert_same(found[1], contexts[1].take(torch.tensor([1, 2])), shown[1][1:], torch.tensor([3.0, 4.0]))
    assert_same(found[2], contexts[2], shown[2], torch.tensor([5.0]))
    rest = waiting.settle(torch.tensor([2, 1]), torch.tensor([2.0, 1.0]))
    assert [one.context.users.tolist() for one in rest] == [[0], [2]]
    assert [one.reward.tolist() for one in rest] == [[1.0], [2.0]]


def test_which_call_a_decision_was_made_in_can_be_told(world):
    waiting, *_ = opened(world)
    found = waiting.settle_by_origin(torch.tensor([5, 1]), torch.zeros(2))
    assert list(found) == [0, 2]
    assert [one.context.users.tolist() for one in found.values()] == [[0], [5]]


def test_no_rewards_are_no_feedback(world):
    waiting, *_ = opened(world)
    assert waiting.settle(torch.tensor([], dtype=torch.int64), torch.tensor([])) == []
    empty = OpenDecisions(world.catalogue, POOL)
    assert empty.settle(torch.tensor([], dtype=torch.int64), torch.tensor([])) == []
    assert len(waiting) == 6


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1], "decision 1 has had its reward already; 4 decisions are open"),
        ([0, 1, 2], "decision 1 has had its reward already"),
        ([6], "decision 6 was never made; 4 decisions are open"),
        ([5, 600], "decision 600 was never made"),
        ([-1], "decision -1 was never made"),
        ([3, 3], r"a decision can be rewarded once, got \[3, 3\]"),
        ([3, 0, 3], r"a decision can be rewarded once, got \[0, 3, 3\]"),
    ],
)
def test_a_decision_is_rewarded_once_and_only_if_it_was_made(world, ids, message):
    waiting, *_ = opened(world)
    waiting.settle(torch.tensor([4, 1]), torch.zeros(2))
    before = copy.deepcopy(waiting.state_dict())
    with pytest.raises(ValueError, match=message):
        waiting.settle(torch.tensor(ids), torch.zeros(len(ids)))
    for name, value in waiting.state_dict().items():
        torch.testing.assert_close(value, before[name], **EXACT)


def test_nothing_can_be_rewarded_before_anything_is_decided(world):
    with pytest.raises(ValueError, match="decision 0 was never made; 0 decisions are open"):
        OpenDecisions(world.catalogue, POOL).settle(torch.tensor([0]), torch.zeros(1))


def test_a_decision_whose_reward_never_comes_stays_open(world):
    waiting, *_ = opened(world)
    waiting.settle(torch.tensor([0, 1, 3, 4, 5]), torch.zeros(5))
    more = waiting.open(context_of(world, [3], [0]), torch.tensor([2]))
    assert more.tolist() == [6] and waiting.numbers().tolist() == [2, 6]
    first, second = waiting.settle(torch.tensor([6, 2]), torch.tensor([6.0, 2.0]))
    assert (first.context.users.tolist(), second.context.users.tolist()) == ([2], [3])


def test_one_arm_and_one_reward_per_decision_or_an_error(world):
    waiting, *_ = opened(world)
    before = copy.deepcopy(waiting.state_dict())
    with pytest.raises(ValueError, match=r"arm must be \[2\], one value per row, got shape \[1\]"):
        waiting.open(context_of(world, [1, 2], [0, 0]), torch.tensor([0]))
    with pytest.raises(ValueError, match=r"reward must be \[2\], one value per row, got shape \[1\]"):
        waiting.settle(torch.tensor([0, 1]), torch.zeros(1))
    for name, value in waiting.state_dict().items():
        torch.testing.assert_close(value, before[name], **EXACT)


def test_features_of_a_rounds_own_cannot_be_kept(world):
    context = context_of(world, [1, 2], [0, 0])
    own = Context(context.users, context.arms, context.arm_features.clone(), rounds=0)
    with pytest.raises(ValueError, match="a decision that stays open needs the catalogue's features"):
        OpenDecisions(world.catalogue, POOL).open(own, torch.tensor([0, 0]))


def test_a_context_of_everyone_is_kept_too(world):
    """There `who` is a slice."""
    waiting, everyone = OpenDecisions(world.catalogue, POOL), world.observe()
    assert isinstance(everyone.who, slice)
    ids = waiting.open(everyone, torch.zeros(7, dtype=torch.int64))
    (feedback,) = waiting.settle(ids[[6, 2]], torch.tensor([6.0, 2.0]))
    assert feedback.context.who.tolist() == feedback.context.users.tolist() == [2, 6]


def test_what_is_open_is_saved_and_settled_after_loading(world):
    waiting, *_ = opened(world)
    waiting.settle(torch.tensor([4, 1]), torch.zeros(2))
    saved = copy.deepcopy(waiting.state_dict())
    other = OpenDecisions(world.catalogue, POOL)
    other.load_state_dict(saved)
    busy, *_ = opened(world)  # had more open than it is told of
    busy.load_state_dict(saved)
    for loaded in (other, busy):
        assert len(loaded) == 4
        twin = copy.deepcopy(waiting)
        ids, reward = torch.tensor([5, 2, 0]), torch.tensor([5.0, 2.0, 0.0])
        ours, theirs = loaded.settle(ids, reward), twin.settle(ids, reward)
        assert len(ours) == len(theirs) == 3
        for one, expected in zip(ours, theirs, strict=True):
            assert_same(one, expected.context, expected.arm, expected.reward)
        new = [box.open(context_of(world, [1], [0]), torch.tensor([0])).tolist() for box in (loaded, twin)]
        assert new == [[6], [6]]
        with pytest.raises(ValueError, match="decision 1 has had its reward already"):
            loaded.settle(torch.tensor([1]), torch.zeros(1))


def test_decisions_among_another_number_of_candidates_are_not_loaded(world):
    waiting, *_ = opened(world)
    with pytest.raises(RuntimeError, match="size mismatch for arms"):
        OpenDecisions(world.catalogue, POOL + 1).load_state_dict(waiting.state_dict())


def test_it_can_be_reset(world):
    waiting, contexts, shown, _ = opened(world)
    waiting.reset()
    assert len(waiting) == 0
    assert waiting.open(contexts[1], shown[1]).tolist() == [0, 1, 2]


@pytest.mark.parametrize("policy_class", [LinUCB, ConUCB])
def test_late_rewards_teach_what_they_would_have_taught_at_once(policy_class):
    """Up to the order of sums: what a user is shown is decided beforehand here."""
    world = small_world()
    at_once, late = policy_class(world.catalogue, 7), policy_class(world.catalogue, 7)
    waiting, generator = OpenDecisions(world.catalogue, POOL), torch.Generator().manual_seed(0)
    rewards = []
    for number in range(6):
        users = torch.randperm(7, generator=generator)[:4].tolist()
        context = context_of(world, users, [number] * 4)
        arm = torch.randint(POOL, (4,), generator=generator)
        reward = torch.randn(4, generator=generator).double()
        at_once.update(context, arm, reward)
        waiting.open(context, arm)
        rewards.append(reward)
    order = torch.randperm(24, generator=generator)
    for ids in order.split(5):
        for feedback in waiting.settle(ids, torch.cat(rewards)[ids]):
            late.update(feedback.context, feedback.arm, feedback.reward)
    assert len(waiting) == 0
    torch.testing.assert_close(late.coefficients(), at_once.coefficients(), **ALGEBRA)
    torch.testing.assert_close(late.arm_model.gram, at_once.arm_model.gram, **ALGEBRA)
    torch.testing.assert_close(late.arm_model.count, at_once.arm_model.count, **EXACT)
