"""How often confidence widths of a click model hold the truth.

    python -m experiments.width_coverage

A policy plays; at some rounds, over all users and candidates, the share of `|x^T (theta - theta_*)|` that is
at most `factor |x|_{H^-1}`, the width that a score has with this factor. With factor 1.96, a normal
approximation that is right holds 95 % of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import torch

from conbandit_torch import LinearBandit, LogisticUCB, Synthetic, play_round

FACTORS = (0.5, 1.0, 1.96, 3.0)


def coverage(policy: LinearBandit, world: Synthetic, rounds: Sequence[int]) -> dict[int, list[float]]:
    """By round, the shares that the factors' widths hold."""
    truth = world.preferences()
    assert truth is not None
    found = {}
    for number in range(1, max(rounds) + 1):
        play_round(policy, world)
        if number in rounds:
            context = world.observe()
            x = policy.representation.of(context)  # [B, A, D]
            error = (x * (policy.theta(context.who) - truth[context.who])[:, None]).sum(2).abs()
            width = policy.arm_model.norm(context.who, x)
            found[number] = [float((error <= factor * width).double().mean()) for factor in FACTORS]
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, nargs="+", default=[30, 100, 300, 1000])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", type=float, default=3.0)
    given = parser.parse_args()
    head = " | ".join(f"factor {factor}" for factor in FACTORS)
    sys.stdout.write(f"| round | {head} |\n|--:|{'--:|' * len(FACTORS)}\n")
    sizes = {"users": 50, "arms": 1000, "terms": 80, "dim": 10, "pool": 25, "seed": given.seed}
    world = Synthetic(**sizes, feedback="logistic", scale=given.scale)
    policy = LogisticUCB(world.catalogue, world.num_users)
    with torch.no_grad():
        for number, shares in coverage(policy, world, given.rounds).items():
            row = " | ".join(f"{share:.1%}" for share in shares)
            sys.stdout.write(f"| {number} | {row} |\n")


if __name__ == "__main__":
    main()
