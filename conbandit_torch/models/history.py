"""A log of everything that was observed, as part of a policy's state."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class History(nn.Module):
    """Observations (user, item, value), in the order they came.

    It grows by one entry an observation, 16 bytes for the two ids and 4 or 8 for the value (up to twice
    that while there is room to grow), and is saved with the policy, cut to its length.

    Args:
        like: a tensor whose dtype and device the values take.
    """

    users: Tensor  # [capacity]
    items: Tensor  # [capacity]
    values: Tensor  # [capacity]

    def __init__(self, like: Tensor) -> None:
        super().__init__()
        self.length = 0
        ids = torch.empty(0, dtype=torch.int64, device=like.device)
        self.register_buffer("users", ids)
        self.register_buffer("items", ids.clone())
        self.register_buffer("values", like.new_empty(0))

    def append(self, users: Tensor, items: Tensor, values: Tensor) -> None:
        """Add entries [n]."""
        stop = self.length + len(users)
        for name, new in (("users", users), ("items", items), ("values", values)):
            buffer = self.get_buffer(name)
            if stop > len(buffer):  # at least double, so that appending costs constant time on average
                buffer = torch.cat((buffer, buffer.new_empty(max(stop, 2 * len(buffer)) - len(buffer))))
                setattr(self, name, buffer)
            buffer[self.length : stop] = new
        self.length = stop

    def entries(self) -> tuple[Tensor, Tensor, Tensor]:
        """Users, items and values [length] of all entries."""
        return self.users[: self.length], self.items[: self.length], self.values[: self.length]

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in ("users", "items", "values"):
            destination[prefix + name] = destination[prefix + name][: self.length].clone()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        saved = [state_dict.get(prefix + name) for name in ("users", "items", "values")]
        shapes = {None if tensor is None else tuple(tensor.shape) for tensor in saved}
        if len(shapes) == 1 and len(shape := shapes.pop() or ()) == 1:  # or else torch tells what is wrong
            self.length = shape[0]
            for name in ("users", "items", "values"):
                setattr(self, name, self.get_buffer(name).new_empty(shape))
        super()._load_from_state_dict(state_dict, prefix, *args)
