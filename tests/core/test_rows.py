"""Buffers with a row per user: growing, resetting, saving."""

import copy
import io

import pytest
import torch
from torch import nn

from conbandit_torch import ConUCB, HConUCB, RidgeRegression
from conbandit_torch.core.rows import Rows, all_rows, row_buffers
from conbandit_torch.testing import decisions
from tests.conftest import EXACT, small_world


class Two(Rows):
    """Two row buffers, one with rows that start as a vector, and a buffer that is none."""

    def __init__(self, num_rows):
        super().__init__(num_rows)
        self.register_rows("count", torch.tensor(0))
        self.register_rows("vector", torch.tensor([1.0, 2.0, 3.0]))
        self.register_buffer("step", torch.tensor(7))


class OfArms(Rows):
    per = "arm"

    def __init__(self, num_rows):
        super().__init__(num_rows)
        self.register_rows("value", torch.zeros(2))


def filled(rows):
    module = Two(rows)
    module.count += torch.arange(1, rows + 1)
    module.vector += torch.arange(rows)[:, None]
    return module


def test_rows_start_as_declared():
    module = Two(4)
    assert module.count.tolist() == [0] * 4 and module.vector.tolist() == [[1, 2, 3]] * 4
    assert module.row_buffers() == ["count", "vector"]
    assert set(module.state_dict()) == {"count", "vector", "step"}


def test_new_rows_start_as_declared_and_old_ones_stay():
    module, before = filled(3), filled(3)
    for number in (3, 5, 6, 40):
        module.grow_rows(number)
        assert module.num_rows == len(module.count) == len(module.vector) == number
        torch.testing.assert_close(module.count[:3], before.count, **EXACT)
        torch.testing.assert_close(module.vector[:3], before.vector, **EXACT)
        assert (module.count[3:] == 0).all()
        assert (module.vector[3:] == torch.tensor([1.0, 2.0, 3.0])).all()
    assert int(module.step) == 7


def test_what_was_learned_between_two_growths_stays():
    """New rows are written where there is room already: what came in since the last growth must not be lost."""
    module = Two(1)
    expected = torch.zeros(0, dtype=torch.int64)
    for number in range(1, 60):
        module.grow_rows(number)
        module.count[number - 1] = number
        module.count += 1
        expected = torch.cat((expected, torch.tensor([number]))) + 1
        torch.testing.assert_close(module.count, expected, **EXACT)


def test_growing_one_by_one_reallocates_a_logarithmic_number_of_times():
    module = Two(1)
    moves, copied = 0, 0
    for number in range(2, 2001):
        place = module.vector.data_ptr()
        module.grow_rows(number)
        if module.vector.data_ptr() != place:  # the old place is in use while rows are copied from it
            moves, copied = moves + 1, copied + number
    assert 1 < moves <= 11  # 2000 < 2^11
    assert copied <= 2 * 2000 + moves
    assert module.num_rows == 2000


def test_growing_after_a_conversion_starts_anew_and_loses_nothing():
    module = filled(3)
    module.grow_rows(4)
    module.double()
    module.grow_rows(5)  # there was room for it, in float32
    assert module.vector.dtype == torch.float64 and module.vector.shape == (5, 3)
    assert module.vector[:, 0].tolist() == [1, 2, 3, 1, 1]
    copied = copy.deepcopy(module)
    module.vector += 1
    copied.grow_rows(6)
    assert copied.vector[:, 0].tolist() == [1, 2, 3, 1, 1, 1]
    assert module.vector[:, 0].tolist() == [2, 3, 4, 2, 2]


def test_a_buffer_that_was_replaced_is_grown_from_what_it_is_now():
    module = filled(2)
    module.grow_rows(3)
    module.vector = torch.full((3, 3), 9.0)
    module.grow_rows(4)
    assert module.vector[:, 0].tolist() == [9, 9, 9, 1]


@pytest.mark.parametrize(
    "rows", [torch.tensor([3, 1]), slice(1, 4), torch.tensor([], dtype=torch.int64)], ids=str
)
def test_reset_rows_are_as_new_and_others_stay(rows):
    module, before = filled(5), filled(5)
    module.reset_rows(rows)
    reset = torch.zeros(5, dtype=torch.bool)
    reset[rows] = True
    assert (module.count[reset] == 0).all()
    assert (module.vector[reset] == torch.tensor([1.0, 2.0, 3.0])).all()
    torch.testing.assert_close(module.count[~reset], before.count[~reset], **EXACT)
    torch.testing.assert_close(module.vector[~reset], before.vector[~reset], **EXACT)


def test_what_new_rows_hold_can_be_changed():
    module = filled(2)
    module.set_initial("vector", torch.tensor([5.0, 5.0, 5.0]))
    assert module.vector[:, 0].tolist() == [1, 2]
    module.reset_rows(torch.tensor([0]))
    module.grow_rows(3)
    assert module.vector[:, 0].tolist() == [5, 2, 5]


def test_a_grown_module_is_saved_without_its_reserve_and_loaded_into_a_small_one():
    module = filled(3)
    for number in range(4, 70):
        module.grow_rows(number)
        module.count[-1] = number
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    assert module.state_dict()["vector"].untyped_storage().nbytes() == 69 * 3 * 4
    fresh = Two(3)
    fresh.load_state_dict(module.state_dict(), strict=True)
    assert fresh.num_rows == 69
    for name, value in module.state_dict().items():
        torch.testing.assert_close(fresh.state_dict()[name], value, **EXACT)
    module.count += 1  # what was loaded is not shared
    assert int(fresh.count[0]) == 1
    fresh.grow_rows(80)
    assert fresh.vector[69:].tolist() == [[1, 2, 3]] * 11


def test_a_state_of_fewer_rows_is_not_loaded():
    """Users would be left with what they had, or be lost: that is for nobody to guess."""
    with pytest.raises(RuntimeError, match="size mismatch for count"):
        filled(5).load_state_dict(filled(3).state_dict())


def test_rows_do_not_shrink():
    """That would lose users without a word."""
    module, before = filled(5), filled(5)
    with pytest.raises(ValueError, match="5"):
        module.grow_rows(3)
    assert module.num_rows == 5
    torch.testing.assert_close(module.vector, before.vector, **EXACT)


def test_rows_of_parts_are_found_by_what_they_belong_to():
    parts = nn.ModuleDict({"users": Two(3), "deep": nn.Sequential(OfArms(4), Two(3))})
    assert set(row_buffers(parts, "user")) == {"users.count", "users.vector", "deep.1.count", "deep.1.vector"}
    assert set(row_buffers(parts, "arm")) == {"deep.0.value"}
    assert len(all_rows(parts, "user")) == 2 and all_rows(parts, "arm") == [parts["deep"][0]]
    own = row_buffers(Two(3), "user")
    assert set(own) == {"count", "vector"}
    assert set(own) <= set(Two(3).state_dict())


# Policies.


def test_all_state_with_a_row_per_user_is_declared():
    """Of every buffer whose first length follows the number of users, or of arms."""
    world = small_world()
    for policy_class in (ConUCB, HConUCB):
        few, many = (policy_class(world.catalogue, users) for users in (7, 11))
        follows = {name for name, value in few.named_buffers() if value.shape != many.get_buffer(name).shape}
        assert follows == set(row_buffers(few, "user"))


def test_a_policy_that_grew_is_saved_and_loaded_into_one_for_few_users():
    world, twin = small_world(), small_world()
    policy = ConUCB(world.catalogue, 2)
    for number in (3, 5, 7):
        policy.grow(number)
    decisions(policy, world)
    small = ConUCB(world.catalogue, 2)
    small.load_state_dict(policy.state_dict(), strict=True)
    assert small.num_users == 7
    decisions(ConUCB(twin.catalogue, 7), twin)
    assert decisions(small, world) == decisions(policy, twin)


def test_a_policy_does_not_shrink():
    world = small_world()
    with pytest.raises(ValueError, match="a policy for 7 users cannot shrink to 6"):
        ConUCB(world.catalogue, 7).grow(6)


def test_regressions_that_grow_are_as_if_built_so():
    grown, built = RidgeRegression(2, 3, 0.5, root=True), RidgeRegression(6, 3, 0.5, root=True)
    generator = torch.Generator().manual_seed(0)
    for number in (2, 3, 6):
        grown.grow_rows(number)
        for _ in range(4):
            x, y = torch.randn(number, 3, generator=generator), torch.randn(number, generator=generator)
            grown.update(slice(0, number), x, y)
            built.update(torch.arange(number), x, y)
    for name, value in built.state_dict().items():
        torch.testing.assert_close(grown.state_dict()[name], value)
    assert grown.count.tolist() == [12, 12, 8, 4, 4, 4]
