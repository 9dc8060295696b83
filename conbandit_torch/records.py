"""What passes between policy and environment. Shapes are defined, and checked, here and only here.

Letters: U users, B rows in a round (distinct users), A candidate arms a row, N arms, K key-terms,
D features, L hidden features, Q questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import NamedTuple

import torch
from torch import Tensor

from conbandit_torch.catalogue import Catalogue

Index = Tensor | slice
"""Rows of a per-user tensor: ids, or a slice, which views the state instead of copying it."""

EVERY_ROW = slice(None)
BLOCK_ELEMENTS = 2**20  # work arrays hold at most about this many numbers (or one row)


def rows_per_block(width: int) -> int:
    """How many rows of `width` numbers to work on at once, so that work arrays stay bounded."""
    return max(1, BLOCK_ELEMENTS // max(1, width))


def look_up(table: Tensor, ids: Tensor) -> Tensor:
    """`table[ids]`, several times as fast for ids [B, A]: [N, ...] -> [B, A, ...]."""
    return table.index_select(0, ids.reshape(-1)).view(*ids.shape, *table.shape[1:])


def rows_of(tensor: Tensor, rows: Index) -> Tensor:
    """`tensor[rows]`, or the tensor itself if those are all."""
    return tensor if rows is EVERY_ROW else tensor[rows]


def add_at(state: Tensor, rows: Index, value: Tensor | int) -> None:
    """`state[rows] += value`; a slice is a view, which Python would copy onto itself once more."""
    if isinstance(rows, slice):
        state[rows].add_(value)
    else:
        state[rows] += value


class Context:
    """Who is here and what may be shown to them. Holds nothing of the truth.

    Args:
        users: [B] distinct user ids.
        arms: [B, A] catalogue ids of each row's candidates.
        arm_features: [B, A, D] this round's features of the candidates; None: the catalogue's.
        catalogue: where features are looked up, when they are first asked for.
    """

    def __init__(
        self,
        users: Tensor,
        arms: Tensor,
        arm_features: Tensor | None = None,
        *,
        catalogue: Catalogue | None = None,
    ) -> None:
        for name, ids in {"users": users, "arms": arms}.items():
            if ids.dtype != torch.int64:
                raise ValueError(f"Context.{name} must be int64, got {ids.dtype}")
        if users.ndim != 1 or arms.ndim != 2 or len(arms) != len(users) or 0 in arms.shape:
            raise ValueError(
                "Context needs users [B] and arms [B, A], got shapes "
                f"{list(users.shape)} and {list(arms.shape)}"
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
        self._fill(users, arms, arm_features, catalogue, None)
        self.largest_user, self.largest_arm = int(users.max()), int(arms.max())

    @classmethod
    def trusted(cls, users: Tensor, arms: Tensor, catalogue: Catalogue, span: slice | None = None) -> Context:
        """A context from an environment, whose ids need no check (a check would wait for the GPU).

        Args:
            users: [B] distinct user ids.
            arms: [B, A] catalogue ids.
            catalogue: where features are looked up.
            span: the users as a range, if they are one.
        """
        return cls.__new__(cls)._fill(users, arms, None, catalogue, span)

    def _fill(
        self,
        users: Tensor,
        arms: Tensor,
        arm_features: Tensor | None,
        catalogue: Catalogue | None,
        span: slice | None,
    ) -> Context:
        self.users = users  # [B]
        self.arms = arms  # [B, A]
        self._given = arm_features
        self._catalogue = catalogue
        self._span = span
        self.largest_user = self.largest_arm = -1  # known only of contexts that were checked
        return self

    def __len__(self) -> int:
        return self.users.shape[0]

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

    @property
    def who(self) -> Index:
        """Index of this context's users into per-user state: a slice where they are a range."""
        return self.users if self._span is None else self._span

    def take(self, rows: Index) -> Context:
        """The context of some of the rows."""
        if rows is EVERY_ROW:
            return self
        span = None
        if isinstance(rows, slice) and rows.step not in (None, 1):
            rows = torch.arange(len(self), device=self.users.device)[rows]
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self))
            if stop - start == len(self):
                return self
            if self._span is not None:
                span = slice(self._span.start + start, self._span.start + stop)
        given = None if self._given is None else self._given[rows]
        return Context.__new__(Context)._fill(self.users[rows], self.arms[rows], given, self._catalogue, span)

    def pick(self, positions: Tensor) -> Context:
        """The context with one candidate a row, the one at `positions` [B]."""
        column = positions[:, None]
        given = None
        if self._given is not None:
            given = self._given.take_along_dim(column[..., None], 1)
        arms = self.arms.gather(1, column)
        return Context.__new__(Context)._fill(self.users, arms, given, self._catalogue, self._span)

    def blocks(self, width: int) -> Iterator[Context]:
        """This context in runs of rows, so that work arrays of `width` numbers a row stay bounded."""
        size = rows_per_block(width)
        if size >= len(self):
            yield self
            return
        for start in range(0, len(self), size):
            yield self.take(slice(start, min(start + size, len(self))))

    def map(self, function: Callable[[Context], Tensor], width: int) -> Tensor:
        """`function` of every block, put together again: [B, ...]."""
        parts = [function(block) for block in self.blocks(width)]
        return parts[0] if len(parts) == 1 else torch.cat(parts)


def expect_rows(name: str, tensor: Tensor, rows: int) -> None:
    """Refuse a tensor that does not hold one value for each of so many rows."""
    if tensor.shape != (rows,):
        raise ValueError(f"{name} must be [{rows}], one value a row, got shape {list(tensor.shape)}")


def expect_tensor(
    source: str, given: Tensor, shape: tuple[int, ...], dtype: torch.dtype | None = None, hint: str = ""
) -> Tensor:
    """What a hook, `source`, has given, if shape and dtype are right; `hint` says what else may be wrong."""
    if not isinstance(given, Tensor):
        raise TypeError(f"{source} must give a tensor {list(shape)}, got {type(given).__name__}{hint}")
    if given.shape != shape:
        raise ValueError(f"{source} must give {list(shape)} numbers, got {list(given.shape)}{hint}")
    if dtype is not None and given.dtype != dtype:
        raise ValueError(f"{source} must give {dtype}, got {given.dtype}{hint}")
    return given


def all_finite(values: Tensor) -> bool:
    """Whether no value is NaN or infinite."""
    # The sum of finite numbers is finite, or so large that one must look closer; it takes far less time.
    return isfinite(float(values.sum())) or bool(values.isfinite().all())


def highest(scores: Tensor, shape: tuple[int, ...], source: str) -> Tensor:
    """[B] position of every row's highest score, the first of equals; `source` gave them, for errors."""
    if not expect_tensor(source, scores, shape).is_floating_point():
        raise ValueError(f"{source} must give floating-point numbers, got {scores.dtype}")
    best, position = scores.max(1)  # NaN if any is
    # On a GPU looking would wait for the device.
    if best.device.type == "cpu" and not all_finite(best):
        row = int((~best.isfinite()).nonzero()[0])
        raise ValueError(f"{source} must give finite numbers, got {float(best[row])} in row {row}")
    return position


@dataclass(frozen=True)
class Question:
    """One question each to some rows of a context: about key-terms, or about candidate arms.

    Attributes:
        rows: which rows of the context are asked, Q of them.
        terms: [Q] key-terms asked about, or None.
        positions: [Q] positions among the row's candidates asked about, or None.
    """

    rows: Index
    terms: Tensor | None = None
    positions: Tensor | None = None

    def __post_init__(self) -> None:
        if (self.terms is None) == (self.positions is None):
            raise ValueError("a Question is either about terms or about positions")

    @property
    def about(self) -> Tensor:
        """[Q] the key-terms, or the positions, asked about."""
        asked = self.terms if self.terms is not None else self.positions
        assert asked is not None  # __post_init__'s promise, for the type checker
        return asked

    def __len__(self) -> int:
        return self.about.shape[0]

    def take(self, rows: Index) -> Question:
        """The question to some of its Q rows, for a context of those rows alone."""
        if self.terms is not None:
            return Question(EVERY_ROW, terms=self.terms[rows])
        return Question(EVERY_ROW, positions=self.about[rows])


@dataclass(frozen=True)
class Outcome:
    """What came of showing one arm to every row.

    Attributes:
        reward: [B] feedback.
        regret: [B] expected loss against the best candidate; for metrics, never for the policy. None where
            nobody knows it.
        rows: rows whose reward was really seen: all, except when replaying a log.
    """

    reward: Tensor
    regret: Tensor | None
    rows: Index = field(default_factory=lambda: EVERY_ROW)


class Logged(NamedTuple):
    """The log that an environment replays, or the first part of it.

    Attributes:
        events: how many events it has.
        click_rate: their mean reward, which is what showing candidates at random would earn.
    """

    events: int
    click_rate: float


@dataclass(frozen=True)
class Round:
    """One round, complete enough to be written down and played again."""

    context: Context
    dialogue: list[tuple[Question, Tensor]]
    arm: Tensor  # [B] positions among the candidates
    outcome: Outcome

    @property
    def arm_ids(self) -> Tensor:
        """[B] catalogue ids of the arms shown."""
        return self.context.arms.gather(1, self.arm[:, None]).squeeze(1)
