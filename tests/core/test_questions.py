"""What questions are about, as weights over arms; questions that cannot be put, answers that cannot be read."""

import pytest
import torch

from conbandit_torch import Answer, Arms, Comparison, ConUCB, HConUCB, Question, Terms
from conbandit_torch.core.blocks import EVERY_ROW
from tests.conftest import ALGEBRA, EXACT, small_world, weights

TERMS, OTHERS = torch.tensor([3, 0, 3, 11]), torch.tensor([5, 0, 2, 3])
ARMS, OTHER_ARMS = torch.tensor([59, 7, 7, 0]), torch.tensor([1, 7, 30, 0])

ABOUT = {
    "Terms": Terms(TERMS),
    "Arms": Arms(ARMS),
    "Comparison of Terms": Comparison(Terms(TERMS), Terms(OTHERS)),
    "Comparison of Arms": Comparison(Arms(ARMS), Arms(OTHER_ARMS)),
}


def shares(catalogue):
    """[K, N] p_{a,k}."""
    W = torch.from_numpy(weights(catalogue))
    return (W / W.sum(0)).T


def dense(about, catalogue):
    """[Q, N] the weights over arms, by their definition."""
    if isinstance(about, Comparison):
        return dense(about.first, catalogue) - dense(about.second, catalogue)
    rows = shares(catalogue) if isinstance(about, Terms) else torch.eye(catalogue.num_arms).double()
    return rows[about.of]


@pytest.mark.parametrize("about", ABOUT.values(), ids=ABOUT)
def test_edges_are_the_weights(about, world):
    found = torch.zeros(len(about), world.catalogue.num_arms).double()
    owner, target, weight = about.edges(world.catalogue)
    found.index_put_((owner, target), weight, accumulate=True)
    torch.testing.assert_close(found, dense(about, world.catalogue), **ALGEBRA)


@pytest.mark.parametrize("about", ABOUT.values(), ids=ABOUT)
def test_features_are_the_weighted_sums_of_the_arms(about, world):
    """Of the catalogue's features, and of what a policy has learned of the arms."""
    learned = HConUCB(world.catalogue, 7, hidden_dim=2, init_scale=0.5).representation
    for source in (world.catalogue, learned):
        expected = dense(about, world.catalogue) @ source.arms()
        torch.testing.assert_close(about.features(source), expected, **ALGEBRA)
        table, row = about.table(source)
        torch.testing.assert_close(table[row], expected, **ALGEBRA)
        assert row.shape == (len(about),)


@pytest.mark.parametrize("about", ABOUT.values(), ids=ABOUT)
@pytest.mark.parametrize(
    "rows", [slice(1, 3), torch.tensor([3, 0]), torch.tensor([], dtype=torch.int64)], ids=str
)
def test_some_of_them_have_the_weights_of_those(about, rows, world):
    some = about.take(rows)
    assert type(some) is type(about)
    torch.testing.assert_close(dense(some, world.catalogue), dense(about, world.catalogue)[rows], **EXACT)
    torch.testing.assert_close(some.features(world.catalogue), about.features(world.catalogue)[rows], **EXACT)


@pytest.mark.parametrize("about", ABOUT.values(), ids=ABOUT)
def test_ids_are_what_a_person_would_name(about):
    named = about.ids()
    sides = about.sides()
    assert named.shape == (4, len(sides)) and len(about) == 4
    for column, side in enumerate(sides):
        assert named[:, column].tolist() == side.of.tolist()
    again = about.of_ids(named.flip(0))
    assert type(again) is type(about) and again.ids().tolist() == named.flip(0).tolist()
    assert [type(side) for side in again.sides()] == [type(side) for side in sides]


def test_a_thing_compared_with_itself_has_no_features(world):
    same = Comparison(Terms(TERMS), Terms(TERMS))
    assert (same.features(world.catalogue) == 0).all()


def test_the_mean_answer_is_the_weighted_sum_of_the_arms_means(world):
    context = world.observe().take(slice(0, 4))
    means = world.catalogue.arm_features @ world.theta[:4].T  # [N, 4]
    for about in ABOUT.values():
        expected = (dense(about, world.catalogue) * means.T).sum(1)
        torch.testing.assert_close(world.mean(context, about), expected, **ALGEBRA)


def test_the_mean_binary_answer_is_the_weighted_sum_of_the_arms_probabilities():
    world = small_world(feedback="binary")
    context = world.observe().take(slice(0, 4))
    means = (world.catalogue.arm_features @ world.theta[:4].T).clamp(0, 1)  # [N, 4]
    assert (means == 0).any()
    for about in ABOUT.values():
        expected = (dense(about, world.catalogue) * means.T).sum(1)
        torch.testing.assert_close(world.mean(context, about), expected, **ALGEBRA)


@pytest.mark.parametrize("kind", [Terms, Arms])
@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (torch.tensor([1.0, 2.0]), r"needs ids \[Q\] in int64, got \[2\] in torch.float32"),
        (torch.tensor([1, 2], dtype=torch.int32), r"needs ids \[Q\] in int64, got \[2\] in torch.int32"),
        (torch.tensor([True, False]), "got .* in torch.bool"),
        (torch.tensor([[1, 2]]), r"needs ids \[Q\] in int64, got \[1, 2\] in torch.int64"),
        (torch.tensor(1), r"needs ids \[Q\] in int64, got \[\] in torch.int64"),
    ],
)
def test_ids_of_another_shape_or_type_are_refused(kind, ids, message):
    with pytest.raises(ValueError, match=f"{kind.__name__} {message}" if "needs" in message else message):
        kind(ids)


@pytest.mark.parametrize(
    ("first", "second", "got"),
    [
        (Terms(TERMS), Arms(ARMS), "4 Terms and 4 Arms"),
        (Terms(TERMS), Terms(OTHERS[:3]), "4 Terms and 3 Terms"),
        (Arms(ARMS[:0]), Arms(ARMS), "0 Arms and 4 Arms"),
    ],
)
def test_a_comparison_is_of_as_many_of_the_same_kind(first, second, got):
    message = f"a Comparison is of as many Terms with Terms, or Arms with Arms, got {got}"
    with pytest.raises(ValueError, match=message):
        Comparison(first, second)


ZEROS = torch.zeros(2, dtype=torch.int64)
REFUSED = [
    (torch.tensor([1, 1]), Terms(ZEROS), r"Question.rows must be distinct, got \[1, 1\]: ask again instead"),
    (torch.tensor([0, 7]), Terms(ZEROS), "Question.rows must be from 0 to 6, got 0 to 7"),
    (torch.tensor([-1, 2]), Terms(ZEROS), "Question.rows must be from 0 to 6, got -1 to 2"),
    (
        torch.tensor([0.0, 1.0]),
        Terms(ZEROS),
        r"Question.rows must be \[Q\] in int64, got \[2\] in torch.float32",
    ),
    (torch.ones(7).bool(), Terms(ZEROS), r"Question.rows must be \[Q\] in int64, got \[7\] in torch.bool"),
    (torch.tensor([[0, 1]]), Terms(ZEROS), r"Question.rows must be \[Q\] in int64, got \[1, 2\]"),
    (EVERY_ROW, Terms(ZEROS), "a question must be about 7 things, one per row, got 2"),
    (slice(0, 3), Arms(ZEROS), "a question must be about 3 things, one per row, got 2"),
    (torch.tensor([4]), Terms(ZEROS), "a question must be about 1 things, one per row, got 2"),
    (slice(0, 2), Terms(torch.tensor([0, 12])), "key-terms needs ids from 0 to 11, got 0 to 12"),
    (slice(0, 2), Terms(torch.tensor([-1, 3])), "key-terms needs ids from 0 to 11, got -1 to 3"),
    (slice(0, 2), Arms(torch.tensor([60, 3])), "arms needs ids from 0 to 59, got 3 to 60"),
    (slice(0, 2), Arms(torch.tensor([-1, -1])), "arms needs ids from 0 to 59, got -1 to -1"),
    (
        slice(0, 2),
        Comparison(Terms(ZEROS), Terms(torch.tensor([0, 12]))),
        "key-terms needs ids from 0 to 11, got 0 to 12",
    ),
    (
        slice(0, 2),
        Comparison(Arms(torch.tensor([-1, 0])), Arms(ZEROS)),
        "arms needs ids from 0 to 59, got -1 to 0",
    ),
]


@pytest.mark.parametrize(("rows", "about", "message"), REFUSED)
def test_a_question_that_cannot_be_put_is_refused_by_all_who_meet_it(rows, about, message, world):
    context, question = world.observe(), Question(rows, about)
    policy = ConUCB(world.catalogue, 7)
    before = {name: value.clone() for name, value in policy.state_dict().items()}
    answer = Answer(torch.zeros(len(about)).double())
    for call in (
        lambda: question.check(context, world.catalogue),
        lambda: world.answer(context, question),
        lambda: policy.listen(context, question, answer),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    for name, value in policy.state_dict().items():
        torch.testing.assert_close(value, before[name], **EXACT)
    assert int(world.answered.sum()) == 0


@pytest.mark.parametrize(
    "rows", [EVERY_ROW, slice(2, 5), torch.tensor([6, 0]), torch.tensor([], dtype=torch.int64)], ids=str
)
def test_a_question_that_can_be_put_gives_the_rows_that_are_asked(rows, world):
    context = world.observe()
    asked = Question(rows, Terms(torch.zeros(len(torch.arange(7)[rows]), dtype=torch.int64)))
    assert asked.check(context, world.catalogue).users.tolist() == torch.arange(7)[rows].tolist()
    assert len(asked) == len(torch.arange(7)[rows])


# Answers.


def test_all_answers_are_known_unless_it_is_said_otherwise():
    value = torch.tensor([1.0, 2.0, 3.0])
    assert Answer(value).rows is EVERY_ROW and len(Answer(value)) == 3
    assert Answer(value, torch.ones(3).bool()).rows is EVERY_ROW
    assert Answer(value, torch.tensor([True, False, True])).rows.tolist() == [0, 2]
    assert Answer(value, torch.zeros(3).bool()).rows.tolist() == []


@pytest.mark.parametrize(
    ("value", "known", "message"),
    [
        (torch.ones(2, 1), None, r"an Answer needs value \[Q\] and known \[Q\], got \[2, 1\], None"),
        (torch.tensor(1.0), None, r"got \[\], None"),
        (torch.ones(2), torch.ones(3).bool(), r"got \[2\], \[3\]"),
        (torch.ones(2), torch.ones(2), "Answer.known must be bool, got torch.float32"),
        (torch.ones(2), torch.ones(2, dtype=torch.int64), "Answer.known must be bool, got torch.int64"),
    ],
)
def test_answers_of_another_shape_or_type_are_refused(value, known, message):
    with pytest.raises(ValueError, match=message):
        Answer(value, known)


def test_a_comparison_is_answered_by_who_is_liked_better_and_half_for_equals():
    """Without noise: 1 where the first side's mean is larger, 0 where the second's is, 0.5 where they are equal."""
    world = small_world(noise=0.0)
    context = world.observe()
    generator = torch.Generator().manual_seed(0)
    for kind, number in ((Terms, 12), (Arms, 60)):
        first, second = (kind(torch.randint(number, (7,), generator=generator)) for _ in range(2))
        second.of[3] = first.of[3]
        answer = world.answer(context, Question(EVERY_ROW, Comparison(first, second)))
        gap = world.mean(context, first) - world.mean(context, second)
        assert answer.value.tolist() == (0.5 + 0.5 * gap.sign()).tolist()
        assert answer.value[3] == 0.5 and {0.0, 0.5, 1.0} == set(answer.value.tolist())
