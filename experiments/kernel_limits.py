"""Every compiled kernel's own time, against what memory and arithmetic need, measured on the same machine.

    python -m experiments.kernel_limits --out DIR

A kernel's bytes are what it must read and write once; its operations are additions and multiplications. The
limits are its bytes by the rate of a copy of matrices as large as the users', by as many threads, and its
operations by the rate of multiply-and-adds on numbers that lie in the first cache. Times are medians of calls
as a round makes them (arrays found, threads woken), of users who have learned for a while.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numba import njit, prange
from torch import Tensor

from conbandit_torch import HLinUCB, LinUCB, Simulation, Stream, Synthetic
from conbandit_torch.kernels import compiled, reference
from conbandit_torch.kernels.calling import run
from conbandit_torch.models import levels as chain
from experiments.measuring import machine, markdown, show

SIZES = {"users": 200, "arms": 5000, "terms": 500, "dim": 50, "pool": 50, "hidden": 5, "threads": 2}
LEARNED, CALLS, CHAIN = 300, 300, 16  # rounds before; calls timed; multiply-and-adds per number read


@dataclass
class Kernel:
    """What a kernel takes, per call.

    Attributes:
        name: of it.
        seconds: its own time.
        moved: bytes that it must read and write.
        operations: additions and multiplications.
    """

    name: str
    seconds: float
    moved: float
    operations: float


@njit(parallel=True, cache=True, fastmath=True)
def _copy(source, target):  # type: ignore[no-untyped-def]
    for row in prange(len(source)):
        for j in range(source.shape[1]):
            target[row, j] = source[row, j]


@njit(parallel=True, cache=True, fastmath={"contract"})
def _multiply_and_add(values, times):  # type: ignore[no-untyped-def]
    for row in prange(len(values)):
        own = values[row]
        for _ in range(times):
            for j in range(len(own)):
                value = own[j]
                for _ in range(CHAIN):
                    value = value * own[j] + own[j]
                own[j] = value


@njit(parallel=True, cache=True)
def _nothing(values):  # type: ignore[no-untyped-def]
    for row in prange(len(values)):
        values[row] += 0


def seconds(call: Callable[[], object]) -> float:
    """The median of many calls."""
    call()
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def rates(users: int, dim: int, dtype: torch.dtype) -> tuple[float, float]:
    """Bytes that a copy moves per second, and operations per second."""
    source = torch.ones(users, dim * dim, dtype=dtype).numpy()
    target = source.copy()
    moved = 2 * source.nbytes / seconds(lambda: run(_copy, source, target))
    values = torch.full((64, 512), 1e-3, dtype=dtype).numpy()  # 2 KB a row: they lie in the first cache
    times = 50
    return moved, 2 * CHAIN * times * values.size / seconds(lambda: run(_multiply_and_add, values, times))


def widths_looked_at(policy: LinUCB, arms: Tensor) -> float:
    """How many widths per row the choice works out: of candidates whose bound reaches the best score."""
    who, table = slice(0, len(arms)), policy.representation.arms()
    widths = chain.widths(policy.levels(), who)
    assert widths is not None  # LinUCB's factor is not negative
    values = reference.dots(table, arms, policy.theta(who), slice(None))
    slope = widths.factors[0] * widths.tops[0].sqrt()  # [U]
    bounds = values + slope[:, None] * table.norm(dim=1)[arms]
    exact = values + reference.width(widths, torch.arange(len(arms)), table[arms])
    return float((bounds >= exact.amax(1, keepdim=True)).double().sum(1).mean())


def measure(sizes: argparse.Namespace, dtype: torch.dtype = torch.float32) -> list[Kernel]:
    """All kernels of a round."""
    U, A, D, L = sizes.users, sizes.pool, sizes.dim, sizes.hidden
    world = Synthetic(U, sizes.arms, sizes.terms, D, pool=A, seed=0)
    policy = LinUCB(world.catalogue, U)
    precision = "32-true" if dtype == torch.float32 else "64-true"
    Simulation(policy, world, rounds=LEARNED, log_every=LEARNED, precision=precision).run()
    hidden = HLinUCB(world.catalogue, U, hidden_dim=L, init_scale=0.1).to(dtype).representation
    s = policy.arm_model.moment.itemsize
    context, who = world.observe(), slice(0, U)
    arms, rounds, stream = context.arms, context.rounds, Stream(0, "limits")
    table, lengths = policy.representation.arms(), policy.representation.lengths()
    model, theta = policy.arm_model, policy.theta(who)
    widths = chain.widths(policy.levels(), who)
    shown = policy.choose(context)
    x, y, v = table[arms[:, 0]], torch.zeros(U, dtype=dtype), theta[:, :L].contiguous()
    looked = widths_looked_at(policy, arms)
    rows = U * A * (D * s + 8)  # candidates' features and ids
    state = model.state
    rooted = state._replace(root=state.inverse.clone())
    hidden_bytes = U * (4 * L * L + 6 * L) * s

    def step(of: object) -> object:
        return compiled.rank_one(of, who, x * 1e-3, y, 1.0)  # type: ignore[arg-type]

    calls: dict[str, tuple[Callable[[], object], float, float]] = {
        "a kernel that does nothing": (lambda: run(_nothing, np.zeros(2)), 0, 0),
        "pools": (lambda: compiled.subsets(stream, context.users, rounds, A, sizes.arms), U * A * 8, 0),
        f"the choice, {looked:.1f} widths per row": (
            lambda: compiled.choose(table, arms, theta, None, widths, lengths),  # type: ignore[arg-type]
            rows + U * D * D * s,
            2 * U * A * D + looked * 2 * U * D * D,
        ),
        "means and regret": (
            lambda: compiled.pulled(table, arms, world.theta, who, shown, clip=False),
            rows,
            2 * U * A * D,
        ),
        "the rank-one step": (lambda: step(state), 4 * U * D * D * s, 10 * U * D * D),
        "the step with a root": (lambda: step(rooted), 6 * U * D * D * s, 14 * U * D * D),
        "M^-1 v": (lambda: compiled.products(model.inverse, who, theta), U * D * D * s, 2 * U * D * D),
        "x^T v of all candidates": (lambda: compiled.dots(table, arms, theta, who), rows, 2 * U * A * D),
        "hidden features' widths": (
            lambda: compiled.hidden_widths(hidden.model.inverse, arms, v, 0.1),
            U * A * (L * L * s + 8),
            2 * U * A * L * L,
        ),
        "hidden features' step": (
            lambda: compiled.hidden_step(
                hidden.model.state, hidden.table, arms[:, 0].contiguous(), v, y, 1.0
            ),
            hidden_bytes,
            U * (2 * L * L + 2 * L**3),
        ),
        "D normal numbers per user": (
            lambda: compiled.normal(stream, context.users, rounds, D, theta),
            U * D * s,
            60 * U * D,
        ),
    }
    return [Kernel(name, seconds(call), moved, work) for name, (call, moved, work) in calls.items()]


def table(kernels: list[Kernel], moved: float, operations: float) -> tuple[list[str], list[list[str]]]:
    """Times and limits."""
    headings = ["kernel", "us per call", "MB moved", "by memory, us", "million operations"]
    headings += ["by arithmetic, us", "the larger by the time"]
    rows = []
    for kernel in kernels:
        limits = 1e6 * kernel.moved / moved, 1e6 * kernel.operations / operations
        own = 1e6 * kernel.seconds
        row = [kernel.name, f"{own:.1f}", f"{kernel.moved / 1e6:.2f}", f"{limits[0]:.1f}"]
        rows.append(
            [*row, f"{kernel.operations / 1e6:.2f}", f"{limits[1]:.1f}", f"{100 * max(limits) / own:.0f} %"]
        )
    return headings, rows


def tell(sizes: argparse.Namespace, dtype: torch.dtype = torch.float32) -> str:
    """Measure, show and give the table as Markdown."""
    with torch.no_grad():
        moved, operations = rates(sizes.users, sizes.dim, dtype)
        found = table(measure(sizes, dtype), moved, operations)
    rate = (
        f"A copy moves {moved / 1e9:.0f} GB/s; {operations / 1e9:.0f} thousand million operations per second"
    )
    show(f"Kernels and their limits. {rate}", *found)
    return f"{rate}.\n\n{markdown(*found)}"


def main(words: list[str] | None = None) -> None:
    """Measure all kernels."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    for name, value in SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=value, metavar="N", help=f"default {value}")
    sizes = parser.parse_args(words)
    sizes.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(sizes.threads)
    text = f"{sizes.threads} threads; {machine()['processor']}.\n\n{tell(sizes)}"
    (sizes.out / "kernels.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
