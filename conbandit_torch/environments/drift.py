"""Users who change: true preferences as a function of the user and of the user's own round."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from conbandit_torch.core.randomness import Stream


class Drift(ABC):
    """How the users' true preferences change. To write your own, implement `theta`.

    What `theta` gives is a pure function of the seed, the user and the user's round. So a resumed run, users
    that are split over processes and rewards that come late all meet the same truth.
    """

    @abstractmethod
    def theta(self, start: Tensor, users: Tensor, rounds: Tensor, stream: Stream) -> Tensor:
        """[B, D] the preferences of the users [B] in their `rounds`-th rounds [B], counted from 0.

        Args:
            start: [U, D] all users' preferences before any change.
            users: ids, rows of `start`.
            rounds: of each of the users.
            stream: random numbers of the environment's seed.
        """


@dataclass(frozen=True)
class AbruptChange(Drift):
    """After so many of their rounds users become like somebody else.

    Rule: after `at` rounds a user's theta is that of another user, drawn at random; until then it is the
    user's own. With several changes every one draws anew.
    Symbols: none.
    Differs: ours. Another user's theta keeps the environment's distribution, on real data too.

    Args:
        at: rounds that a user plays before the change, or a list of them, ascending.
        share: share of the users that change; who does is drawn for every change.
    """

    at: int | list[int] = 500
    share: float = 1.0

    def __post_init__(self) -> None:
        changes = self._changes()
        if not changes or any(at < 1 for at in changes) or changes != sorted(set(changes)):
            raise ValueError(f"at must be rounds of at least 1, ascending, got {self.at}")
        if not 0 <= self.share <= 1:
            raise ValueError(f"share must be in [0, 1], got {self.share}")

    def theta(self, start: Tensor, users: Tensor, rounds: Tensor, stream: Stream) -> Tensor:
        """[B, D] the user's own theta, or that of the last change which the user took part in."""
        number = torch.zeros_like(rounds)
        for change, at in enumerate(self._changes(), 1):
            takes_part = stream.uniform(users, change, 2)[:, 1] < self.share
            number = torch.where((rounds >= at) & takes_part, change, number)
        return _somebodys(start, users, number, stream)

    def _changes(self) -> list[int]:
        return self.at if isinstance(self.at, list) else [self.at]


@dataclass(frozen=True)
class SmoothDrift(Drift):
    """Users turn slowly towards somebody else, then on to the next one.

    Rule: `theta_t = cos(a) p_n + sin(a) p_{n+1}`, where `n pi/2 + a = per_round t` with a in [0, pi/2). p_0
    is the user's own theta, and p_1, p_2, ... are those of other users, drawn at random.
    Symbols: none.
    Differs: ours. Where users' preferences are unrelated, theta keeps its length on the way, on average.

    Args:
        per_round: the angle in radians that a user turns in a round.
    """

    per_round: float = 0.002

    def __post_init__(self) -> None:
        if not 0 <= self.per_round <= math.pi / 2:
            raise ValueError(f"per_round must be an angle from 0 to pi/2, got {self.per_round}")

    def theta(self, start: Tensor, users: Tensor, rounds: Tensor, stream: Stream) -> Tensor:
        """[B, D] between two preferences."""
        turned = rounds.double() * (self.per_round / (math.pi / 2))  # [B] in quarters of a turn
        number = turned.long()
        angle = ((turned - number) * (math.pi / 2))[:, None]
        near, far = (_somebodys(start, users, at, stream) for at in (number, number + 1))
        return (angle.cos() * near + angle.sin() * far).to(start)


def _somebodys(start: Tensor, users: Tensor, numbers: Tensor, stream: Stream) -> Tensor:
    """[B, D] for number 0 the users' own preferences, for every other number those of another user."""
    drawn = stream.uniform(users, numbers, 2)[:, 0]
    other = (drawn * (len(start) - 1)).long()  # [B] of all users but oneself
    return start[torch.where(numbers > 0, other + (other >= users), users)]
