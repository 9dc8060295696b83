"""What clicks cost: CPU time per user and round of LogisticUCB beside LinUCB, with and without exact fits.

    python -m experiments.link_benchmark

Process time of one thread, policies interleaved, the median over blocks of rounds.
"""

from __future__ import annotations

import statistics
import sys
import time

import torch

from conbandit_torch import (
    Bandit,
    ConLogisticUCB,
    ConUCB,
    LinUCB,
    Logistic,
    LogisticUCB,
    Synthetic,
    play_round,
)

BLOCKS, ROUNDS, USERS = 12, 25, 200


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    silent = Logistic(refit_every=None)
    makes = {
        "LinUCB": lambda c: LinUCB(c, USERS),
        "LogisticUCB, no exact fits": lambda c: LogisticUCB(c, USERS, link=silent),
        "LogisticUCB": lambda c: LogisticUCB(c, USERS),
        "ConUCB": lambda c: ConUCB(c, USERS),
        "ConLogisticUCB, no exact fits": lambda c: ConLogisticUCB(c, USERS, link=silent),
        "ConLogisticUCB": lambda c: ConLogisticUCB(c, USERS),
    }
    pairs: dict[str, tuple[Bandit, Synthetic]] = {}
    for name, make in makes.items():
        world = Synthetic(users=USERS, feedback="logistic").to(torch.float32)
        pairs[name] = make(world.catalogue), world
    spent: dict[str, list[float]] = {name: [] for name in makes}
    with torch.no_grad():
        for block in range(-1, BLOCKS):  # the first is not counted
            for name, pair in pairs.items():
                start = time.process_time()
                for _ in range(ROUNDS):
                    play_round(*pair)
                if block >= 0:
                    spent[name].append((time.process_time() - start) / ROUNDS / USERS * 1e6)
    sys.stdout.write("| policy | us per user and round, median | mean |\n|---|--:|--:|\n")
    for name, times in spent.items():
        sys.stdout.write(f"| {name} | {statistics.median(times):.1f} | {statistics.fmean(times):.1f} |\n")


if __name__ == "__main__":
    main()
