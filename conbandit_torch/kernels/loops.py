"""The kernels themselves: loops over rows, compiled by numba.

Every row is one sequential loop, so results depend neither on the other rows of a batch nor on the number of
threads. Arrays are contiguous and of one floating-point type, D is at least 1, and nothing is checked here:
`conbandit_torch.kernels.compiled` hands them over. A row that a kernel cannot do (a doubtful gain, a number
that is not finite) is marked and left as it was.

NaN must not be hidden: comparisons are written so that it fails them (`max(0, NaN)` is 0, and sums that may be
reordered make `isfinite` true). Numbers that inner loops use are kept in arrays of the data's type: literals are float64, and would make the
whole loop so.
"""
# mypy: ignore-errors
# ruff: noqa: E501

from __future__ import annotations

import math

import numpy as np
from numba import prange

from conbandit_torch.kernels.compiling import kernel, part, part_without_nan


@part
def _dot(x, y):
    total = x[0] * y[0]
    for j in range(1, len(x)):
        total += x[j] * y[j]
    return total


@part
def _times(matrix, x, out):
    """`out = matrix x` for a symmetric matrix: rows are added up, so that there are no sums across vector lanes.

    Four rows at a time, so that `out` is read and written a quarter as often.
    """
    size, done = len(x), len(x) % 4
    for j in range(size):
        out[j] = x[0] * 0
    for i in range(done):
        for j in range(size):
            out[j] += x[i] * matrix[i, j]
    for i in range(done, size, 4):
        a, b, c, d = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
        p, q, r, s = x[i], x[i + 1], x[i + 2], x[i + 3]
        for j in range(size):
            out[j] += p * a[j] + q * b[j] + r * c[j] + s * d[j]


@part
def _times_transposed(matrix, x, out):
    """`out = matrix^T x`, of any matrix."""
    for j in range(len(out)):
        out[j] = x[0] * matrix[0, j]
    for i in range(1, len(x)):
        for j in range(len(out)):
            out[j] += x[i] * matrix[i, j]


@part_without_nan
def _highest(values):
    """The first position of the largest number: its value first, by vector instructions, then where it is."""
    most = values[0]
    for j in range(1, len(values)):
        most = max(most, values[j])
    at = 0
    while values[at] != most:
        at += 1
    return at


@part
def _root(square):
    """Of a sum of squares, which rounding can leave a hair below 0; NaN stays NaN."""
    return 0.0 if square < 0 else math.sqrt(square)


@part
def _model(ids, first, row):
    """Which model a row has: a run of them begins at `first`, or `ids` names them."""
    return ids[row] if first < 0 else first + np.int64(row)


@part
def _grow(matrix, x, weight):
    """`matrix += weight x x^T`."""
    for i in range(len(x)):
        row, scale = matrix[i], weight * x[i]
        for j in range(len(x)):
            row[j] += scale * x[j]


@part
def _shrink(matrix, v):
    """`matrix -= v v^T`. Gives a bound on its eigenvalues: the largest row sum, or the Frobenius norm if smaller."""
    size, i = len(v), 0
    lengths, squares = np.zeros_like(v), np.zeros_like(v)  # by column: the matrix is symmetric
    while i + 3 < size:  # four rows at a time, as in `_times`; a `range` would hide that i is not negative
        a, b, c, d = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
        p, q, r, s = v[i], v[i + 1], v[i + 2], v[i + 3]
        for j in range(size):
            each = v[j]
            e, f, g, h = a[j] - p * each, b[j] - q * each, c[j] - r * each, d[j] - s * each
            a[j], b[j], c[j], d[j] = e, f, g, h
            lengths[j] += abs(e) + abs(f) + abs(g) + abs(h)
            squares[j] += e * e + f * f + g * g + h * h
        i += 4
    while i < size:
        a, p = matrix[i], v[i]
        for j in range(size):
            e = a[j] - p * v[j]
            a[j] = e
            lengths[j] += abs(e)
            squares[j] += e * e
        i += 1
    longest, square = lengths[0], squares[0]
    for j in range(1, size):
        longest, square = max(longest, lengths[j]), square + squares[j]
    return min(longest, math.sqrt(square))


@part
def _shrink_root(root, x, direction, gain, weight):
    """Potter's step of a root W of M^-1: `W -= c W u u^T` with `u = W^T x`; `W u` is `M^-1 x`, the direction."""
    u, factor = np.empty_like(x), np.empty(1, x.dtype)
    _times(root, x, u)  # the sum of W's rows, each times its x
    factor[0] = weight / (gain + math.sqrt(gain))
    for i in range(len(x)):
        row, step = root[i], factor[0] * direction[i]
        for j in range(len(x)):
            row[j] -= step * u[j]


@part
def _stretch(basis):
    """A bound on the length of `P^T v` for v of length 1: the root of the largest row sum of `P^T P`."""
    most = 0.0
    for i in range(basis.shape[1]):
        total = 0.0
        for j in range(basis.shape[1]):
            product = 0.0
            for k in range(basis.shape[0]):
                product += basis[k, i] * basis[k, j]
            total += abs(product)
        most = max(most, total)
    return math.sqrt(most)


@kernel
def rank_one(
    gram, inverse, moment, solution, log_det, count, top, root, ids, first, x, y, weight, most, undone
):
    """A rank-one step of M, M^-1, b, M^-1 b, log det M, the bound on M^-1's largest eigenvalue, and M^-1's root."""
    number = 0
    for row in prange(len(x)):
        model = _model(ids, first, row)
        own, old, sums, theta = x[row], inverse[model], gram[model], solution[model]
        direction = np.empty_like(own)
        _times(old, own, direction)  # M^-1 x
        gain = 1 + weight * _dot(own, direction)  # det M_new / det M
        if not (gain >= 0.5 and gain < most):
            undone[row] = True
            number += 1
            continue
        if root.shape[0] > 0:
            _shrink_root(root[model], own, direction, gain, weight)
        factors = np.empty(4, own.dtype)
        factors[0] = weight * (y[row] - _dot(own, theta)) / gain
        factors[1] = weight * y[row]
        factors[2] = np.sqrt(weight / gain)
        factors[3] = weight
        surprise, target, scale, each = factors[0], factors[1], factors[2], factors[3]
        for j in range(len(own)):
            theta[j] += surprise * direction[j]
            moment[model, j] += target * own[j]
            direction[j] *= scale
        _grow(sums, own, each)
        top[model] = min(top[model], _shrink(old, direction))  # M^-1 shrinks, so that old bounds hold
        log_det[model] += math.log(gain)
        count[model] += 1
    return number


@kernel
def products(matrices, ids, first, vectors, scale, plus, out):
    """`out = plus + scale matrix vector`, of any matrix; without rows, `plus` is 0."""
    for row in prange(len(vectors)):
        model = _model(ids, first, row)
        matrix = matrices[model]
        for i in range(matrix.shape[0]):
            value = scale * _dot(matrix[i], vectors[row])
            out[row, i] = value + plus[model, i] if plus.shape[0] > 0 else value


@kernel
def choose(
    table,
    lengths,
    arms,
    theta,
    extra,
    ids,
    first,
    outer,
    inner,
    basis,
    outer_top,
    inner_top,
    factors,
    levels,
    position,
):
    """The first position of every row's highest score; -1 where a number is not finite.

    Exact scores are worked out only of candidates that can still win, the highest bound first:
    `width(x) <= slope |x|`. `factors` are [levels, B], or [levels, 1] where all rows have the same; `lengths` are
    |x| of the table's rows, and `basis` is that of the inner level, or both are without rows.
    """
    pool, dim = arms.shape[1], table.shape[1]
    stretch = _stretch(basis) if basis.shape[0] > 0 else 1.0
    slack = 8 * dim * np.finfo(table.dtype).eps  # of rounding, far more than there can be
    for row in prange(len(arms)):
        model = _model(ids, first, row)
        column = np.int64(row) if factors.shape[1] > 1 else 0
        slope = 0.0
        if levels > 0:
            slope = factors[0, column] * math.sqrt(outer_top[model])
        if levels > 1:
            slope += factors[1, column] * outer_top[model] * stretch * math.sqrt(inner_top[model])
        own = theta[row]
        values, bounds = np.empty(pool, table.dtype), np.empty(pool, table.dtype)
        if levels == 0:
            for a in range(pool):
                values[a] = _dot(table[arms[row, a]], own)
                bounds[a] = values[a] * 0
        elif lengths.shape[0] > 0:
            for a in range(pool):
                values[a] = _dot(table[arms[row, a]], own)
                bounds[a] = lengths[arms[row, a]]
        else:
            for a in range(pool):
                x = table[arms[row, a]]
                value = x[0] * own[0]
                length = x[0] * x[0]
                for j in range(1, dim):
                    value += x[j] * own[j]
                    length += x[j] * x[j]
                values[a], bounds[a] = value, np.sqrt(length)
        if extra.shape[0] > 0:
            for a in range(pool):
                values[a] += extra[row, a]
        steep = np.empty(2, table.dtype)
        steep[0], steep[1] = slope * (1 + slack), slack
        finite = 0
        for a in range(pool):
            bounds[a] = values[a] + steep[0] * bounds[a] + abs(values[a]) * steep[1]
            finite += abs(bounds[a]) < np.inf
        best, place = values[0], -1
        solved, again = np.empty_like(own), np.empty(inner.shape[1], own.dtype)
        coarse = np.empty(basis.shape[1], own.dtype)
        for _ in range(pool if finite == pool else 0):
            at = _highest(bounds)
            if place >= 0 and bounds[at] < best:
                break
            bounds[at] = -np.inf
            if levels > 0:
                x = table[arms[row, at]]
                _times(outer[model], x, solved)
                width = factors[0, column] * _root(_dot(x, solved))
                if levels > 1 and basis.shape[0] > 0:
                    _times_transposed(basis, solved, coarse)
                    _times(inner[model], coarse, again)
                    width += factors[1, column] * _root(_dot(coarse, again))
                elif levels > 1:
                    _times(inner[model], solved, again)
                    width += factors[1, column] * _root(_dot(solved, again))
                values[at] += width
            score = values[at]
            if not abs(score) < np.inf:
                place = -1
                break
            if place < 0 or score > best or (score == best and at < place):
                best, place = score, at
        position[row] = place
