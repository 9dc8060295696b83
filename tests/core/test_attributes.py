"""Attributes of modules that are found at once."""

import pytest
import torch
from torch import nn

from conbandit_torch.core.attributes import buffer, submodule


class Both(nn.Module):
    numbers = buffer()
    inner = submodule()


def test_a_declared_attribute_is_what_the_module_holds():
    module = Both()
    for name in ("numbers", "inner"):
        with pytest.raises(AttributeError, match=f"'Both' object has no attribute '{name}'"):
            getattr(module, name)
    module.register_buffer("numbers", torch.zeros(2))
    module.inner = None
    assert module.inner is None
    module.inner = nn.Linear(1, 1)
    assert [*dict(module.named_buffers())] == ["numbers"] and [*dict(module.named_children())] == ["inner"]
    module.numbers = torch.ones(3)
    module.double()
    assert (
        module.numbers is module.state_dict(keep_vars=True)["numbers"]
        and module.inner.bias.dtype == torch.double
    )
    assert torch.equal(module.numbers, torch.ones(3).double())
