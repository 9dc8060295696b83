"""Rewards that come late, or never."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.context import Context
from conbandit_torch.core.decisions import OpenDecisions
from conbandit_torch.core.processes import Processes
from conbandit_torch.core.randomness import Stream
from conbandit_torch.core.rounds import Feedback

NEVER = -1


class Delay(ABC):
    """How many rounds after a decision its reward comes. To write your own, implement `rounds`."""

    @abstractmethod
    def rounds(self, context: Context, stream: Stream) -> Tensor:
        """[B] int64: 0 for the same round; NEVER for rewards that are lost."""


@dataclass(frozen=True)
class FixedDelay(Delay):
    """Every reward comes `late` rounds later.

    Args:
        late: rounds between decision and reward.
    """

    late: int = 1

    def __post_init__(self) -> None:
        if self.late < 0:
            raise ValueError(f"late must be at least 0, got {self.late}")

    def rounds(self, context: Context, stream: Stream) -> Tensor:
        """[B] all alike."""
        return torch.full_like(context.users, self.late)


@dataclass(frozen=True)
class GeometricDelay(Delay):
    """Rewards come after a random number of rounds, some never.

    Rule: late = floor(log(1 - u) / log(q)) with q = mean / (1 + mean) and u uniform: P(late >= n) = q^n.

    Args:
        mean: mean number of rounds between decision and reward.
        lost: share of the rewards that never come.
    """

    mean: float = 5.0
    lost: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.mean < math.inf:
            raise ValueError(f"mean must be above 0 and finite, got {self.mean}")
        if not 0 <= self.lost <= 1:
            raise ValueError(f"lost must be in [0, 1], got {self.lost}")

    def rounds(self, context: Context, stream: Stream) -> Tensor:
        """[B] drawn by user and round."""
        drawn = stream.uniform(context.users, context.rounds, 2)  # [B, 2]
        late = (torch.log1p(-drawn[:, 0]) / math.log(self.mean / (1 + self.mean))).long()
        return late.where(drawn[:, 1] >= self.lost, NEVER)


class Late(nn.Module):
    """Rewards that are under way; part of an environment's state.

    Args:
        delay: how late they come.
        catalogue: of the candidates.
        pool: A, candidates per row.
        seed: seed of the delays.
    """

    ids: Tensor  # [P] of the open decisions, ascending
    due: Tensor  # [P] the round in which each one's reward comes
    rewards: Tensor  # [P] what it is
    now: Tensor  # [] rounds so far

    def __init__(self, delay: Delay, catalogue: Catalogue, pool: int, seed: int) -> None:
        super().__init__()
        self.delay, self._stream = delay, Stream(seed, "delays")
        self.open = OpenDecisions(catalogue, pool)
        like = catalogue.arm_features
        self.register_buffer("due", torch.empty(0, dtype=torch.int64, device=like.device))
        self.register_buffer("ids", torch.empty_like(self.due), persistent=False)
        self.register_buffer("rewards", like.new_empty(0))
        self.register_buffer("now", torch.zeros((), dtype=torch.int64, device=like.device))

    def send(self, context: Context, arm: Tensor, reward: Tensor, processes: Processes) -> list[Feedback]:
        """Send this round's rewards on their way; gives those that arrive now.

        Where users are split over processes, all of them get as many parts, some of them empty: what users
        share is learned by all processes together.
        """
        late = self.delay.rounds(context, self._stream)  # [B]
        comes = (late != NEVER).nonzero().squeeze(1)
        if len(self.ids) != len(self.due):  # these were loaded
            self.ids = self.open.numbers()
        self.ids = torch.cat((self.ids, self.open.open(context.take(comes), arm[comes])))
        self.due = torch.cat((self.due, self.now + late[comes]))
        self.rewards = torch.cat((self.rewards, reward[comes]))
        here = self.due == self.now
        arrived = self.open.settle_by_origin(self.ids[here], self.rewards[here])
        own = torch.tensor(list(arrived), dtype=torch.int64, device=here.device)
        origins = processes.gather(own)[0].unique().tolist()
        self.ids, self.due, self.rewards = self.ids[~here], self.due[~here], self.rewards[~here]
        self.now += 1
        nothing = Feedback(context.take(comes[:0]), arm[:0], reward[:0])
        return [arrived.get(origin, nothing) for origin in origins]

    def reset(self) -> None:
        """Lose everything that is under way."""
        self.open.reset()
        self.ids, self.due, self.rewards = self.ids[:0], self.due[:0], self.rewards[:0]
        self.now.zero_()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        for name in ("due", "rewards"):
            saved = state_dict.get(prefix + name)
            if isinstance(saved, Tensor) and saved.ndim == 1:
                setattr(self, name, self.get_buffer(name).new_empty(saved.shape))
        super()._load_from_state_dict(state_dict, prefix, *args)
