"""docs/capacity.md tells the bytes that policies really take."""

import pytest
import torch

from conbandit_torch.core.rows import row_buffers
from experiments.capacity import PAGE, REGRESSION, STATES, regression_bytes, with_tables
from experiments.contenders import CONTENDERS
from tests.conftest import small_world


def state_bytes(name, dtype, **sizes):
    contender = CONTENDERS[name]
    world = small_world(hidden=2 if contender.hidden else 0, **sizes).to(dtype)
    policy = contender.build(world)
    own = {name: buffer for name, buffer in policy.named_buffers() if "catalogue." not in name}
    storages = {buffer.untyped_storage().data_ptr(): buffer.untyped_storage() for buffer in own.values()}
    return sum(storage.nbytes() for storage in storages.values()), world.catalogue.dim


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", CONTENDERS)
def test_formulae_are_the_bytes_of_the_state(name, dtype):
    state, s = STATES[name], torch.finfo(dtype).bits // 8
    few, dim = state_bytes(name, dtype, users=7)
    many, _ = state_bytes(name, dtype, users=30)
    assert many - few == (30 - 7) * state.user_bytes(dim, s=s)
    more_arms, _ = state_bytes(name, dtype, users=7, arms=90)
    assert more_arms - few == (90 - 60) * state.arm_bytes(dim, s=s)
    declared = row_buffers(CONTENDERS[name].build(small_world().to(dtype)), "user").values()
    per_user = sum(buffer[0].numel() * buffer.element_size() for buffer in declared)
    assert per_user == state.user_bytes(6, s=s)  # whatever has a row per user is declared
    wide, dim = state_bytes(name, dtype, users=30, dim=9)
    narrow_users, _ = state_bytes(name, dtype, users=7, dim=9)
    assert wide - narrow_users == (30 - 7) * state.user_bytes(dim, s=s)


def test_the_page_shows_the_current_figures():
    text = PAGE.read_text(encoding="utf-8")
    assert with_tables(text) == text
    assert f"**R(n) = {REGRESSION}**" in text


def test_the_pages_formula_is_the_one_that_is_computed():
    written = REGRESSION.replace("²", "**2").replace("2 n", "2 * n").replace("s (", "s * (")
    for n, s in ((5, 4), (50, 4), (55, 8)):
        assert eval(written, {"n": n, "s": s}) == regression_bytes(n, s)
