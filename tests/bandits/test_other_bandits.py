"""Greedy bandits, Thompson sampling and CoFineUCB: contract, limits, distributions."""

import numpy as np
import pytest
import torch

from conbandit_torch import (
    Catalogue,
    Context,
    ConUCB,
    ConversationMixin,
    Lemma1,
    LinUCB,
    OneLevelMixin,
    Random,
    play_round,
)
from conbandit_torch.bandits.cofineucb import CoFineUCB, main_directions
from conbandit_torch.bandits.greedy import EpsilonGreedy, Greedy
from conbandit_torch.bandits.thompson import LinThompson
from conbandit_torch.conversation.concofineucb import ConCoFineUCB
from conbandit_torch.conversation.conthompson import ConThompson
from conbandit_torch.core import blocks
from conbandit_torch.testing import CHECKS, decisions
from tests.conftest import ALGEBRA, EXACT, small_world
from tests.helpers.policies import ArmCoFineUCB, ArmEpsilon, ArmThompson, BareThompson


class ConEpsilon(ConversationMixin, EpsilonGreedy):
    pass


COMBINED = [ConEpsilon, BareThompson, ArmThompson, ArmCoFineUCB, ArmEpsilon]


@pytest.mark.parametrize("policy", COMBINED, ids=lambda c: c.__name__)
@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__.removeprefix("check_"))
def test_contract(check, policy):
    check(policy)


def played(policy_class, rounds=30, **arguments):
    """A policy after some rounds, and its world."""
    world = small_world()
    policy = policy_class(world.catalogue, 7, **arguments)
    for _ in range(rounds):
        play_round(policy, world)
    return policy, world


def many_samples(policy, user, users=2000, rounds=10):
    """[n, D] what is added to theta in fresh rounds of users who all are in the state of `user`."""
    dim = policy.catalogue.dim
    many = type(policy)(policy.catalogue, users, scale=policy.scale, seed=11)
    if isinstance(policy, ConThompson):
        many.term_alpha = policy.term_alpha
    for name, value in policy.state_dict().items():
        many.get_buffer(name).copy_(value[user].expand(users, *value.shape[1:]))
    # A candidate that is a unit vector has a coordinate of theta' as its score.
    units = torch.eye(dim, dtype=torch.float64).expand(users, dim, dim)
    drawn = []
    for t in range(rounds):
        context = Context(torch.arange(users), torch.zeros(users, dim, dtype=torch.int64), units, rounds=t)
        drawn.append(many.scores(context) - many.predict(context))
    return torch.cat(drawn)


def assert_normal(drawn, covariance):
    """With n = 20000 draws the whitened mean has a standard error of .007, the entries of the whitened
    covariance of .007 beside the diagonal and .01 on it, the share within one deviation of .0033. Six of those
    are never reached by chance among some forty entries."""
    white = torch.linalg.solve_triangular(torch.linalg.cholesky(covariance), drawn.T, upper=False).T  # [n, D]
    assert len(white) == 20000
    torch.testing.assert_close(white.mean(0), torch.zeros(6).double(), rtol=0, atol=0.042)
    torch.testing.assert_close(white.T.cov(), torch.eye(6).double(), rtol=0, atol=0.06)
    inside = (white.abs() < 1).double().mean(0)
    torch.testing.assert_close(inside, torch.full((6,), 0.6827).double(), rtol=0, atol=0.02)


def test_sampled_theta_has_the_mean_and_covariance_of_the_posterior():
    policy, _ = played(LinThompson, scale=0.4)
    expected = 0.4**2 * policy.arm_model.gram[2].inverse()
    assert_normal(many_samples(policy, 2), expected)


def test_sampled_theta_under_a_conversation_carries_the_sampled_centre():
    policy, _ = played(ConThompson, scale=0.2, term_scale=0.9)
    inverse, term_inverse = policy.arm_model.gram[2].inverse(), policy.term_model.gram[2].inverse()
    centre = 0.5**2 * 0.9**2 * inverse @ term_inverse @ inverse
    assert centre.trace() > 0.2**2 * inverse.trace()  # both parts can be seen
    assert_normal(many_samples(policy, 2), 0.2**2 * inverse + centre)


def test_a_round_asked_twice_meets_the_same_sample_and_the_next_another():
    for policy_class in (LinThompson, ConThompson, EpsilonGreedy):
        arguments = {"epsilon": 1.0} if policy_class is EpsilonGreedy else {}
        policy, world = played(policy_class, rounds=1, **arguments)
        context = world.observe()
        first = policy.scores(context)
        torch.testing.assert_close(policy.scores(context), first, **EXACT)
        later = Context(context.users, context.arms, rounds=context.rounds + 1, catalogue=world.catalogue)
        assert not torch.isclose(policy.scores(later), first).any()


def test_samples_of_the_two_levels_and_of_users_are_unrelated():
    policy, world = played(ConThompson, rounds=0)
    context = world.observe()
    asked = []
    original = policy.stream
    policy.stream = lambda purpose: (asked.append(purpose), original(purpose))[1]
    policy.preference(context)
    assert asked == ["theta", "term theta"]
    draws = [original(purpose).normal(context.users, context.rounds, 6) for purpose in asked]
    assert len(torch.cat(draws).flatten().unique()) == 2 * 7 * 6


def test_beliefs_are_means_whatever_the_scale():
    for policy_class in (LinThompson, ConThompson):
        policy, world = played(policy_class)
        context = world.observe()
        before = policy.coefficients(), policy.predict(context), policy.scores(context)
        policy.scale, policy.seed = 5.0, 99
        torch.testing.assert_close(policy.coefficients(), before[0], **EXACT)
        torch.testing.assert_close(policy.predict(context), before[1], **EXACT)
        assert not torch.isclose(policy.scores(context), before[2]).any()


def test_thompson_sampling_takes_a_theory_value_per_user():
    policy, world = played(LinThompson, scale=Lemma1())
    context = world.observe()
    factor = Lemma1()(policy.arm_model, context.who)
    theory = policy.scores(context) - policy.predict(context)
    policy.scale = 1.0
    plain = policy.scores(context) - policy.predict(context)
    torch.testing.assert_close(theory, factor[:, None] * plain, **ALGEBRA)


class OneLevelThompson(OneLevelMixin, LinThompson):
    pass


def test_with_one_level_no_centre_is_sampled():
    policy, world = played(OneLevelThompson, ridge=0.8, scale=0.3)
    context = world.observe()
    normal = policy.stream("theta").normal(context.users, context.rounds, 6)
    sample = 0.3 * policy.arm_model.deviation(context.who, normal)
    expected = policy.predict(context) + (context.arm_features * sample[:, None]).sum(2)
    torch.testing.assert_close(policy.scores(context), expected, **ALGEBRA)
    assert int(policy.asked.min()) > 0


LIMITS = {  # a policy and its plainer equal
    "no sample": (LinThompson, {"scale": 0.0}, Greedy, {}),
    "no sample at both levels": (
        ConThompson,
        {"scale": 0.0, "term_scale": 0.0},
        ConUCB,
        {"alpha": 0.0, "term_alpha": 0.0},
    ),
    "never explores": (EpsilonGreedy, {"epsilon": 0.0}, Greedy, {}),
    "always explores": (EpsilonGreedy, {"epsilon": 1.0}, Random, {}),
    "no width": (LinUCB, {"alpha": 0.0}, Greedy, {}),
    "coarse level held at 0": (CoFineUCB, {"coarse_ridge": 1e15}, LinUCB, {"alpha": 0.25}),
    "coarse level held at 0, asking": (ConCoFineUCB, {"coarse_ridge": 1e15}, ConUCB, {}),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limit(name):
    policy, arguments, plainer, plain_arguments = LIMITS[name]
    world, twin = small_world(), small_world()
    ours = policy(world.catalogue, 7, **arguments)
    other = plainer(twin.catalogue, 7, **plain_arguments)
    assert decisions(ours, world, 50) == decisions(other, twin, 50)


@pytest.mark.parametrize("policy_class", [LinThompson, ConThompson, CoFineUCB, ConCoFineUCB, EpsilonGreedy])
def test_blocks_change_nothing(policy_class, monkeypatch):
    world, twin = small_world(), small_world()
    whole = decisions(policy_class(world.catalogue, 7), world)
    monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", 180)  # three rows of 9 candidates with 6 features
    policy = policy_class(twin.catalogue, 7)
    assert len(list(twin.observe().blocks(policy.row_size(twin.observe())))) >= 3
    assert decisions(policy, twin) == whole


def test_samples_have_the_right_spread_in_float32():
    """Three arms for ever: beside its large entries the long sum M hardly knows the small ridge.

    Entries of M^-1 go up to 1 / ridge = 1000; 450 rank-one steps may cost a thousandth of that (450 eps is
    less than a tenth of it)."""
    features = torch.randn(3, 20, generator=torch.manual_seed(0))
    policy = LinThompson(Catalogue(features), 20, ridge=0.001)
    M, everyone = 0.001 * torch.eye(20).double(), slice(0, 20)
    for t in range(450):  # an exact inverse is due after 500
        x = features[t % 3]
        policy.arm_model.update(everyone, x.expand(20, 20), torch.zeros(20))
        M += x.double().outer(x.double())
    # User i draws the unit vector i, and so shows column i of the factor.
    factor = policy.arm_model.deviation(everyone, torch.eye(20).double()).double().T
    torch.testing.assert_close(factor @ factor.T, M.inverse(), rtol=0, atol=1.0)


def test_epsilon_greedy_explores_epsilon_of_the_time_and_uniformly():
    """2000 users, 5 rounds: shares of n = 10000 decisions, within five standard deviations of at most .005."""
    epsilon, candidates = 0.3, 4
    world = small_world(users=2000, pool=candidates)
    policy, greedy = EpsilonGreedy(world.catalogue, 2000, epsilon=epsilon), Greedy(world.catalogue, 2000)
    others_shown, explored = 0, torch.zeros(candidates)
    for _ in range(5):
        context = world.observe()
        arm, best = policy.choose(context), greedy.choose(context)
        others_shown += int((arm != best).sum())
        shift = (arm - best) % candidates  # 0 is the greedy arm; the others must be equally frequent
        explored += torch.bincount(shift, minlength=candidates)
        (feedback,) = world.pull(context, arm).feedback
        reward = feedback.reward
        policy.update(context, arm, reward)
        greedy.update(context, arm, reward)  # the same data, so the same opinion
    assert others_shown / 1e4 == pytest.approx(epsilon * (1 - 1 / candidates), abs=0.025)
    torch.testing.assert_close(explored[1:] / 1e4, torch.full((3,), epsilon / candidates), rtol=0, atol=0.015)


def test_default_projection_is_that_of_the_arms():
    features = small_world().catalogue.arm_features
    P = main_directions(features, 3)
    _, _, Vh = np.linalg.svd(features.numpy())
    np.testing.assert_allclose(P.T @ P, np.eye(3), **ALGEBRA)
    np.testing.assert_allclose((Vh[:3] @ P.numpy()) ** 2, np.eye(3), rtol=0, atol=1e-9)  # up to signs
    assert (P.gather(0, P.abs().argmax(0, keepdim=True)) > 0).all()
    for same in (features.float(), features.flip(0), -features):
        torch.testing.assert_close(main_directions(same, 3), P, rtol=0, atol=1e-5)
    few = small_world(dim=3)
    assert CoFineUCB(few.catalogue, 7).projection.shape == (3, 3)
    assert CoFineUCB(small_world().catalogue, 7).projection.shape == (6, 5)


def test_a_coarse_level_that_fits_saves_regret():
    """Preferences within two known directions of 30: after 40 rounds LinUCB has hardly seen all directions.

    Mean over 140 users. With seeds 0 to 4 the two regrets have a ratio of .52 to .59."""
    P = torch.linalg.qr(torch.randn(30, 2, dtype=torch.float64, generator=torch.manual_seed(1))).Q
    regret = {}
    for policy_class, arguments in ((LinUCB, {"alpha": 0.25}), (CoFineUCB, {"projection": P})):
        world = small_world(users=140, dim=30, arms=200, terms=40, pool=20)
        world.theta.copy_(world.theta @ P @ P.T)
        policy = policy_class(world.catalogue, 140, **arguments)
        rounds = [play_round(policy, world).outcome.regret.mean() for _ in range(40)]
        regret[policy_class] = float(sum(rounds))
    assert regret[CoFineUCB] < 0.7 * regret[LinUCB]


REFUSED = {
    "scale must be a number of at least 0": (LinThompson, {"scale": -1.0}),
    "term_scale must be a number of at least 0": (ConThompson, {"term_scale": float("nan")}),
    r"epsilon must be in \[0, 1\], got 1.5": (EpsilonGreedy, {"epsilon": 1.5}),
    "coarse_dim must be from 1 to the 6 features, got 7": (CoFineUCB, {"coarse_dim": 7}),
    "coarse_dim must be from 1 to the 6 features, got 0": (CoFineUCB, {"coarse_dim": 0}),
    "coarse_dim is 2, but projection has 3 columns": (
        CoFineUCB,
        {"coarse_dim": 2, "projection": torch.ones(6, 3)},
    ),
    r"projection must .*D = 6 .*\[3, 6\]": (CoFineUCB, {"projection": torch.ones(3, 6)}),
    "projection must hold finite numbers": (CoFineUCB, {"projection": torch.full((6, 2), float("nan"))}),
    "coarse_alpha must be a number of at least 0": (CoFineUCB, {"coarse_alpha": -0.1}),
}


@pytest.mark.parametrize("message", REFUSED)
def test_bad_argument_is_refused(message):
    policy, arguments = REFUSED[message]
    with pytest.raises(ValueError, match=message):
        policy(small_world().catalogue, 7, **arguments)


UNKNOWN = {
    "ConThompson has no argument 'term_alpha'; did you mean 'term_scale'": (ConThompson, "term_alpha"),
    "ConThompson has no argument 'ridge'; with two levels": (ConThompson, "ridge"),
    "BareThompson has no argument 'ridge'; with two levels": (BareThompson, "ridge"),
    "ConCoFineUCB has no argument 'ridge'": (ConCoFineUCB, "ridge"),
    "Greedy has no argument 'alpha'": (Greedy, "alpha"),
}


@pytest.mark.parametrize("message", UNKNOWN)
def test_an_argument_of_another_policy_is_no_argument(message):
    policy, name = UNKNOWN[message]
    with pytest.raises(TypeError, match=message):
        policy(small_world().catalogue, 7, **{name: 0.3})
