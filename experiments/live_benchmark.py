"""How long a recommendation takes, beside the bare policy call.

    python -m experiments.live_benchmark --out DIR

`recommend` among 50 of 5,000 items with 50 features, for people of whom one reward is known, by ConUCB in
float32: alone, and under 50 threads that each call as fast as they can, with a store in memory and with an
SQLite file. A time is from the call to its return, when the decision is on the disk. The bare call is
`policy.choose` on a context that is ready. Prints a table, and writes it to `DIR/live_benchmark.md`.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from conbandit_torch import Bandit, Catalogue, Context, ConUCB, Recommender, Synthetic
from conbandit_torch.kernels import warm

ITEMS, POOL, DIM, TERMS = 5_000, 50, 50, 200
ROOMS = {  # where time goes: the first that a function's file names
    "database": ("sqlalchemy", "sqlite3", "psycopg", "live/store", "live/tables", "live/owners"),
    "policy": ("bandits/", "models/", "kernels/", "conversation/", "numba"),
    "names, events, contexts": ("live/", "core/"),
}


def percentiles(seconds: list[float]) -> tuple[float, float]:
    """p50 and p99 in microseconds."""
    p50, p99 = np.percentile(seconds, (50, 99)) * 1e6
    return float(p50), float(p99)


def disk(folder: Path, calls: int) -> list[float]:
    """Seconds in which the disk takes six pages, as many as a commit of one decision writes."""
    times = []
    with (folder / "pages").open("wb", buffering=0) as file:
        for _ in range(calls):
            file.seek(0)
            file.write(bytes(6 * 4096))
            start = time.perf_counter()
            os.fdatasync(file)
            times.append(time.perf_counter() - start)
    return times


def bare(policy: Bandit, users: int, pools: np.ndarray) -> list[float]:
    """Seconds of each bare call."""
    times = []
    for number, pool in enumerate(pools):
        user = torch.tensor([number * 7919 % users])
        context = Context.trusted(
            user, torch.from_numpy(pool)[None], torch.ones(1, dtype=torch.int64), policy.catalogue
        )
        start = time.perf_counter()
        policy.choose(context)
        times.append(time.perf_counter() - start)
    return times


def live(recommend: Callable[[int], object], calls: int, threads: int) -> tuple[list[float], float]:
    """Seconds of each call, and calls per second of all threads together."""
    times: list[float] = []

    def play(first: int) -> None:
        own = []
        for number in range(first, calls, threads):
            start = time.perf_counter()
            recommend(number)
            own.append(time.perf_counter() - start)
        times.extend(own)

    workers = [threading.Thread(target=play, args=(number,)) for number in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return times, calls / (time.perf_counter() - start)


def shares(recommend: Callable[[int], object], calls: int) -> str:
    """Where the time of calls goes, as shares of it."""
    profile = cProfile.Profile()
    profile.enable()
    for number in range(calls):
        recommend(number)
    profile.disable()
    seconds = dict.fromkeys((*ROOMS, "commit", "the rest"), 0.0)
    found = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    for (file, _, name), (_, _, own, _, _) in found.items():
        if "commit" in name and file == "~":
            seconds["commit"] += own
            continue
        text = f"{file} {name}"
        room = next(
            (room for room, parts in ROOMS.items() if any(part in text for part in parts)), "the rest"
        )
        seconds[room] += own
    total = sum(seconds.values())
    return ", ".join(f"{room} {share / total:.0%}" for room, share in seconds.items())


def measure(catalogue: Catalogue, users: int, calls: int, folder: Path) -> list[str]:
    """The table's rows for so many users."""
    draw = np.random.default_rng(0)
    pools = np.stack([draw.choice(ITEMS, POOL, replace=False) for _ in range(calls)])
    named = [[catalogue.arm_names[item] for item in pool] for pool in pools.tolist()]
    people = [f"person {number}" for number in range(users)]
    lines = []
    for where, store in (("memory", None), ("SQLite", folder / f"{users}.db")):
        policy = ConUCB(catalogue, 1).to(torch.float32)
        with Recommender(policy, store=store, snapshot_every=10**9) as recommender:
            for start in range(0, users, 10_000):
                some = people[start : start + 10_000]
                slates = recommender.recommend_many(some, [named[0]] * len(some))
                recommender.feedback_many([slate[0] for slate in slates], [0.5] * len(some))

            def recommend(number: int) -> object:
                return recommender.recommend(people[number * 7919 % users], named[number])

            warm(catalogue.arm_features)
            with torch.no_grad():
                bare(recommender.policy, users, pools[:200])
                p50, p99 = percentiles(bare(recommender.policy, users, pools))
            if where == "memory":
                lines.append(f"| {users:,} | bare policy call | | {p50:,.0f} | {p99:,.0f} | 1 | 1 | |")
            else:
                sync50, sync99 = percentiles(disk(folder, min(calls, 500)))
                figures = f"{sync50:,.0f} | {sync99:,.0f} | {sync50 / p50:.1f} | {sync99 / p99:.1f}"
                lines.append(f"| {users:,} | the disk alone (fdatasync) | | {figures} | |")
            live(recommend, min(calls, 200), 1)
            for threads in (1, 50):
                times, rate = live(recommend, calls, threads)
                own50, own99 = percentiles(times)
                lines.append(
                    f"| {users:,} | `recommend`, {where} | {threads} | {own50:,.0f} | {own99:,.0f} | "
                    f"{own50 / p50:.1f} | {own99 / p99:.1f} | {rate:,.0f} |"
                )
            lines.append(f"<!-- {users:,}, {where}: {shares(recommend, min(calls, 1000))} -->")
            recommender._ledger.snapshot = lambda: None  # type: ignore[method-assign]  # of gigabytes, at the end
    return lines


def main() -> int:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--users", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--calls", type=int, default=5_000)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    world = Synthetic(users=2, arms=ITEMS, terms=TERMS, dim=DIM, pool=POOL, seed=0).to(torch.float32)
    lines = [
        "| users | call | clients | p50 us | p99 us | x bare p50 | x bare p99 | calls per second |",
        "|--:|---|--:|--:|--:|--:|--:|--:|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for users in options.users:
            lines += measure(world.catalogue, users, options.calls, Path(folder))
    print("\n".join(lines))  # noqa: T201
    (options.out / "live_benchmark.md").write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
