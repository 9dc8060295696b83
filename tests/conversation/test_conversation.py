"""Arguments of the mixin, and parts that users write."""

import pytest
import torch

from conbandit_torch import (
    Answer,
    ConUCB,
    ConversationMixin,
    LinUCB,
    LogSchedule,
    OneLevelMixin,
    OptimalTerm,
    Question,
    Random,
    RandomTerm,
    Representation,
    RidgeRegression,
    Schedule,
    Selection,
    Terms,
    VarRS,
    play_round,
)
from conbandit_torch.testing import decisions
from tests.conftest import ALGEBRA, EXACT, small_world, weights


class Conversational(ConversationMixin, LinUCB):
    pass


class OneLevel(OneLevelMixin, LinUCB):
    pass


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mix": 0.0}, r"mix must be in \(0, 1\), got 0.0"),
        ({"mix": 1.0}, r"mix must be in \(0, 1\), got 1.0"),
        ({"term_ridge": 0.0}, "term_ridge must be above 0 and finite, got 0.0"),
        ({"alpha": -0.1}, "alpha must be a number of at least 0 or a Confidence, got -0.1"),
        ({"term_alpha": float("nan")}, "term_alpha must be a number of at least 0"),
    ],
)
def test_values_out_of_range_are_refused(world, arguments, message):
    for policy_class in (Conversational, ConUCB):
        with pytest.raises(ValueError, match=message):
            policy_class(world.catalogue, 7, **arguments)


@pytest.mark.parametrize(
    ("policy_class", "name", "hint"),
    [
        (ConUCB, "alhpa", "did you mean 'alpha'"),
        (Conversational, "alhpa", "did you mean 'alpha'"),
        (OneLevel, "alhpa", "did you mean 'alpha'"),
        (ConUCB, "weight", ""),
        (Conversational, "weight", ""),
        (ConUCB, "ridge", "with two levels the arm level's ridge is 1 - mix; set mix, or term_ridge"),
        (Conversational, "ridge", "with two levels the arm level's ridge is 1 - mix"),
        (OneLevel, "mix", ""),
        (OneLevel, "term_alpha", ""),
        (OneLevel, "term_ridge", "did you mean 'ridge'"),
    ],
)
def test_an_unknown_argument_is_refused_by_the_class_that_was_called(world, policy_class, name, hint):
    with pytest.raises(TypeError, match=f"{policy_class.__name__} has no argument '{name}'; {hint}"):
        policy_class(world.catalogue, 7, **{name: 1.0})


def test_the_mixin_weighs_the_regression_of_a_base_that_knows_nothing_of_it(world):
    """M starts at (1-lam) I and observations weigh lam; theta~ has a regression of its own, with ridge lam~."""
    policy = Conversational(world.catalogue, 7, mix=0.3, term_ridge=2.0, term_alpha=0.1, alpha=0.6)
    assert (policy.arm_model.ridge, policy.arm_model.weight) == (0.7, 0.3)
    assert (policy.term_model.ridge, policy.term_model.weight) == (2.0, 1.0)
    arm, term = policy.levels()
    assert (arm.model, arm.factor) == (policy.arm_model, 0.6)
    assert (term.model, term.factor, term.basis) == (policy.term_model, 0.1, None)
    assert policy.answer_level == 1
    torch.testing.assert_close(policy.arm_model.gram, 0.7 * torch.eye(6).double().repeat(7, 1, 1), **ALGEBRA)


def test_the_mixin_on_linucb_is_conucb(world):
    arguments = {"mix": 0.3, "term_ridge": 2.0, "term_alpha": 0.1, "alpha": 0.6}
    twin = small_world()
    by_mixin = Conversational(world.catalogue, 7, **arguments)
    exported = ConUCB(twin.catalogue, 7, **arguments)
    assert decisions(by_mixin, world) == decisions(exported, twin)


def test_one_level_leaves_the_bases_regression_as_it_is(world):
    policy = OneLevel(world.catalogue, 7, ridge=0.3)
    assert (policy.arm_model.ridge, policy.arm_model.weight) == (0.3, 1.0)
    assert [level.model for level in policy.levels()] == [policy.arm_model] and policy.answer_level == 0


def test_answers_enter_the_arm_level_with_one_level():
    """M and b hold rewards and answers alike, and there is no second regression."""
    world = small_world()
    policy = OneLevel(world.catalogue, 7, ridge=0.4, alpha=0.2)
    regressions = [part for part in policy.modules() if isinstance(part, RidgeRegression)]
    assert len(regressions) == 1
    M = 0.4 * torch.eye(6).double().repeat(7, 1, 1)
    b = torch.zeros(7, 6).double()
    for _ in range(12):
        played = play_round(policy, world)
        features = world.catalogue.term_features
        rows = [(q.rows, features[q.about.of], answer.value) for q, answer in played.dialogue]
        (feedback,) = played.outcome.feedback
        rows.append((slice(None), world.catalogue.arm_features[played.arm_ids], feedback.reward))
        for who, x, y in rows:
            M[who] += x[:, :, None] * x[:, None, :]
            b[who] += y[:, None] * x
    torch.testing.assert_close(policy.coefficients(), torch.linalg.solve(M, b), **ALGEBRA)


def test_optimal_rule_with_one_level_is_eq_8_with_the_arm_level_in_both_places():
    world = small_world()
    policy = OneLevel(world.catalogue, 7)
    for _ in range(5):
        play_round(policy, world)
    context = world.observe()
    scores = OptimalTerm().scores(policy.asking(context))
    for user in range(7):
        X, G = context.arm_features[user], torch.linalg.inv(policy.arm_model.gram[user])
        for k, x in enumerate(world.catalogue.term_features):
            expected = (X @ G @ x).square().sum() / (1 + x @ G @ x)
            torch.testing.assert_close(scores[user, k], expected, **ALGEBRA)


def test_a_selection_rule_of_ones_own(world):
    class FirstTerms(Selection):
        def scores(self, asking):
            return -torch.arange(asking.catalogue.num_terms).double().expand(len(asking), -1)

    policy = ConUCB(world.catalogue, 7, select=FirstTerms())
    asked = [q.about.of for _ in range(9) for q, _ in play_round(policy, world).dialogue]
    assert asked and all((terms == 0).all() for terms in asked)


def test_random_rule_reaches_every_key_term_alike():
    """2,000 users, 5 questions each, 12 key-terms: five standard errors around 1 / 12, the last included."""
    world = small_world(users=2000)
    policy = VarRS(world.catalogue, 2000, schedule=LogSchedule(5))
    asked = torch.cat([q.about.of for _ in range(3) for q, _ in play_round(policy, world).dialogue])
    assert len(asked) == 10_000
    share = torch.bincount(asked, minlength=12) / len(asked)
    assert (share - 1 / 12).abs().max() < 5 * (1 / 12 * 11 / 12 / 10_000) ** 0.5


def test_variants_differ_only_in_their_rule(world):
    as_variant = VarRS(world.catalogue, 7, seed=4)
    twin = small_world()
    by_part = ConUCB(twin.catalogue, 7, select=RandomTerm(), seed=4)
    assert decisions(as_variant, world) == decisions(by_part, twin)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"schedule": 5}, "schedule must be a Schedule, got 5"),
        ({"select": OptimalTerm}, "select must be a Selection, got <class"),
    ],
)
def test_parts_of_another_kind_are_refused(world, arguments, message):
    with pytest.raises(TypeError, match=message):
        ConUCB(world.catalogue, 7, **arguments)


class Longer(Representation):
    """The features, and a 1."""

    def __init__(self, forgets=False):
        super().__init__()
        self.forgets = forgets

    def build(self, seed):
        self.dim = self.catalogue.dim + 1

    def encode(self, x, arms):
        return x if self.forgets else torch.nn.functional.pad(x, (0, 1), value=1.0)


def test_what_is_seen_of_a_key_term_is_the_mean_of_its_encoded_arms(world):
    policy = Conversational(world.catalogue, 7, representation=Longer())
    P = torch.from_numpy(weights(world.catalogue))
    encoded = torch.cat((world.catalogue.arm_features, torch.ones(60, 1)), 1)
    expected = (P / P.sum(0)).T @ encoded
    torch.testing.assert_close(policy.representation.terms(), expected, **ALGEBRA)
    torch.testing.assert_close(policy.asking(world.observe()).terms(), expected, **ALGEBRA)
    decisions(policy, world)
    assert policy.coefficients().shape == policy.term_model.coefficients().shape == (7, 7)


@pytest.mark.parametrize("select", [OptimalTerm(), RandomTerm()], ids=str)
def test_a_representation_of_another_length_than_it_says_is_told(world, select):
    policy = Conversational(world.catalogue, 7, representation=Longer(forgets=True), select=select)
    message = r"Longer.encode must give \[60, 7\] numbers, got \[60, 6\]; Longer.dim is 7"
    with pytest.raises(ValueError, match=message):
        decisions(policy, world)


def test_a_representation_belongs_to_one_policy(world):
    one = Longer()
    LinUCB(world.catalogue, 7, representation=one)
    with pytest.raises(ValueError, match="this Longer belongs to another policy: build one for each"):
        LinUCB(world.catalogue, 7, representation=one)


def test_a_mixin_on_the_wrong_side_or_on_no_linear_bandit_is_told_at_once():
    with pytest.raises(TypeError, match="swap LinUCB and ConversationMixin; the mixin stands left"):

        class Swapped(LinUCB, ConversationMixin):
            pass

    for mixin in (ConversationMixin, OneLevelMixin):
        with pytest.raises(TypeError, match="need a LinearBandit to guide, and Random is none"):
            type("ConRandom", (mixin, Random), {})


# What schedules and rules are told.


def test_schedules_and_rules_see_a_record_and_not_the_policy():
    world = small_world(users_per_round=4)
    policy = ConUCB(world.catalogue, 7, mix=0.3, term_ridge=0.6, seed=4)
    decisions(policy, world, 20)
    context = world.observe()
    asking = policy.asking(context)
    assert len(asking) == 4 and asking.model is policy.term_model
    torch.testing.assert_close(asking.asked, policy.asked[context.users], **EXACT)
    torch.testing.assert_close(asking.theta(), policy.thetas(context.who)[1], **EXACT)
    torch.testing.assert_close(asking.terms(), world.catalogue.term_features, **EXACT)
    reach, radii = asking.reach(), asking.radii()
    for row, user in enumerate(context.users.tolist()):
        M, G = (torch.linalg.inv(model.gram[user]) for model in (policy.arm_model, policy.term_model))
        torch.testing.assert_close(reach[row], 0.7 * context.arm_features[row] @ M, **ALGEBRA)
        x = world.catalogue.term_features
        torch.testing.assert_close(radii[row], (x @ G * x).sum(1).sqrt(), **ALGEBRA)
    some = asking.take(torch.tensor([3, 1]))
    torch.testing.assert_close(some.radii(), radii[[3, 1]], **ALGEBRA)
    torch.testing.assert_close(some.asked, asking.asked[[3, 1]], **EXACT)
    assert not any(value is policy for value in vars(asking).values())


def test_the_record_of_one_level_has_the_arms_level_in_both_places():
    world = small_world()
    policy = OneLevel(world.catalogue, 7, ridge=0.3)
    decisions(policy, world, 8)
    asking = policy.asking(world.observe())
    assert asking.model is policy.arm_model
    torch.testing.assert_close(asking.reach(), world.observe().arm_features, **EXACT)
    torch.testing.assert_close(asking.theta(), policy.coefficients(), **EXACT)


def test_a_schedule_of_ones_own_can_look_at_the_record(world):
    """Asks users with an even id once a round, while their first candidate has an even id."""

    class Even(Schedule):
        def total(self, rounds):
            return rounds

        def due(self, asking):
            return (
                super().due(asking) & (asking.context.users % 2 == 0) & (asking.context.arms[:, 0] % 2 == 0)
            )

    policy = ConUCB(world.catalogue, 7, schedule=Even())
    for _ in range(10):
        before = policy.asked.clone()
        played = play_round(policy, world)
        could = (torch.arange(7) % 2 == 0) & (played.context.arms[:, 0] % 2 == 0)
        to_go = torch.where(could, played.context.rounds + 1 - before, 0)
        torch.testing.assert_close(policy.asked - before, to_go, **EXACT)
    assert policy.asked[::2].min() > 0 and policy.asked[1::2].max() == 0


@pytest.mark.parametrize(
    ("total", "message"),
    [
        (lambda rounds: rounds[:1], r"Odd.total must give \[7\] numbers, got \[1\]"),
        (lambda rounds: -rounds, "Odd.total must give finite numbers of at least 0, got -1"),
        (lambda rounds: rounds * torch.nan, "Odd.total must give finite numbers of at least 0, got nan"),
        (lambda rounds: 5, "Odd.total must give a tensor"),
    ],
)
def test_a_schedule_that_cannot_be_followed_is_refused(world, total, message):
    class Odd(Schedule):
        def total(self, rounds):
            return total(rounds)

    with pytest.raises((ValueError, TypeError), match=message):
        ConUCB(world.catalogue, 7, schedule=Odd()).ask(world.observe())


def test_an_answer_that_is_not_known_counts_as_a_question_and_teaches_nothing(world):
    for policy_class in (ConUCB, OneLevel):
        policy, context = policy_class(world.catalogue, 7), world.observe()
        rows = torch.tensor([5, 1, 2])
        value = torch.tensor([0.5, torch.nan, 2.0]).double()
        known = torch.tensor([True, False, True])
        about = Terms(torch.tensor([3, 3, 4]))
        policy.listen(context, Question(rows, about), Answer(value, known))
        model = policy.levels()[policy.answer_level].model
        assert policy.asked.tolist() == [0, 1, 1, 0, 0, 1, 0]
        assert model.count.tolist() == [0, 0, 1, 0, 0, 1, 0]
        x = world.catalogue.term_features
        torch.testing.assert_close(model.moment[5], 0.5 * x[3], **ALGEBRA)
        torch.testing.assert_close(model.moment[2], 2.0 * x[4], **ALGEBRA)
        assert (model.moment[[0, 1, 3, 4, 6]] == 0).all()
