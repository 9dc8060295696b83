"""What the benchmark compares with decides as the package does: all do the same work."""

import math

import pytest
import torch

from conbandit_torch import EpsilonGreedy, play_round
from experiments import by_hand
from experiments.contenders import CONTENDERS, PLAIN, numpy_side
from experiments.loops import World, play
from tests.conftest import small_world

DRAWING = {"Var-RS", "ConLinUCB-BS", "EpsilonGreedy", "LinThompson", "ConThompson", "hVar-RS"}


def both_sides(name, users):
    """The package's policy and environment, and the loop with a world that draws as the environment does."""
    contender = CONTENDERS[name]
    environment = small_world(users=users, hidden=2 if contender.hidden else 0)
    policy = contender.build(environment)

    class SameDraws(World):
        def pool(self, user, t):
            return environment.pools(torch.tensor([user]), torch.tensor([t]))[0].tolist()

        def noises(self, user, t):
            at = torch.tensor([user]), torch.tensor([t])
            return float(environment.arm_noise(*at)), float(environment.term_noise(*at))

    graph, world = numpy_side(environment, small_world(users=users))
    world.__class__ = SameDraws
    return policy, environment, contender.loop(graph, users, policy), world


def asked_and_shown(policy, environment, rounds):
    log = [[] for _ in range(environment.num_users)]
    for _ in range(rounds):
        played = play_round(policy, environment)
        for question, _ in played.dialogue:
            rows = torch.arange(environment.num_users)[question.rows]
            things = question.about.of
            for row, thing in zip(rows.tolist(), things.tolist(), strict=True):
                log[row].append(thing)
        for user, arm in enumerate(played.arm_ids.tolist()):
            log[user].append(arm)
    return log


@pytest.mark.parametrize("name", [name for name in CONTENDERS if name not in DRAWING])
def test_loop_decides_as_the_policy_does(name):
    users = 1 if CONTENDERS[name].hidden else 3  # users share v, and a loop takes them one after the other
    policy, environment, loop, world = both_sides(name, users)
    expected = asked_and_shown(policy, environment, 60)
    assert play(loop, world, users, 60, lambda t: 5 * int(math.log(max(t, 1)))) == expected


class PolicysDraws:
    """In place of a loop's generator: what the policy draws for its only user, round and question."""

    def __init__(self, policy, levels):
        self.policy, self.levels, self.t, self.questions, self.normals = policy, levels, 0, 0, 0

    def draw(self, kind, purpose, counter, count, *more):
        at = torch.tensor([0]), torch.tensor([counter])
        return getattr(self.policy.stream(purpose), kind)(*at, count, *more)[0].double().numpy()

    def random(self):
        return float(self.draw("uniform", "explore", self.t, 1)[0])

    def integers(self, size):
        if isinstance(self.policy, EpsilonGreedy):
            return int(self.draw("uniform", "arm", self.t, size).argmax())
        self.questions += 1
        return int(self.draw("integers", "term", self.questions - 1, 1, size)[0])

    def standard_normal(self, size):
        self.normals += 1
        return self.draw("normal", self.levels[self.normals % len(self.levels)], self.t, size)


@pytest.mark.parametrize("name", sorted(DRAWING))
def test_loop_that_draws_the_same_numbers_decides_as_the_policy_does(name):
    policy, environment, loop, world = both_sides(name, 1)
    levels = ["theta"] if name == "LinThompson" else ["theta", "term theta"]  # counted from the second
    loop.generator = draws = PolicysDraws(policy, levels)
    pool = world.pool

    def noting_the_round(user, t):
        draws.t = t
        return pool(user, t)

    world.pool = noting_the_round
    expected = asked_and_shown(policy, environment, 60)
    assert play(loop, world, 1, 60, lambda t: 5 * int(math.log(max(t, 1)))) == expected


def test_linucb_by_hand_decides_as_the_policy_does():
    environment = small_world()
    policy = CONTENDERS["LinUCB"].build(environment)
    expected = [play_round(policy, environment).arm_ids for _ in range(60)]
    seconds, shown = by_hand.play(small_world(), 60, **PLAIN)
    assert seconds > 0 and torch.equal(shown, torch.stack(expected))
