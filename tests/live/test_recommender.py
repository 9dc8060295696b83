"""A Recommender decides as its policy does, and refuses what it cannot use before anything is written."""

import random

import pytest
import torch

from conbandit_torch import ConThompson, ConUCB, HConUCB, LinearSchedule, LinUCB, RandomTerm, Recommender
from tests.conftest import small_world

POLICIES = {
    "LinUCB": lambda catalogue, users: LinUCB(catalogue, users, alpha=0.5),
    "ConUCB": lambda catalogue, users: ConUCB(catalogue, users),
    "ConThompson": lambda catalogue, users: ConThompson(catalogue, users, scale=0.5),
    "HConUCB with refit": lambda catalogue, users: HConUCB(catalogue, users, hidden_dim=2, refit_every=3),
}
ROUNDS = 15


def in_a_simulation(policy, world):
    """Per round: what was asked, and what was shown."""
    log = []
    for _ in range(ROUNDS):
        context, asked = world.observe(), []
        while (question := policy.ask(context)) is not None:
            answer = world.answer(context, question)
            policy.listen(context, question, answer)
            asked.append(question.about.ids().flatten().tolist())
        arm = policy.choose(context)
        for feedback in world.pull(context, arm).feedback:
            policy.update(feedback.context, feedback.arm, feedback.reward)
        log.append((asked, context.pick(arm).arms.flatten().tolist()))
    return log


def by_names(recommender, world):
    """The same by a recommender, of the same world."""
    log, catalogue = [], world.catalogue
    for _ in range(ROUNDS):
        context, asked = world.observe(), []
        users = [f"user {user}" for user in context.users.tolist()]
        pools = [[f"arm {arm}" for arm in row] for row in context.arms.tolist()]
        while (question := recommender.policy.ask(context)) is not None:
            values = world.answer(context, question).value.tolist()
            questions = recommender.ask_many(users, pools)
            assert len(questions) == len(values)
            asked.append([catalogue.term_names.index(one.names[0]) for one in questions])
            recommender.answer_many(users, questions, values)
        assert recommender.ask_many(users, pools) == [None] * len(users)
        slates = recommender.recommend_many(users, pools)
        shown = [catalogue.arm_names.index(slate[0].item) for slate in slates]
        arm = (context.arms == torch.tensor(shown)[:, None]).int().argmax(1)
        (feedback,) = world.pull(context, arm).feedback
        recommender.feedback_many([slate[0] for slate in slates], feedback.reward.tolist())
        log.append((asked, shown))
    return log


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", POLICIES)
def test_it_decides_as_the_policy_does_in_a_simulation(name, dtype):
    one, other = small_world().to(dtype), small_world().to(dtype)
    policy = POLICIES[name](one.catalogue, 7).to(dtype)
    limits = {"range": (-9.0, 9.0)}
    with torch.no_grad(), Recommender(POLICIES[name](other.catalogue, 1).to(dtype), **limits) as recommender:
        assert by_names(recommender, other) == in_a_simulation(policy, one)
        mine = recommender.policy.state_dict()
        for key, value in policy.state_dict().items():
            # The recommender's policy has one row more, for somebody new.
            torch.testing.assert_close(
                mine[key][: len(value)] if value.ndim else mine[key], value, rtol=0, atol=0
            )


def late(policy, seed, users=("ann", "bob", "eve"), rounds=40):
    """A recommender whose rewards came up to 20 rounds late; which items are shown is drawn beforehand."""
    drawn, delays = random.Random(1), random.Random(seed)
    recommender, due = Recommender(policy), []
    for number in range(rounds + 20):
        if number < rounds:
            for user in users:
                while (question := recommender.ask(user, ["arm 1"])) is not None:
                    recommender.answer(user, question, drawn.random())
                shown = recommender.recommend(user, [f"arm {drawn.randrange(60)}"])
                due.append((number + delays.randrange(21), shown, drawn.random()))
        now = [one for one in due if one[0] <= number]
        due = [one for one in due if one[0] > number]
        delays.shuffle(now)
        for _, shown, reward in now:
            recommender.feedback(shown, reward)
    assert not due
    return recommender


FIXED = LinearSchedule(questions=1, every=5)
INDEPENDENT = {
    "LinUCB": lambda catalogue: LinUCB(catalogue, 1),
    "ConUCB": lambda catalogue: ConUCB(catalogue, 1, schedule=FIXED, select=RandomTerm()),
    "ConThompson": lambda catalogue: ConThompson(catalogue, 1, schedule=FIXED, select=RandomTerm()),
}


@pytest.mark.parametrize("name", INDEPENDENT)
def test_statistics_do_not_depend_on_the_order_in_which_rewards_come(name):
    # The same questions to both, whatever rewards they had by then: a function of user and round.
    one, other = (late(INDEPENDENT[name](small_world().catalogue), seed) for seed in (2, 3))
    rewards = [[event.about for event in r.events() if event.kind == "reward"] for r in (one, other)]
    assert rewards[0] != rewards[1] and len(rewards[0]) == len(rewards[1]) == 120
    models = [level.model for level in one.policy.levels()]
    others = [level.model for level in other.policy.levels()]
    for mine, theirs in zip(models, others, strict=True):
        for key in ("gram", "inverse", "moment", "solution", "log_det", "count"):
            torch.testing.assert_close(getattr(mine, key), getattr(theirs, key), rtol=1e-9, atol=1e-12)


def test_hidden_features_have_the_same_log_whatever_the_order():
    make = lambda: HConUCB(small_world().catalogue, 1, hidden_dim=2, refit_every=7, schedule=FIXED)  # noqa: E731
    logs = []
    for seed in (2, 3):
        log = late(make(), seed).policy.log
        rows = zip(
            *(getattr(log, key)[: log.length].tolist() for key in ("users", "first", "values")), strict=True
        )
        logs.append(list(rows))
    assert logs[0] != logs[1] and sorted(logs[0]) == sorted(logs[1])


@pytest.fixture
def recommender():
    return Recommender(ConUCB(small_world().catalogue, 1, schedule=LinearSchedule(questions=1, every=1)))


def test_a_slate_is_the_best_k_and_every_place_is_rewarded_on_its_own(recommender):
    pool = [f"arm {number}" for number in (5, 9, 2, 40, 33)]
    scores = {}
    for _ in range(3):
        (shown,) = [recommender.recommend("ann", pool)]
        recommender.feedback(shown, 1.0)
    for item in pool:
        found = recommender.explain("ann", item)
        scores[item] = found.estimate + found.width
    slate = recommender.recommend("ann", pool, k=3)
    assert [shown.item for shown in slate] == sorted(pool, key=scores.get, reverse=True)[:3]
    assert [shown.place for shown in slate] == [0, 1, 2] and {shown.round for shown in slate} == {3}
    recommender.feedback(slate[2], 0.0)
    recommender.feedback(slate[0], 1.0)
    assert recommender.recommend("ann", pool).round == 4  # one round per call, not per place
    assert int(recommender.policy.arm_model.count[0]) == 5


def test_a_question_is_asked_again_until_it_is_answered(recommender):
    question = recommender.ask("ann")
    assert recommender.ask("ann") == question
    shown = recommender.recommend("ann")
    recommender.feedback(shown, 0.5)
    assert recommender.ask("ann") == question
    recommender.answer("ann", question, None)
    assert recommender.ask("ann") not in (question, None)
    kinds = [event.kind for event in recommender.events()]
    assert kinds == ["asked", "shown", "reward", "answer", "asked"]


def test_an_answer_of_do_not_know_counts_and_teaches_nothing(recommender):
    question = recommender.ask("ann")
    before = recommender.policy.coefficients().clone()
    recommender.answer("ann", question.id, None)
    assert torch.equal(recommender.policy.coefficients(), before)
    assert int(recommender.policy.asked[0]) == 1


def test_one_person_has_several_decisions_open(recommender):
    shown = [recommender.recommend("ann") for _ in range(4)]
    assert [one.round for one in shown] == [0, 1, 2, 3]
    for one in (shown[2], shown[0]):
        recommender.feedback(one.id, 1.0)
    assert int(recommender.policy.arm_model.count[0]) == 2


def test_rewards_of_one_call_may_be_of_one_user_and_of_different_pools(recommender):
    pools = [["arm 1", "arm 2"], ["arm 1", "arm 2", "arm 3"]]
    shown = [recommender.recommend("ann", pool) for pool in (*pools, *pools)]
    shown.append(recommender.recommend("bob", pools[0]))
    recommender.feedback_many(shown, [0.1, 0.2, 0.3, 0.4, 0.5])
    assert recommender.policy.arm_model.count.tolist()[:2] == [4, 1]


def bad_calls(r):
    """Calls that are refused, and what is said."""
    question, shown, done = r.ask("ann"), r.recommend("ann"), r.recommend("ann")
    r.feedback(done, 1.0)
    answered = r.ask("eve")
    r.answer("eve", answered, 1.0)
    r.recommend("bob")
    return [
        (lambda: r.recommend("ann", ["arm 1", "arm1"]), "there is no item 'arm1' .did you mean 'arm 1'?"),
        (lambda: r.recommend("ann", [3]), "there is no item 3"),
        (lambda: r.recommend("ann", ["arm 1", "arm 1"]), "item 'arm 1' is given twice"),
        (lambda: r.recommend("ann", []), "candidates must be a list of names"),
        (lambda: r.recommend("ann", "arm 1"), "candidates must be a list of names"),
        (
            lambda: r.recommend("ann", ["arm 1", "arm 2"], k=3),
            "k must be from 1 to the 2 candidates of 'ann', got 3",
        ),
        (lambda: r.recommend("ann", k=0), "k must be from 1 to the 60"),
        (lambda: r.recommend(""), "a user must be a text, got ''"),
        (lambda: r.recommend(7), "a user must be a text, got 7"),
        (lambda: r.recommend("a\0b"), "a user must be a text without null characters"),
        (lambda: r.ask("\ud800"), "a user must be a text without null characters and half letters"),
        (lambda: r.feedback(10**30, 0.0), f"decision {10**30} was never made"),
        (lambda: r.answer("ann", -(10**30), 0.0), "was never asked"),
        (lambda: r.recommend_many("ann"), "users must be a list"),
        (lambda: r.recommend_many(["ann", "ann"]), "users must be distinct"),
        (
            lambda: r.recommend_many(["ann", "new"], [["arm 1"]]),
            "as many are needed of each, got 2 users, 1 cand",
        ),
        (lambda: r.recommend_many(["new", "ann"], [["arm 1"], ["arm one"]]), "there is no item 'arm one'"),
        (lambda: r.feedback(shown, 1.5), "a reward must be from 0.0 to 1.0, got 1.5"),
        (lambda: r.feedback(shown, -0.1), "a reward must be from 0.0 to 1.0"),
        (lambda: r.feedback(shown, float("nan")), "a reward must be from 0.0 to 1.0, got nan"),
        (lambda: r.feedback(shown, float("inf")), "a reward must be"),
        (lambda: r.feedback(shown, "good"), "a reward must be a number"),
        (lambda: r.feedback(done, 0.0), f"decision {done.id} has had its reward already"),
        (lambda: r.feedback(10**6, 0.0), "decision 1000000 was never made"),
        (lambda: r.feedback(-1, 0.0), "decision -1 was never made"),
        (lambda: r.feedback(question, 0.0), f"decision {question.id} was never made"),
        (lambda: r.feedback("x", 0.0), "a decision is given as it was got, or by its id"),
        (lambda: r.feedback(shown, 1.0, user="bob"), f"decision {shown.id} is not one of user 'bob'"),
        (lambda: r.feedback_many([shown, shown], [0.0, 0.0]), f"decision {shown.id} is given twice"),
        (lambda: r.feedback_many([shown, done], [0.0, 0.0]), f"decision {done.id} has had its reward"),
        (lambda: r.feedback_many([shown], [0.0, 0.0]), "as many are needed of each"),
        (lambda: r.answer("ann", shown.id, 1.0), f"question {shown.id} was never asked"),
        (lambda: r.answer("ann", 10**6, 1.0), "question 1000000 was never asked"),
        (lambda: r.answer("bob", question, 1.0), f"question {question.id} is not one of user 'bob'"),
        (lambda: r.answer("eve", answered, 0.0), f"question {answered.id} has had its answer already"),
        (lambda: r.answer("ann", question, 2.0), "an answer must be from 0.0 to 1.0"),
        (lambda: r.explain("ann", "arm 99"), "there is no item 'arm 99'"),
        (lambda: r.forget("nobody"), "there is no user 'nobody' to forget"),
        (lambda: r.add_items(["arm 1"], torch.zeros(1, 6)), "two items are called 'arm 1'"),
        (lambda: r.add_items(["new"], torch.zeros(2, 6)), "a row for each of 1 items, got 2"),
        (lambda: r.add_items(["new"], torch.zeros(1, 5)), r"arm_features must be \[n, 6\]"),
        (lambda: r.add_items(["new"], torch.full((1, 6), torch.nan)), "NaN or infinity"),
        (lambda: r.add_items(["new"], torch.zeros(1, 6), terms=["t"]), "12 columns .* and 1 for new ones"),
    ]


def test_bad_input_is_refused_and_nothing_is_written(recommender):
    calls = bad_calls(recommender)
    events, state = list(recommender.events()), recommender.state()
    for call, message in calls:
        with pytest.raises(ValueError, match=message):
            call()
        assert recommender.users == ("ann", "eve", "bob"), message
        assert list(recommender.events()) == events, message
        for key, value in recommender.state().items():
            assert torch.equal(value, state[key]), (message, key)


def test_names_must_fit_the_catalogue():
    make = lambda: ConUCB(small_world().catalogue, 1)  # noqa: E731
    with pytest.raises(ValueError, match="items must be 60 names, as the catalogue has, got 1"):
        Recommender(make(), ["one"])
    with pytest.raises(ValueError, match="two key-terms are called 'same'"):
        Recommender(make(), terms=["same"] * 12)
    with pytest.raises(ValueError, match="range must be two finite numbers"):
        Recommender(make(), range=(1.0, 0.0))
    with pytest.raises(ValueError, match="snapshot_every must be at least 1"):
        Recommender(make(), snapshot_every=0)


def test_a_closed_recommender_says_so(recommender):
    recommender.close()
    recommender.close()
    with pytest.raises(ValueError, match="this Recommender is closed"):
        recommender.recommend("ann")


def test_the_policy_that_is_given_stays_as_it_is():
    policy = ConUCB(small_world().catalogue, 1)
    before = {key: value.clone() for key, value in policy.state_dict().items()}
    recommender = Recommender(policy)
    recommender.feedback(recommender.recommend("ann"), 1.0)
    assert all(torch.equal(value, before[key]) for key, value in policy.state_dict().items())


def test_people_come_after_the_users_that_a_policy_has_learned_from():
    world, policy = small_world(), LinUCB(small_world().catalogue, 7)
    context = world.observe()
    policy.update(context, policy.choose(context), torch.ones(7, dtype=torch.float64))
    recommender = Recommender(policy)
    assert recommender.explain("ann", "arm 3").estimate == 0  # not what user 0 likes
    recommender.feedback(recommender.recommend("ann"), 1.0)
    assert recommender.policy.arm_model.count.tolist() == [1] * 8 + [0]
