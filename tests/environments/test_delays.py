"""Rewards that come late, or never: when they come, what is learned, and that nothing is lost by a resume."""

import pytest
import torch

from conbandit_torch import (
    ConThompson,
    ConUCB,
    FixedDelay,
    GeometricDelay,
    HConUCB,
    LinUCB,
    Simulation,
    play_round,
)
from tests.conftest import small_world


def arrivals(world, rounds):
    """What comes in each round: (round it was decided in, users) of every part."""
    policy = LinUCB(world.catalogue, world.num_users)
    return [
        [(f.context.rounds.unique().tolist(), f.context.users.tolist()) for f in played.outcome.feedback]
        for played in (play_round(policy, world) for _ in range(rounds))
    ]


def test_a_fixed_delay_brings_the_rewards_of_that_many_rounds_before():
    came = arrivals(small_world(delay=FixedDelay(3)), 6)
    everyone = list(range(7))
    assert came == [[], [], [], [([0], everyone)], [([1], everyone)], [([2], everyone)]]


def test_no_delay_and_a_delay_of_zero_are_the_same():
    one, other = small_world(), small_world(delay=FixedDelay(0))
    for _ in range(5):
        context, twin = one.observe(), other.observe()
        arm = torch.zeros(7, dtype=torch.int64)
        first, second = one.pull(context, arm).feedback[0], other.pull(twin, arm).feedback[0]
        assert torch.equal(first.reward, second.reward)
        assert torch.equal(first.context.arms, second.context.arms)


def test_geometric_delays_have_their_mean_and_some_rewards_are_lost():
    """Of 20,000 draws; slack of five standard errors: sqrt(mean (1 + mean) / n), sqrt(p (1 - p) / n)."""
    world = small_world(users=20_000)
    delay, context = GeometricDelay(4.0, lost=0.25), world.observe()
    from conbandit_torch import Stream

    late = delay.rounds(context, Stream(0, "delays"))
    lost = late < 0
    assert float(lost.double().mean()) == pytest.approx(0.25, abs=5 * (0.25 * 0.75 / 20_000) ** 0.5)
    assert float(late[~lost].double().mean()) == pytest.approx(4.0, abs=5 * (4.0 * 5.0 / 15_000) ** 0.5)


def test_every_reward_that_is_not_lost_is_learned_once():
    world = small_world(delay=GeometricDelay(2.0))
    policy = LinUCB(world.catalogue, 7)
    for _ in range(40):
        play_round(policy, world)
    assert int(policy.arm_model.count.sum()) + len(world.late.open) == 40 * 7


def test_a_delay_costs_regret_but_not_the_ability_to_learn():
    def regret(**how):
        world = small_world(users=60, arms=200, pool=20, **how)
        policy = LinUCB(world.catalogue, 60)
        return sum(float(play_round(policy, world).outcome.regret.mean()) for _ in range(150))

    at_once, late, never = regret(), regret(delay=FixedDelay(10)), regret(delay=GeometricDelay(1.0, lost=1.0))
    assert at_once < late < 0.5 * never


@pytest.mark.parametrize(
    ("policy", "arguments"),
    [(ConUCB, {}), (ConThompson, {}), (HConUCB, {"hidden_dim": 2, "refit_every": 10})],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.parametrize("delay", [FixedDelay(4), GeometricDelay(5.0, lost=0.1)], ids=["fixed", "geometric"])
def test_a_resume_is_exact_with_rewards_outstanding(policy, arguments, delay):
    def simulation(rounds):
        world = small_world(hidden=2, delay=delay)
        made = policy(world.catalogue, 7, **arguments)
        return Simulation(made, world, rounds=rounds, precision="64-true")

    whole, first, second = simulation(30), simulation(17), simulation(30)
    whole.run()
    first.run()
    assert len(first.environment.late.open) > 0
    state = {name: tensor.clone() for name, tensor in first.state().tensors.items()}
    second.restore(type(first.state())(17, state))
    second.run()
    one, other = whole.state().tensors, second.state().tensors
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        if name != "records":  # they hold times
            assert torch.equal(tensor, other[name]), name


def test_a_reset_loses_what_is_under_way():
    world = small_world(delay=FixedDelay(2))
    first = arrivals(world, 4)
    world.reset()
    assert arrivals(world, 4) == first


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FixedDelay(-1), "late must be at least 0, got -1"),
        (lambda: GeometricDelay(0.0), "mean must be above 0 and finite, got 0.0"),
        (lambda: GeometricDelay(1.0, lost=1.5), r"lost must be in \[0, 1\], got 1.5"),
    ],
)
def test_delays_that_cannot_be_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
