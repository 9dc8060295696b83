"""Every policy equals the plain NumPy reference, decision by decision."""

import inspect

import numpy as np
import pytest
import torch
from scipy import stats

import conbandit_torch
from conbandit_torch import (
    ArmCon,
    ArmConversationMixin,
    Arms,
    AskAgainConLinUCB,
    AskAgainConUCB,
    Bandit,
    BarycentricSpanner,
    CLiME,
    CLiSK,
    CoFineUCB,
    Comparison,
    ComparisonMixin,
    ConCoFineUCB,
    ConLinUCB,
    ConLinUCBBS,
    ConLinUCBMCR,
    ConLinUCBUCB,
    ConLogisticThompson,
    ConLogisticUCB,
    ConNeuralLinear,
    ConPE,
    ConThompson,
    ConUCB,
    ConversationMixin,
    DiscountedConLinUCB,
    DiscountedConUCB,
    DiscountedLinUCB,
    EpsilonGreedy,
    GraphConUCB,
    GraphMixin,
    Greedy,
    KeyTermMixin,
    LinearBandit,
    LinearSchedule,
    LinThompson,
    LinUCB,
    LogisticThompson,
    LogisticUCB,
    LogSchedule,
    NeuralLinear,
    NeuralThompson,
    OneLevelMixin,
    PerturbedTerm,
    Random,
    RelativeConLogisticUCB,
    RelativeConUCB,
    RestartingLinUCB,
    RestartMixin,
    Schedule,
    Terms,
    VarLCR,
    VarMRC,
    VarRS,
    WindowedConLinUCB,
    WindowedConUCB,
    WindowedLinUCB,
    play_round,
)
from conbandit_torch.conversation.spanner import spanner
from tests.conftest import ALGEBRA, small_world, weights
from tests.helpers.hidden import HIDDEN_POLICIES
from tests.helpers.policies import ArmCoFineUCB, ArmEpsilon, ArmThompson, BareThompson
from tests.reference import aging as aged
from tests.reference import asking, linear, logistic, others, restarts


class Fractional(Schedule):
    """A user's own schedule, not a whole number and so floored."""

    def total(self, rounds):
        return 0.4 * rounds


class Reference:
    """A policy, its arguments, its kind of conversation, and its reference of (user's world, policy, W)."""

    def __init__(self, policy, kind, make, **arguments):
        self.policy, self.kind, self.make, self.arguments = policy, kind, make, arguments


def plain(policy, kind="plain", **arguments):
    return Reference(policy, kind, lambda u, p, W: linear.LinUCB(6, **arguments), **arguments)


def two_levels(policy, rule):
    arguments = {"mix": 0.7, "term_ridge": 0.6, "alpha": 0.3, "term_alpha": 0.2}
    return Reference(policy, "terms", lambda u, p, W: linear.ConUCB(u.X, W, rule, **arguments), **arguments)


def compared():
    arguments = {"mix": 0.7, "term_ridge": 0.6, "alpha": 0.3, "term_alpha": 0.2}
    return Reference(
        RelativeConUCB, "pairs", lambda u, p, W: linear.RelativeConUCB(u.X, W, **arguments), **arguments
    )


def spread():
    arguments = {"mix": 0.7, "term_ridge": 0.6, "alpha": 0.3, "term_alpha": 0.2}
    return Reference(
        GraphConUCB, "terms", lambda u, p, W: linear.GraphConUCB(u.X, W, **arguments), **arguments
    )


def one_level(policy, rule):
    arguments = {"ridge": 0.8, "alpha": 0.4}
    make = lambda u, p, W: linear.ConLinUCB(u.X, W, rule, **arguments)  # noqa: E731
    return Reference(policy, "terms", make, **arguments)


def shifted(**arguments):
    about = arguments.get("ask_about", "term")
    return Reference(
        CLiSK,
        "terms",
        lambda u, p, W: asking.CLiSK(u.X, W, u.shift, about, ridge=0.8, alpha=0.4),
        **{"ridge": 0.8, "alpha": 0.4, "perturb": PerturbedTerm(0.5, 0.8)} | arguments,
    )


def weakest():
    arguments = {"ridge": 0.8, "alpha": 0.4}
    return Reference(CLiME, "terms", lambda u, p, W: asking.CLiME(u.X, W, **arguments), **arguments)


def phased(**arguments):
    return Reference(ConPE, "terms", lambda u, p, W: asking.ConPE(u.X, W, **arguments), **arguments)


def drawing(policy, reference, kind="plain", **arguments):
    return Reference(policy, kind, lambda u, p, W: reference(6, u.draw, **arguments), **arguments)


def thompson(policy, **term_scale):
    arguments = {"scale": 0.4, "mix": 0.7, "term_ridge": 0.6}
    make = lambda u, p, W: others.ConThompson(u.X, W, u.draw, term_scale=0.9, **arguments)  # noqa: E731
    return Reference(policy, "terms", make, **arguments, **term_scale)


def coarse(policy, kind, **projection):
    def make(u, p, W):
        level = others.Coarse(p.projection.numpy(), ridge=0.7, alpha=0.35)
        return others.CoFineUCB(6, level, ridge=0.8, alpha=0.4)

    arguments = {"ridge": 0.8, "alpha": 0.4, "coarse_ridge": 0.7, "coarse_alpha": 0.35}
    return Reference(policy, kind, make, **arguments, **projection)


def coarse_two_levels():
    def make(u, p, W):
        level = others.Coarse(p.projection.numpy(), ridge=0.7, alpha=0.35)
        return others.ConCoFineUCB(u.X, W, level, **arguments)

    arguments = {"mix": 0.7, "term_ridge": 0.6, "alpha": 0.3, "term_alpha": 0.2}
    more = {"coarse_dim": 2, "coarse_ridge": 0.7, "coarse_alpha": 0.35}
    return Reference(ConCoFineUCB, "terms", make, **arguments, **more)


def clicks(policy, reference, **arguments):
    return Reference(policy, "plain", lambda u, p, W: reference(6, **arguments), **arguments)


def clicks_two_levels(policy, reference, kind="terms", **arguments):
    arguments = {"mix": 0.7, "term_ridge": 0.6} | arguments

    def make(u, p, W):
        draws = {"draw": u.draw} if "scale" in arguments else {}
        return reference(u.X, W, **draws, **arguments)

    return Reference(policy, kind, make, **arguments)


def aging(policy, kind, **arguments):
    """A bandit for users who change, alone or conversing, on one level or two."""
    ages = {name: arguments[name] for name in ("gamma", "window") if name in arguments}
    levels = {name: value for name, value in arguments.items() if name not in ages}

    def make(u, p, W):
        clock = lambda: u.t  # noqa: E731
        if kind == "plain":
            return aged.WindowedLinUCB(6, clock, **arguments)
        how = aged.Windowed if "window" in ages else aged.Discounted
        level = aged.AgingConUCB if "mix" in levels else aged.AgingConLinUCB
        return level(u.X, W, clock, how, ages, **levels)

    return Reference(policy, kind, make, **arguments)


def restarting(policy, kind, make, variance, weight=1.0, **arguments):
    """A policy that forgets users at the least surprise, so that it does."""
    test = {"patience": 1.2, "growth": 1.3, "shift": 0.7}

    def restart(u, p, W):
        return restarts.Restarting(
            lambda: make(u.X, W, **arguments), variance, weight, clock=lambda: u.t, **test
        )

    return Reference(policy, kind, restart, **arguments, **test)


TWO_LEVELS = {"mix": 0.7, "term_ridge": 0.6, "alpha": 0.3, "term_alpha": 0.2}
POLICIES = {
    "Random": drawing(Random, others.Random),
    "LinUCB": plain(LinUCB, ridge=0.8, alpha=0.4),
    "LinearBandit": plain(LinearBandit, ridge=0.8, alpha=0.4),
    "ArmCon": plain(ArmCon, "arms", ridge=0.8, alpha=0.4),
    "ConUCB": two_levels(ConUCB, "optimal"),
    "ConversationMixin": two_levels(ConversationMixin, "optimal"),
    "VarRS": two_levels(VarRS, "random"),
    "VarMRC": two_levels(VarMRC, "max_related_confidence"),
    "VarLCR": two_levels(VarLCR, "largest_confidence_reduction"),
    "RelativeConUCB": compared(),
    "GraphConUCB": spread(),
    "ConLinUCB": one_level(ConLinUCB, "optimal"),
    "OneLevelMixin": one_level(OneLevelMixin, "optimal"),
    "KeyTermMixin": one_level(KeyTermMixin, "optimal"),
    "ConLinUCB-MCR": one_level(ConLinUCBMCR, "max_confidence_radius"),
    "ConLinUCB-UCB": one_level(ConLinUCBUCB, "upper_confidence"),
    "ConLinUCB-BS": one_level(ConLinUCBBS, "random"),
    "CLiSK": shifted(),
    "CLiSK, as published": shifted(ask_about="perturbed"),
    "CLiME": weakest(),
    "ConPE": phased(ridge=0.8, alpha=0.4, epsilon=1.2),
    "Greedy": drawing(Greedy, others.Greedy, ridge=0.8),
    "EpsilonGreedy": drawing(EpsilonGreedy, others.EpsilonGreedy, epsilon=0.3, ridge=0.8),
    "ArmEpsilon": drawing(ArmEpsilon, others.EpsilonGreedy, "arms", epsilon=0.3, ridge=0.8),
    "LinThompson": drawing(LinThompson, others.LinThompson, scale=0.4, ridge=0.8),
    "ArmThompson": drawing(ArmThompson, others.LinThompson, "arms", scale=0.4, ridge=0.8),
    "ConThompson": thompson(ConThompson, term_scale=0.9),
    "the bare mixin on LinThompson": thompson(BareThompson, term_alpha=0.9),
    "CoFineUCB": coarse(CoFineUCB, "plain", coarse_dim=2),
    "CoFineUCB, P given": coarse(
        CoFineUCB, "plain", projection=torch.linspace(-1, 2, 18).view(6, 3).sin().double()
    ),
    "ArmCoFineUCB": coarse(ArmCoFineUCB, "arms", coarse_dim=2),
    "ConCoFineUCB": coarse_two_levels(),
    "LogisticUCB": clicks(LogisticUCB, logistic.LogisticUCB, ridge=0.5, alpha=0.4),
    "LogisticThompson": drawing(LogisticThompson, logistic.LogisticThompson, scale=0.4, ridge=0.5),
    "ConLogisticUCB": clicks_two_levels(ConLogisticUCB, logistic.ConLogisticUCB, alpha=0.3, term_alpha=0.2),
    "RelativeConLogisticUCB": clicks_two_levels(
        RelativeConLogisticUCB, logistic.RelativeConLogisticUCB, "pairs", alpha=0.3, term_alpha=0.2
    ),
    "ConLogisticThompson": clicks_two_levels(
        ConLogisticThompson, logistic.ConLogisticThompson, scale=0.4, term_scale=0.9
    ),
    "DiscountedLinUCB": clicks(DiscountedLinUCB, aged.DiscountedLinUCB, gamma=0.9, ridge=0.8, alpha=0.4),
    "RestartingLinUCB": restarting(
        RestartingLinUCB,
        "plain",
        lambda X, W, **given: linear.LinUCB(6, **given),
        restarts.of_one_level,
        ridge=0.8,
        alpha=0.4,
    ),
    "AskAgainConUCB": restarting(
        AskAgainConUCB, "terms", linear.ConUCB, restarts.of_two_levels, weight=0.7, **TWO_LEVELS
    ),
    "AskAgainConLinUCB": restarting(
        AskAgainConLinUCB, "terms", linear.ConLinUCB, restarts.of_one_level, ridge=0.8, alpha=0.4
    ),
    "WindowedLinUCB": aging(WindowedLinUCB, "plain", window=6, ridge=0.8, alpha=0.4),
    "DiscountedConUCB": aging(DiscountedConUCB, "terms", gamma=0.9, **TWO_LEVELS),
    "WindowedConUCB": aging(WindowedConUCB, "terms", window=6, **TWO_LEVELS),
    "DiscountedConLinUCB": aging(DiscountedConLinUCB, "terms", gamma=0.9, ridge=0.8, alpha=0.4),
    "WindowedConLinUCB": aging(WindowedConLinUCB, "terms", window=6, ridge=0.8, alpha=0.4),
}
SCHEDULES = {
    "log": (LogSchedule(5), lambda t: 5 * np.floor(np.log(t))),
    "linear": (LinearSchedule(2, every=4), lambda t: 2 * np.floor(t / 4)),
    "own": (Fractional(), lambda t: 0.4 * t),
}
ONE_SCHEDULE = {
    "ConLogisticUCB",
    "ConLogisticThompson",
    "RelativeConLogisticUCB",
}  # their fits take the reference a while
CASES = [
    (n, s)
    for n, r in POLICIES.items()
    for s in SCHEDULES
    if s == "log" or (r.kind != "plain" and n not in ONE_SCHEDULE)
]


def test_every_exported_policy_has_a_reference():
    compared = {reference.policy for reference in POLICIES.values()}
    compared |= {policy for policy, *_ in HIDDEN_POLICIES.values()}
    compared |= {NeuralLinear, NeuralThompson, ConNeuralLinear}  # see test_network
    exported = (getattr(conbandit_torch, name) for name in conbandit_torch.__all__)
    policies = {c for c in exported if inspect.isclass(c) and issubclass(c, Bandit)}
    # The first two are abstract; the others stand over another mixin, as in RelativeConUCB and GraphConUCB.
    assert policies - compared == {Bandit, ArmConversationMixin, ComparisonMixin, GraphMixin, RestartMixin}


class OneUser:
    """The environment as one user meets it, in NumPy, and the policy's own draws for the round played."""

    def __init__(self, environment, policy, user):
        self.environment, self.policy, self.user = environment, policy, user
        self.X = environment.catalogue.arm_features.numpy()
        self.theta = environment.theta[user].numpy()

    def round(self, t):
        self.t = t
        at = torch.tensor([self.user]), torch.tensor([t])
        drawn = (self.environment.pools, self.environment.arm_noise, self.environment.term_noise)
        arms, arm_noise, term_noise = (draw(*at)[0].numpy() for draw in drawn)
        return arms, arm_noise, term_noise

    def side_noise(self, question):
        """Of both sides of the user's comparisons, by their number."""
        noises = self.environment.side_noise(torch.tensor([self.user]), torch.tensor([question]))
        return np.array([float(noise[0]) for noise in noises])

    def random_term(self, question):
        """Uniform over all key-terms, or over the spanner."""
        at = torch.tensor([self.user]), torch.tensor([question])
        terms = self.environment.catalogue.term_features
        over_spanner = isinstance(self.policy.select, BarycentricSpanner)
        members = spanner(terms) if over_spanner else torch.arange(len(terms))
        return int(members[self.policy.stream("term").integers(*at, 1, len(members))])

    def shift(self, question, term):
        """CLiSK's shift of a key-term: a normal number, drawn again until it is small enough, by quantiles."""
        number = question * self.environment.catalogue.num_terms + term
        uniform = self.policy.stream("shift").uniform(torch.tensor([self.user]), number, 6)[0].numpy()
        low, high = stats.norm.cdf([-0.8 / 0.5, 0.8 / 0.5])
        return 0.5 * stats.norm.ppf(low + (high - low) * uniform)

    def draw(self, kind, purpose, count):
        at = torch.tensor([self.user]), torch.tensor([self.t])
        return getattr(self.policy.stream(purpose), kind)(*at, count)[0].numpy()


@pytest.mark.parametrize(("name", "schedule"), CASES)
@pytest.mark.parametrize("present", [None, 1, 4], ids=["everyone", "one a round", "some absent"])
def test_policy_equals_reference(name, schedule, present):
    case = POLICIES[name]
    part, b = SCHEDULES[schedule]
    environment = small_world(users=6, users_per_round=present)
    extra = {} if case.kind == "plain" else {"schedule": part}
    policy = case.policy(environment.catalogue, 6, **case.arguments, **extra, seed=5)
    shown, asked = ([[] for _ in range(6)] for _ in range(2))
    waves = set()
    for _ in range({None: 25, 1: 90, 4: 40}[present]):
        played = play_round(policy, environment)
        users = played.context.users
        for user, arm in zip(users.tolist(), played.arm_ids.tolist(), strict=True):
            shown[user].append(arm)
        for question, _ in played.dialogue:
            rows = torch.arange(len(users))[question.rows]
            kinds = {"terms": Terms, "arms": Arms, "pairs": Comparison}
            assert isinstance(question.about, kinds[case.kind])
            for user, things in zip(users[rows].tolist(), question.about.ids().tolist(), strict=True):
                asked[user].append(tuple(things))
            waves.add(len(rows) == len(users))
    if present == 4 and case.kind != "plain":
        assert False in waves  # rounds in which only some of those present were asked
    for user in range(6):
        world = OneUser(environment, policy, user)
        reference = case.make(world, policy, weights(environment.catalogue))
        rounds = int(environment.rounds[user])
        assert rounds > 5
        expected_shown, expected_asked, thetas = linear.play(case.kind, reference, world, rounds, b)
        assert shown[user] == [int(a) for a in expected_shown]
        assert asked[user] == [tuple(np.atleast_1d(things)) for things in expected_asked]
        assert (case.kind == "plain") == (not asked[user])
        if isinstance(reference, restarts.Restarting):
            assert int(policy.restarts[user]) == reference.restarts
            assert policy.restarts.any()
        if policy.coefficients() is not None:  # the mean of a sampling policy, no sample
            np.testing.assert_allclose(policy.coefficients()[user], thetas[-1], **ALGEBRA)
