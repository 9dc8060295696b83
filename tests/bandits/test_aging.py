"""Bandits that forget: what they reduce to, what time does to them, and that bounds hold when M shrinks."""

import copy

import pytest
import torch

from conbandit_torch import (
    AbruptChange,
    ComparisonMixin,
    Context,
    ConUCB,
    ConversationMixin,
    DiscountedConLinUCB,
    DiscountedConUCB,
    DiscountedLinUCB,
    GraphMixin,
    HiddenOnTerms,
    LinearSchedule,
    LinUCB,
    OneLevelMixin,
    Synthetic,
    WindowedConLinUCB,
    WindowedConUCB,
    WindowedLinUCB,
    play_round,
)
from conbandit_torch.kernels import using
from conbandit_torch.models.aging import DiscountedRegression, WindowedRegression
from conbandit_torch.testing import check_policy, decisions
from tests.conftest import ALGEBRA, small_world

OFTEN = LinearSchedule(2, every=3)
AGING = {
    DiscountedLinUCB: {"gamma": 0.9},
    WindowedLinUCB: {"window": 5},
    DiscountedConUCB: {"gamma": 0.9, "schedule": OFTEN},
    WindowedConUCB: {"window": 5, "schedule": OFTEN},
    DiscountedConLinUCB: {"gamma": 0.9, "schedule": OFTEN},
    WindowedConLinUCB: {"window": 5, "schedule": OFTEN},
}


@pytest.mark.parametrize(
    ("plain", "aging", "arguments"),
    [
        (LinUCB, DiscountedLinUCB, {"gamma": 1.0}),
        (LinUCB, WindowedLinUCB, {"window": 50}),
        (ConUCB, DiscountedConUCB, {"gamma": 1.0}),
        (ConUCB, WindowedConUCB, {"window": 50}),
    ],
)
def test_what_never_ages_is_the_plain_policy(plain, aging, arguments):
    world, twin = small_world(), small_world()
    old, young = plain(world.catalogue, 7), aging(twin.catalogue, 7, **arguments)
    assert decisions(old, world, 40) == decisions(young, twin, 40)
    torch.testing.assert_close(old.coefficients(), young.coefficients(), **ALGEBRA)


class ByOneLine(OneLevelMixin, DiscountedLinUCB):
    pass


class Compared(ComparisonMixin, ConversationMixin, WindowedLinUCB):
    pass


class Spread(GraphMixin, ConversationMixin, DiscountedLinUCB):
    pass


@pytest.mark.parametrize("policy", [ByOneLine, Compared, Spread])
def test_every_mixin_converses_on_them_by_one_line(policy):
    check_policy(policy)


@pytest.mark.parametrize("policy", AGING, ids=lambda c: c.__name__)
def test_bounds_hold_when_matrices_shrink_and_pruned_choices_are_the_full_ones(policy):
    world = small_world(users_per_round=5)
    made = policy(world.catalogue, 7, **AGING[policy])
    for _ in range(40):
        context = world.observe()
        scores = made.scores(context)
        for kernels in ("compiled", "torch"):
            with using(kernels):
                assert torch.equal(made.choose(context), scores.argmax(1))
        play_round(made, world)
        for level in made.levels():
            largest = torch.linalg.eigvalsh(level.model.inverse)[:, -1]
            assert (level.model.top >= largest * (1 - 1e-12)).all()
            eye = torch.eye(6).double().expand(7, -1, -1)
            torch.testing.assert_close(level.model.gram @ level.model.inverse, eye, **ALGEBRA)


def test_the_discounted_width_is_at_most_the_plain_one():
    world = small_world()
    policy = DiscountedLinUCB(world.catalogue, 7, gamma=0.8)
    decisions(policy, world, 20)
    model, x = policy.arm_model, world.catalogue.arm_features.expand(7, -1, -1)
    assert (model.discounted_norm(slice(0, 7), x) < model.norm(slice(0, 7), x)).all()


def observed(model, rounds, order):
    """A model that has seen one vector per round, told in some order."""
    x = torch.linspace(-1, 1, 4 * len(rounds)).view(-1, 4).sin().double()
    everyone = torch.arange(2)
    for at in order:
        model.tell_time(everyone, torch.full((2,), rounds[at]))
        model.update(everyone, x[at].repeat(2, 1), x[at].sum().repeat(2))
    return model


@pytest.mark.parametrize(
    "make",
    [
        lambda: DiscountedRegression(2, 4, gamma=0.7, like=torch.empty(0).double()),
        lambda: WindowedRegression(2, 4, window=6, like=torch.empty(0).double()),
    ],
    ids=["discounted", "windowed"],
)
def test_late_observations_count_as_if_they_had_come_in_time(make):
    rounds = [0, 1, 3, 4, 9]
    one, other = observed(make(), rounds, [0, 1, 2, 3, 4]), observed(make(), rounds, [4, 2, 0, 3, 1])
    for name in ("gram", "inverse", "moment", "solution"):
        torch.testing.assert_close(one.get_buffer(name), other.get_buffer(name), **ALGEBRA)
    assert torch.equal(one.now, torch.full((2,), 9))


def test_a_window_keeps_its_rounds_and_no_more_than_its_number():
    model = WindowedRegression(2, 4, window=3, like=torch.empty(0).double())
    observed(model, [0, 1, 2, 3, 3, 3, 3], [0, 1, 2, 3])
    assert model.stamp[0].sort().values.tolist() == [1, 2, 3]
    observed(model, [3], [0])  # one more of the same round: the oldest leaves
    assert model.stamp[0].sort().values.tolist() == [2, 3, 3]
    model.tell_time(torch.arange(2), torch.tensor([5, 3]))
    assert model.stamp[0].sort().values.tolist() == [-1, 3, 3] and model.stamp[1].min() == 2
    model.tell_time(torch.arange(2), torch.tensor([99, 3]))
    torch.testing.assert_close(model.gram[0], torch.eye(4).double(), **ALGEBRA)
    assert not model.solution[0].any() and model.solution[1].any()
    before = copy.deepcopy(model.state_dict())
    observed(model, [40], [0])  # far too late for user 0, and ahead for user 1
    for name in ("gram", "solution", "stamp"):
        assert torch.equal(model.get_buffer(name)[0], before[name][0])
    assert model.stamp[1].max() == 40


def test_answers_age_with_rounds_and_not_with_answers():
    """In two levels both fade while only rewards come."""
    world = small_world()
    policy = DiscountedConUCB(world.catalogue, 7, gamma=0.8, schedule=LinearSchedule(2, every=4))
    decisions(policy, world, 4)  # the fourth round asks twice
    said = policy.term_model.moment.clone()
    assert said.any(1).all()
    decisions(policy, world, 3)
    torch.testing.assert_close(policy.term_model.moment, 0.8**3 * said, **ALGEBRA)
    shrunk = policy.thetas(slice(0, 7))[1].norm(dim=1)
    solved = torch.linalg.solve(policy.term_model.gram, policy.term_model.moment)
    torch.testing.assert_close(shrunk, solved.norm(dim=1), **ALGEBRA)


@pytest.mark.parametrize("policy", AGING, ids=lambda c: c.__name__)
def test_users_who_have_changed_are_followed(policy):
    """20 rounds after everybody has changed, errors are below those of the policy that forgets nothing."""
    conversing = "schedule" in AGING[policy]
    plain = (ConUCB, {"schedule": OFTEN}) if conversing else (LinUCB, {})
    errors = []
    for make, given in (plain, (policy, AGING[policy])):
        world = Synthetic(20, 60, 12, 6, pool=9, max_terms=3, drift=AbruptChange(at=60), seed=3)
        made = make(world.catalogue, 20, **given)
        decisions(made, world, 80)
        errors.append(float((made.coefficients() - world.preferences()).norm(dim=1).mean()))
    assert errors[1] < 0.8 * errors[0]


def test_time_that_goes_back_makes_nothing_younger():
    world = small_world()
    policy = DiscountedLinUCB(world.catalogue, 7, gamma=0.9)
    decisions(policy, world, 6)
    context = world.observe()
    early = Context(context.users, context.arms, rounds=1, catalogue=world.catalogue)
    before = policy.arm_model.moment.clone()
    policy.update(early, torch.zeros(7, dtype=torch.int64), torch.ones(7).double())
    x = context.arm_features[:, 0]
    torch.testing.assert_close(policy.arm_model.moment, before + 0.9**4 * x, **ALGEBRA)
    assert (policy.arm_model.now == 5).all()


def test_bad_input_is_refused_and_changes_nothing():
    world = small_world()
    for gamma in (0.0, 1.1):
        with pytest.raises(ValueError, match=r"gamma must be in \(0, 1\]"):
            DiscountedLinUCB(world.catalogue, 7, gamma=gamma)
    with pytest.raises(ValueError, match="window must be at least 1, got 0"):
        WindowedLinUCB(world.catalogue, 7, window=0)
    with pytest.raises(ValueError, match="needs a representation that does not learn, got HiddenOnTerms"):
        DiscountedLinUCB(world.catalogue, 7, representation=HiddenOnTerms())
    for model in (DiscountedRegression(2, 3), WindowedRegression(2, 3)):
        before = copy.deepcopy(model.state_dict())
        with pytest.raises(ValueError, match=r"features must be \[2, 3\]"):
            model.update(torch.arange(2), torch.ones(2, 4), torch.ones(2))
        with pytest.raises(ArithmeticError, match="numbers are too large"):
            model.update(torch.arange(2), torch.full((2, 3), 1e30), torch.ones(2))
        for name, value in model.state_dict().items():
            assert torch.equal(value, before[name])
