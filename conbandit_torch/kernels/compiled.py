"""The kernels as compiled loops. Names, arguments and results are those of `reference`."""

from __future__ import annotations

import logging
import math
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from threading import RLock, local
from time import perf_counter
from typing import Any
from weakref import ReferenceType, ref

import numba
import numpy as np
import torch
from torch import Tensor

from conbandit_torch.core.blocks import Index
from conbandit_torch.core.randomness import Stream
from conbandit_torch.kernels import drawing_loops, hidden_loops, loops, reference
from conbandit_torch.kernels.kept import Kept
from conbandit_torch.kernels.records import Chain, Regressions
from conbandit_torch.kernels.threads import Pace, kernel_threads

_log = logging.getLogger(__name__)
_pace = Pace()
_NO_IDS = np.zeros(0, dtype=np.int64)
_MOST_THREADS: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
_known: dict[int, tuple[ReferenceType[Tensor], int, np.ndarray]] = {}  # by the tensor's id
_here = local()  # how many threads numba has been told to use, which it remembers per thread
KEPT = [
    Kept(Path(str(file.__file__)), kernel)
    for file, kernel in (
        (loops, loops.choose),
        (drawing_loops, drawing_loops.subsets),
        (hidden_loops, hidden_loops.hidden_widths),
    )
]
_ONE_AT_A_TIME = RLock()  # some of numba's pools of threads end the process if two threads enter them


def rank_one(state: Regressions, who: Index, x: Tensor, y: Tensor, weight: float) -> Tensor | None:
    """One observation each for distinct models; gives the rows that were left undone."""
    if not x.numel():
        return reference.rank_one(state, who, x, y, weight)
    undone = np.zeros(x.shape[0], dtype=np.bool_)
    number = _run(
        loops.rank_one,
        *map(_kept, state),
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
        _run(loops.shrink_roots, _kept(root), *_models(who), _array(x), float(weight))


def products(
    matrices: Tensor, who: Index, vectors: Tensor, *, scale: float = 1.0, plus: Tensor | None = None
) -> Tensor:
    """[B, D] `plus + scale matrix vector` for every row."""
    if not vectors.numel():
        return reference.products(matrices, who, vectors, scale=scale, plus=plus)
    added = _nothing(vectors.dtype)[1] if plus is None else _kept(plus)
    arrays = _kept(matrices), *_models(who), _array(vectors)
    out = np.empty_like(arrays[-1])
    _run(loops.products, *arrays, float(scale), added, out)
    return torch.from_numpy(out)


def prunes(pool: int) -> bool:
    """Whether `choose` is faster than all scores of so many candidates."""
    return True


def choose(table: Tensor, arms: Tensor, theta: Tensor, extra: Tensor | None, chain: Chain) -> Tensor:
    """[B] the first position of every row's highest score; -1 if it is not finite."""
    levels, number = len(chain.inverses), arms.shape[0]
    if not number or not table.shape[1] or levels > 2:
        return reference.choose(table, arms, theta, extra, chain)
    rows, nothing, position = _kept(table), _nothing(table.dtype), np.empty(number, np.int64)
    inverses = [*map(_kept, chain.inverses), nothing[2], nothing[2]]
    tops = [*map(_kept, chain.tops), nothing[0], nothing[0]]
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
        position,
    )
    return torch.from_numpy(position)


def dots(table: Tensor, arms: Tensor, vectors: Tensor, who: Index) -> Tensor:
    """[B, A] `x_a^T v` of candidates."""
    if not arms.numel() or not table.shape[1]:
        return reference.dots(table, arms, vectors, who)
    rows, out = _kept(table), np.empty(arms.shape, _kept(table).dtype)
    _run(loops.dots, rows, _array(arms), _kept(vectors), *_models(who), out)
    return torch.from_numpy(out)


def picked(table: Tensor, arms: Tensor, positions: Tensor) -> Tensor:
    """[B, D] features of the candidates at the positions."""
    rows = _kept(table)
    out = np.empty((arms.shape[0], rows.shape[1]), rows.dtype)
    if not loops.picked(rows, _array(arms), _array(positions), out):
        return reference.picked(table, arms, positions)  # an error that says what is wrong
    return torch.from_numpy(out)


def pulled(
    table: Tensor, arms: Tensor, theta: Tensor, who: Index, shown: Tensor, *, clip: bool
) -> tuple[Tensor, Tensor]:
    """[B] each: the true mean of the arm shown, and its regret."""
    arrays = _kept(table), _array(arms), _kept(theta), *_models(who), _array(shown)
    mean, regret = np.empty((2, arms.shape[0]), arrays[0].dtype)
    if arms.shape[0] and _run(loops.pulled, *arrays, clip, mean, regret):
        return reference.pulled(table, arms, theta, who, shown, clip=clip)  # an error, likewise
    return torch.from_numpy(mean), torch.from_numpy(regret)


def normal(stream: Stream, users: Tensor, rounds: Tensor, count: int) -> Tensor:
    """[B, count] float64, standard normal; the last digits are not torch's."""
    out = np.empty((users.shape[0], count))
    _run(drawing_loops.normal, stream.key, _kept(users), _array(rounds), out)
    return torch.from_numpy(out)


def draws_subsets(count: int, population: int) -> bool:
    """Whether `subsets` is so fast that there is no gain in drawing for several rounds at once."""
    return 2 * count <= population and count <= 256  # else a shuffle, or sorting, is the better way


def subsets(stream: Stream, users: Tensor, rounds: Tensor, count: int, population: int) -> Tensor:
    """[B, count] distinct members of 0 .. population - 1."""
    if count < 1 or not draws_subsets(count, population):
        return reference.subsets(stream, users, rounds, count, population)
    out = np.empty((users.shape[0], count), np.int64)
    _run(drawing_loops.subsets, stream.key, _kept(users), _array(rounds), population, out)
    return torch.from_numpy(out)


def subsets_of(stream: Stream, users: Tensor, rounds: Tensor, count: int, populations: Tensor) -> Tensor:
    """[B, count] distinct members of 0 .. populations[b] - 1."""
    out = torch.empty(len(users), count, dtype=torch.int64)
    if out.numel():
        arrays = _array(users), _array(rounds), _array(populations)
        _run(drawing_loops.subsets_of, stream.key, *arrays, out.numpy())
    return out


def hidden_widths(inverse: Tensor, arms: Tensor, directions: Tensor, factor: float) -> Tensor:
    """[B, A] `factor |theta^v|_{C_a^-1}` of candidates."""
    if not directions.shape[1]:
        return inverse.new_zeros(arms.shape)
    out = np.empty(arms.shape, _kept(inverse).dtype)
    _run(hidden_loops.hidden_widths, _kept(inverse), _array(arms), _array(directions), float(factor), out)
    return torch.from_numpy(out)


def hidden_step(
    state: Regressions,
    table: Tensor,
    arms: Tensor,
    directions: Tensor,
    residuals: Tensor,
    ridge: float,
    spread: tuple[Tensor, Tensor, Tensor] | None = None,
) -> float | None:
    """The v-step; NaN where a matrix is not positive definite."""
    size = directions.shape[1]
    if not size or not arms.shape[0]:
        return None
    arrays = *map(_kept, state[:-1]), _kept(table)
    given = table.shape[1] - size, *map(_array, (arms, directions, residuals)), size * math.log(ridge)
    if spread is None:
        return math.sqrt(_run(hidden_loops.hidden_step, *arrays, *given))  # NaN stays NaN
    return math.sqrt(_run(hidden_loops.hidden_spread, *arrays, *given, *map(_array, spread)))


def tally(sums: Tensor, regret: Tensor, reward: Tensor) -> None:
    """Add a round's regrets [B] and rewards [n] to the first five sums."""
    loops.tally(_kept(sums), _array(regret), _array(reward))


def warm(dtype: torch.dtype) -> None:
    """Compile every kernel for the type, unless this machine has done so before."""
    if all(kept.is_complete(dtype) for kept in KEPT):
        return
    _log.warning("compiling kernels for this machine, once: about 20 seconds")
    with ExitStack() as all_kept:
        for kept in KEPT:
            all_kept.enter_context(kept.compiling(dtype))
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
    picked(state.moment, arms, ids)
    pulled(state.moment, arms, state.moment, ids, ids, clip=False)
    stream = Stream(0, "compile")
    normal(stream, ids, ids, 1)
    subsets(stream, ids, ids, 1, 2)
    subsets_of(stream, ids, ids, 1, ids + 1)
    hidden_widths(state.inverse, arms, x, 1.0)
    hidden_step(state, state.moment, ids, x, y, 1.0)
    hidden_step(state, state.moment, ids, x, y, 1.0, (ids, y, ids))
    tally(torch.zeros(5, dtype=torch.float64), y, y)


def _run(kernel: Any, *arguments: Any) -> Any:
    with _ONE_AT_A_TIME:
        most = kernel_threads()
        threads = _pace.pick(most) if most > 1 else most
        if threads != getattr(_here, "threads", 0):  # asking numba would take longer
            _launch_threads()
            numba.set_num_threads(min(threads, _MOST_THREADS))
            _here.threads = threads
        if most == 1:
            return kernel(*arguments)
        start = perf_counter()
        result = kernel(*arguments)
        _pace.took(perf_counter() - start)
        return result


@cache
def _launch_threads() -> None:
    """Start numba's threads, and leave torch its number: OpenMP, which they share, would give it numba's."""
    threads = torch.get_num_threads()
    numba.get_num_threads()  # starts them
    torch.set_num_threads(threads)


def _array(tensor: Tensor) -> np.ndarray:
    """The tensor's own memory, if it is contiguous: another layout would be another kernel to compile."""
    return tensor.numpy() if tensor.is_contiguous() else tensor.contiguous().numpy()


def _kept(tensor: Tensor) -> np.ndarray:
    """The own memory of a tensor that comes again every round, or that is changed: found once, then known."""
    known = _known.get(id(tensor))
    if known is not None and known[0]() is tensor and known[1] == tensor.data_ptr():
        return known[2]
    key, array = id(tensor), tensor.numpy()
    _known[key] = ref(tensor, lambda _: _known.pop(key, None)), tensor.data_ptr(), array
    return array


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
