"""Which two key-terms are compared, and what is learned of the answer."""

import numpy as np
import pytest
import torch

from conbandit_torch import (
    BestDifference,
    BestThenDifference,
    BestTwoTerms,
    Comparison,
    ComparisonMixin,
    HLinUCB,
    HRelativeConUCB,
    LogisticUCB,
    LogSchedule,
    NoConversation,
    OneLevelMixin,
    Question,
    RelativeConLogisticUCB,
    RelativeConUCB,
    Synthetic,
    Terms,
    play_round,
)
from conbandit_torch.testing import check_policy
from tests.conftest import ALGEBRA, small_world, weights


class OneLevelRelative(ComparisonMixin, OneLevelMixin, HLinUCB):
    pass


def by_hand(policy, asking, row, related, kind, distinct):
    """The pair, by loops over all vectors and full inverses."""
    X = asking.context.arm_features[row].double().numpy()
    terms = policy.catalogue.terms().double().numpy()
    user = int(asking.context.users[row])
    M, M_terms = (model.gram[user].double().numpy() for model in (policy.arm_model, policy.term_model))
    has = weights(policy.catalogue)[asking.context.arms[row]].any(0)
    askable = np.flatnonzero(has) if related else np.arange(len(terms))

    def value(z, M_terms=M_terms):
        inverse = np.linalg.inv(M_terms)
        # Two levels: P = (1 - lam) X M^-1; the factor is the same for all.
        gained = 0.5 * X @ np.linalg.inv(M) @ inverse @ z
        return gained @ gained / (1 + z @ inverse @ z)

    def best(score, among):
        return max(among, key=score)  # the first of equals

    if kind is BestDifference:
        pairs = [(f, s) for f in askable for s in askable if f < s]
        return best(lambda pair: value(terms[pair[0]] - terms[pair[1]]), pairs)
    first = best(lambda k: value(terms[k]), askable)
    if kind is BestThenDifference:
        return first, best(lambda k: value(terms[k] - terms[first]), askable)
    after = M_terms + np.outer(terms[first], terms[first])
    others = [k for k in askable if k != first or not distinct]
    return first, best(lambda k: value(terms[k], after), others)


@pytest.mark.parametrize("related", [True, False], ids=["related", "any"])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (BestDifference, {}),
        (BestThenDifference, {}),
        (BestTwoTerms, {}),
        (BestTwoTerms, {"distinct": False}),
    ],
    ids=["difference", "then difference", "two", "two, perhaps equal"],
)
def test_the_pair_is_that_of_loops_over_all_pairs(kind, options, related):
    world = small_world(pool=4)
    rule = kind(related=related, **options)
    policy = RelativeConUCB(world.catalogue, world.num_users, pairs=rule)
    for _ in range(12):
        play_round(policy, world)
    asking = policy.asking(world.observe())
    pairs = rule(asking)
    for row in range(world.num_users):
        expected = by_hand(policy, asking, row, related, kind, options.get("distinct", True))
        assert tuple(pairs[row].tolist()) == tuple(map(int, expected))


@pytest.mark.parametrize("learn_as", ["winner", "both", "difference"])
def test_answers_are_learned_as_said_and_neither_is_half(learn_as):
    world = small_world(users=3)
    policy = RelativeConUCB(world.catalogue, 3, learn_as=learn_as)
    first, second = torch.tensor([0, 1, 2]), torch.tensor([3, 4, 5])
    about = Comparison(Terms(first), Terms(second))
    policy.learn_answer(world.observe(), about, torch.tensor([1.0, 0.0, 0.5]).double())
    x = policy.catalogue.terms()
    learned = {  # row by row: what was seen, and its target
        "winner": [[(x[0], 1)], [(x[4], 1)], [(x[2], 0.5)]],
        "both": [[(x[0], 1), (x[3], 0)], [(x[4], 1), (x[1], 0)], [(x[2], 0.5), (x[5], 0.5)]],
        "difference": [[(x[0] - x[3], 1)], [(x[4] - x[1], 1)], [(x[2] - x[5], 0)]],
    }[learn_as]
    for row, seen in enumerate(learned):
        gram = torch.eye(x.shape[1]).double() + sum(torch.outer(z, z) for z, _ in seen)
        moment = sum(target * z for z, target in seen)
        torch.testing.assert_close(policy.term_model.gram[row], gram)
        torch.testing.assert_close(policy.term_model.moment[row], moment)


class OneLevelClicks(ComparisonMixin, OneLevelMixin, LogisticUCB):
    pass


def test_a_comparison_of_clicks_is_a_click_on_the_difference_and_neither_is_a_half():
    """The Newton step of the chance mu(z^T theta~) that the first is named; theta~ is 0 at first."""
    world = small_world(users=3)
    policy = RelativeConLogisticUCB(world.catalogue, 3, term_ridge=0.7)
    first, second = torch.tensor([0, 1, 2]), torch.tensor([3, 4, 5])
    about = Comparison(Terms(first), Terms(second))
    policy.learn_answer(world.observe(), about, torch.tensor([1.0, 0.0, 0.5]).double())
    z = policy.catalogue.terms()[first] - policy.catalogue.terms()[second]
    for row, surprise in enumerate((0.5, -0.5, 0.0)):  # the answer less mu(0)
        H = 0.7 * torch.eye(6).double() + 0.25 * torch.outer(z[row], z[row])
        torch.testing.assert_close(policy.term_model.gram[row], H, **ALGEBRA)
        torch.testing.assert_close(
            policy.thetas(slice(0, 3))[1][row], torch.linalg.solve(H, surprise * z[row])
        )


def test_in_a_world_of_clicks_the_first_is_named_with_the_probability_of_the_difference():
    """Of 4,000 users who are asked the same; slack of five standard errors."""
    world = small_world(users=4000, feedback="logistic", scale=2.0)
    world.theta.copy_(world.theta[:1].expand(4000, -1))
    pair = Comparison(*(Terms(torch.full((4000,), k)) for k in (1, 8)))
    said = world.answer(world.observe(), Question(slice(None), pair)).value
    z = world.catalogue.terms()[1] - world.catalogue.terms()[8]
    chance = float(torch.sigmoid(2 * z @ world.theta[0]))
    assert set(said.unique().tolist()) == {0.0, 1.0} and 0.02 < abs(chance - 0.5) < 0.48
    assert float(said.mean()) == pytest.approx(chance, abs=5 * (chance * (1 - chance) / 4000) ** 0.5)


def test_where_sides_have_answers_of_their_own_two_equal_ones_name_neither():
    world = small_world(users=50, feedback="binary")
    pair = Comparison(*(Terms(torch.full((50,), k)) for k in (1, 8)))
    assert 0.5 in world.answer(world.observe(), Question(slice(None), pair)).value


def test_comparisons_guide_clicks():
    """In a world of clicks, below the regret of the same policy that is never asked."""

    def regret(schedule):
        world = Synthetic(60, 300, 30, 8, pool=20, feedback="logistic", scale=2.0, seed=2)
        policy = RelativeConLogisticUCB(world.catalogue, 60, schedule=schedule)
        return sum(float(play_round(policy, world).outcome.regret.mean()) for _ in range(60))

    assert regret(LogSchedule(5)) < 0.95 * regret(NoConversation())


@pytest.mark.parametrize(
    "policy",
    [
        *(RelativeConUCB, HRelativeConUCB, RelativeConLogisticUCB),
        *(OneLevelRelative, OneLevelClicks),
    ],
)
def test_it_keeps_the_contract_on_any_base(policy):
    check_policy(policy)


def test_a_world_of_one_key_term_compares_it_with_itself():
    world = small_world(terms=1, max_terms=1)
    for rule in (BestDifference(), BestThenDifference(), BestTwoTerms()):
        policy = RelativeConUCB(world.catalogue, world.num_users, pairs=rule)
        assert policy.pairs(policy.asking(world.observe())).tolist() == [[0, 0]] * world.num_users


def test_what_makes_no_sense_is_refused(world):
    with pytest.raises(ValueError, match="learn_as must be one of winner, both, difference, got 'loser'"):
        RelativeConUCB(world.catalogue, world.num_users, learn_as="loser")
    with pytest.raises(TypeError, match="HRelativeConUCB has no argument 'select'; a comparison is of two"):
        HRelativeConUCB(world.catalogue, world.num_users, select=None)
    policy = RelativeConUCB(world.catalogue, world.num_users)
    with pytest.raises(ValueError, match="compares key-terms, got Terms"):
        policy.learn_answer(world.observe(), Terms(torch.zeros(7, dtype=torch.int64)), torch.ones(7))
