"""The history refit and its log."""

import copy
from itertools import pairwise

import pytest
import torch

from conbandit_torch import (
    Arms,
    Context,
    ConUCB,
    HArmCon,
    HConUCB,
    HLinUCB,
    Terms,
    play_round,
)
from conbandit_torch.core import blocks
from conbandit_torch.testing import decisions
from tests.conftest import EXACT, small_world
from tests.helpers.hidden import compare_with_reference, hidden_world


@pytest.mark.parametrize("name", ["HLinUCB", "HConUCB"])
def test_blocks_change_nothing_but_the_workspace(name, monkeypatch):
    """Runs of models in `rebuild`, of log entries, of key-terms in Eq. 8 and of rows, all cut to pieces."""
    monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", 60)
    compare_with_reference(name, None, 20, refit=(6, 2))


@pytest.mark.parametrize("present", [None, 1, 3], ids=["everyone", "one a round", "some absent"])
@pytest.mark.parametrize("name", ["HLinUCB", "HArmCon", "HConUCB", "HConLinUCB", "HRelativeConUCB"])
def test_refit_equals_reference(name, present):
    compare_with_reference(name, present, 20 if present is None else 40, refit=(6, 2))


def test_refit_with_hidden_dimension_0_changes_nothing():
    worlds = small_world(), small_world()
    policies = HConUCB(worlds[0].catalogue, 7, hidden_dim=0, refit_every=4), ConUCB(worlds[1].catalogue, 7)
    assert decisions(policies[0], worlds[0]) == decisions(policies[1], worlds[1])


def test_refit_of_hlinucb_decreases_the_training_objective_sweep_by_sweep():
    world = hidden_world(noise=0.3)
    policy = HLinUCB(world.catalogue, 4, hidden_dim=2, refit_every=10**6, ridge=0.5, hidden_ridge=0.4)
    decisions(policy, world, 40)
    ((users, about, rewards),) = policy.log.entries()
    arms = about.of

    def objective():
        theta = policy.coefficients()
        phi = torch.cat((world.catalogue.arm_features, policy.representation.hidden), 1)
        error = (phi[arms] * theta[users]).sum(1) - rewards
        seen = policy.representation.hidden[arms.unique()]
        return float(error.square().sum() + 0.5 * theta.square().sum() + 0.4 * seen.square().sum())

    values = []
    for _ in range(12):
        policy.refit()
        values.append(objective())
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(values))
    assert values[-1] < 0.97 * values[0]


@pytest.mark.parametrize("policy_class", [HLinUCB, HArmCon, HConUCB])
def test_a_policy_with_a_log_is_saved_and_continues_exactly(policy_class):
    world = hidden_world(users_per_round=2)
    policy = policy_class(world.catalogue, 4, hidden_dim=2, refit_every=7)
    decisions(policy, world, 17)
    state = copy.deepcopy(policy.state_dict())
    assert len(state["log.users"]) == policy.log.length >= 34
    twin = policy_class(world.catalogue, 4, hidden_dim=2, refit_every=7)
    twin.load_state_dict(state)
    other = copy.deepcopy(world)
    assert decisions(policy, world, 20) == decisions(twin, other, 20)
    for name, value in policy.state_dict().items():
        torch.testing.assert_close(twin.state_dict()[name], value, **EXACT)


def test_the_log_holds_every_observation_in_order():
    world = hidden_world()
    policy = HConUCB(world.catalogue, 4, hidden_dim=2, refit_every=5)
    shown, rewards, terms, answers = [], [], [], []
    for _ in range(12):
        played = play_round(policy, world)
        shown.append(played.arm_ids)
        rewards += [feedback.reward for feedback in played.outcome.feedback]
        terms += [q.about.of for q, _ in played.dialogue]
        answers += [answer.value for _, answer in played.dialogue]
    ((users, about, values),) = policy.log.entries()
    assert users.tolist() == [0, 1, 2, 3] * 12
    assert isinstance(about, Arms)
    torch.testing.assert_close(about.of, torch.cat(shown), **EXACT)
    torch.testing.assert_close(values, torch.cat(rewards), **EXACT)
    ((users, about, values),) = policy.answers.entries()
    assert users.tolist() == [0, 1, 2, 3] * len(terms) and isinstance(about, Terms)
    torch.testing.assert_close(about.of, torch.cat(terms), **EXACT)
    torch.testing.assert_close(values, torch.cat(answers), **EXACT)


def test_refit_leaves_users_and_arms_never_seen_untouched():
    world = hidden_world(arms=60)
    world.visitors = lambda: torch.tensor([0, 2])
    policy = HConUCB(world.catalogue, 4, hidden_dim=2, refit_every=4)
    fresh = copy.deepcopy(policy)
    reset = []
    original = policy.arm_model.reset_rows
    policy.arm_model.reset_rows = lambda who: (reset.append(who.tolist()), original(who))
    decisions(policy, world, 9)
    assert reset == [[0, 2], [0, 2]]
    for model in ("arm_model", "term_model"):
        for name, value in getattr(policy, model).state_dict().items():
            torch.testing.assert_close(
                value[[1, 3]], getattr(fresh, model).state_dict()[name][[1, 3]], **EXACT
            )
    model = policy.representation.model
    unseen = (model.gram == torch.eye(2)).flatten(1).all(1) & (model.moment == 0).all(1)
    assert unseen.any() and not unseen.all()
    torch.testing.assert_close(
        policy.representation.hidden[unseen], fresh.representation.hidden[unseen], **EXACT
    )


def test_a_refit_needs_the_catalogues_features():
    world = hidden_world()
    context = world.observe()
    own = Context(context.users, context.arms, context.arm_features, rounds=context.rounds)
    policy = HLinUCB(world.catalogue, 4, refit_every=5)
    before = copy.deepcopy(policy.state_dict())
    with pytest.raises(ValueError, match="a refit needs the catalogue's features"):
        policy.update(own, torch.zeros(4, dtype=torch.int64), torch.ones(4).double())
    for name, value in policy.state_dict().items():
        torch.testing.assert_close(value, before[name], **EXACT)
