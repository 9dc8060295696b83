"""Users who change: a pure function of seed, user and round, that rewards, answers, regret and errors follow."""

import copy
import math

import pytest
import torch

from conbandit_torch import (
    AbruptChange,
    Arms,
    ConUCB,
    Curved,
    DiscountedConUCB,
    Drift,
    FixedDelay,
    LinUCB,
    Question,
    Simulation,
    SmoothDrift,
    Terms,
    WindowedConUCB,
    play_round,
)
from conbandit_torch.core.processes import Processes
from tests.conftest import ALGEBRA, small_world

DRIFTS = [AbruptChange(at=4), AbruptChange(at=[3, 6, 9], share=0.5), SmoothDrift(per_round=0.3)]


def thetas(world, rounds):
    """[T, U, D] everybody's true preferences, round by round."""
    users = torch.arange(world.num_users)
    return torch.stack([world._drifted(world.drift, users, torch.full_like(users, t)) for t in range(rounds)])


def test_an_abrupt_change_comes_after_so_many_rounds_and_makes_everyone_somebody_else():
    world, still = small_world(drift=AbruptChange(at=4)), small_world()
    seen = thetas(world, 9)
    assert torch.equal(seen[:4], still.theta.expand(4, -1, -1))
    assert torch.equal(seen[4:], seen[4].expand(5, -1, -1))
    others = (seen[4][:, None] == still.theta).all(2)  # [user, whose theta]
    assert others.sum(1).eq(1).all() and not others.diagonal().any()


def test_only_a_share_of_the_users_changes_and_each_change_is_drawn_anew():
    """Of 4,000 users; slack of five standard errors of a share, sqrt(p (1 - p) / n)."""
    world = small_world(users=4000, drift=AbruptChange(at=[2, 4], share=0.3))
    seen = thetas(world, 6)
    slack = 5 * (0.3 * 0.7 / 4000) ** 0.5
    for before, after in ((0, 2), (2, 4)):
        changed = (seen[before] != seen[after]).any(1).double().mean()
        assert float(changed) == pytest.approx(0.3, abs=slack)
    assert torch.equal(seen[0], seen[1]) and torch.equal(seen[2], seen[3])


def test_a_smooth_drift_turns_by_its_angle_and_arrives_at_somebody_else():
    world = small_world(drift=SmoothDrift(per_round=math.pi / 20))
    seen, own = thetas(world, 31), world.theta
    torch.testing.assert_close(seen[0], own, **ALGEBRA)
    for arrival in (10, 20, 30):
        away = (seen[arrival][:, None] - own).norm(dim=2).amin(1)
        assert away.max() < 1e-6
    first, there = seen[0], seen[10]
    torch.testing.assert_close(
        seen[3], math.cos(0.15 * math.pi) * first + math.sin(0.15 * math.pi) * there, **ALGEBRA
    )
    assert float((seen[1:] - seen[:-1]).norm(dim=2).max()) < 1.2 * (math.pi / 20) * float(
        own.norm(dim=1).max()
    )


@pytest.mark.parametrize("drift", DRIFTS, ids=str)
@pytest.mark.parametrize("feedback", ["linear", "binary", "logistic"])
def test_rewards_answers_regret_and_errors_are_those_of_the_preferences_of_the_round(drift, feedback):
    world = small_world(drift=drift, feedback=feedback)
    truth, X = thetas(world, 12), world.catalogue.arm_features
    shape = {"linear": lambda z: z, "binary": lambda z: z.clamp(0, 1), "logistic": torch.sigmoid}[feedback]
    for number in range(12):
        context, arm = world.observe(), torch.full((7,), 2)
        means = shape((X[context.arms] * truth[number][:, None]).sum(2))  # [U, A]
        torch.testing.assert_close(world.expected(context), means, **ALGEBRA)
        for about, mean in ((Arms(context.arms[:, 3]), means[:, 3]), (Terms(torch.arange(7)), None)):
            if mean is None:
                edges = about.edges(world.catalogue)
                of_items = shape((X[edges.target] * truth[number][edges.owner]).sum(1))
                mean = torch.zeros(7).double().index_add_(0, edges.owner, edges.weight * of_items)
            torch.testing.assert_close(world.mean(context, about), mean, **ALGEBRA)
        torch.testing.assert_close(world.item_means(context, about)[1], of_items, **ALGEBRA)
        question = Question(slice(None), Terms(torch.arange(7)))
        noise = world.term_noise(context.users, context.rounds)
        said = world.answer(context, question).value
        expected = mean + noise if feedback == "linear" else (noise < mean).double()
        torch.testing.assert_close(said, expected, **ALGEBRA)
        outcome = world.pull(context, arm)
        torch.testing.assert_close(outcome.regret, means.amax(1) - means[:, 2], **ALGEBRA)
        torch.testing.assert_close(world.preferences(), truth[number], **ALGEBRA)


def test_who_comes_rarely_changes_by_rounds_of_their_own():
    world = small_world(users_per_round=2, drift=AbruptChange(at=3))
    start = world.theta.clone()
    policy = LinUCB(world.catalogue, 7)
    for _ in range(9):
        play_round(policy, world)
    changed = (world.preferences() != start).any(1)
    assert torch.equal(changed, world.rounds > 3)
    assert changed.any() and not changed.all()


@pytest.mark.parametrize("drift", DRIFTS, ids=str)
@pytest.mark.parametrize("policy", [ConUCB, DiscountedConUCB, WindowedConUCB], ids=lambda c: c.__name__)
def test_a_resumed_run_goes_on_bit_for_bit(drift, policy):
    def simulation(rounds):
        world = small_world(drift=drift)
        return Simulation(policy(world.catalogue, 7), world, rounds=rounds, log_every=1)

    whole, first, second = simulation(12), simulation(5), simulation(12)
    whole.run()
    first.run()
    second.restore(copy.deepcopy(first.state()))
    second.run()
    one, other = whole.state().tensors, second.state().tensors
    for name, tensor in one.items():
        if name != "records":  # they hold times
            assert torch.equal(tensor, other[name]), name
    assert [record.theta_error for record in whole.records] == [r.theta_error for r in second.records]


@pytest.mark.parametrize("drift", DRIFTS, ids=str)
def test_users_split_over_processes_meet_the_same_truth(drift):
    whole = small_world(drift=drift)
    parts = [small_world(drift=drift) for _ in range(2)]
    for rank, part in enumerate(parts):
        part.split(Processes(rank, 2))
    for _ in range(11):
        contexts = [world.observe() for world in (whole, *parts)]
        means = [world.expected(c) for world, c in zip((whole, *parts), contexts, strict=True)]
        assert torch.equal(means[0], torch.cat(means[1:]))
        for world, context in zip((whole, *parts), contexts, strict=True):
            world.pull(context, torch.zeros(len(context), dtype=torch.int64))
        assert torch.equal(whole.preferences(), torch.cat([part.preferences() for part in parts]))


def test_late_rewards_are_of_the_round_they_were_decided_in():
    now, late = (
        small_world(drift=AbruptChange(at=4)),
        small_world(drift=AbruptChange(at=4), delay=FixedDelay(3)),
    )
    arm = torch.zeros(7, dtype=torch.int64)
    rewards = [now.pull(now.observe(), arm).feedback[0].reward for _ in range(8)]
    came = [late.pull(late.observe(), arm).feedback for _ in range(8)]
    for number in range(5):
        assert torch.equal(came[number + 3][0].reward, rewards[number])


def test_hidden_features_and_curved_worlds_change_too():
    hidden, curved = (
        small_world(hidden=2, drift=AbruptChange(at=1)),
        Curved(5, 40, 8, 4, pool=6, max_terms=3, drift=AbruptChange(at=1)),
    )
    assert hidden.preferences() is None and curved.preferences() is None
    for world in (hidden, curved):
        context = world.observe()
        before = world.expected(context)
        after = world.expected(
            type(context)(context.users, context.arms, rounds=1, catalogue=world.catalogue)
        )
        assert (before != after).any(1).all()


class Flipped(Drift):
    """A stranger's: likes become dislikes in every other round."""

    def theta(self, start, users, rounds, stream):
        return start[users] * (1 - 2 * (rounds % 2))[:, None]


class Short(Drift):
    def theta(self, start, users, rounds, stream):
        return start[users][:, :2]


def test_a_drift_of_your_own_needs_one_method_and_is_told_what_is_wrong():
    world = small_world(drift=Flipped())
    world.pull(world.observe(), torch.zeros(7, dtype=torch.int64))
    world.pull(world.observe(), torch.zeros(7, dtype=torch.int64))
    assert torch.equal(world.preferences(), -world.theta)
    with pytest.raises(ValueError, match=r"Short.theta must give \[7, 6\] numbers, got \[7, 2\]"):
        small_world(drift=Short()).expected(small_world().observe())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AbruptChange(at=0), "at must be rounds of at least 1"),
        (lambda: AbruptChange(at=[5, 5]), "ascending"),
        (lambda: AbruptChange(at=[]), "at must be rounds"),
        (lambda: AbruptChange(share=1.5), r"share must be in \[0, 1\], got 1.5"),
        (lambda: SmoothDrift(per_round=-0.1), "per_round must be an angle"),
        (lambda: small_world(users=1, drift=SmoothDrift()), "at least 2, got 1"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_drift_must_be_one():
    with pytest.raises(TypeError, match="drift must be a Drift, got 500"):
        small_world(drift=500)
