"""Contexts: checks, views, blocks."""

import pytest
import torch

from conbandit_torch import (
    Answer,
    ArmCon,
    Arms,
    Catalogue,
    Comparison,
    Context,
    ConUCB,
    Feedback,
    LinUCB,
    Question,
    Terms,
    VarLCR,
    VarMRC,
    play_round,
)
from conbandit_torch.core import blocks
from conbandit_torch.testing import decisions
from tests.conftest import EXACT, small_world


def test_everyone_is_a_view_and_some_are_ids(world):
    context = world.observe()
    assert context.who == slice(0, 7)
    assert context.take(slice(2, 5)).who == slice(2, 5)
    assert context.take(slice(2, 5)).take(slice(1, 3)).who == slice(3, 5)
    rows = torch.tensor([4, 1])
    some = context.take(rows)
    torch.testing.assert_close(some.who, rows, **EXACT)
    torch.testing.assert_close(some.arm_features, context.arm_features[rows], **EXACT)


def test_pick_keeps_one_candidate_a_row(world):
    context = world.observe()
    given = Context(context.users, context.arms, context.arm_features, rounds=context.rounds)
    positions = torch.tensor([0, 8, 3, 3, 2, 1, 7])
    for one in (context.pick(positions), given.pick(positions)):
        torch.testing.assert_close(
            one.arm_features[:, 0], context.arm_features[torch.arange(7), positions], **EXACT
        )
        torch.testing.assert_close(one.arms[:, 0], context.arms[torch.arange(7), positions], **EXACT)


@pytest.mark.parametrize("policy", [LinUCB, ConUCB, VarMRC, VarLCR])
def test_blocks_change_nothing_but_the_workspace(policy, monkeypatch):
    whole, cut = small_world(), small_world()
    expected = decisions(policy(whole.catalogue, 7), whole)
    monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", 120)  # two rows of 9 candidates with 6 features
    assert len(list(cut.observe().blocks(9 * 6))) == 4
    assert decisions(policy(cut.catalogue, 7), cut) == expected


def test_features_of_a_round_may_differ_from_the_catalogues(world):
    context = world.observe()
    shifted = Context(context.users, context.arms, context.arm_features + 1, rounds=0)
    policy = LinUCB(world.catalogue, 7)
    policy.update(shifted, torch.zeros(7, dtype=torch.int64), torch.ones(7).double())
    torch.testing.assert_close(policy.arm_model.moment, context.arm_features[:, 0] + 1, **EXACT)


@pytest.mark.parametrize(
    ("users", "arms", "message"),
    [
        ([0, 1], [0, 1], r"users \[B\] and arms \[B, A\], got shapes \[2\] and \[2\]"),
        ([0], [[0], [1]], r"got shapes \[1\] and \[2, 1\]"),
        ([0, 0], [[0], [1]], r"users must be distinct ids from 0 on, got \[0, 0\]"),
        ([-1], [[0]], "users must be distinct ids from 0 on"),
        ([0], [[60]], "arms must be ids from 0 to 60 - 1, got 60 to 60"),
        ([0], [[-2]], "arms must be ids from 0 to 60 - 1, got -2 to -2"),
    ],
)
def test_bad_contexts_are_refused(world, users, arms, message):
    with pytest.raises(ValueError, match=message):
        Context(torch.tensor(users), torch.tensor(arms), rounds=0, catalogue=world.catalogue)


def test_users_a_policy_was_not_built_for_are_refused(world):
    context = Context(torch.tensor([7]), torch.tensor([[0, 1]]), rounds=0, catalogue=world.catalogue)
    for verb in (LinUCB(world.catalogue, 7).choose, ConUCB(world.catalogue, 7).ask):
        with pytest.raises(ValueError, match="users holds 7, but .* num_users=7: ids go from 0 to 6"):
            verb(context)


def test_features_must_come_from_somewhere_and_fit(world):
    users, arms = torch.tensor([0]), torch.tensor([[0, 1]])
    with pytest.raises(ValueError, match="either arm_features or a catalogue"):
        Context(users, arms, rounds=0)
    with pytest.raises(ValueError, match=r"arm_features must be \[B, A, D\] with \[B, A\] = \[1, 2\]"):
        Context(users, arms, torch.zeros(1, 3, 6), rounds=0)


def test_a_policy_that_asks_about_one_kind_refuses_answers_about_another(world):
    with pytest.raises(TypeError, match="about"):
        Question(slice(None))
    arms = Arms(torch.zeros(7, dtype=torch.int64))
    terms = Terms(arms.of)
    answer = Answer(torch.zeros(7).double())
    for policy_class, about, message in (
        (ConUCB, arms, "ConUCB asks about key-terms, got a question about arms"),
        (ConUCB, Comparison(arms, arms), "ConUCB asks about key-terms, got a question about arms"),
        (ArmCon, terms, "ArmCon asks about arms, got Terms"),
        (ArmCon, Comparison(arms, arms), "ArmCon asks about arms, got Comparison"),
    ):
        policy = policy_class(world.catalogue, 7)
        before = {name: value.clone() for name, value in policy.state_dict().items()}
        with pytest.raises(ValueError, match=message):
            policy.listen(world.observe(), Question(slice(None), about), answer)
        for name, value in policy.state_dict().items():
            torch.testing.assert_close(value, before[name], **EXACT)
    with pytest.raises(NotImplementedError, match="LinUCB asks no questions: no answer to listen to"):
        LinUCB(world.catalogue, 7).listen(world.observe(), Question(slice(None), terms), answer)


def test_a_round_can_be_written_down_and_played_again():
    """Feeding a recorded round to a twin leaves it in the same state."""
    world = small_world()
    policy, twin = (ConUCB(world.catalogue, 7) for _ in range(2))
    for _ in range(12):
        played = play_round(policy, world)
        for question, answer in played.dialogue:
            twin.listen(played.context, question, answer)
        for feedback in played.outcome.feedback:
            twin.update(feedback.context, feedback.arm, feedback.reward)
    for name, value in policy.state_dict().items():
        torch.testing.assert_close(twin.state_dict()[name], value, **EXACT)


def test_a_slice_with_a_step_takes_every_other_row(world):
    some = world.observe().take(slice(None, None, 2))
    assert some.users.tolist() == [0, 2, 4, 6] and some.who.tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.float64, torch.bool])
def test_ids_of_another_type_are_refused(world, dtype):
    users, arms = torch.tensor([0, 1]), torch.tensor([[0, 1], [2, 3]])
    with pytest.raises(ValueError, match=f"Context.users must be int64, got {dtype}"):
        Context(users.to(dtype), arms, rounds=0, catalogue=world.catalogue)
    with pytest.raises(ValueError, match=f"Context.arms must be int64, got {dtype}"):
        Context(users, arms.to(dtype), rounds=0, catalogue=world.catalogue)
    with pytest.raises(ValueError, match=f"Context.rounds must be int64, got {dtype}"):
        Context(users, arms, rounds=torch.tensor([0, 1]).to(dtype), catalogue=world.catalogue)


@pytest.mark.parametrize(
    ("features", "arms", "message"),
    [
        (torch.full((1, 2, 6), torch.nan).double(), [[0, 1]], "arm_features holds NaN or infinity"),
        (
            torch.zeros(1, 2, 5).double(),
            [[0, 1]],
            "must hold 6 features in torch.float64, .* got 5 in torch.float64",
        ),
        (torch.zeros(1, 2, 6), [[0, 1]], "must hold 6 features in torch.float64, .* got 6 in torch.float32"),
        (torch.zeros(1, 2, 6).double(), [[0, 60]], "arms holds 60, but the catalogue's arms go from 0 to 59"),
    ],
)
def test_features_of_ones_own_must_fit_the_catalogue(world, features, arms, message):
    with pytest.raises(ValueError, match=message):
        LinUCB(world.catalogue, 7).choose(Context(torch.tensor([0]), torch.tensor(arms), features, rounds=0))


def test_one_value_a_row_or_an_error(world):
    """Nothing is spread over rows silently, and nothing is half learned."""
    context = world.observe()
    policy = ConUCB(world.catalogue, 7)
    before = {name: value.clone() for name, value in policy.state_dict().items()}
    arm, reward = torch.zeros(7, dtype=torch.int64), torch.ones(7).double()
    terms = Question(slice(None), Terms(arm))
    for message, call in {
        r"reward must be \[7\], one value per row, got shape \[1\]": lambda: policy.update(
            context, arm, reward[:1]
        ),
        r"reward must be \[7\].* got shape \[7, 1\]": lambda: policy.update(context, arm, reward[:, None]),
        r"arm must be \[7\]": lambda: policy.update(context, arm[:3], reward),
        r"answer must be \[7\]": lambda: policy.listen(context, terms, Answer(reward[:1])),
        "a question must be about 2 things, one per row, got 7": lambda: policy.listen(
            context, Question(slice(0, 2), Terms(arm)), Answer(reward[:2])
        ),
        r"arm must be \[7\], one value": lambda: world.pull(context, arm[:1]),
        "a question must be about 7 things, one per row, got 1": lambda: world.answer(
            context, Question(slice(None), Terms(arm[:1]))
        ),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()
    for name, value in policy.state_dict().items():
        torch.testing.assert_close(value, before[name], **EXACT)
    assert int(world.rounds.sum()) == int(world.answered.sum()) == int(world.step) == 0


@pytest.mark.parametrize(
    ("rounds", "message"),
    [
        (torch.tensor([0]), r"Context.rounds must be 2 numbers of at least 0, got \[0\]"),
        (torch.tensor([0, -1]), r"Context.rounds must be 2 numbers of at least 0, got \[0, -1\]"),
        (torch.tensor([[0, 1]]), "Context.rounds must be 2 numbers"),
        (-1, "Context.rounds must be 2 numbers of at least 0"),
        (0.5, "Context.rounds must be int64, got torch.float32"),
    ],
)
def test_rounds_that_do_not_fit_are_refused(world, rounds, message):
    users, arms = torch.tensor([0, 1]), torch.tensor([[0, 1], [2, 3]])
    with pytest.raises(ValueError, match=message):
        Context(users, arms, rounds=rounds, catalogue=world.catalogue)


def test_rounds_have_to_be_given(world):
    with pytest.raises(TypeError, match="rounds"):
        Context(torch.tensor([0]), torch.tensor([[0, 1]]), catalogue=world.catalogue)


def test_rounds_go_along_with_their_rows(world):
    users, arms = torch.tensor([4, 0, 6]), torch.arange(6).view(3, 2)
    context = Context(users, arms, rounds=torch.tensor([7, 0, 3]), catalogue=world.catalogue)
    assert context.take(torch.tensor([2, 0])).rounds.tolist() == [3, 7]
    assert context.take(slice(1, 3)).rounds.tolist() == [0, 3]
    assert context.pick(torch.zeros_like(users)).rounds.tolist() == [7, 0, 3]
    assert context.showing(torch.tensor([9, 8, 7])).rounds.tolist() == [7, 0, 3]
    assert [block.rounds.tolist() for block in context.blocks(blocks.BLOCK_ELEMENTS)] == [[7], [0], [3]]
    assert Context(users, arms, rounds=5, catalogue=world.catalogue).rounds.tolist() == [5, 5, 5]


def test_an_environments_contexts_count_the_users_own_rounds():
    world = small_world(users_per_round=3)
    seen = torch.zeros(7, dtype=torch.int64)
    policy = ConUCB(world.catalogue, 7)
    for _ in range(20):
        context = play_round(policy, world).context
        torch.testing.assert_close(context.rounds, seen[context.users], **EXACT)
        seen[context.users] += 1


def test_showing_an_arm_finds_it_among_candidates_with_features_of_their_own(world):
    users, arms = torch.tensor([4, 0]), torch.tensor([[3, 5, 9], [9, 3, 1]])
    own = torch.arange(36.0).double().view(2, 3, 6)
    context = Context(users, arms, own, rounds=0)
    shown = context.showing(torch.tensor([9, 3]))
    assert shown.arms.tolist() == [[9], [3]]
    torch.testing.assert_close(shown.arm_features, torch.stack((own[0, 2:], own[1, 1:2])), **EXACT)
    with pytest.raises(ValueError, match="arm 5 is not a candidate of row 1: only those have this round's"):
        context.showing(torch.tensor([5, 5]))
    of_catalogue = Context(users, arms, rounds=0, catalogue=world.catalogue).showing(torch.tensor([59, 0]))
    torch.testing.assert_close(
        of_catalogue.arm_features[:, 0], world.catalogue.arm_features[[59, 0]], **EXACT
    )


def test_feedback_has_an_arm_and_a_reward_for_every_row(world):
    context, arm, reward = world.observe(), torch.zeros(7, dtype=torch.int64), torch.ones(7)
    assert len(Feedback(context, arm, reward).reward) == 7
    with pytest.raises(
        ValueError, match=r"Feedback.reward must be \[7\], one value per row, got shape \[6\]"
    ):
        Feedback(context, arm, reward[1:])
    with pytest.raises(
        ValueError, match=r"Feedback.arm must be \[7\], one value per row, got shape \[7, 1\]"
    ):
        Feedback(context, arm[:, None], reward)


def test_rows_are_of_this_process_where_users_are_split():
    users, arms = torch.tensor([100, 101, 102]), torch.zeros(3, 1, dtype=torch.int64)
    catalogue = Catalogue(torch.zeros(1, 2))
    for who in (slice(0, 3), torch.arange(3)):
        context = Context.trusted(users, arms, torch.zeros_like(users), catalogue, who)
        assert context.rows.tolist() == [0, 1, 2]
        assert context.take(slice(1, 3)).rows.tolist() == [1, 2]
        assert context.take(torch.tensor([2, 0])).rows.tolist() == [2, 0]
    assert Context(users, arms, rounds=0, catalogue=catalogue).rows.tolist() == users.tolist()
