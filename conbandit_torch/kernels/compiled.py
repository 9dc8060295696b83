"""The kernels as compiled loops. Names, arguments and results are those of `reference`."""

from __future__ import annotations

import logging
import math
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from conbandit_torch.core.blocks import Index
from conbandit_torch.core.randomness import Stream
from conbandit_torch.kernels import candidate_loops, drawing_loops, hidden_loops, loops, reference
from conbandit_torch.kernels.calling import array, kept, models, nothing, run
from conbandit_torch.kernels.kept import Kept
from conbandit_torch.kernels.records import Chain, Regressions

_log = logging.getLogger(__name__)
KEPT = [
    Kept(Path(str(file.__file__)), kernel)
    for file, kernel in (
        (loops, loops.choose),
        (candidate_loops, candidate_loops.dots),
        (drawing_loops, drawing_loops.subsets),
        (hidden_loops, hidden_loops.hidden_widths),
    )
]


def rank_one(state: Regressions, who: Index, x: Tensor, y: Tensor, weight: float) -> Tensor | None:
    """One observation each for distinct models; gives the rows that were left undone."""
    if not x.numel():
        return reference.rank_one(state, who, x, y, weight)
    undone = np.zeros(x.shape[0], dtype=np.bool_)
    number = run(
        loops.rank_one,
        *map(kept, state[:7]),
        nothing(x.dtype)[2] if state.root is None else kept(state.root),
        *models(who),
        array(x),
        array(y),
        float(weight),
        reference.doubtful_gain(x.dtype),
        undone,
    )
    return torch.from_numpy(undone.nonzero()[0]) if number else None


def products(
    matrices: Tensor, who: Index, vectors: Tensor, *, scale: float = 1.0, plus: Tensor | None = None
) -> Tensor:
    """[B, D] `plus + scale matrix vector` for every row."""
    if not vectors.numel():
        return reference.products(matrices, who, vectors, scale=scale, plus=plus)
    added = nothing(vectors.dtype)[1] if plus is None else kept(plus)
    arrays = kept(matrices), *models(who), array(vectors)
    out = np.empty_like(arrays[-1])
    run(loops.products, *arrays, float(scale), added, out)
    return torch.from_numpy(out)


def prunes(pool: int, levels: int) -> bool:
    """Whether `choose` is faster than all scores of so many candidates."""
    return levels <= 2 or reference.prunes(pool, levels)


def choose(
    table: Tensor,
    arms: Tensor,
    theta: Tensor,
    extra: Tensor | None,
    chain: Chain,
    lengths: Tensor | None = None,
) -> Tensor:
    """[B] the first position of every row's highest score; -1 if it is not finite."""
    levels, number = len(chain.inverses), arms.shape[0]
    if not number or not table.shape[1] or levels > 2:
        return reference.choose(table, arms, theta, extra, chain, lengths)
    none, flat, cube = nothing(table.dtype)
    position = np.empty(number, np.int64)
    basis = chain.bases[0] if levels == 2 and chain.bases else None
    run(
        loops.choose,
        kept(table),
        none if lengths is None else kept(lengths),
        array(arms),
        array(theta),
        flat if extra is None else array(extra),
        *models(chain.who),
        kept(chain.inverses[0]) if levels > 0 else cube,
        kept(chain.inverses[1]) if levels > 1 else cube,
        flat if basis is None else array(basis),
        kept(chain.tops[0]) if levels > 0 else none,
        kept(chain.tops[1]) if levels > 1 else none,
        _factors(chain.factors, table.dtype),
        levels,
        position,
    )
    return torch.from_numpy(position)


def dots(table: Tensor, arms: Tensor, vectors: Tensor, who: Index) -> Tensor:
    """[B, A] `x_a^T v` of candidates."""
    if not arms.numel() or not table.shape[1]:
        return reference.dots(table, arms, vectors, who)
    rows, out = kept(table), np.empty(arms.shape, kept(table).dtype)
    run(candidate_loops.dots, rows, array(arms), kept(vectors), *models(who), out)
    return torch.from_numpy(out)


def picked(table: Tensor, arms: Tensor, positions: Tensor) -> Tensor:
    """[B, D] features of the candidates at the positions."""
    rows = kept(table)
    out = np.empty((arms.shape[0], rows.shape[1]), rows.dtype)
    if not candidate_loops.picked(rows, array(arms), array(positions), out):
        return reference.picked(table, arms, positions)  # an error that says what is wrong
    return torch.from_numpy(out)


def pulled(
    table: Tensor, arms: Tensor, theta: Tensor, who: Index, shown: Tensor, *, clip: bool
) -> tuple[Tensor, Tensor]:
    """[B] each: the true mean of the arm shown, and its regret."""
    arrays = kept(table), array(arms), kept(theta), *models(who), array(shown)
    mean, regret = np.empty(arms.shape[0], arrays[0].dtype), np.empty(arms.shape[0], arrays[0].dtype)
    if arms.shape[0] and run(candidate_loops.pulled, *arrays, clip, mean, regret):
        return reference.pulled(table, arms, theta, who, shown, clip=clip)  # an error, likewise
    return torch.from_numpy(mean), torch.from_numpy(regret)


def normal(stream: Stream, users: Tensor, rounds: Tensor, count: int, like: Tensor) -> Tensor:
    """[B, count] standard normal numbers of the type of `like`; the last digits are not torch's."""
    out = like.new_empty(users.shape[0], count)
    run(drawing_loops.normal, stream.key, kept(users), array(rounds), out.numpy())
    return out


def draws_subsets(count: int, population: int) -> bool:
    """Whether `subsets` is so fast that there is no gain in drawing for several rounds at once."""
    return 2 * count <= population and count <= 256  # else a shuffle, or sorting, is the better way


def subsets(stream: Stream, users: Tensor, rounds: Tensor, count: int, population: int) -> Tensor:
    """[B, count] distinct members of 0 .. population - 1."""
    if count < 1 or not draws_subsets(count, population):
        return reference.subsets(stream, users, rounds, count, population)
    out = np.empty((users.shape[0], count), np.int64)
    run(drawing_loops.subsets, stream.key, kept(users), array(rounds), population, out)
    return torch.from_numpy(out)


def subsets_of(stream: Stream, users: Tensor, rounds: Tensor, count: int, populations: Tensor) -> Tensor:
    """[B, count] distinct members of 0 .. populations[b] - 1."""
    out = torch.empty(len(users), count, dtype=torch.int64)
    if out.numel():
        arrays = array(users), array(rounds), array(populations)
        run(drawing_loops.subsets_of, stream.key, *arrays, out.numpy())
    return out


def hidden_widths(inverse: Tensor, arms: Tensor, directions: Tensor, factor: float) -> Tensor:
    """[B, A] `factor |theta^v|_{C_a^-1}` of candidates."""
    if not directions.shape[1]:
        return inverse.new_zeros(arms.shape)
    out = np.empty(arms.shape, kept(inverse).dtype)
    run(hidden_loops.hidden_widths, kept(inverse), array(arms), array(directions), float(factor), out)
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
    arrays = *map(kept, state[:6]), kept(table)
    given = table.shape[1] - size, *map(array, (arms, directions, residuals)), size * math.log(ridge)
    if spread is None:
        return math.sqrt(run(hidden_loops.hidden_step, *arrays, *given))  # NaN stays NaN
    return math.sqrt(run(hidden_loops.hidden_spread, *arrays, *given, *map(array, spread)))


def tally(sums: Tensor, regret: Tensor, reward: Tensor) -> None:
    """Add a round's regrets [B] and rewards [n] to the first five sums."""
    candidate_loops.tally(kept(sums), array(regret), array(reward))


def warm(dtype: torch.dtype) -> None:
    """Compile every kernel for the type, unless this machine has done so before."""
    if all(kept.is_complete(dtype) for kept in KEPT):
        return
    _log.warning("compiling kernels for this machine, once: about 20 seconds")
    with ExitStack() as all_kept:
        for kept in KEPT:
            all_kept.enter_context(kept.compiling(dtype))
        _compile(dtype)


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
    products(state.inverse, ids, x)
    choose(state.moment, arms, x, None, Chain(ids, (state.inverse,), (state.top,), (1.0,)))
    dots(state.moment, arms, x, slice(0, 2))
    picked(state.moment, arms, ids)
    pulled(state.moment, arms, state.moment, ids, ids, clip=False)
    stream = Stream(0, "compile")
    normal(stream, ids, ids, 1, x)
    subsets(stream, ids, ids, 1, 2)
    subsets_of(stream, ids, ids, 1, ids + 1)
    hidden_widths(state.inverse, arms, x, 1.0)
    hidden_step(state, state.moment, ids, x, y, 1.0)
    hidden_step(state, state.moment, ids, x, y, 1.0, (ids, y, ids))
    tally(torch.zeros(5, dtype=torch.float64), y, y)


def _factors(factors: tuple[Tensor | float, ...], dtype: torch.dtype) -> np.ndarray:
    """[levels, B], or [levels, 1] where all rows have the same."""
    own = [len(factor) for factor in factors if isinstance(factor, Tensor)]
    if not own:
        return _same_factors(factors, dtype)
    every = [torch.as_tensor(factor, dtype=dtype).expand(max(own)) for factor in factors]
    return array(torch.stack(every))


@lru_cache(maxsize=256)
def _same_factors(factors: tuple[float, ...], dtype: torch.dtype) -> np.ndarray:
    return torch.tensor(factors, dtype=dtype).reshape(-1, 1).numpy()
