"""hLinUCB, hConUCB and their variants: golden decisions, references, limits, refit."""

import copy
import pickle

import numpy as np
import pytest
import torch

from conbandit_torch import (
    ArmCon,
    Catalogue,
    Context,
    ConUCB,
    ConversationMixin,
    HArmCon,
    HConUCB,
    HLinUCB,
    HVarLCR,
    LinUCB,
    NoConversation,
    Synthetic,
    Terms,
    VarLCR,
    play_round,
)
from conbandit_torch.core.digests import fingerprint
from conbandit_torch.kernels import using
from conbandit_torch.testing import decisions
from tests.conftest import ALGEBRA, EXACT, GOLDEN, small_world, weights
from tests.helpers.hidden import HIDDEN_POLICIES, compare_with_reference, hidden_world


def test_every_recorded_decision_of_hlinucb_is_repeated():
    trace = np.load(GOLDEN / "hlinucb_trace.npz")
    catalogue = Catalogue(trace["X_observed"])
    ridge, alpha, hidden_alpha = trace["params"].tolist()
    policy = HLinUCB(
        catalogue, 5, hidden_dim=2, ridge=ridge, hidden_ridge=ridge, alpha=alpha, hidden_alpha=hidden_alpha
    )
    policy.representation.hidden.copy_(torch.from_numpy(trace["V0"]))
    chosen, rounds = [], np.zeros(5, dtype=int)
    for user, pool, noise in zip(trace["users"], trace["pools"], trace["arm_noise"], strict=True):
        arms, number = torch.from_numpy(pool)[None], int(rounds[user])
        context = Context(torch.tensor([user]), arms, rounds=number, catalogue=catalogue)
        arm = policy.choose(context)
        chosen.append(int(pool[arm]))
        policy.update(context, arm, torch.tensor([trace["reward_mean"][chosen[-1], user] + noise]))
        rounds[user] += 1
    assert len(chosen) == 1500
    np.testing.assert_array_equal(chosen, trace["arms"])
    np.testing.assert_allclose(policy.representation.hidden, trace["V_final"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(policy.coefficients(), trace["theta_final"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("present", [None, 1, 3], ids=["everyone", "one a round", "some absent"])
@pytest.mark.parametrize("name", HIDDEN_POLICIES)
def test_policy_equals_reference(name, present):
    compare_with_reference(name, present, 22 if present is None else 50)


@pytest.mark.parametrize("name", ["HLinUCB", "HArmCon", "HConUCB", "HConLinUCB"])
@pytest.mark.parametrize("refit", [None, (6, 2)], ids=["online", "refit"])
def test_policy_for_clicks_equals_reference(name, refit):
    compare_with_reference(name, 3, 30, refit, clicks=True)


@pytest.mark.parametrize(
    ("with_hidden", "without"), [(HLinUCB, LinUCB), (HConUCB, ConUCB), (HArmCon, ArmCon), (HVarLCR, VarLCR)]
)
def test_hidden_dimension_0_is_the_policy_without_hidden_features(with_hidden, without):
    worlds = small_world(), small_world()
    policies = with_hidden(worlds[0].catalogue, 7, hidden_dim=0), without(worlds[1].catalogue, 7)
    assert decisions(policies[0], worlds[0]) == decisions(policies[1], worlds[1])
    torch.testing.assert_close(policies[0].coefficients(), policies[1].coefficients(), **ALGEBRA)


def test_hconucb_without_conversation_is_hlinucb_at_the_arm_levels_values():
    worlds = hidden_world(), hidden_world()
    silent = HConUCB(
        worlds[0].catalogue, 4, hidden_dim=2, mix=0.3, alpha=0.4, term_alpha=0.0, schedule=NoConversation()
    )
    plain = HLinUCB(worlds[1].catalogue, 4, hidden_dim=2, alpha=0.4)
    plain.arm_model.set_prior(ridge=0.7, weight=0.3)
    assert decisions(silent, worlds[0], 60) == decisions(plain, worlds[1], 60)
    torch.testing.assert_close(silent.representation.hidden, plain.representation.hidden, **ALGEBRA)


def test_key_term_features_follow_the_hidden_features():
    world = hidden_world()
    policy = HConUCB(world.catalogue, 4, hidden_dim=2, init_scale=0.1)
    decisions(policy, world, 10)
    P = torch.from_numpy(weights(world.catalogue))
    phi = torch.cat((world.catalogue.arm_features, policy.representation.hidden), 1)
    torch.testing.assert_close(policy.representation.terms(), (P / P.sum(0)).T @ phi, **ALGEBRA)


def test_only_arms_of_the_key_term_or_shown_are_touched():
    """Inverses are computed, and features changed, for those arms and no others, and once each."""
    world = hidden_world(arms=60)
    policy = HConUCB(world.catalogue, 4, hidden_dim=2, init_scale=0.1)
    solved = []
    original = policy.representation.model.refresh
    policy.representation.model.refresh = lambda arms: (solved.append(sorted(arms.tolist())), original(arms))
    for _ in range(10):
        solved.clear()
        before = policy.representation.hidden.clone()
        with using("torch"):  # compiled kernels have no `refresh` to listen to
            played = play_round(policy, world)
        expected = [set(q.about.edges(world.catalogue).target.tolist()) for q, _ in played.dialogue]
        expected.append(set(played.arm_ids.tolist()))
        assert solved == [sorted(arms) for arms in expected]
        moved = (policy.representation.hidden != before).any(1).nonzero().flatten().tolist()
        assert set(moved) <= set().union(*expected)


# Each step decreases its own objective.


def test_theta_steps_never_increase_their_objectives():
    """theta~ and theta minimise their ridge objectives over what they were fed, v as it was then."""
    world = hidden_world()
    policy = HConUCB(world.catalogue, 4, hidden_dim=2, init_scale=0.1, mix=0.4, term_ridge=0.7)
    everyone = slice(0, 4)
    fed = {"arm": [], "term": []}
    for model, name in ((policy.arm_model, "arm"), (policy.term_model, "term")):

        def update(who, features, targets, model=model, name=name, original=model.update):
            ids, level = torch.arange(4)[who], ("arm", "term").index(name)
            fed[name] += list(zip(ids.tolist(), features.clone(), targets.clone(), strict=True))
            before = policy.thetas(everyone)[level]
            centre = None if name == "term" else policy.thetas(everyone)[1]
            original(who, features, targets)
            after = policy.thetas(everyone)[level]
            for user in ids.tolist():

                def objective(theta, user=user):
                    errors = sum((x @ theta - y) ** 2 for u, x, y in fed[name] if u == user)
                    shift = theta if centre is None else theta - centre[user]
                    return model.weight * errors + model.ridge * shift @ shift

                assert objective(after[user]) <= objective(before[user]) * (1 + 1e-12)
                nudge = (
                    1e-3
                    * torch.randn(len(after[user]), generator=torch.Generator().manual_seed(user)).double()
                )
                assert objective(after[user]) <= objective(after[user] + nudge)

        model.update = update
    decisions(policy, world, 12)
    assert fed["arm"] and fed["term"]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_v_step_never_increases_the_error_when_many_answers_on_one_key_term_arrive_at_once(seed, scale):
    """sum (phi~^T theta~ - r~)^2 + hidden_ridge sum |v|^2 of a batch of answers, at any size of theta~.

    Updating all arms at once by their own least squares (weights p^2) fails this: it overshoots.
    """
    users = 50
    world = hidden_world(users=users, terms=3, max_terms=1, arms=12, seed=seed)
    policy = HConUCB(world.catalogue, users, hidden_dim=2, init_scale=0.5, hidden_ridge=0.1, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    theta = scale * torch.randn(users, policy.arm_model.dim, generator=generator).double()
    answer = torch.randn(users, generator=generator).double()
    term = torch.zeros(users, dtype=torch.int64)

    def objective():
        error = (policy.representation.terms()[term] * theta).sum(1) - answer
        return float(error.square().sum() + 0.1 * policy.representation.hidden.square().sum())

    before = objective()
    residual = answer - (policy.representation.terms(term) * theta).sum(1)
    policy.representation.learn(Terms(term), theta, residual)
    assert objective() < before


def test_hidden_features_minimise_what_their_arms_were_told():
    """v-step: C v = d, so no v does better on the sum that C and d stand for."""
    world = hidden_world(arms=60)
    policy = HConUCB(world.catalogue, 4, hidden_dim=2, init_scale=0.1)
    decisions(policy, world, 3)
    C, d = policy.representation.model.gram, policy.representation.model.moment
    seen = (C != policy.representation.model.ridge * torch.eye(2)).flatten(1).any(1) | (d != 0).any(1)
    assert 5 < int(seen.sum()) < len(seen)
    solved = torch.linalg.solve(C, d)
    torch.testing.assert_close(policy.representation.hidden[seen], solved[seen], **ALGEBRA)
    fresh = HConUCB(world.catalogue, 4, hidden_dim=2, init_scale=0.1).representation.hidden
    torch.testing.assert_close(policy.representation.hidden[~seen], fresh[~seen], **EXACT)


# The split.


def test_policies_see_the_observed_features_and_rewards_come_from_all():
    world, whole = small_world(hidden=2), small_world()
    full, shown = whole.catalogue.arm_features, world.catalogue.arm_features
    assert shown.shape == (60, 4)
    columns = [int((full == shown[:, [j]]).all(0).nonzero()) for j in range(4)]
    assert len(set(columns)) == 4 and columns == sorted(columns)
    torch.testing.assert_close(
        world.catalogue.term_features, whole.catalogue.term_features[:, columns], **EXACT
    )
    context = world.observe()
    torch.testing.assert_close(context.arms, whole.observe().arms, **EXACT)
    torch.testing.assert_close(world.expected(context), whole.expected(whole.observe()), **ALGEBRA)
    assert world.preferences() is None
    others = {tuple(small_world(hidden=2, data_seed=s).catalogue.arm_features[0].tolist()) for s in range(4)}
    assert len(others) == 4


def test_the_last_change_is_that_of_the_last_step():
    world = hidden_world()
    policy = HLinUCB(world.catalogue, 4, hidden_dim=2, init_scale=0.1)
    decisions(policy, world, 5)
    before = policy.representation.hidden.clone()
    played = play_round(policy, world)  # one step: nobody is asked
    expected = (policy.representation.hidden - before).norm()
    assert expected > 0
    torch.testing.assert_close(policy.diagnostics(played.context)["hidden/last_change"], expected, **ALGEBRA)


def test_hidden_diagnostics_are_logged():
    world = hidden_world()
    policy = HConUCB(world.catalogue, 4, hidden_dim=2, refit_every=3)
    before = policy.representation.hidden.clone()
    decisions(policy, world, 2)
    played = play_round(policy, world)
    details = policy.diagnostics(played.context)
    assert {
        "width/arm",
        "width/term",
        "width/hidden",
        "hidden/last_change",
        "hidden/features",
    } <= details.keys()
    assert float(details["hidden/refit_seconds"]) > 0
    assert not torch.equal(details["hidden/features"], before)
    expected = torch.stack(
        [
            torch.stack(
                [(t @ torch.linalg.inv(policy.representation.model.gram[a]) @ t).sqrt() for a in arms]
            )
            for t, arms in zip(policy.coefficients()[:, 3:], played.context.arms, strict=True)
        ]
    )
    torch.testing.assert_close(details["width/hidden"], expected.mean(), **ALGEBRA)


class BareHidden(ConversationMixin, HLinUCB):
    pass


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: HLinUCB(c, 4, hidden_dim=-1), "hidden_dim must be at least 0, got -1"),
        (
            lambda c: HLinUCB(c, 4, init_scale=0.0),
            "init_scale must be above 0, got 0.0: .* nothing would ever be learned",
        ),
        (lambda c: HConUCB(c, 4, init_scale=-1.0), "init_scale must be above 0, got -1.0"),
        (lambda c: HLinUCB(c, 4, refit_every=0), "refit_every must be at least 1, got 0"),
        (lambda c: HLinUCB(c, 4, refit_sweeps=0), "refit_sweeps must be at least 1, got 0"),
        (lambda c: HLinUCB(c, 4, hidden_alpha=-0.1), "hidden_alpha must be a number of at least 0, got -0.1"),
        (lambda c: HLinUCB(c, 4, hidden_ridge=0.0), "hidden_ridge must be above 0"),
        (lambda c: HLinUCB(c, 4).refit(), "there is no log to refit from: build the policy with refit_every"),
        (lambda c: small_world(hidden=6), "hidden must be from 0 to 5, below the number of features, got 6"),
        (
            lambda c: small_world(hidden=-1),
            "hidden must be from 0 to 5, below the number of features, got -1",
        ),
    ],
)
def test_values_out_of_range_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(hidden_world().catalogue)


def test_a_ridge_of_the_arms_level_is_no_argument_where_mix_sets_it():
    for policy in (HConUCB, BareHidden):
        with pytest.raises(TypeError, match=f"{policy.__name__} has no argument 'ridge'.*ridge is 1 - mix"):
            policy(hidden_world().catalogue, 4, ridge=1.0)


def test_candidates_show_the_hidden_features_after_any_copy_or_conversion():
    """`hidden` is a part of the table that candidates are looked up in, not a copy of it."""
    world = hidden_world()
    policy = HLinUCB(world.catalogue, world.num_users, hidden_dim=2)
    saved = copy.deepcopy(policy.state_dict())
    copies = (
        lambda one: one,
        copy.deepcopy,
        lambda one: pickle.loads(pickle.dumps(one)),
        lambda one: copy.deepcopy(one).float(),
        lambda one: copy.deepcopy(one).float().double(),
    )
    for copied in copies:
        for assign in (False, True):
            one = copied(policy)
            one.representation.hidden.fill_(7.0)
            assert (one.representation.of(world.observe())[..., -2:] == 7).all()
            one.load_state_dict(saved, assign=assign)
            shown = one.representation.of(world.observe())[..., -2:]
            torch.testing.assert_close(shown, one.representation.hidden[world.observe().arms])
            assert not (one.representation.hidden == 7).any()


def test_hidden_features_of_another_number_of_arms_are_not_loaded():
    world = hidden_world()
    policy = HLinUCB(world.catalogue, world.num_users, hidden_dim=2)
    saved = policy.state_dict() | {"representation._extra_state": torch.zeros(1, 2)}
    with pytest.raises(RuntimeError, match=r"hidden features must be \[\d+, 2\], got \[1, 2\]"):
        policy.load_state_dict(saved)


@pytest.mark.parametrize("kernels", ["auto", "torch"])
def test_to_look_at_the_key_terms_changes_nothing(kernels):
    """So that a policy that was asked for a question equals one that is built anew from what was learned."""

    def played(look):
        world = Synthetic(3, 2000, 40, 4, pool=5, seed=0)
        policy = HConUCB(world.catalogue, 3, hidden_dim=2, init_scale=0.1)
        with using(kernels):
            for _ in range(30):
                if look:
                    seen = policy.representation
                    expected = world.catalogue.average(seen.hidden)
                    torch.testing.assert_close(seen.terms()[:, 4:], expected, **EXACT)
                play_round(policy, world)
        return policy

    one, other = (played(look) for look in (True, False))
    assert fingerprint(one.state_dict()) == fingerprint(other.state_dict())
