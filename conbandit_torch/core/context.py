"""Who is here and what may be shown to them.

Letters: U users, B rows in a round (distinct users), A candidate arms per row, N arms, K key-terms,
D features, L hidden features, Q questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import torch
from torch import Tensor

from conbandit_torch.core.blocks import EVERY_ROW, Index, look_up, rows_per_block
from conbandit_torch.core.catalogue import Catalogue


class Context:
    """Who is here, at which of their rounds, and what may be shown to them. Holds nothing of the truth.

    Draws, schedules and open decisions depend on the context alone, so a user may come again before the
    reward of an earlier round is known.

    Args:
        users: [B] distinct user ids.
        arms: [B, A] catalogue ids of each row's candidates.
        arm_features: [B, A, D] this round's features of the candidates; None: the catalogue's.
        rounds: [B] how many rounds each of the users has had before this one; a number stands for all rows.
        catalogue: where features are looked up, when they are first asked for.
    """

    def __init__(
        self,
        users: Tensor,
        arms: Tensor,
        arm_features: Tensor | None = None,
        *,
        rounds: Tensor | int,
        catalogue: Catalogue | None = None,
    ) -> None:
        rounds = torch.as_tensor(rounds, device=users.device)
        if rounds.ndim == 0:
            rounds = rounds.expand(users.shape[:1])
        for name, ids in {"users": users, "arms": arms, "rounds": rounds}.items():
            if ids.dtype != torch.int64:
                raise ValueError(f"Context.{name} must be int64, got {ids.dtype}")
        if users.ndim != 1 or arms.ndim != 2 or len(arms) != len(users) or 0 in arms.shape:
            raise ValueError(
                "Context needs users [B] and arms [B, A], got shapes "
                f"{list(users.shape)} and {list(arms.shape)}"
            )
        if rounds.shape != users.shape or (len(rounds) and int(rounds.min()) < 0):
            raise ValueError(
                f"Context.rounds must be {len(users)} numbers of at least 0, got {rounds.tolist()}"
            )
        if (arm_features is None) == (catalogue is None):
            raise ValueError("Context needs either arm_features or a catalogue to look them up in")
        if arm_features is not None and (arm_features.ndim != 3 or arm_features.shape[:2] != arms.shape):
            raise ValueError(
                f"Context.arm_features must be [B, A, D] with [B, A] = {list(arms.shape)}, got "
                f"{list(arm_features.shape)}"
            )
        if arm_features is not None and not arm_features.isfinite().all():
            raise ValueError("Context.arm_features holds NaN or infinity")
        if len(users.unique()) != len(users) or int(users.min()) < 0:
            raise ValueError(f"Context.users must be distinct ids from 0 on, got {users.tolist()}")
        num_arms = None if catalogue is None else catalogue.num_arms
        if int(arms.min()) < 0 or (num_arms is not None and int(arms.max()) >= num_arms):
            raise ValueError(
                f"Context.arms must be ids from 0 to {'N' if num_arms is None else num_arms} - 1, "
                f"got {int(arms.min())} to {int(arms.max())}"
            )
        self._fill(users, arms, arm_features, catalogue, users, rounds)
        self.largest_user, self.largest_arm = int(users.max()), int(arms.max())

    @classmethod
    def trusted(
        cls, users: Tensor, arms: Tensor, rounds: Tensor, catalogue: Catalogue, who: Index | None = None
    ) -> Context:
        """A context from an environment, whose ids need no check (a check would wait for the GPU).

        Args:
            users: [B] distinct user ids.
            arms: [B, A] catalogue ids.
            rounds: [B] rounds that the users have had.
            catalogue: where features are looked up.
            who: the users' rows of per-user state, where these are a range, or where users are split over
                processes; None: the ids.
        """
        return cls.__new__(cls)._fill(users, arms, None, catalogue, users if who is None else who, rounds)

    def _fill(
        self,
        users: Tensor,
        arms: Tensor,
        arm_features: Tensor | None,
        catalogue: Catalogue | None,
        who: Index,
        rounds: Tensor,
    ) -> Context:
        self.users = users  # [B] ids among all users, by which random numbers are drawn
        self.arms = arms  # [B, A]
        self.rounds = rounds  # [B] rounds that the users have had before this one
        self.who = who  # index of the users into per-user state: a slice where they are a range
        self._given = arm_features
        self._catalogue = catalogue
        self.largest_user = self.largest_arm = -1  # known only of contexts that were checked
        return self

    def __len__(self) -> int:
        return self.users.shape[0]

    def __repr__(self) -> str:
        return f"Context({len(self):,} users, {self.arms.shape[1]:,} candidates each)"

    @cached_property
    def rows(self) -> Tensor:
        """[B] the users' rows of per-user state, as ids: `buffer[context.rows, arm]`.

        They are the users' ids, unless users are split over processes.
        """
        if isinstance(self.who, Tensor):
            return self.who
        return torch.arange(self.who.start, self.who.stop, device=self.users.device)

    @property
    def has_own_features(self) -> bool:
        """Whether the candidates' features are this round's own, not the catalogue's."""
        return self._given is not None

    @cached_property
    def arm_features(self) -> Tensor:
        """[B, A, D] features of the candidates."""
        if self._given is not None:
            return self._given
        assert self._catalogue is not None  # the constructor's promise, for the type checker
        return look_up(self._catalogue.arm_features, self.arms)

    def take(self, rows: Index) -> Context:
        """The context of some of the rows."""
        if rows is EVERY_ROW:
            return self
        if isinstance(rows, slice) and rows.step not in (None, 1):
            rows = torch.arange(len(self), device=self.users.device)[rows]
        who = self.who
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self))
            if stop - start == len(self):
                return self
            who = slice(who.start + start, who.start + stop) if isinstance(who, slice) else who[rows]
        elif isinstance(who, slice):
            who = rows if who.start == 0 else rows + who.start
        else:
            who = who[rows]
        given = None if self._given is None else self._given[rows]
        own = self.users[rows], self.arms[rows], given, self._catalogue, who, self.rounds[rows]
        return Context.__new__(Context)._fill(*own)

    def pick(self, positions: Tensor) -> Context:
        """The context with one candidate per row, the one at `positions` [B]."""
        column = positions[:, None]
        given = None
        if self._given is not None:
            given = self._given.take_along_dim(column[..., None], 1)
        return self._with_arms(self.arms.gather(1, column), given)

    def showing(self, arms: Tensor) -> Context:
        """The context whose only candidate in each row is the arm `arms` [B], by its id in the catalogue."""
        if self._given is None:
            return self._with_arms(arms[:, None], None)
        same = self.arms == arms[:, None]  # [B, A]
        if not bool(same.any(1).all()):
            row = int((~same.any(1)).nonzero()[0])
            raise ValueError(
                f"arm {int(arms[row])} is not a candidate of row {row}: only those have this round's features"
            )
        return self.pick(same.int().argmax(1))

    def _with_arms(self, arms: Tensor, given: Tensor | None) -> Context:
        own = self.users, arms, given, self._catalogue, self.who, self.rounds
        return Context.__new__(Context)._fill(*own)

    def blocks(self, row_size: int) -> Iterator[Context]:
        """This context in runs of rows, so that work arrays of `row_size` numbers per row stay bounded."""
        size = rows_per_block(row_size)
        if size >= len(self):
            yield self
            return
        for start in range(0, len(self), size):
            yield self.take(slice(start, min(start + size, len(self))))

    def map(self, function: Callable[[Context], Tensor], row_size: int) -> Tensor:
        """`function` of every block, put together again: [B, ...]."""
        parts = [function(block) for block in self.blocks(row_size)]
        return parts[0] if len(parts) == 1 else torch.cat(parts)
