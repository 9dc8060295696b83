"""The steps and widths of hidden features as compiled loops."""
# mypy: ignore-errors
# ruff: noqa: E501

from __future__ import annotations

import math

import numpy as np
from numba import prange

from conbandit_torch.kernels.compiling import kernel, part


@kernel
def hidden_widths(inverse, arms, directions, factor, out):
    """`factor |theta^v|_{C_a^-1}` of every candidate."""
    for row in prange(len(arms)):
        own = directions[row]
        for a in range(arms.shape[1]):
            matrix = inverse[arms[row, a]]
            total = 0.0
            for i in range(len(own)):
                product = matrix[i, 0] * own[0]  # of the data's type: a literal would be float64
                for j in range(1, len(own)):
                    product += matrix[i, j] * own[j]
                total += own[i] * product
            out[row, a] = factor * (0.0 if total < 0 else math.sqrt(total))  # NaN stays NaN


@part
def _refresh(gram, moment, inverse, solution, factor, columns):
    """Exact inverse and solution from C and d, in float64. Gives log det C; NaN where C is not positive definite."""
    size = len(moment)
    logs = 0.0
    for i in range(size):  # Cholesky: C = L L^T
        for j in range(i + 1):
            total = np.float64(gram[i, j])
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if i > j:
                factor[i, j] = total / factor[j, j]
                continue
            if not total > 0:
                return np.nan
            factor[i, i] = math.sqrt(total)
            logs += math.log(total)
    for column in range(size):  # rows of `columns` are columns of L^-1
        for i in range(column, size):
            total = 1.0 if i == column else 0.0
            for k in range(column, i):
                total -= factor[i, k] * columns[column, k]
            columns[column, i] = total / factor[i, i]
    for i in range(size):
        value = 0.0
        for j in range(size):
            total = 0.0
            for k in range(max(i, j), size):
                total += columns[i, k] * columns[j, k]
            inverse[i, j] = total
            value += total * np.float64(moment[j])
        solution[i] = value
    return logs


@part
def _distinct(ids):
    """Every id once, in ascending order: neighbours in memory are read one after the other."""
    ordered = np.sort(ids)
    number = 0
    for place in range(len(ordered)):
        if place == 0 or ordered[place] != ordered[place - 1]:
            ordered[number] = ordered[place]
            number += 1
    return ordered[:number]


@kernel
def _renew(gram, inverse, moment, solution, log_det, table, start, arms, prior):
    """v of distinct arms anew. Gives the square of its change; NaN where a matrix is not positive definite any more."""
    size = moment.shape[1]
    squares = np.empty(len(arms))  # summed up in order, so that the sum does not depend on the threads
    for place in prange(len(arms)):
        arm = arms[place]
        work = np.empty((2, size, size))
        logs = _refresh(gram[arm], moment[arm], inverse[arm], solution[arm], work[0], work[1])
        log_det[arm] = logs - prior
        square = 0.0 * logs
        for i in range(size):
            change = solution[arm, i] - table[arm, start + i]
            square += change * change
            table[arm, start + i] = solution[arm, i]
        squares[place] = square
    total = 0.0
    for place in range(len(arms)):
        total += squares[place]
    return total


@part
def hidden_step(
    gram, inverse, moment, solution, log_det, count, table, start, arms, directions, residuals, prior
):
    """The v-step of rewards: all of them from the v that was, then v of every arm anew."""
    size = directions.shape[1]
    for row in range(len(arms)):
        arm, own = arms[row], directions[row]
        predicted = 0.0
        for i in range(size):
            predicted += table[arm, start + i] * own[i]
        target = residuals[row] + predicted
        for i in range(size):
            moment[arm, i] += own[i] * target
            for j in range(size):
                gram[arm, i, j] += own[i] * own[j]
        count[arm] += 1
    return _renew(gram, inverse, moment, solution, log_det, table, start, _distinct(arms), prior)


@part
def hidden_spread(
    gram,
    inverse,
    moment,
    solution,
    log_det,
    count,
    table,
    start,
    arms,
    directions,
    residuals,
    prior,
    owner,
    weight,
    group,
):
    """The v-step of observations that spread over arms: `owner` and `weight` [E] are of things, `group` [Q] says of which.

    Observations of the same thing are summed before they are spread over its arms.
    """
    size, things = directions.shape[1], np.max(group) + 1
    outer, pull, times, sums = (
        np.zeros((things, size, size)),
        np.zeros((things, size)),
        np.zeros(things, np.int64),
        np.zeros(things),
    )
    for row in range(len(group)):
        thing, own = group[row], directions[row]
        times[thing] += 1
        for i in range(size):
            pull[thing, i] += own[i] * residuals[row]
            for j in range(size):
                outer[thing, i, j] += own[i] * own[j]
    for e in range(len(arms)):
        sums[owner[e]] += abs(weight[e])
    for e in range(len(arms)):
        arm, thing = arms[e], owner[e]
        scale = sums[thing] * abs(weight[e])
        for i in range(size):
            total = weight[e] * pull[thing, i]
            for j in range(size):
                total += scale * outer[thing, i, j] * table[arm, start + j]
                gram[arm, i, j] += scale * outer[thing, i, j]
            moment[arm, i] += total
        count[arm] += times[thing]
    return _renew(gram, inverse, moment, solution, log_det, table, start, _distinct(arms), prior)
