"""The log of observations: kinds, order, growth, forgetting, saving."""

import copy

import pytest
import torch

from conbandit_torch import Arms, Comparison, HConUCB, Terms
from conbandit_torch.core.questions import ShiftedTerms
from conbandit_torch.models.history import History
from tests.conftest import EXACT, small_world

KINDS = {
    "Arms": lambda ids: Arms(ids),
    "Terms": lambda ids: Terms(ids),
    "Comparison of Arms": lambda ids: Comparison(Arms(ids), Arms(ids + 1)),
    "Comparison of Terms": lambda ids: Comparison(Terms(ids), Terms(ids + 2)),
}


def kind_of(about):
    side = type(about.sides()[0]).__name__
    return f"Comparison of {side}" if isinstance(about, Comparison) else side


def filled(appends=40):
    """A history of all kinds, and what was put into it, by kind."""
    history, expected = History(torch.empty(0).double()), {kind: [] for kind in KINDS}
    generator = torch.Generator().manual_seed(0)
    for number in range(appends):
        kind = list(KINDS)[number % 4]
        size = int(torch.randint(0, 6, (), generator=generator))
        users, ids = (torch.randint(5, (size,), generator=generator) for _ in range(2))
        values = torch.randn(size, generator=generator).double()
        about = KINDS[kind](ids)
        history.append(users, about, values)
        expected[kind] += list(
            zip(users.tolist(), map(tuple, about.ids().tolist()), values.tolist(), strict=True)
        )
    return history, expected


def entries(history):
    return {
        kind_of(about): list(
            zip(users.tolist(), map(tuple, about.ids().tolist()), values.tolist(), strict=True)
        )
        for users, about, values in history.entries()
    }


def test_entries_are_given_by_kind_in_the_order_they_came():
    history, expected = filled()
    assert entries(history) == expected
    assert history.length == sum(len(own) for own in expected.values())


def test_an_empty_history_has_no_entries():
    history = History(torch.empty(0))
    assert list(history.entries()) == []
    history.append(
        torch.tensor([], dtype=torch.int64), Terms(torch.tensor([], dtype=torch.int64)), torch.tensor([])
    )
    assert list(history.entries()) == [] and history.length == 0


def test_appending_moves_what_is_there_a_logarithmic_number_of_times():
    history, one = History(torch.empty(0)), torch.tensor([3])
    moves = 0
    for _ in range(2000):
        place = history.values.data_ptr()
        history.append(one, Arms(one), torch.ones(1))
        moves += history.values.data_ptr() != place
    assert 1 < moves <= 12 and history.length == 2000


@pytest.mark.parametrize("users", [[0, 3], [], [0, 1, 2, 3, 4], [7]])
def test_users_who_are_dropped_leave_nothing(users):
    history, expected = filled()
    history.drop(torch.tensor(users, dtype=torch.int64))
    left = {kind: [entry for entry in own if entry[0] not in users] for kind, own in expected.items()}
    assert entries(history) == {kind: own for kind, own in left.items() if own}
    history.append(torch.tensor([9]), Terms(torch.tensor([1])), torch.tensor([0.5]).double())
    assert entries(history)["Terms"] == [*left["Terms"], (9, (1,), 0.5)]


def test_it_is_saved_cut_to_its_length_and_goes_on_after_loading():
    history, expected = filled()
    saved = copy.deepcopy(history.state_dict())
    assert len(history.users) > history.length
    assert {len(value) for value in saved.values()} == {history.length}
    for target in (History(torch.empty(0).double()), filled(13)[0], filled(120)[0]):
        target.load_state_dict(saved)
        assert entries(target) == expected
        more = torch.tensor([1, 2])
        target.append(more, Arms(more), torch.ones(2).double())
        assert entries(target)["Arms"] == [*expected["Arms"], (1, (1,), 1.0), (2, (2,), 1.0)]
    for name, value in history.state_dict().items():
        torch.testing.assert_close(value, saved[name], **EXACT)


def test_what_a_log_cannot_keep_is_refused_before_anything_is_learned():
    """A vector near a key-term would be taken for an arm."""
    world = small_world()
    policy = HConUCB(world.catalogue, world.num_users, refit_every=4)
    before = copy.deepcopy(policy.state_dict())
    context = world.observe()
    number, terms = len(context), torch.zeros(len(context), dtype=torch.int64)
    near = ShiftedTerms(terms, torch.zeros(number, 6).double())
    with pytest.raises(ValueError, match="keeps what was said of arms and key-terms, not of ShiftedTerms"):
        policy.learn_answer(context, near, torch.zeros(number).double())
    for name, value in policy.state_dict().items():
        assert torch.equal(value, before[name]), name
