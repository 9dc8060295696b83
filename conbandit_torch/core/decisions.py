"""Decisions whose rewards are still to come, in any order, or never."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.checks import expect_rows
from conbandit_torch.core.context import Context
from conbandit_torch.core.rounds import Feedback

_COLUMNS = ("ids", "origins", "users", "rows", "rounds", "arms", "positions")


class OpenDecisions(nn.Module):
    """Keeps what was decided until its reward comes. A user may have several decisions open.

    It is state like any other: what is open is saved, and a resumed run settles it.

    Args:
        catalogue: of the candidates.
        pool: A, candidates per row.
    """

    ids: Tensor  # [P] of the open decisions, ascending
    origins: Tensor  # [P] which call of `open` each was made in
    users: Tensor  # [P]
    rows: Tensor  # [P] of per-user state
    rounds: Tensor  # [P]
    arms: Tensor  # [P, A]
    positions: Tensor  # [P] of the arms shown
    made: Tensor  # [2] decisions made so far, and calls of `open`

    def __init__(self, catalogue: Catalogue, pool: int) -> None:
        super().__init__()
        self._catalogue = (catalogue,)  # in a tuple: it is no part of this module
        none = torch.empty(0, dtype=torch.int64, device=catalogue.arm_features.device)
        for name in _COLUMNS:
            self.register_buffer(name, none.new_empty(0, pool) if name == "arms" else none.clone())
        self.register_buffer("made", none.new_zeros(2))

    def __len__(self) -> int:
        return self.ids.shape[0]

    def open(self, context: Context, arm: Tensor) -> Tensor:
        """[B] ids of the decisions to show the arms at positions `arm` [B]."""
        if context.has_own_features:
            raise ValueError("a decision that stays open needs the catalogue's features, not a context's own")
        expect_rows("arm", arm, len(context))
        ids = self.made[0] + torch.arange(len(context), device=arm.device)
        origin = self.made[1].expand(len(ids))
        new = (ids, origin, context.users, context.rows, context.rounds, context.arms, arm)
        for name, values in zip(_COLUMNS, new, strict=True):
            setattr(self, name, torch.cat((self.get_buffer(name), values)))
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
        place = torch.searchsorted(self.ids, ordered).clamp_max(max(len(self) - 1, 0))
        wrong = ordered if not len(self) else ordered[self.ids[place] != ordered]
        if len(wrong):
            first = int(wrong[0])
            was_made = 0 <= first < int(self.made[0])
            reason = "has had its reward already" if was_made else "was never made"
            raise ValueError(f"decision {first} {reason}; {len(self)} decisions are open")
        found = {}
        for origin in self.origins[place].unique().tolist():
            own = self.origins[place] == origin
            rows = place[own]
            context = Context.trusted(
                self.users[rows], self.arms[rows], self.rounds[rows], self._catalogue[0], self.rows[rows]
            )
            found[origin] = Feedback(context, self.positions[rows], reward[order[own]])
        self._drop(place)
        return found

    def reset(self) -> None:
        """Forget all decisions."""
        self._drop(torch.arange(len(self), device=self.ids.device))
        self.made.zero_()

    def _drop(self, place: Tensor) -> None:
        kept = torch.ones(len(self), dtype=torch.bool, device=place.device)
        kept[place] = False
        for name in _COLUMNS:
            setattr(self, name, self.get_buffer(name)[kept])

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        for name in _COLUMNS:
            saved = state_dict.get(prefix + name)
            if (
                isinstance(saved, Tensor)
                and saved.shape[1:] == self.get_buffer(name).shape[1:]
                and saved.ndim
            ):
                setattr(self, name, self.get_buffer(name).new_empty(saved.shape))
        super()._load_from_state_dict(state_dict, prefix, *args)
