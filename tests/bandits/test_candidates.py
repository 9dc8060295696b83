"""What is worked out of the candidates while they are scored: right in any order, and no more than needed."""

import pytest
import torch

from conbandit_torch import CoFineUCB, ConThompson, ConUCB, Greedy, LinThompson, LinUCB, play_round
from conbandit_torch.bandits.candidates import Candidates
from tests.conftest import ALGEBRA, EXACT, small_world


def played(policy_class):
    """A policy after some rounds, and the candidates that it meets next."""
    world = small_world()
    policy = policy_class(world.catalogue, world.num_users)
    for _ in range(12):
        play_round(policy, world)
    return policy, world.observe()


@pytest.mark.parametrize("policy_class", [LinUCB, ConUCB])
def test_quantities_are_what_they_say(policy_class):
    policy, context = played(policy_class)
    M, x = policy.arm_model.gram, context.arm_features
    candidates = Candidates(policy, context)
    norm = (x @ torch.linalg.inv(M) * x).sum(-1).sqrt()
    torch.testing.assert_close(candidates.norm, norm, **ALGEBRA)  # before `solved` is there
    torch.testing.assert_close(candidates.solved, x @ torch.linalg.inv(M), **ALGEBRA)
    torch.testing.assert_close(candidates.features, x, **EXACT)
    torch.testing.assert_close(candidates.mean, policy.predict(context), **EXACT)
    torch.testing.assert_close(candidates.theta, policy.coefficients(), **EXACT)
    again = Candidates(policy, context)
    torch.testing.assert_close(again.solved, candidates.solved, **EXACT)
    torch.testing.assert_close(again.norm, norm, **ALGEBRA)  # from `solved`


@pytest.mark.parametrize(
    ("policy_class", "products"),
    [(Greedy, 0), (LinThompson, 0), (ConThompson, 0), (LinUCB, 1), (ConUCB, 2), (CoFineUCB, 1)],
)
def test_a_rule_pays_for_the_products_it_uses(policy_class, products, monkeypatch):
    """Products [A, D] x [D, D] a user, as many as the rule has terms that need one."""
    policy, context = played(policy_class)
    multiply, made = torch.bmm, []

    def counted(left, right):
        made.append((left.shape[1], *right.shape[1:]))
        return multiply(left, right)

    monkeypatch.setattr(torch, "bmm", counted)
    policy.choose(context)
    assert made.count((context.arms.shape[1], policy.catalogue.dim, policy.catalogue.dim)) == products
