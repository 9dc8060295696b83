"""Every policy equals the plain NumPy reference, decision by decision."""

import numpy as np
import pytest
import torch

from conbandit_torch import (
    ArmCon,
    BarycentricSpanner,
    ConLinUCB,
    ConLinUCBBS,
    ConLinUCBMCR,
    ConLinUCBUCB,
    ConUCB,
    LinearSchedule,
    LinUCB,
    LogSchedule,
    Schedule,
    VarLCR,
    VarMRC,
    VarRS,
    play_round,
)
from conbandit_torch.conversation.spanner import spanner
from tests.conftest import small_world
from tests.reference import linear


class Fractional(Schedule):
    """A user's own schedule, not a whole number and so floored."""

    def total(self, rounds):
        return 0.4 * rounds


SCHEDULES = {
    "log": (LogSchedule(5), lambda t: 5 * np.floor(np.log(t))),
    "linear": (LinearSchedule(2, every=4), lambda t: 2 * np.floor(t / 4)),
    "own": (Fractional(), lambda t: 0.4 * t),
}
TWO_LEVEL = {"mix": 0.7, "term_ridge": 0.6, "alpha": 0.3, "term_alpha": 0.2}
ONE_LEVEL = {"ridge": 0.8, "alpha": 0.4}
POLICIES = {  # policy, its arguments, kind of conversation, reference
    "LinUCB": (LinUCB, {"ridge": 0.8, "alpha": 0.4}, "plain", None),
    "ArmCon": (ArmCon, {"ridge": 0.8, "alpha": 0.4}, "arms", None),
    "ConUCB": (ConUCB, TWO_LEVEL, "terms", "optimal"),
    "VarRS": (VarRS, TWO_LEVEL, "terms", "random"),
    "VarMRC": (VarMRC, TWO_LEVEL, "terms", "max_related_confidence"),
    "VarLCR": (VarLCR, TWO_LEVEL, "terms", "largest_confidence_reduction"),
    "ConLinUCB": (ConLinUCB, ONE_LEVEL, "terms", "optimal"),
    "ConLinUCB-MCR": (ConLinUCBMCR, ONE_LEVEL, "terms", "max_confidence_radius"),
    "ConLinUCB-UCB": (ConLinUCBUCB, ONE_LEVEL, "terms", "upper_confidence"),
    "ConLinUCB-BS": (ConLinUCBBS, ONE_LEVEL, "terms", "random"),
}


class OneUser:
    """The environment as one user meets it, in NumPy."""

    def __init__(self, environment, policy, user):
        self.environment, self.policy, self.user = environment, policy, user
        self.X = environment.catalogue.arm_features.numpy()
        self.theta = environment.theta[user].numpy()

    def round(self, t):
        at = torch.tensor([self.user]), torch.tensor([t])
        drawn = (self.environment.pools, self.environment.arm_noise, self.environment.term_noise)
        arms, arm_noise, term_noise = (draw(*at)[0].numpy() for draw in drawn)
        return arms, arm_noise, term_noise

    def random_term(self, question):
        """Uniform over all key-terms, or over the spanner."""
        at = torch.tensor([self.user]), torch.tensor([question])
        terms = self.environment.catalogue.term_features
        over_spanner = isinstance(self.policy.select, BarycentricSpanner)
        members = spanner(terms) if over_spanner else torch.arange(len(terms))
        return int(members[self.policy.stream("term").integers(*at, 1, len(members))])


def weights(catalogue):
    """W [N, K], dense."""
    W = np.zeros((catalogue.num_arms, catalogue.num_terms))
    edges = catalogue.terms_of(torch.arange(catalogue.num_arms))
    W[edges.owner, edges.target] = edges.weight
    return W


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("present", [None, 1, 4], ids=["everyone", "one a round", "some absent"])
def test_policy_equals_reference(name, schedule, present):
    policy_class, arguments, kind, rule = POLICIES[name]
    part, b = SCHEDULES[schedule]
    environment = small_world(users=6, users_per_round=present)
    extra = {} if kind == "plain" else {"schedule": part}
    policy = policy_class(environment.catalogue, 6, **arguments, **extra, seed=5)
    shown, asked = ([[] for _ in range(6)] for _ in range(2))
    budgets = set()
    for _ in range(40 if present is None else 120):
        played = play_round(policy, environment)
        users = played.context.users
        for user, arm in zip(users.tolist(), played.arm_ids.tolist(), strict=True):
            shown[user].append(arm)
        for question, _ in played.dialogue:
            rows = torch.arange(len(users))[question.rows]
            if question.terms is not None:
                things = question.terms
            else:
                things = played.context.arms[rows].gather(1, question.positions[:, None]).squeeze(1)
            for user, thing in zip(users[rows].tolist(), things.tolist(), strict=True):
                asked[user].append(thing)
            budgets.add(len(rows) == len(users))
    if present == 4 and kind != "plain":
        assert False in budgets  # rounds in which only some of those present were asked
    for user in range(6):
        world = OneUser(environment, policy, user)
        dim = environment.catalogue.dim
        if kind == "terms":
            kind_of_model = linear.ConUCB if "mix" in arguments else linear.ConLinUCB
            reference = kind_of_model(world.X, weights(environment.catalogue), rule, **arguments)
        else:
            reference = linear.LinUCB(dim, **arguments)
        rounds = int(policy.rounds[user])
        assert rounds > 5
        expected_shown, expected_asked, thetas = linear.play(kind, reference, world, rounds, b)
        assert shown[user] == [int(a) for a in expected_shown]
        assert asked[user] == [int(k) for k in expected_asked]
        np.testing.assert_allclose(policy.coefficients()[user], thetas[-1], rtol=1e-9, atol=1e-9)
