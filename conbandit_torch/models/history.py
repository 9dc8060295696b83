"""A log of everything that was observed, as part of a policy's state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from conbandit_torch.core.blocks import EVERY_ROW, Index
from conbandit_torch.core.questions import About, Arms, Comparison, Terms
from conbandit_torch.models.links import Identity, Link

LINEAR = Identity()
_COLUMNS = ("users", "kinds", "first", "second", "values")


class History(nn.Module):
    """Observations (user, what it was about, value), in the order they came.

    It grows by one entry per observation, 25 bytes for what it was of and 4 or 8 for the value (up to twice
    that while there is room to grow), and is saved with the policy, cut to its length.

    Args:
        like: a tensor whose dtype and device the values take.
    """

    users: Tensor  # [capacity] rows of per-user state
    kinds: Tensor  # [capacity] what was observed: an arm, a key-term, or a comparison of two of them
    first: Tensor  # [capacity] its id
    second: Tensor  # [capacity] in a comparison, the id of the second; or else -1
    values: Tensor  # [capacity]

    def __init__(self, like: Tensor) -> None:
        super().__init__()
        self.length = 0
        ids = torch.empty(0, dtype=torch.int64, device=like.device)
        self.register_buffer("users", ids)
        self.register_buffer("kinds", ids.to(torch.uint8))
        self.register_buffer("first", ids.clone())
        self.register_buffer("second", ids.clone())
        self.register_buffer("values", like.new_empty(0))

    @staticmethod
    def code(about: About) -> int:
        """What `kinds` calls it; an error where no log can keep it."""
        kinds = {type(side) for side in about.sides()}
        if not kinds <= {Arms, Terms}:
            raise ValueError(
                f"a log for refits keeps what was said of arms and key-terms, not of {type(about).__name__}: "
                "leave refits out, or ask about key-terms"
            )
        return (kinds == {Terms}) + 2 * (len(about.sides()) == 2)

    def append(self, users: Tensor, about: About, values: Tensor) -> None:
        """Add entries [n]."""
        code, sides = self.code(about), about.sides()
        first, second = sides[0].of, sides[-1].of
        if len(sides) == 1:
            second = torch.full_like(first, -1)
        kinds = torch.full_like(first, code, dtype=torch.uint8)
        stop = self.length + len(users)
        for name, new in zip(_COLUMNS, (users, kinds, first, second, values), strict=True):
            buffer = self.get_buffer(name)
            if stop > len(buffer):  # at least double, so that appending costs constant time on average
                buffer = torch.cat((buffer, buffer.new_empty(max(stop, 2 * len(buffer)) - len(buffer))))
                setattr(self, name, buffer)
            buffer[self.length : stop] = new
        self.length = stop

    def entries(self) -> Iterator[tuple[Tensor, About, Tensor]]:
        """Users, what it was about, and values [n] of all entries, one kind of them after the other."""
        users, kinds, first, second, values = (self.get_buffer(name)[: self.length] for name in _COLUMNS)
        codes = kinds.unique().tolist()
        for code in codes:
            rows: Index = EVERY_ROW if len(codes) == 1 else (kinds == code)
            side = (Arms, Terms)[code % 2]
            about: About = side(first[rows])
            if code >= 2:
                about = Comparison(side(first[rows]), side(second[rows]))
            yield users[rows], about, values[rows]

    def drop(self, users: Tensor) -> None:
        """Forget all entries of the users [n]."""
        kept = ~torch.isin(self.users[: self.length], users)
        for name in _COLUMNS:
            setattr(self, name, self.get_buffer(name)[: self.length][kept])
        self.length = len(self.users)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in _COLUMNS:
            destination[prefix + name] = destination[prefix + name][: self.length].clone()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        saved = [state_dict.get(prefix + name) for name in _COLUMNS]
        shapes = {None if tensor is None else tuple(tensor.shape) for tensor in saved}
        if len(shapes) == 1 and len(shape := shapes.pop() or ()) == 1:  # or else torch tells what is wrong
            self.length = shape[0]
            for name in _COLUMNS:
                setattr(self, name, self.get_buffer(name).new_empty(shape))
        super()._load_from_state_dict(state_dict, prefix, *args)


@dataclass(frozen=True)
class Observations:
    """Observations of one kind out of the log, for a representation that is fitted to them.

    Attributes:
        users: [E] rows of per-user state.
        about: what each was of.
        values: [E] rewards or answers.
        theta: gives the preferences [n, D] by which such values of the users [n] are predicted, as they
            are when it is called.
        rewards: whether they are rewards, not answers.
    """

    users: Tensor
    about: About
    values: Tensor
    theta: Callable[[Tensor], Tensor]
    rewards: bool

    @property
    def kind(self) -> int:
        """From 0 to 7: a number for what they are, the same in all processes."""
        return 4 * (not self.rewards) + History.code(self.about)


@dataclass(frozen=True)
class Refit:
    """What a representation is handed when it is time to fit it to the whole log.

    Attributes:
        observations: all that was observed: rewards first, then answers.
        rebuild: builds every user's regressions anew from the log, with the representation as it is then.
            To be called whenever it has changed.
        link: how means follow from scores, and how errors are weighed.
    """

    observations: list[Observations]
    rebuild: Callable[[], None]
    link: Link = LINEAR
