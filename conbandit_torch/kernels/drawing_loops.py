"""Random numbers as compiled loops: those of `conbandit_torch.core.randomness`."""
# mypy: ignore-errors
# ruff: noqa: E501

from __future__ import annotations

import math

import numpy as np
from numba import prange

from conbandit_torch.kernels.compiling import kernel, part

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # of splitmix64, as in `conbandit_torch.core.randomness`
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)


@part
def _mix(x):
    x ^= x >> np.uint64(30)
    x *= _MIX1
    x ^= x >> np.uint64(27)
    x *= _MIX2
    return x ^ (x >> np.uint64(31))


@part
def _start(key, user, number):
    return _mix(_mix(np.uint64(user) * _GOLDEN + np.uint64(key)) + np.uint64(number) * _GOLDEN)


@part
def _logarithms(x, bits):
    """`x = log x` of numbers in (0, 1], whose memory is `bits`.

    With x = 2^e m and s = (m - 1) / (m + 1): log x = e log 2 + 2 (s + s^3 / 3 + s^5 / 5 + ...).
    """
    for j in range(len(x)):
        exponent = np.float64(np.int64(bits[j] >> np.uint64(52)) - 1022)
        bits[j] = (bits[j] & np.uint64(0x000FFFFFFFFFFFFF)) | np.uint64(0x3FE0000000000000)  # m in [1/2, 1)
        low = x[j] < 0.7071067811865476
        m = 2 * x[j] if low else x[j]  # between the roots of 1/2 and of 2
        exponent = exponent - 1 if low else exponent
        s = (m - 1) / (m + 1)
        z = s * s
        total = z * (1 / 23) + 1 / 21
        total = ((total * z + 1 / 19) * z + 1 / 17) * z + 1 / 15
        total = ((total * z + 1 / 13) * z + 1 / 11) * z + 1 / 9
        total = ((total * z + 1 / 7) * z + 1 / 5) * z + 1 / 3
        x[j] = exponent * 0.6931471805599453 + 2 * (s + s * z * total)


@part
def _cosines(turns):
    """`turns = cos(2 pi turns)` of numbers in [0, 1): series of sine and cosine around the nearest quarter."""
    for j in range(len(turns)):
        quarter = np.floor(4 * turns[j] + 0.5)
        y = (turns[j] - 0.25 * quarter) * 6.283185307179586
        z = y * y
        cosine = (z / 240 - 1) * z / 182 + 1  # 1 - z / (1 2) (1 - z / (3 4) (1 - ...))
        cosine = ((1 - cosine * z / 132) * z / 90 - 1) * z / 56 + 1
        cosine = ((1 - cosine * z / 30) * z / 12 - 1) * z / 2 + 1
        sine = (z / 272 - 1) * z / 210 + 1
        sine = ((1 - sine * z / 156) * z / 110 - 1) * z / 72 + 1
        sine = (((1 - sine * z / 42) * z / 20 - 1) * z / 6 + 1) * y
        value = sine if quarter == 1 or quarter == 3 else cosine
        turns[j] = -value if quarter == 1 or quarter == 2 else value


@kernel
def normal(key, users, rounds, out):
    """`Stream.normal`, but for the last digits: its uniform numbers, and Box-Muller by series, in float64."""
    count = out.shape[1]
    for row in prange(len(users)):
        state = _start(key, users[row], rounds[row])
        radius, turns = np.empty(count), np.empty(count)
        for j in range(count):
            bits = _mix(state + np.uint64(j + 1) * _GOLDEN) >> np.uint64(11)
            radius[j] = 1.0 - np.float64(bits) * 2.0**-53
            bits = _mix(state + np.uint64(count + j + 1) * _GOLDEN) >> np.uint64(11)
            turns[j] = np.float64(bits) * 2.0**-53
        _logarithms(radius, radius.view(np.uint64))
        _cosines(turns)
        for j in range(count):
            out[row, j] = math.sqrt(-2 * radius[j]) * turns[j]


@kernel
def subsets(key, users, rounds, population, out):
    """`Stream.subsets`, number for number: the first distinct values of draws with replacement."""
    scale = population * 2.0**-53
    count = out.shape[1]
    for row in prange(len(users)):
        state = _start(key, users[row], rounds[row])
        found, index = 0, np.uint64(0)
        while found < count:
            index += np.uint64(1)
            bits = _mix(state + index * _GOLDEN) >> np.uint64(11)
            drawn = np.int64(np.float64(bits) * scale)
            taken = False
            for j in range(found):
                taken |= out[row, j] == drawn
            if not taken:
                out[row, found] = drawn
                found += 1


@kernel
def subsets_of(key, users, rounds, populations, out):
    """`Stream.subsets_of`, number for number: Floyd's algorithm."""
    count = out.shape[1]
    for row in prange(len(users)):
        state = _start(key, users[row], rounds[row])
        for step in range(count):
            last = populations[row] - count + step
            bits = _mix(state + np.uint64(step + 1) * _GOLDEN) >> np.uint64(11)
            drawn = np.int64(np.float64(bits) * 2.0**-53 * np.float64(last + 1))
            taken = False
            for j in range(step):
                taken |= out[row, j] == drawn
            out[row, step] = last if taken else drawn
