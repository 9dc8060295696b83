"""What is looked up for candidates, as compiled loops; as in `conbandit_torch.kernels.loops`, every row is one loop."""
# mypy: ignore-errors
# ruff: noqa: E501

from __future__ import annotations

import numpy as np
from numba import prange

from conbandit_torch.kernels.compiling import kernel, part


@part
def _dot(x, y):
    total = x[0] * y[0]
    for j in range(1, len(x)):
        total += x[j] * y[j]
    return total


@part
def _model(ids, first, row):
    """Which model a row has: a run of them begins at `first`, or `ids` names them."""
    return ids[row] if first < 0 else first + np.int64(row)


@kernel
def dots(table, arms, vectors, ids, first, out):
    """`x_a^T v` of every candidate."""
    for row in prange(len(arms)):
        own = vectors[_model(ids, first, row)]
        for a in range(arms.shape[1]):
            out[row, a] = _dot(table[arms[row, a]], own)


@part
def picked(table, arms, positions, out):
    """Features of the candidates at the positions; gives whether all positions are in the pools."""
    for row in range(len(positions)):
        if not 0 <= positions[row] < arms.shape[1]:
            return False
        x = table[arms[row, positions[row]]]
        for j in range(len(x)):
            out[row, j] = x[j]
    return True


@kernel
def pulled(table, arms, theta, ids, first, shown, clip, mean, regret):
    """The true mean of the arm shown, and how far it is below that of the best candidate.

    Gives how many of the arms shown are not in the pools.
    """
    wrong = 0
    for row in prange(len(arms)):
        if not 0 <= shown[row] < arms.shape[1]:
            wrong += 1
            continue
        own = theta[_model(ids, first, row)]
        means = np.empty(arms.shape[1], table.dtype)
        for a in range(arms.shape[1]):
            means[a] = _dot(table[arms[row, a]], own)
            if clip:
                if means[a] < 0:
                    means[a] = 0
                elif means[a] > 1:
                    means[a] = 1
        best = means[0]
        for a in range(arms.shape[1]):
            if not best >= means[a]:  # NaN is the highest, as it is to torch
                best = means[a]
        mean[row] = means[shown[row]]
        regret[row] = best - mean[row]
    return wrong


@part
def tally(sums, regret, reward):
    """Regret twice, its number, reward, its number."""
    lost, earned = 0.0, 0.0
    for row in range(len(regret)):
        lost += np.float64(regret[row])
    for row in range(len(reward)):
        earned += np.float64(reward[row])
    sums[0] += lost
    sums[1] += lost
    sums[2] += len(regret)
    sums[3] += earned
    sums[4] += len(reward)
