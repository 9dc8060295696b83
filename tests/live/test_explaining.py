"""Explanations sum up to the score, and profiles say what the regressions say."""

import pytest
import torch

from conbandit_torch import (
    ArmCon,
    ConLinUCB,
    ConLogisticUCB,
    ConThompson,
    ConUCB,
    GraphConUCB,
    LinearSchedule,
    LinUCB,
    Random,
    Recommender,
    RelativeConUCB,
)
from tests.conftest import ALGEBRA, small_world

ASKING = LinearSchedule(questions=2, every=2)
POLICIES = {
    "LinUCB": lambda c: LinUCB(c, 1, alpha=0.5),
    "ConUCB": lambda c: ConUCB(c, 1, schedule=ASKING),
    "ConThompson": lambda c: ConThompson(c, 1, schedule=ASKING),
    "ConLinUCB": lambda c: ConLinUCB(c, 1, schedule=ASKING),
    "ArmCon": lambda c: ArmCon(c, 1, schedule=ASKING),
    "GraphConUCB": lambda c: GraphConUCB(c, 1, schedule=ASKING),
    **{
        f"RelativeConUCB, {way}": lambda c, way=way: RelativeConUCB(c, 1, learn_as=way, schedule=ASKING)
        for way in ("winner", "both", "difference")
    },
}


def talked_with(policy, rounds=12):
    recommender = Recommender(policy)
    values = torch.rand(200, generator=torch.Generator().manual_seed(0)).tolist()
    for number in range(rounds):
        for user in ("ann", "bob"):
            while (question := recommender.ask(user)) is not None:
                answer = (0.0, 0.5, 1.0)[number % 3] if question.kind == "comparison" else values.pop()
                recommender.answer(user, question, None if number == 4 else answer)
            recommender.feedback(recommender.recommend(user), values.pop())
    return recommender


@pytest.mark.parametrize("name", POLICIES)
def test_effects_of_all_answers_and_rewards_sum_to_the_estimate(name):
    recommender = talked_with(POLICIES[name](small_world().catalogue))
    for item in recommender.items[:5]:
        found = recommender.explain("ann", item, most=1000)
        answers = sum(reason.kind != "reward" for reason in found.reasons)
        assert len(found.reasons) - answers == 12
        assert (answers > 0) == (name != "LinUCB")
        assert abs(found.estimate) > 1e-3
        total = sum(reason.effect for reason in found.reasons)
        torch.testing.assert_close(total, found.estimate, **ALGEBRA)
        assert abs(found.rest) < 1e-9
        sizes = [abs(reason.effect) for reason in found.reasons]
        assert sizes == sorted(sizes, reverse=True)


def test_the_estimate_and_the_width_are_the_policys_own():
    lam, alpha, term_alpha = 0.3, 0.7, 0.4
    factors = {"mix": lam, "alpha": alpha, "term_alpha": term_alpha}
    recommender = talked_with(ConUCB(small_world().catalogue, 1, schedule=ASKING, **factors))
    policy = recommender.policy
    arm, row = 7, 1  # bob
    x = policy.catalogue.arm_features[arm]
    found = recommender.explain("bob", f"arm {arm}")
    torch.testing.assert_close(found.estimate, float(x @ policy.coefficients()[row]), **ALGEBRA)
    M, G = policy.levels()[0].model.inverse[row], policy.levels()[1].model.inverse[row]
    v = M @ x
    width = lam * alpha * (x @ v).sqrt() + (1 - lam) * term_alpha * (v @ G @ v).sqrt()  # Eq. 7
    torch.testing.assert_close(found.width, float(width), **ALGEBRA)
    assert len(found.reasons) == 5


def test_what_no_observation_brings_in_is_said():
    recommender = talked_with(ConLogisticUCB(small_world().catalogue, 1, schedule=ASKING))
    assert abs(recommender.explain("ann", "arm 3").rest) > 1e-9


def test_a_policy_without_a_model_has_nothing_to_explain():
    recommender = talked_with(Random(small_world().catalogue, 1))
    found = recommender.explain("ann", "arm 3")
    assert (found.estimate, found.width, found.reasons, found.rest) == (None, None, (), None)
    assert recommender.profile("ann").beliefs == ()


def test_a_profile_is_of_every_key_term_and_surer_the_more_was_answered():
    recommender = talked_with(ConUCB(small_world().catalogue, 1, schedule=ASKING))
    policy = recommender.policy
    new, found = recommender.profile("never seen"), recommender.profile("ann")
    assert {belief.term for belief in found.beliefs} == set(recommender.terms)
    assert all(belief.estimate == 0 and abs(belief.sure) < 1e-9 for belief in new.beliefs)
    assert new.liked() == new.disliked() == []
    theta, lam = policy.coefficients()[0], policy.levels()[0].model.weight
    M, G = (level.model.inverse[0] for level in policy.levels())
    for belief in found.beliefs:
        x = policy.catalogue.term_features[recommender.terms.index(belief.term)]
        torch.testing.assert_close(belief.estimate, float(x @ theta), **ALGEBRA)
        v = M @ x
        width = lam * (x @ v).sqrt() + (1 - lam) * (v @ G @ v).sqrt()  # Eq. 7 with alpha = alpha~ = 1
        torch.testing.assert_close(belief.width, float(width), **ALGEBRA)
        assert 0 < belief.sure < 1
    estimates = [belief.estimate for belief in found.beliefs]
    assert estimates == sorted(estimates, reverse=True)
    assert [b.term for b in found.liked(2)] == [b.term for b in found.beliefs[:2]]
    assert [b.term for b in found.disliked(1)] == [found.beliefs[-1].term]
    assert "never seen" not in recommender.users


def test_a_taste_that_was_told_shows_in_the_profile():
    catalogue = small_world().catalogue
    recommender = Recommender(ConUCB(catalogue, 1, schedule=LinearSchedule(questions=40, every=1)))
    liked = "term 4"
    while (question := recommender.ask("ann")) is not None:
        recommender.answer("ann", question, float(question.names[0] == liked))
    asked = {event.names[0] for event in recommender.events() if event.kind == "asked"}
    assert liked in asked
    assert recommender.profile("ann").liked(1)[0].term == liked
