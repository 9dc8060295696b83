"""The barycentric spanner, and the schedule that asks while it is worth it."""

import numpy as np
import pytest
import torch

from conbandit_torch import (
    ArmConversationMixin,
    BarycentricSpanner,
    ConLinUCBMCR,
    ConUCB,
    HConLinUCB,
    Random,
    WhileUncertain,
    play_round,
)
from conbandit_torch.conversation.spanner import spanner
from tests.conftest import small_world


def graphs():
    generator = np.random.default_rng(0)
    full = generator.normal(size=(60, 8))
    flat = generator.normal(size=(60, 3)) @ generator.normal(size=(3, 8))  # rank 3
    skewed = full * 10.0 ** -np.arange(8)  # hardly any of the last dimensions
    few = generator.normal(size=(5, 8))  # fewer rows than dimensions
    return {
        "full": (full, 8),
        "rank-deficient": (flat, 3),
        "skewed": (skewed, None),
        "few": (few, 5),
        "repeated": (np.repeat(few[:3], 7, axis=0), 3),
        "with zeros": (np.vstack([np.zeros((2, 8)), few]), 5),
        "heavy-tailed": (generator.standard_cauchy(size=(200, 8)), 8),
    }


@pytest.mark.parametrize("approximation", [1.01, 2.0])
@pytest.mark.parametrize("name", graphs())
def test_every_key_term_is_a_combination_with_coefficients_of_at_most_c(name, approximation):
    vectors, rank = graphs()[name]
    members = spanner(torch.tensor(vectors), approximation).numpy()
    assert len(set(members)) == len(members) and (rank is None or len(members) == rank)
    coefficients, _, found, _ = np.linalg.lstsq(vectors[members].T, vectors.T, rcond=None)
    assert found == len(members)  # they are independent
    np.testing.assert_allclose(coefficients.T @ vectors[members], vectors, atol=1e-4 * np.abs(vectors).max())
    assert np.abs(coefficients).max() <= approximation * (1 + 1e-6)


def test_the_rule_asks_about_the_spanner_alone_and_all_of_it():
    environment = small_world(users=40, terms=12, dim=5)
    policy = ConUCB(environment.catalogue, 40, select=BarycentricSpanner())
    asked = torch.cat([q.about.of for _ in range(25) for q, _ in play_round(policy, environment).dialogue])
    assert asked.unique().tolist() == spanner(environment.catalogue.term_features).tolist()


@pytest.mark.parametrize("approximation", [1.0, 0.0, float("nan"), float("inf")])
def test_an_approximation_that_cannot_be_reached_is_refused(approximation):
    with pytest.raises(ValueError, match="approximation must be above 1"):
        BarycentricSpanner(approximation)


@pytest.mark.parametrize("cls", [ConUCB, ConLinUCBMCR, HConLinUCB])
def test_questions_are_asked_while_a_key_term_is_little_known_and_no_longer(cls):
    environment = small_world(users=5, terms=12)
    policy = cls(environment.catalogue, 5, schedule=WhileUncertain(0.4, questions=30, per_round=2))
    for _ in range(30):
        context = environment.observe()
        before = policy.asking(context).radii().amax(1)
        could = policy.schedule.total(context.rounds + 1) > policy.asked
        question = policy.ask(context)
        asked = torch.zeros(5, dtype=torch.bool)
        if question is not None:
            asked[question.rows] = True
        assert asked.tolist() == (could & (before > 0.4)).tolist()
        play_round(policy, environment)
        assert (policy.asked <= (2 * environment.rounds).clamp_max(30)).all()
    assert 0 < policy.asked.max() <= 30
    satisfied = policy.asking(environment.observe()).radii().amax(1) <= 0.4
    assert (satisfied | (policy.asked == 30)).all()


def test_the_cap_holds_however_uncertain_it_is():
    environment = small_world(users=5)
    policy = ConUCB(environment.catalogue, 5, schedule=WhileUncertain(0.0, questions=4, per_round=1))
    for _ in range(10):
        play_round(policy, environment)
    assert policy.asked.tolist() == [4] * 5


def test_a_bandit_without_a_regression_cannot_be_uncertain():
    class Asking(ArmConversationMixin, Random):
        pass

    environment = small_world()
    policy = Asking(environment.catalogue, environment.num_users, schedule=WhileUncertain())
    with pytest.raises(
        NotImplementedError, match="this policy has no radii of key-terms: a LinearBandit has"
    ):
        play_round(policy, environment)


def test_arguments_of_two_levels_are_refused_with_one():
    environment = small_world()
    with pytest.raises(TypeError, match="ConLinUCBMCR has no argument 'mix'"):
        ConLinUCBMCR(environment.catalogue, environment.num_users, mix=0.5)
