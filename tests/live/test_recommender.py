"""A Recommender decides as its policy does, and refuses what it cannot use before anything is written."""

import pytest
import torch

from conbandit_torch import ConThompson, ConUCB, HConUCB, LinUCB, Recommender
from tests.conftest import small_world

POLICIES = {
    "LinUCB": lambda catalogue, users: LinUCB(catalogue, users, alpha=0.5),
    "ConUCB": lambda catalogue, users: ConUCB(catalogue, users),
    "ConThompson": lambda catalogue, users: ConThompson(catalogue, users, scale=0.5),
    "HConUCB with refit": lambda catalogue, users: HConUCB(catalogue, users, hidden_dim=2, refit_every=3),
}
ROUNDS = 15


def in_a_simulation(policy, world):
    """Per round: what was asked, and what was shown."""
    log = []
    for _ in range(ROUNDS):
        context, asked = world.observe(), []
        while (question := policy.ask(context)) is not None:
            answer = world.answer(context, question)
            policy.listen(context, question, answer)
            asked.append(question.about.ids().flatten().tolist())
        arm = policy.choose(context)
        for feedback in world.pull(context, arm).feedback:
            policy.update(feedback.context, feedback.arm, feedback.reward)
        log.append((asked, context.pick(arm).arms.flatten().tolist()))
    return log


def by_names(recommender, world):
    """The same by a recommender, of the same world."""
    log, catalogue = [], world.catalogue
    for _ in range(ROUNDS):
        context, asked = world.observe(), []
        users = [f"user {user}" for user in context.users.tolist()]
        pools = [[f"arm {arm}" for arm in row] for row in context.arms.tolist()]
        while (question := recommender.policy.ask(context)) is not None:
            values = world.answer(context, question).value.tolist()
            questions = recommender.ask_many(users, pools)
            assert len(questions) == len(values)
            asked.append([catalogue.term_names.index(one.names[0]) for one in questions])
            recommender.answer_many(users, questions, values)
        assert recommender.ask_many(users, pools) == [None] * len(users)
        slates = recommender.recommend_many(users, pools)
        shown = [catalogue.arm_names.index(slate[0].item) for slate in slates]
        arm = (context.arms == torch.tensor(shown)[:, None]).int().argmax(1)
        (feedback,) = world.pull(context, arm).feedback
        recommender.feedback_many([slate[0] for slate in slates], feedback.reward.tolist())
        log.append((asked, shown))
    return log


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", POLICIES)
def test_it_decides_as_the_policy_does_in_a_simulation(name, dtype):
    one, other = small_world().to(dtype), small_world().to(dtype)
    policy = POLICIES[name](one.catalogue, 7).to(dtype)
    limits = {"range": (-9.0, 9.0)}
    with torch.no_grad(), Recommender(POLICIES[name](other.catalogue, 1).to(dtype), **limits) as recommender:
        assert by_names(recommender, other) == in_a_simulation(policy, one)
        mine = recommender.policy.state_dict()
        for key, value in policy.state_dict().items():
            # The recommender's policy has one row more, for somebody new.
            torch.testing.assert_close(
                mine[key][: len(value)] if value.ndim else mine[key], value, rtol=0, atol=0
            )
