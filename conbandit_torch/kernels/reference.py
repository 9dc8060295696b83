"""What every kernel computes, in torch: the definitions, which run on any device."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.linalg import vecdot

from conbandit_torch.core.algebra import dot, largest_eigenvalue, shrink_root_, sqrt_
from conbandit_torch.core.blocks import EVERY_ROW, Index, look_up, rows_of, rows_per_block
from conbandit_torch.core.checks import expect_positions
from conbandit_torch.core.randomness import Stream
from conbandit_torch.kernels.records import Chain, Regressions


def doubtful_gain(dtype: torch.dtype) -> float:
    """The gain from which on a rank-one step loses too many digits.

    It subtracts numbers that agree to a part of 1 / gain.
    """
    return 1e-4 / torch.finfo(dtype).eps


def gains(state: Regressions, who: Index, x: Tensor, weight: float) -> tuple[Tensor, Tensor]:
    """`M^-1 x` [B, D] and `det M_new / det M` [B]."""
    direction = torch.bmm(x.unsqueeze(1), rows_of(state.inverse, who)).squeeze_(1)
    return direction, vecdot(x, direction).mul_(weight).add_(1)


def rank_one(state: Regressions, who: Index, x: Tensor, y: Tensor, weight: float) -> Tensor | None:
    """One observation each for distinct models, by the Sherman-Morrison formula.

        M += weight x x^T,  b += weight y x,  M^-1 -= weight M^-1 x x^T M^-1 / gain,
        gain = 1 + weight x^T M^-1 x = det M_new / det M.

    Args:
        state: of the models.
        who: which models, B of them.
        x: [B, D].
        y: [B].
        weight: of the observations.

    Returns:
        [n] rows that were left undone, because the step would lose too many digits; None: there are none. On
        a GPU looking would wait for the device, so there only the periodic refresh does.
    """
    direction, gain = gains(state, who, x, weight)
    if gain.device.type == "cpu" and gain.numel():
        smallest, largest = gain.aminmax()  # NaN if any is
        most = doubtful_gain(gain.dtype)
        if not (float(smallest) >= 0.5 and float(largest) < most):
            good = (gain >= 0.5) & (gain < most)
            sound = good.nonzero().squeeze(1)
            ids = _ids(who, len(state.counts), sound.device)[sound]
            step(state, ids, x[sound], y[sound], weight, direction[sound], gain[sound])
            return (~good).nonzero().squeeze(1)
    step(state, who, x, y, weight, direction, gain)
    return None


def step(
    state: Regressions, who: Index, x: Tensor, y: Tensor, weight: float, direction: Tensor, gain: Tensor
) -> None:
    """The rank-one step itself, given `gains`."""
    solution = rows_of(state.solution, who)  # a view of the state if `who` is a slice
    surprise = (y - vecdot(x, solution)).div_(gain)  # [B]
    root = direction * gain.rsqrt().mul_(math.sqrt(weight)).unsqueeze_(1)  # [B, D]
    inverse, gram, moment = (rows_of(part, who) for part in (state.inverse, state.gram, state.moment))
    inverse.addcmul_(root.unsqueeze(2), root.unsqueeze(1), value=-1)  # Sherman-Morrison
    solution.addcmul_(direction, surprise.unsqueeze_(1), value=weight)
    gram.addcmul_(x.unsqueeze(2), x.unsqueeze(1), value=weight)
    moment.addcmul_(x, y.unsqueeze(1), value=weight)
    log_det = rows_of(state.log_det, who).add_(gain.log())
    count = rows_of(state.counts, who).add_(1)
    if state.root is not None:
        _shrink_roots(state.root, who, x, weight)
    if not isinstance(who, slice):
        state.inverse[who], state.solution[who], state.gram[who] = inverse, solution, gram
        state.moment[who], state.log_det[who], state.counts[who] = moment, log_det, count


def _shrink_roots(root: Tensor, who: Index, x: Tensor, weight: float) -> None:
    """Roots W [U, D, D] of M^-1 become those of `(M + weight x x^T)^-1`, for x [B, D]."""
    shrunk = shrink_root_(rows_of(root, who), x, weight)
    if not isinstance(who, slice):
        root[who] = shrunk


def products(
    matrices: Tensor, who: Index, vectors: Tensor, *, scale: float = 1.0, plus: Tensor | None = None
) -> Tensor:
    """[B, D] `plus + scale matrix vector` for every row.

    Args:
        matrices: [U, D, D].
        who: which of the matrices, B of them.
        vectors: [B, D].
        scale: of the products.
        plus: [U, D] added to them; None: nothing.
    """
    found = dot(rows_of(matrices, who), vectors)
    found = found if scale == 1 else found * scale
    return found if plus is None else found + rows_of(plus, who)


def prunes(pool: int, levels: int) -> bool:
    """Whether `choose` is faster than all scores of so many candidates; with few, it is not (measured)."""
    return pool >= 200


def choose(
    table: Tensor,
    arms: Tensor,
    theta: Tensor,
    extra: Tensor | None,
    chain: Chain,
    lengths: Tensor | None = None,
) -> Tensor:
    """[B] the first position of every row's highest score `x^T theta + extra + width`; -1: it is not finite.

    Exact scores are worked out only of candidates that can still win: a width is at most `slope |x|`.

    Args:
        table: [N, D] of which the candidates are rows.
        arms: [B, A] which rows.
        theta: [B, D].
        extra: [B, A] added to every score; None: nothing.
        chain: of the widths.
        lengths: [N] `|x|` of the table's rows, if that is known.
    """
    values = dots(table, arms, theta, EVERY_ROW)
    if extra is not None:
        values = values + extra
    slack = 8 * table.shape[1] * torch.finfo(table.dtype).eps  # of rounding, far more than there can be
    longest = (table.norm(dim=1) if lengths is None else lengths)[arms]  # [B, A]
    bounds = values + (1 + slack) * slope(chain, len(arms), table)[:, None] * longest + slack * values.abs()
    bounds, order = bounds.sort(dim=1, descending=True, stable=True)
    scores = torch.full_like(values, -math.inf)
    best = scores.new_full((len(arms),), -math.inf)
    start, number = 0, 4
    rows = torch.arange(len(arms), device=arms.device)  # those that are still open
    while start < arms.shape[1] and len(rows):
        stop = min(start + number, arms.shape[1])
        some = order[rows, start:stop]  # [n, k] positions
        found = values[rows].gather(1, some) + width(chain, rows, look_up(table, arms[rows].gather(1, some)))
        scores[rows[:, None], some] = found
        best[rows] = best[rows].maximum(found.amax(1))
        start, number = stop, 4 * number
        if start < arms.shape[1]:
            rows = rows[~(bounds[rows, start] < best[rows])]  # equals are seen, and so is NaN
    best, position = scores.max(1)
    sound = best.isfinite() & bounds.isfinite().all(1)
    return torch.where(sound, position, -1)


def width(chain: Chain, rows: Tensor, x: Tensor) -> Tensor:
    """[n, k] exact widths of vectors x [n, k, D] of the rows [n]."""
    total, v, who = x.new_zeros(x.shape[:2]), x, _take(chain.who, rows)
    for inverse, factor, basis in zip(chain.inverses, chain.factors, _bases(chain), strict=True):
        v = v if basis is None else v @ basis
        solved = torch.bmm(v, inverse[who])
        own = factor[rows, None] if isinstance(factor, Tensor) else factor
        total += own * sqrt_((v * solved).sum(-1))
        v = solved
    return total


def slope(chain: Chain, number: int, like: Tensor) -> Tensor:
    """[B] a bound on the width of a vector of length 1."""
    total, length = like.new_zeros(number), like.new_ones(number)  # of v_i, at most
    for inverse, top, factor, basis in zip(*chain[1:4], _bases(chain), strict=True):
        if basis is not None:
            length = length * largest_eigenvalue((basis.T @ basis)[None]).sqrt()
        own = largest_eigenvalue(rows_of(inverse, chain.who)).minimum(rows_of(top, chain.who))
        total += factor * length * own.sqrt()
        length = length * own
    return total


def _bases(chain: Chain) -> tuple[Tensor | None, ...]:
    """Of all levels: the first has none."""
    return (None, *chain.bases)[: len(chain.inverses)] if chain.bases else (None,) * len(chain.inverses)


def dots(table: Tensor, arms: Tensor, vectors: Tensor, who: Index) -> Tensor:
    """[B, A] `x_a^T v` of candidates `arms` [B, A], rows of `table` [N, D], with vectors [U, D] of `who`."""
    own = rows_of(vectors, who)
    runs = rows_per_block(arms.shape[1] * table.shape[1])
    parts = [dot(look_up(table, some), v) for some, v in zip(arms.split(runs), own.split(runs), strict=True)]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def picked(table: Tensor, arms: Tensor, positions: Tensor) -> Tensor:
    """[B, D] features of the candidates at `positions` [B], of `arms` [B, A], rows of `table` [N, D]."""
    return table.index_select(0, arms.gather(1, positions[:, None]).squeeze(1))


def pulled(
    table: Tensor, arms: Tensor, theta: Tensor, who: Index, shown: Tensor, *, clip: bool
) -> tuple[Tensor, Tensor]:
    """[B] each: the true mean of the arm shown, and its regret.

    Args:
        table: [N, D] features of all arms.
        arms: [B, A] the candidates.
        theta: [U, D] the users' true preferences.
        who: which users.
        shown: [B] positions of the arms shown.
        clip: whether means are clipped to [0, 1].
    """
    expect_positions(shown, *arms.shape)
    means = dots(table, arms, theta, who)
    if clip:
        means = means.clamp(0, 1)
    mean = means.gather(1, shown[:, None]).squeeze(1)
    return mean, means.amax(1) - mean  # Eq. 1


def normal(stream: Stream, users: Tensor, rounds: Tensor, count: int, like: Tensor) -> Tensor:
    """[B, count] standard normal numbers of the type of `like`: `Stream.normal`."""
    return stream.normal(users, rounds, count).to(like)


def draws_subsets(count: int, population: int) -> bool:
    """Whether `subsets` is so fast that there is no gain in drawing for several rounds at once."""
    return False


def subsets(stream: Stream, users: Tensor, rounds: Tensor, count: int, population: int) -> Tensor:
    """[B, count] distinct members of 0 .. population - 1: `Stream.subsets`."""
    return stream.subsets(users, rounds, count, population).contiguous()


def subsets_of(stream: Stream, users: Tensor, rounds: Tensor, count: int, populations: Tensor) -> Tensor:
    """[B, count] distinct members of 0 .. populations[b] - 1: `Stream.subsets_of`."""
    return stream.subsets_of(users, rounds, count, populations)


def hidden_widths(inverse: Tensor, arms: Tensor, directions: Tensor, factor: float) -> Tensor:
    """[B, A] `factor |theta^v|_{C_a^-1}` of candidates, from C^-1 [N, L, L] and theta^v [B, L]."""
    outer = (directions[:, :, None] * directions[:, None, :]).flatten(1)  # [B, L L]
    return factor * sqrt_(dot(look_up(inverse.flatten(1), arms), outer))


def tally(sums: Tensor, regret: Tensor, reward: Tensor) -> None:
    """Add a round's regrets [B] and rewards [n] to the first five of the sums.

    These are: regret so far; regret, its number, rewards and their number since the last record.
    """
    lost, earned = (values.sum(dtype=torch.float64) for values in (regret, reward))
    numbers = [torch.full_like(lost, values.numel()) for values in (regret, reward)]
    sums[:5].add_(torch.stack((lost, lost, numbers[0], earned, numbers[1])))


def hidden_step(
    state: Regressions,
    table: Tensor,
    arms: Tensor,
    directions: Tensor,
    residuals: Tensor,
    ridge: float,
    spread: tuple[Tensor, Tensor, Tensor] | None = None,
) -> float | None:
    """The v-step of `Hidden`, with weights w of the arms and S = sum |w| of each observation.

        C += S |w| theta^v theta^v^T,  d += theta^v (w rho + S |w| v^T theta^v),  v = C^-1 d.

    All observations act on the v that was.

    Args:
        state: C^-1, C, d and so on, one regression per arm; changed.
        table: [N, D + L] whose last columns are v; changed.
        arms: [E], repeats allowed.
        directions: [Q, L] theta^v.
        residuals: [Q] rho, what came less what was predicted.
        ridge: that C started with.
        spread: [E] which thing each of the arms belongs to, [E] its weight, and [Q] which of the things each
            observation is of; None: every observation is of one arm, with weight 1, as rewards are.

    Returns:
        The length of the change of v; NaN: a matrix is not positive definite any more. None: nothing is done.
    """
    return None  # `Hidden` has it in torch, where large batches are best summed by what they are about


def warm(dtype: torch.dtype) -> None:
    """Get ready for the type; there is nothing to compile here."""


def _take(who: Index, rows: Tensor) -> Tensor:
    """[n] the models of some rows."""
    return who[rows] if isinstance(who, Tensor) else rows + (who.start or 0)


def _ids(who: Index, number: int, device: torch.device) -> Tensor:
    """[B] the models' ids."""
    return who if isinstance(who, Tensor) else torch.arange(number, device=device)[who]
