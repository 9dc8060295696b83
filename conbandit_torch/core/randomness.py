"""Counter-based random numbers: pure functions of (seed, purpose, user, round, index).

There is no generator to seed, advance, save or share. A user's third round always has the same numbers,
whatever was drawn before, and whichever other users are drawn for in the same call.
"""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache

import torch
from torch import Tensor


def _signed(value: int) -> int:
    """A 64-bit pattern as the int64 that holds it."""
    return (value + 2**63) % 2**64 - 2**63


# Increment and multipliers of splitmix64 (Steele, Lea, Flood 2014).
_GOLDEN = _signed(0x9E3779B97F4A7C15)
_MIX1 = _signed(0xBF58476D1CE4E5B9)
_MIX2 = _signed(0x94D049BB133111EB)


def _shift(x: Tensor, bits: int) -> Tensor:
    """Logical right shift of int64 (torch's own shift copies the sign bit)."""
    mask: int = 2 ** (64 - bits) - 1
    return (x >> bits).bitwise_and_(mask)


def _mix_(x: Tensor) -> Tensor:
    """The finaliser of splitmix64, in place: every input bit reaches every output bit."""
    x.bitwise_xor_(_shift(x, 30)).mul_(_MIX1)
    x.bitwise_xor_(_shift(x, 27)).mul_(_MIX2)
    return x.bitwise_xor_(_shift(x, 31))


@lru_cache(maxsize=1024)
def _key(seed: int, purpose: str) -> int:
    digest = hashlib.blake2b(f"{seed}/{purpose}".encode(), digest_size=8).digest()
    return _signed(int.from_bytes(digest, "little"))


class Stream:
    """One purpose's random numbers, for many users at once.

    `users` [B] and `rounds` [B] (or a plain int) name the counters; every method returns [B, count]
    values, row b depending on nothing but (seed, purpose, users[b], rounds[b]).

    Args:
        seed: the run's seed, any integer.
        purpose: what the numbers are for; streams of different purposes are unrelated.
    """

    def __init__(self, seed: int, purpose: str) -> None:
        # A stream's numbers depend on this alone; kernels draw the same ones from it.
        self.key = _key(seed, purpose)

    def bits(self, users: Tensor, rounds: Tensor | int, count: int) -> Tensor:
        """[B, count] int64, all 64 bits random."""
        rounds = torch.as_tensor(rounds, device=users.device)
        state = _mix_(_mix_(users * _GOLDEN + self.key) + rounds * _GOLDEN)  # [B]
        index = torch.arange(1, count + 1, device=users.device)
        return _mix_(state[:, None] + index * _GOLDEN)

    def uniform(self, users: Tensor, rounds: Tensor | int, count: int) -> Tensor:
        """[B, count] float64, uniform on [0, 1)."""
        return _shift(self.bits(users, rounds, count), 11).double().mul_(2.0**-53)

    def normal(self, users: Tensor, rounds: Tensor | int, count: int) -> Tensor:
        """[B, count] float64, standard normal (Box-Muller)."""
        radius, angle = self.uniform(users, rounds, 2 * count).chunk(2, dim=1)
        return (-2 * torch.log1p(-radius)).sqrt() * torch.cos(2 * math.pi * angle)

    def integers(self, users: Tensor, rounds: Tensor | int, count: int, high: int) -> Tensor:
        """[B, count] int64, uniform on 0 .. high - 1."""
        return _shift(self.bits(users, rounds, count), 11).double().mul_(high * 2.0**-53).long()

    def subsets(self, users: Tensor, rounds: Tensor | int, count: int, population: int) -> Tensor:
        """[B, count] int64: `count` distinct members of 0 .. population - 1, in random order.

        A row holds the first distinct values of its draws with replacement, which makes all ordered
        subsets equally likely. Time and memory do not grow with the population.
        """
        if not 1 <= count <= population:
            raise ValueError(f"cannot draw {count} distinct members out of {population}")
        if 2 * count > population:  # too many draws would be repeats: shuffle everything instead
            return self.bits(users, rounds, population).argsort(dim=1, stable=True)[:, :count]
        # Few rows of few out of many repeat themselves, and the others need no second look.
        chosen = self.integers(users, rounds, count, population)
        values = _sort_rows(chosen.to(torch.int32 if population < 2**31 else torch.int64, copy=True))
        repeating = (values[:, 1:] == values[:, :-1]).any(1).nonzero().squeeze(1)
        if len(repeating):
            expected = population * -math.log1p(-count / population)
            size = math.ceil(expected + 6 * math.sqrt(expected - count)) + 4
            rounds = torch.as_tensor(rounds, device=users.device).expand(len(users))
            chosen[repeating] = self._distinct(users[repeating], rounds[repeating], count, population, size)
        return chosen

    def subsets_of(self, users: Tensor, rounds: Tensor | int, count: int, populations: Tensor) -> Tensor:
        """[B, count] int64: `count` distinct members of 0 .. populations[b] - 1, in no particular order.

        Floyd's algorithm (Bentley, Floyd 1987): all subsets are equally likely, and time and memory do not
        grow with the populations, of which every row has its own; each must be at least `count`.
        """
        draws = self.uniform(users, rounds, count).T.contiguous()  # [count, B]: a step's are neighbours
        chosen = torch.empty_like(draws, dtype=torch.int64)
        for step in range(count):
            last = populations - count + step  # [B] the largest member that this step may choose
            drawn = (draws[step] * (last + 1)).long()
            taken = (chosen[:step] == drawn).any(0)
            chosen[step] = torch.where(taken, last, drawn)
        return chosen.T

    def _distinct(self, users: Tensor, rounds: Tensor, count: int, population: int, size: int) -> Tensor:
        """The first `count` distinct values among `size` draws per row, or among more if need be."""
        draws = self.integers(users, rounds, size, population)  # [B, size]
        # Equal draws become neighbours when sorted, the earliest first: value and position in one number.
        bits = size.bit_length()
        ordered = _sort_rows((draws << bits) + torch.arange(size, device=draws.device))
        value, position = ordered >> bits, ordered & ((1 << bits) - 1)
        fresh = torch.ones_like(value, dtype=torch.bool)
        fresh[:, 1:] = value[:, 1:] != value[:, :-1]
        fresh = torch.empty_like(fresh).scatter_(1, position, fresh)  # back in order of drawing
        rank = fresh.cumsum(1)
        slot = torch.where(fresh, rank - 1, count).clamp_max_(count)  # column `count` is thrown away
        chosen = draws.new_empty(len(draws), count + 1).scatter_(1, slot, draws)[:, :count]
        short = (rank[:, -1] < count).nonzero().squeeze(1)
        if len(short):
            chosen[short] = self._distinct(users[short], rounds[short], count, population, 2 * size)
        return chosen


def _sort_rows(keys: Tensor) -> Tensor:
    """Every row in ascending order, in place where that is possible."""
    if keys.device.type != "cpu":
        return keys.sort(1).values
    keys.numpy().sort(axis=1)  # several times as fast as torch's
    return keys
