"""Arguments of the mixin, and parts of one's own."""

import pytest
import torch

from conbandit_torch import (
    ConUCB,
    ConversationMixin,
    LinearBandit,
    LinUCB,
    LogSchedule,
    OneLevel,
    OptimalTerm,
    RandomTerm,
    Selection,
    TwoLevels,
    VarRS,
    play_round,
)
from conbandit_torch.testing import decisions
from tests.conftest import ALGEBRA, small_world


class Conversational(ConversationMixin, LinUCB):
    pass


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mix": 0.0}, r"mix must be in \(0, 1\), got 0.0"),
        ({"mix": 1.0}, r"mix must be in \(0, 1\), got 1.0"),
        ({"term_ridge": 0.0}, "term_ridge must be above 0 and finite, got 0.0"),
        ({"alpha": -0.1}, "alpha must be a number of at least 0 or a Confidence, got -0.1"),
        ({"term_alpha": float("nan")}, "term_alpha must be a number of at least 0"),
        (
            {"ridge": 1.0},
            "ridge must not be given .got 1.0.: with two levels the arm level's ridge is 1 - mix",
        ),
        ({"weight": 1.0}, "weight must not be given"),
    ],
)
def test_values_out_of_range_are_refused(world, arguments, message):
    with pytest.raises(ValueError, match=message):
        ConUCB(world.catalogue, 7, **arguments)


def test_an_unknown_argument_is_refused(world):
    with pytest.raises(TypeError, match="alhpa"):
        ConUCB(world.catalogue, 7, alhpa=1.0)


def test_two_level_arguments_and_an_estimator_exclude_each_other(world):
    with pytest.raises(ValueError, match="mix and estimator are given"):
        Conversational(world.catalogue, 7, mix=0.5, estimator=OneLevel())
    by_arguments = Conversational(world.catalogue, 7, mix=0.3, term_ridge=2.0, term_alpha=0.1)
    by_estimator = Conversational(world.catalogue, 7, estimator=TwoLevels(0.3, 2.0, 0.1))
    assert vars(by_arguments.estimator) == vars(by_estimator.estimator)


def test_answers_enter_the_arm_level_with_one_level():
    """M and b hold rewards and answers alike, and there is no second regression."""
    world = small_world()
    policy = Conversational(world.catalogue, 7, estimator=OneLevel(), ridge=0.4, alpha=0.2)
    assert policy.term_model is None
    M = 0.4 * torch.eye(6).double().repeat(7, 1, 1)
    b = torch.zeros(7, 6).double()
    for _ in range(12):
        played = play_round(policy, world)
        rows = [(q.rows, world.catalogue.term_features[q.terms], answer) for q, answer in played.dialogue]
        rows.append((slice(None), world.catalogue.arm_features[played.arm_ids], played.outcome.reward))
        for who, x, y in rows:
            M[who] += x[:, :, None] * x[:, None, :]
            b[who] += y[:, None] * x
    torch.testing.assert_close(policy.coefficients(), torch.linalg.solve(M, b), **ALGEBRA)


def test_optimal_rule_with_one_level_is_eq_8_with_the_arm_level_in_both_places():
    world = small_world()
    policy = Conversational(world.catalogue, 7, estimator=OneLevel())
    for _ in range(5):
        play_round(policy, world)
    context = world.observe()
    scores = OptimalTerm().scores(policy, context)
    for user in range(7):
        X, G = context.arm_features[user], torch.linalg.inv(policy.arm_model.gram[user])
        for k, x in enumerate(world.catalogue.term_features):
            expected = (X @ G @ x).square().sum() / (1 + x @ G @ x)
            torch.testing.assert_close(scores[user, k], expected, **ALGEBRA)


def test_a_selection_rule_of_ones_own(world):
    class FirstTerms(Selection):
        def scores(self, policy, context):
            return -torch.arange(policy.catalogue.num_terms).double().expand(len(context), -1)

    policy = ConUCB(world.catalogue, 7, select=FirstTerms())
    asked = [q.terms for _ in range(9) for q, _ in play_round(policy, world).dialogue]
    assert asked and all((terms == 0).all() for terms in asked)


def test_random_rule_reaches_every_key_term_alike():
    """2,000 users, 5 questions each, 12 key-terms: five standard errors around 1 / 12, the last included."""
    world = small_world(users=2000)
    policy = VarRS(world.catalogue, 2000, schedule=LogSchedule(5))
    asked = torch.cat([q.terms for _ in range(3) for q, _ in play_round(policy, world).dialogue])
    assert len(asked) == 10_000
    share = torch.bincount(asked, minlength=12) / len(asked)
    assert (share - 1 / 12).abs().max() < 5 * (1 / 12 * 11 / 12 / 10_000) ** 0.5


def test_variants_differ_only_in_their_rule(world):
    as_variant = VarRS(world.catalogue, 7, seed=4)
    twin = small_world()
    by_part = ConUCB(twin.catalogue, 7, select=RandomTerm(), seed=4)
    assert decisions(as_variant, world) == decisions(by_part, twin)


def test_conucb_takes_another_estimator(world):
    policy = ConUCB(world.catalogue, 7, estimator=OneLevel(), ridge=0.3)
    assert policy.term_model is None and policy.arm_model.ridge == 0.3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"schedule": 5}, "schedule must be a Schedule, got 5"),
        ({"select": OptimalTerm}, "select must be a Selection, got <class"),
        ({"estimator": "OneLevel"}, "estimator must be a Estimator, got 'OneLevel'"),
    ],
)
def test_parts_of_another_kind_are_refused(world, arguments, message):
    with pytest.raises(TypeError, match=message):
        ConUCB(world.catalogue, 7, **arguments)


def test_forgotten_term_features_are_told():
    class Longer(LinearBandit):
        def __init__(self, catalogue, num_users, *, ridge=1.0, weight=1.0, seed=0):
            dim = catalogue.dim + 1
            super().__init__(catalogue, num_users, ridge=ridge, weight=weight, dim=dim, seed=seed)

        def features(self, context):
            return torch.nn.functional.pad(context.arm_features, (0, 1), value=1.0)

    class ConLonger(ConversationMixin, Longer):
        pass

    for select, message in {
        OptimalTerm(): r"ConLonger.term_features must give \[12, 7\] numbers, got \[12, 6\]; .* must override",
        RandomTerm(): r"ConLonger.term_features must give \[7, 7\] numbers, got \[7, 6\]",
    }.items():
        world = small_world()
        policy = ConLonger(world.catalogue, 7, select=select)
        with pytest.raises(ValueError, match=message):
            decisions(policy, world)
