"""One user with three decisions open, whose rewards come in another order, or never."""

import pytest
import torch

from conbandit_torch import Context, ConThompson, ConUCB, LinUCB, OpenDecisions, Synthetic

ORDERS = [(0, 1, 2), (2, 0, 1), (1, 2, 0)]


def settled(policy, order, world):
    """A policy that decided three times for user 4 before the first reward came, in this order."""
    made = policy(world.catalogue, 7)
    open_ = OpenDecisions(world.catalogue, 9)
    user, ids, rewards = torch.tensor([4]), [], []
    for number in range(3):
        rounds = torch.tensor([number])
        context = Context(user, world.pools(user, rounds), rounds=rounds, catalogue=world.catalogue)
        arm = made.choose(context)
        ids.append(open_.open(context, arm))
        rewards.append(world.expected(context).gather(1, arm[:, None]).squeeze(1))
    assert len(open_) == 3
    for number in order:
        for feedback in open_.settle(ids[number], rewards[number]):
            made.update(feedback.context, feedback.arm, feedback.reward)
    assert len(open_) == 0
    return made


def world():
    return Synthetic(users=7, arms=60, terms=12, dim=6, pool=9, max_terms=3, seed=3)


@pytest.mark.parametrize("policy", [LinUCB, ConUCB, ConThompson])
def test_the_statistics_do_not_depend_on_the_order_of_rewards(policy):
    first, *others = (settled(policy, order, world()) for order in ORDERS)
    for other in others:
        for name in ("gram", "inverse", "moment", "solution", "log_det", "count"):
            one, two = getattr(first.arm_model, name), getattr(other.arm_model, name)
            torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-12)


def test_open_decisions_of_one_user_have_draws_of_their_own():
    here, policy = world(), ConThompson(world().catalogue, 7, scale=1.0)
    user = torch.zeros(1, dtype=torch.int64)
    arms = here.pools(user, user)
    contexts = [Context(user, arms, rounds=number, catalogue=here.catalogue) for number in range(10)]
    chosen = [int(policy.choose(context)) for context in contexts]
    assert len(set(chosen)) > 1
    assert chosen == [int(policy.choose(context)) for context in contexts]


def test_a_decision_never_made_or_rewarded_before_is_refused_and_nothing_changes():
    here = world()
    open_ = OpenDecisions(here.catalogue, 9)
    context = here.observe()
    ids = open_.open(context, torch.zeros(7, dtype=torch.int64))
    open_.settle(ids[:2], torch.ones(2))
    for wrong, message in (
        (ids[:1], "decision 0 has had its reward already"),
        (torch.tensor([3, 99]), "decision 99 was never made"),
        (torch.tensor([-1]), "decision -1 was never made"),
        (torch.tensor([4, 4]), "rewarded once"),
    ):
        with pytest.raises(ValueError, match=message):
            open_.settle(wrong, torch.ones(len(wrong)))
        assert len(open_) == 5
