"""Decisions whose rewards are still to come, in any order, or never."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from typing_extensions import Self

from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.checks import expect_rows
from conbandit_torch.core.context import Context
from conbandit_torch.core.rounds import Feedback

_COLUMNS = ("ids", "origins", "users", "rows", "rounds", "arms", "positions")


class _Opened(NamedTuple):
    """What one call of `open` has left, of the decisions that it made."""

    ids: Tensor  # [n] ascending
    origins: Tensor  # [n] the number of the call
    users: Tensor  # [n]
    rows: Tensor  # [n] of per-user state
    rounds: Tensor  # [n]
    arms: Tensor  # [n, A]
    positions: Tensor  # [n] of the arms shown

    def take(self, rows: Tensor) -> _Opened:
        return _Opened(*(column[rows] for column in self))


class OpenDecisions(nn.Module):
    """Keeps what was decided until its reward comes. A user may have several decisions open.

    It is state like any other: what is open is saved, and a resumed run settles it. What is open of one call
    of `open` lies together, so that neither opening nor settling touches what other calls have left open.

    Args:
        catalogue: of the candidates.
        pool: A, candidates per row.
    """

    made: Tensor  # [2] decisions made so far, and calls of `open`

    def __init__(self, catalogue: Catalogue, pool: int) -> None:
        super().__init__()
        self._catalogue = (catalogue,)  # in a tuple: it is no part of this module
        self._opened: list[_Opened] = []  # none of them is empty
        none = torch.empty(0, dtype=torch.int64, device=catalogue.arm_features.device)
        for name in _COLUMNS:  # filled while they are saved or loaded
            self.register_buffer(name, none.new_empty(0, pool) if name == "arms" else none.clone())
        self.register_buffer("made", none.new_zeros(2))

    def __len__(self) -> int:
        return sum(one.ids.shape[0] for one in self._opened)

    def numbers(self) -> Tensor:
        """[P] ids of all open decisions, ascending."""
        return torch.cat([self.get_buffer("ids"), *(one.ids for one in self._opened)])

    def open(self, context: Context, arm: Tensor) -> Tensor:
        """[B] ids of the decisions to show the arms at positions `arm` [B]."""
        if context.has_own_features:
            raise ValueError("a decision that stays open needs the catalogue's features, not a context's own")
        expect_rows("arm", arm, len(context))
        ids = self.made[0] + torch.arange(len(context), device=arm.device)
        origin = self.made[1].repeat(len(ids))
        own = context.users, context.rows, context.rounds, context.arms, arm.clone()
        if len(ids):
            self._opened.append(_Opened(ids, origin, *own))
        self.made += torch.tensor([len(ids), 1], device=arm.device)
        return ids

    def settle(self, ids: Tensor, reward: Tensor) -> list[Feedback]:
        """What to hand to `update`, now that the rewards [n] of the decisions `ids` [n] have come.

        Raises:
            ValueError: a decision was never made, or was settled before; then nothing is changed.
        """
        return list(self.settle_by_origin(ids, reward).values())

    def settle_by_origin(self, ids: Tensor, reward: Tensor) -> dict[int, Feedback]:
        """What `settle` gives, by the number of the call of `open`.

        One `Feedback` per call of `open` that they were made in, so that no user is twice in one; within it
        rows are as they were decided.
        """
        expect_rows("reward", reward, len(ids))
        ordered, order = ids.sort()
        if bool((ordered[1:] == ordered[:-1]).any()):
            raise ValueError(f"a decision can be rewarded once, got {ordered.tolist()}")
        last = torch.tensor([int(one.ids[-1]) for one in self._opened], dtype=ids.dtype, device=ids.device)
        owner, counts = torch.searchsorted(last, ordered).unique_consecutive(return_counts=True)
        found, left, start = {}, list(self._opened), 0
        for number, count in zip(owner.tolist(), counts.tolist(), strict=True):
            own = slice(start, start + count)
            start += count
            opened = self._holding(number, ordered[own])
            settled = torch.isin(opened.ids, ordered[own])  # [n]
            some = opened.take(settled.nonzero().squeeze(1))
            context = Context.trusted(some.users, some.arms, some.rounds, self._catalogue[0], some.rows)
            found[int(some.origins[0])] = Feedback(context, some.positions, reward[order[own]])
            left[number] = opened.take((~settled).nonzero().squeeze(1))
        self._opened = [one for one in left if len(one.ids)]
        return found

    def _holding(self, number: int, ids: Tensor) -> _Opened:
        """What the number-th of the calls has left open, if all these are among it."""
        if number < len(self._opened):
            wrong = ids[~torch.isin(ids, self._opened[number].ids)]
            if not len(wrong):
                return self._opened[number]
            ids = wrong
        first = int(ids[0])
        reason = "has had its reward already" if 0 <= first < int(self.made[0]) else "was never made"
        raise ValueError(f"decision {first} {reason}; {len(self)} decisions are open")

    def reset(self) -> None:
        """Forget all decisions."""
        self._opened = []
        self.made.zero_()

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> Self:
        self._opened = [_Opened(*map(fn, one)) for one in self._opened]
        super()._apply(fn, *args, **kwargs)  # type: ignore[no-untyped-call]
        return self

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        empty = {name: self.get_buffer(name) for name in _COLUMNS}
        for place, (name, none) in enumerate(empty.items()):
            setattr(self, name, torch.cat([none, *(one[place] for one in self._opened)]))
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name, none in empty.items():
            setattr(self, name, none)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        empty = {name: self.get_buffer(name) for name in _COLUMNS}
        for name, none in empty.items():
            saved = state_dict.get(prefix + name)
            if isinstance(saved, Tensor) and saved.shape[1:] == none.shape[1:] and saved.ndim:
                setattr(self, name, none.new_empty(saved.shape))
        super()._load_from_state_dict(state_dict, prefix, *args)
        columns = [self.get_buffer(name) for name in _COLUMNS]
        if len({len(column) for column in columns}) == 1:  # or else there is an error to tell
            calls = columns[1].unique_consecutive(return_counts=True)[1].tolist()
            parts = zip(*(column.split(calls) for column in columns), strict=True) if calls else ()
            self._opened = [_Opened(*part) for part in parts]
        for name, none in empty.items():
            setattr(self, name, none)
