"""The kernels as compiled loops. Names, arguments and results are those of `reference`."""

from __future__ import annotations

import logging
import math
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from conbandit_torch.core.blocks import Index
from conbandit_torch.core.randomness import Stream, box_muller
from conbandit_torch.kernels import loops, reference
from conbandit_torch.kernels.kept import Kept
from conbandit_torch.kernels.records import Chain, Regressions
from conbandit_torch.kernels.threads import kernel_threads

_log = logging.getLogger(__name__)
_NO_IDS = np.zeros(0, dtype=np.int64)
_MOST_THREADS: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
KEPT = Kept(Path(loops.__file__), loops.choose)
_ONE_AT_A_TIME = RLock()  # some of numba's pools of threads end the process if two threads enter them


def rank_one(state: Regressions, who: Index, x: Tensor, y: Tensor, weight: float) -> Tensor | None:
    """One observation each for distinct models; gives the rows that were left undone."""
    if not x.numel():
        return reference.rank_one(state, who, x, y, weight)
    undone = np.zeros(len(x), dtype=np.bool_)
    number = _run(
        loops.rank_one,
        *(part.numpy() for part in state),
        *_models(who),
        _array(x),
        _array(y),
        float(weight),
        reference.doubtful_gain(x.dtype),
        undone,
    )
    return torch.from_numpy(undone.nonzero()[0]) if number else None


def shrink_roots(root: Tensor, who: Index, x: Tensor, weight: float) -> None:
    """Roots of M^-1 after an observation."""
    if x.numel():
        _run(loops.shrink_roots, root.numpy(), *_models(who), _array(x), float(weight))


def products(
    matrices: Tensor, who: Index, vectors: Tensor, *, scale: float = 1.0, plus: Tensor | None = None
) -> Tensor:
    """[B, D] `plus + scale matrix vector` for every row."""
    if not vectors.numel():
        return reference.products(matrices, who, vectors, scale=scale, plus=plus)
    out = torch.empty_like(vectors, memory_format=torch.contiguous_format)
    added = _array(vectors[:0] if plus is None else plus)
    _run(loops.products, matrices.numpy(), *_models(who), _array(vectors), float(scale), added, out.numpy())
    return out


def prunes(pool: int) -> bool:
    """Whether `choose` is faster than all scores of so many candidates."""
    return True


def choose(table: Tensor, arms: Tensor, theta: Tensor, extra: Tensor | None, chain: Chain) -> Tensor:
    """[B] the first position of every row's highest score; -1 if it is not finite."""
    position = torch.empty(len(arms), dtype=torch.int64)
    levels = len(chain.inverses)
    if not len(arms) or not table.shape[1] or levels > 2:
        return reference.choose(table, arms, theta, extra, chain)
    rows, nothing = _array(table), _nothing(table.dtype)
    inverses = [*(inverse.numpy() for inverse in chain.inverses), nothing[2], nothing[2]]
    tops = [*(top.numpy() for top in chain.tops), nothing[0], nothing[0]]
    _run(
        loops.choose,
        rows,
        _array(arms),
        _array(theta),
        nothing[1] if extra is None else _array(extra),
        *_models(chain.who),
        *inverses[:2],
        *tops[:2],
        _factors(chain, rows.dtype, table),
        levels,
        position.numpy(),
    )
    return position


def dots(table: Tensor, arms: Tensor, vectors: Tensor, who: Index) -> Tensor:
    """[B, A] `x_a^T v` of candidates."""
    if not arms.numel() or not table.shape[1]:
        return reference.dots(table, arms, vectors, who)
    out = table.new_empty(arms.shape)
    _run(loops.dots, _array(table), _array(arms), _array(vectors), *_models(who), out.numpy())
    return out


def pulled(
    table: Tensor, arms: Tensor, theta: Tensor, who: Index, shown: Tensor, *, clip: bool
) -> tuple[Tensor, Tensor]:
    """[B] each: the true mean of the arm shown, and its regret."""
    mean, regret = table.new_empty(2, len(arms)).unbind()
    if len(arms):
        arrays = _array(table), _array(arms), _array(theta)
        _run(loops.pulled, *arrays, *_models(who), _array(shown), clip, mean.numpy(), regret.numpy())
    return mean, regret


def normal(stream: Stream, users: Tensor, rounds: Tensor, count: int) -> Tensor:
    """[B, count] float64, standard normal."""
    # Uniform numbers are equal bit for bit, and what torch makes of them is, too.
    out = torch.empty(len(users), 2 * count, dtype=torch.float64)
    _run(loops.uniform, stream.key, _array(users), _array(rounds), out.numpy())
    return box_muller(out)


def draws_subsets(count: int, population: int) -> bool:
    """Whether `subsets` is so fast that there is no gain in drawing for several rounds at once."""
    return 2 * count <= population and count <= 256  # else a shuffle, or sorting, is the better way


def subsets(stream: Stream, users: Tensor, rounds: Tensor, count: int, population: int) -> Tensor:
    """[B, count] distinct members of 0 .. population - 1."""
    if count < 1 or not draws_subsets(count, population):
        return reference.subsets(stream, users, rounds, count, population)
    out = torch.empty(len(users), count, dtype=torch.int64)
    _run(loops.subsets, stream.key, _array(users), _array(rounds), population, out.numpy())
    return out


def subsets_of(stream: Stream, users: Tensor, rounds: Tensor, count: int, populations: Tensor) -> Tensor:
    """[B, count] distinct members of 0 .. populations[b] - 1."""
    out = torch.empty(len(users), count, dtype=torch.int64)
    if out.numel():
        arrays = _array(users), _array(rounds), _array(populations)
        _run(loops.subsets_of, stream.key, *arrays, out.numpy())
    return out


def hidden_widths(inverse: Tensor, arms: Tensor, directions: Tensor, factor: float) -> Tensor:
    """[B, A] `factor |theta^v|_{C_a^-1}` of candidates."""
    out = inverse.new_empty(arms.shape)
    if not directions.shape[1]:
        return out.zero_()
    _run(loops.hidden_widths, inverse.numpy(), _array(arms), _array(directions), float(factor), out.numpy())
    return out


def hidden_step(
    state: Regressions, table: Tensor, arms: Tensor, directions: Tensor, residuals: Tensor, ridge: float
) -> float | None:
    """The v-step of rewards; NaN where a matrix is not positive definite."""
    size = directions.shape[1]
    if not size:
        return None
    square = _run(
        loops.hidden_step,
        *(part.numpy() for part in state[:-1]),
        table.numpy(),
        table.shape[1] - size,
        _array(arms),
        _array(directions),
        _array(residuals),
        size * math.log(ridge),
    )
    return math.sqrt(square)  # NaN stays NaN


def hidden_solve(state: Regressions, table: Tensor, arms: Tensor, ridge: float) -> float | None:
    """v of distinct arms from C and d; NaN where a matrix is not positive definite."""
    size = state.moment.shape[1]
    if not size:
        return None
    squares = torch.empty(len(arms), dtype=torch.float64)
    _run(
        loops.hidden_solve,
        *(part.numpy() for part in state[:5]),
        table.numpy(),
        table.shape[1] - size,
        _array(arms),
        size * math.log(ridge),
        squares.numpy(),
    )
    return math.sqrt(float(squares.sum()))  # NaN stays NaN


def tally(sums: Tensor, regret: Tensor, reward: Tensor) -> None:
    """Add a round's regrets [B] and rewards [B] to the sums [5]."""
    _run(loops.tally, sums.numpy(), _array(regret), _array(reward))


def warm(dtype: torch.dtype) -> None:
    """Compile every kernel for the type, unless this machine has done so before."""
    if not KEPT.is_complete(dtype):
        _log.warning("compiling kernels for this machine, once: about 20 seconds")
        with KEPT.compiling(dtype):
            _compile(dtype)


def threads_run_in_openmp() -> bool:
    """Whether a kernel has run, and OpenMP has its threads."""
    try:
        return bool(numba.threading_layer() == "omp")  # type: ignore[attr-defined]
    except ValueError:  # none has run
        return False


def _compile(dtype: torch.dtype) -> None:
    """Call every kernel once, on next to nothing, so that it is compiled and kept."""
    ids, dim, users = torch.arange(2), 2, 3
    matrices, vectors = (
        torch.eye(dim, dtype=dtype).repeat(2, users, 1, 1),
        torch.zeros(2, users, dim, dtype=dtype),
    )
    numbers = torch.ones(2, users, dtype=dtype)
    counts = torch.zeros(users, dtype=torch.int64)
    state = Regressions(matrices[0], matrices[1], vectors[0], vectors[1], numbers[0], counts, numbers[1])
    x, y = torch.ones(2, dim, dtype=dtype), torch.ones(2, dtype=dtype)
    arms = torch.tensor([[0, 1], [1, 2]])
    rank_one(state, ids, x, y, 1.0)
    shrink_roots(state.inverse, ids, x, 1.0)
    products(state.inverse, ids, x)
    choose(state.moment, arms, x, None, Chain(ids, (state.inverse,), (state.top,), (1.0,)))
    dots(state.moment, arms, x, slice(0, 2))
    pulled(state.moment, arms, state.moment, ids, ids, clip=False)
    stream = Stream(0, "compile")
    normal(stream, ids, ids, 1)
    subsets(stream, ids, ids, 1, 2)
    subsets_of(stream, ids, ids, 1, ids + 1)
    hidden_widths(state.inverse, arms, x, 1.0)
    hidden_step(state, state.moment, ids, x[:, :1].repeat(1, dim), y, 1.0)
    hidden_solve(state, state.moment, ids, 1.0)
    tally(torch.zeros(5, dtype=torch.float64), y, y)


def _run(kernel: Any, *arguments: Any) -> Any:
    with _ONE_AT_A_TIME:
        _launch_threads()
        threads = min(kernel_threads(), _MOST_THREADS)
        if threads != numba.get_num_threads():
            numba.set_num_threads(threads)
        return kernel(*arguments)


@cache
def _launch_threads() -> None:
    """Start numba's threads, and leave torch its number: OpenMP, which they share, would give it numba's."""
    threads = torch.get_num_threads()
    numba.get_num_threads()  # starts them
    torch.set_num_threads(threads)


def _array(tensor: Tensor) -> np.ndarray:
    """The tensor's own memory, if it is contiguous: another layout would be another kernel to compile."""
    return tensor.contiguous().numpy()


@cache
def _nothing(dtype: torch.dtype) -> list[np.ndarray]:
    """Arrays without rows, of one, two and three dimensions, for what a chain does not have."""
    return [torch.empty(0, *shape, dtype=dtype).numpy() for shape in ((), (1,), (1, 1))]


def _factors(chain: Chain, dtype: np.dtype, like: Tensor) -> np.ndarray:
    """[levels, B], or [levels, 1] where all rows have the same."""
    if not any(isinstance(factor, Tensor) for factor in chain.factors):
        return np.array([chain.factors], dtype=dtype).T
    rows = max(len(factor) for factor in chain.factors if isinstance(factor, Tensor))
    every = [torch.as_tensor(factor, dtype=like.dtype).expand(rows) for factor in chain.factors]
    return _array(torch.stack(every))


def _models(who: Index) -> tuple[np.ndarray, int]:
    """Ids, or where a run of them begins."""
    if isinstance(who, slice):
        return _NO_IDS, who.start or 0
    return _array(who), -1
