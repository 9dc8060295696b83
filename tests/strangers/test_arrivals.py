"""Users and arms that arrive during a run are treated as if they had been there all along, and absent."""

import pytest
import torch

from conbandit_torch import ConLinUCBMCR, Context, ConThompson, ConUCB, HConUCB, HLinUCB, LinUCB, Synthetic

USERS, ARMS = 9, 70


class Arriving:
    """A world in which users 6 to 8 and the last ten arms, which have no key-terms, come in round 15."""

    def __init__(self):
        self.whole = Synthetic(users=USERS, arms=ARMS - 10, terms=10, dim=5, pool=8, seed=7)
        new = torch.linspace(-1, 1, 50).view(10, 5).double()
        self.before, self.after = self.whole.catalogue, self.whole.catalogue.extended(new)

    def play(self, policy, rounds, grow):
        log = []
        for number in range(rounds):
            late = number >= 15
            if number == 15 and grow:
                policy.grow(USERS)
                policy.extend(self.after)
            users = torch.arange(USERS if late else 6)
            arms = (users[:, None] * 7 + number * 3 + torch.arange(8) * 5) % (ARMS if late else ARMS - 10)
            counted = number - (users >= 6).long() * 15
            context = Context(users, arms, rounds=counted, catalogue=policy.catalogue)
            theta = self.whole.theta[users]
            while (question := policy.ask(context)) is not None:
                x = question.about.features(policy.catalogue)
                log.append(question.about.of.tolist())
                from conbandit_torch import Answer

                policy.listen(context, question, Answer((x * theta[question.rows]).sum(1)))
            arm = policy.choose(context)
            log.append(context.pick(arm).arms.tolist())
            reward = (context.pick(arm).arm_features.squeeze(1) * theta).sum(1)
            policy.update(context, arm, reward)
        return log


@pytest.mark.parametrize("policy", [LinUCB, ConUCB, ConThompson, ConLinUCBMCR, HLinUCB, HConUCB])
def test_decisions_are_those_of_a_policy_that_knew_them_all_along(policy):
    world = Arriving()
    arguments = {"refit_every": 10} if policy in (HLinUCB, HConUCB) else {}
    growing = policy(world.before, 6, **arguments)
    knowing = policy(world.after, USERS, **arguments)
    assert world.play(growing, 40, grow=True) == world.play(knowing, 40, grow=False)


def test_a_policy_that_welcomes_new_users_grows_on_first_sight_and_others_refuse():
    world = Arriving()
    closed, open_ = LinUCB(world.before, 2), LinUCB(world.before, 2)
    arms = torch.arange(8).repeat(2, 1)
    context = Context(torch.tensor([1, 5]), arms, rounds=0, catalogue=world.before)
    with pytest.raises(ValueError, match=r"holds 5, but LinUCB was built for num_users=2.*welcome_new_users"):
        closed.choose(context)
    assert closed.num_users == 2
    open_.welcome_new_users()
    open_.choose(context)
    assert open_.num_users == 6 and len(open_.arm_model.gram) == 6


def test_a_catalogue_that_is_no_extension_is_refused_and_nothing_changes():
    world = Arriving()
    policy = HLinUCB(world.after, 3)
    with pytest.raises(ValueError, match="does not begin with the arms"):
        policy.extend(world.before)
    assert policy.catalogue is world.after and len(policy.representation.table) == ARMS
