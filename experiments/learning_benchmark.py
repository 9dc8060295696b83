"""What learning more than theta costs: CPU time per user and round, in refits and outside them.

    NUMBA_NUM_THREADS=1 OMP_NUM_THREADS=1 python -m experiments.learning_benchmark

Process time of one thread, one policy after the other: the median over blocks of rounds, the mean of refits.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from conbandit_torch import (
    Bandit,
    Catalogue,
    ConLogisticUCB,
    ConUCB,
    HConLinUCB,
    HiddenOnTerms,
    HLinUCB,
    LinUCB,
    Logistic,
    LogisticUCB,
    NeuralLinear,
    Synthetic,
    play_round,
)

USERS, EVERY = 200, 20  # rounds between refits, of all that have them at equal frequency
HIDDEN = {"hidden": 5}
CLICKS = {"feedback": "logistic"}


def on_terms(sweeps: int) -> HiddenOnTerms:
    """As often as hidden features per arm are refitted."""
    return HiddenOnTerms(refit_every=EVERY, sweeps=sweeps)


MAKES: dict[str, tuple[dict[str, Any], Callable[[Catalogue], Bandit]]] = {
    "LinUCB": (CLICKS, lambda c: LinUCB(c, USERS)),
    "LogisticUCB": (CLICKS, lambda c: LogisticUCB(c, USERS)),
    "LogisticUCB, fits every 20": (CLICKS, lambda c: LogisticUCB(c, USERS, link=Logistic(refit_every=EVERY))),
    "ConUCB": (CLICKS, lambda c: ConUCB(c, USERS)),
    "ConLogisticUCB": (CLICKS, lambda c: ConLogisticUCB(c, USERS)),
    "hLinUCB": (HIDDEN, lambda c: HLinUCB(c, USERS)),
    "hLinUCB, refit every 20": (HIDDEN, lambda c: HLinUCB(c, USERS, refit_every=EVERY)),
    "hLinUCB on key-terms, every 20": (HIDDEN, lambda c: HLinUCB(c, USERS, representation=on_terms(1))),
    "the same, 2 sweeps": (HIDDEN, lambda c: HLinUCB(c, USERS, representation=on_terms(2))),
    "hConLinUCB, refit every 20": (HIDDEN, lambda c: HConLinUCB(c, USERS, refit_every=EVERY)),
    "hConLinUCB on key-terms, every 20": (
        HIDDEN,
        lambda c: HConLinUCB(c, USERS, representation=on_terms(1)),
    ),
    "hConLinUCB on key-terms, as it is": (
        HIDDEN,
        lambda c: HConLinUCB(c, USERS, representation=HiddenOnTerms()),
    ),
    "NeuralLinear": (HIDDEN, lambda c: NeuralLinear(c, USERS)),
}


@dataclass
class Spent:
    """Seconds of one policy.

    Attributes:
        outside: of each block of rounds, without refits.
        refits: of each refit, or exact fit to clicks.
    """

    outside: list[float] = field(default_factory=list)
    refits: list[float] = field(default_factory=list)

    def watch(self, policy: Any, method: str) -> None:
        """Count the calls of a method as refits."""
        original = getattr(policy, method)

        def timed(*arguments: Any) -> None:
            start = time.process_time()
            original(*arguments)
            self.refits.append(time.process_time() - start)

        setattr(policy, method, timed)


def measure(name: str, blocks: int, rounds: int) -> Spent:
    """Time of one policy in a world of its own; the first block is not counted."""
    world_arguments, make = MAKES[name]
    world = Synthetic(users=USERS, **world_arguments).to(torch.float32)
    policy, spent = make(world.catalogue), Spent()
    for method in ("refit", "_fit"):
        if hasattr(policy, method) and not (method == "_fit" and policy.representation.learns):
            spent.watch(policy, method)
    for block in range(-1, blocks):
        before, start = sum(spent.refits), time.process_time()
        for _ in range(rounds):
            play_round(policy, world)
        spent.outside.append(time.process_time() - start - (sum(spent.refits) - before))
        if block < 0:
            spent.outside.clear()
            spent.refits.clear()
    return spent


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=12, help="blocks of rounds (default: 12)")
    parser.add_argument("--rounds", type=int, default=20, help="rounds in a block (default: 20)")
    given = parser.parse_args()
    torch.set_num_threads(1)
    head = "| policy | us per user and round outside refits | refits' share of the time | ms per refit |\n"
    sys.stdout.write(head + "|---|--:|--:|--:|\n")
    with torch.no_grad():
        for name in MAKES:
            spent = measure(name, given.blocks, given.rounds)
            each = statistics.median(spent.outside) / given.rounds / USERS * 1e6
            share = sum(spent.refits) / (sum(spent.refits) + sum(spent.outside))
            one = f"{1e3 * statistics.fmean(spent.refits):.0f}" if spent.refits else ""
            sys.stdout.write(f"| {name} | {each:.2f} | {share:.0%} | {one} |\n")


if __name__ == "__main__":
    main()
