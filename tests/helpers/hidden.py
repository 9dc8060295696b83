"""Bandits with hidden features beside their NumPy reference."""

import numpy as np
import torch

from conbandit_torch import (
    Arms,
    Comparison,
    HArmCon,
    HConLinUCB,
    HConUCB,
    HLinUCB,
    HRelativeConUCB,
    HVarLCR,
    HVarMRC,
    HVarRS,
    Logistic,
    LogSchedule,
    Terms,
    play_round,
)
from tests.conftest import small_world, weights
from tests.reference import hidden


def hidden_world(**changes):
    return small_world(**({"users": 4, "arms": 25, "terms": 7, "dim": 5, "hidden": 2, "pool": 6} | changes))


class NumpyWorld:
    """An environment for the reference."""

    def __init__(self, environment, policy):
        self.environment, self.policy, self.num_users = environment, policy, environment.num_users
        self.theta = environment.theta.numpy()
        self.X = environment._world.arm_features.numpy()
        self.P = weights(environment.catalogue) / weights(environment.catalogue).sum(0)

    def pool(self, user, t):
        return self.environment.pools(torch.tensor([user]), torch.tensor([t]))[0].numpy()

    def reward(self, user, t, arm):
        noise = self.environment.arm_noise(torch.tensor([user]), torch.tensor([t]))
        return self.X[arm] @ self.theta[user] + float(noise)

    def answer(self, user, t, k):
        noise = self.environment.term_noise(torch.tensor([user]), torch.tensor([t]))
        return self.P[:, k] @ self.X @ self.theta[user] + float(noise)

    def compare(self, user, question, pair):
        """The winner and the loser of two key-terms."""
        noises = self.environment.side_noise(torch.tensor([user]), torch.tensor([question]))
        first, second = (
            self.P[:, k] @ self.X @ self.theta[user] + float(noise)
            for k, noise in zip(pair, noises, strict=True)
        )
        return pair if first > second else pair[::-1]

    def random_term(self, user, question):
        at = torch.tensor([user]), torch.tensor([question])
        return int(self.policy.stream("term").integers(*at, 1, self.P.shape[1]))


HIDDEN = {"hidden_alpha": 0.3, "hidden_ridge": 0.6}


ONE_LEVEL = {"ridge": 0.8, "alpha": 0.4, **HIDDEN}


TWO_LEVEL = {"mix": 0.7, "term_ridge": 0.6, "alpha": 0.3, "term_alpha": 0.2, **HIDDEN}


HIDDEN_POLICIES = {
    "HLinUCB": (HLinUCB, ONE_LEVEL, "plain", ""),
    "HArmCon": (HArmCon, ONE_LEVEL, "arms", ""),
    "HConUCB": (HConUCB, TWO_LEVEL, "terms", "optimal"),
    "HVarRS": (HVarRS, TWO_LEVEL, "terms", "random"),
    "HVarMRC": (HVarMRC, TWO_LEVEL, "terms", "max_related_confidence"),
    "HVarLCR": (HVarLCR, TWO_LEVEL, "terms", "largest_confidence_reduction"),
    "HConLinUCB": (HConLinUCB, ONE_LEVEL, "terms", "max_confidence_radius"),
    "HRelativeConUCB": (HRelativeConUCB, TWO_LEVEL, "pairs", ""),
}


def compare_with_reference(name, present, rounds, refit=None, clicks=False):
    policy_class, arguments, kind, rule = HIDDEN_POLICIES[name]
    environment = hidden_world(users_per_round=present)
    extra = {} if kind == "plain" else {"schedule": LogSchedule(2)}
    more = {} if refit is None else {"refit_every": refit[0], "refit_sweeps": refit[1]}
    if clicks:
        more["link"] = Logistic(answer="at the mean", refit_every=None)
    policy = policy_class(
        environment.catalogue, 4, hidden_dim=2, init_scale=0.1, seed=5, **arguments, **extra, **more
    )
    one_level, two_levels = (
        (hidden.OneLevelClicks, hidden.Clicks) if clicks else (hidden.OneLevel, hidden.Hidden)
    )
    levels = one_level if policy_class is HConLinUCB else two_levels
    levels = hidden.Compared if kind == "pairs" else levels
    reference = levels(
        environment.catalogue.arm_features.numpy(),
        weights(environment.catalogue),
        policy.representation.hidden.numpy(),
        4,
        kind,
        rule,
        **arguments,
    )
    visitors, log = [], []
    for _ in range(rounds):
        played = play_round(policy, environment)
        users = played.context.users
        visitors.append(users.tolist())
        asked = []
        for question, _ in played.dialogue:
            rows = torch.arange(len(users))[question.rows]
            assert isinstance(question.about, {"arms": Arms, "pairs": Comparison}.get(kind, Terms))
            things = map(tuple, question.about.ids().tolist())
            asked.append(sorted(zip(users[rows].tolist(), things, strict=True)))
        log.append((sorted(zip(users.tolist(), played.arm_ids.tolist(), strict=True)), asked))
    more = (
        {}
        if refit is None
        else {"refit_every": refit[0], "sweeps": refit[1], "hidden_ridge": 0.6}
        | {"term_ridge": arguments.get("term_ridge", arguments.get("ridge"))}
    )
    expected = hidden.play(
        reference, NumpyWorld(environment, policy), visitors, lambda t: 2 * np.floor(np.log(t)), **more
    )
    assert log == expected
    np.testing.assert_allclose(policy.representation.hidden, reference.V, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        policy.coefficients(), [reference.theta(u) for u in range(4)], rtol=1e-9, atol=1e-9
    )
