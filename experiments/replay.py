"""Replay of a generated log whose truth is known: is it unbiased, and whom does it favour?

    python experiments/replay.py bias --out DIR
    python experiments/replay.py estimators --out DIR
    python experiments/replay.py ctr --jobs 2 --out DIR

`bias`    replayed click-through rates beside the true ones, for policies that learn and that do not
`estimators` the same of replay and of off-policy estimates, on logs of uniform and of other servings
`ctr`     LinUCB, Arm-Con, Var-RS, Var-MRC, Var-LCR and ConUCB, in windows of counted events
`hidden`  the same of the policies that learn hidden features
`size`    what a log of Toutiao's size takes: time to build it, memory, time per round, and what policies earn
`--quick` replays a small log, to see that it works. The same command continues.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from conbandit_torch import (
    Bandit,
    Callback,
    Catalogue,
    Context,
    ConUCB,
    GeneratedEvents,
    GeneratedLog,
    LinUCB,
    Random,
    Round,
    Simulation,
)
from conbandit_torch.callbacks.progress import ProgressLines
from conbandit_torch.commands.main import main as conbandit
from conbandit_torch.configuration.load import load
from conbandit_torch.core.algebra import dot
from conbandit_torch.core.randomness import Stream
from conbandit_torch.results.off_policy import ESTIMATORS
from conbandit_torch.results.over_users import Ratio
from conbandit_torch.running.folder import METRICS, job_folder
from conbandit_torch.running.job import describe, run_job
from conbandit_torch.running.worlds import Worlds
from experiments.measuring import machine, markdown, peak_memory, say

CONFIGS = Path(__file__).parent.parent / "configs" / "real"
COMPARED = {"ctr": "replay_generated.yaml", "hidden": "replay_generated_hidden.yaml"}
SEEDS = range(10)
SEEDS_ONCE = range(16)  # logs that serve items once are shorter: no standard error above 0.015 of the truth
SEEDS_EVENTS = range(5)  # as many as that takes
EVENTS = {"users": 100, "arms": 300, "terms": 50, "dim": 10, "events": 1000, "pool": 5}
SKEWS = {"uniformly": 0.0, "what most like more often": 3.0}
SIZE, EARLY = "toutiao_size.yaml", 300  # rounds in which most questions are asked
QUICK = {"users": 100, "arms": 60, "terms": 10, "dim": 8, "events": 50, "pool": 4}


class Fixed(Bandit):
    """Always shows what preferences that never change like best.

    Args:
        catalogue: arms.
        num_users: U.
        theta: [U, D] the preferences.
    """

    def __init__(self, catalogue: Catalogue, num_users: int, theta: Tensor) -> None:
        super().__init__(catalogue, num_users)
        self.register_buffer("theta", theta.clone())

    def scores(self, context: Context) -> Tensor:
        """[B, A] `x^T theta`."""
        return dot(context.arm_features, self.get_buffer("theta")[context.who])

    def learn(self, context: Context, arm: Tensor, reward: Tensor) -> None:
        """Learns nothing."""


class Ledger(Callback):
    """Adds up what replay counts, and what the truth says of all that was chosen."""

    def __init__(self) -> None:
        self.counted, self.clicks, self.shown, self.expected = 0, 0.0, 0, 0.0

    def on_round(self, simulation: Simulation, played: Round) -> None:
        """Add a round."""
        clicks = played.outcome.feedback[0].reward
        self.counted += len(clicks)
        self.clicks += float(clicks.sum())
        true = simulation.environment.expected(played.context).gather(1, played.arm[:, None])
        self.shown += len(true)
        self.expected += float(true.sum())


def contenders() -> dict[str, Callable[[GeneratedLog | GeneratedEvents], Bandit]]:
    """Policies that learn and that do not, by name."""
    return {
        "picks at random": lambda world: Random(world.catalogue, world.num_users),
        "fixed, random preferences": lambda world: Fixed(
            world.catalogue,
            world.num_users,
            Stream(0, "fixed").normal(torch.arange(world.num_users), 0, world.catalogue.dim),
        ),
        "fixed, true preferences": lambda world: Fixed(world.catalogue, world.num_users, world.truth),
        "LinUCB": lambda world: LinUCB(world.catalogue, world.num_users),
        "ConUCB": lambda world: ConUCB(world.catalogue, world.num_users),
    }


def bias(out: Path, log: dict[str, Any], seeds: dict[bool, Sequence[int]]) -> list[float]:
    """Write `bias.md`; returns how many standard errors each policy's estimate is off."""
    lines = [
        "| items come | policy | counted | replayed CTR | true CTR | replayed / true | standard errors |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    off = []
    for once in (False, True):
        for name, make in contenders().items():
            ledger = Ledger()
            for seed in seeds[once]:
                # Where items are served once, a log is at most as long as there are arms.
                events = min(log["events"], log["arms"]) if once else log["events"]
                world = GeneratedLog(**log | {"events": events, "once": once}, seed=seed)
                Simulation(
                    make(world), world, rounds=world.length, log_every=world.length, callbacks=[ledger]
                ).run()
            replayed, true = ledger.clicks / ledger.counted, ledger.expected / ledger.shown
            error = sqrt(true * (1 - true) / ledger.counted)
            off.append((replayed - true) / error)
            ratio = f"{replayed / true:.3f} ± {error / true:.3f}"
            kind = "once" if once else "again and again"
            cells = (kind, name, f"{ledger.counted:,}", f"{replayed:.4f}", f"{true:.4f}", ratio)
            lines.append(f"| {' | '.join(cells)} | {off[-1]:+.2f} |")
    write(out / "bias.md", lines)
    return off


def write(path: Path, lines: list[str]) -> None:
    """Keep a table, and show it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.stdout.write("\n".join(lines) + "\n")


class Truth(Callback):
    """Adds up, per user, what the policy's decisions were truly worth."""

    def __init__(self, num_users: int) -> None:
        self.expected = np.zeros(num_users)

    def on_round(self, simulation: Simulation, played: Round) -> None:
        """Add a round."""
        true = simulation.environment.expected(played.context).gather(1, played.arm[:, None]).squeeze(1)
        self.expected[played.context.users.numpy()] += true.double().numpy()


def estimators(out: Path, log: dict[str, Any], seeds: Sequence[int]) -> dict[str, float]:
    """Write `estimators.md`; returns the standard errors that each unbiased estimate is off, by its name.

    Errors are over users, of the difference between the estimate and what the decisions were truly worth.
    """
    lines = [
        "| items are served | policy | true CTR | replay | IPS | self-normalised IPS | doubly robust | "
        "effective sample of |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    off = {}
    for kind, skew in SKEWS.items():
        for name, make in contenders().items():
            sums, truths = [], []
            for seed in seeds:
                world = GeneratedEvents(**log, skew=skew, seed=seed)
                truth = Truth(world.num_users)
                simulation = Simulation(
                    make(world), world, rounds=world.length, log_every=world.length, callbacks=[truth]
                )
                simulation.run()
                sums.append(simulation.metrics.user_sums())
                truths.append(truth.expected)
            table = {column: np.stack([getattr(one, column) for one in sums]) for column in vars(sums[0])}
            true = Ratio.of(np.stack(truths), table["events"], same_users=False)
            cells = [kind, name, f"{true.value:.4f}"]
            for estimator, (above, below) in ESTIMATORS.items():
                found = Ratio.of(table[above], table[below], same_users=False)
                error = (found - true).error
                cells.append(f"{found.value / true.value:.3f} ± {error / true.value:.3f}")
                if estimator != "replay" or not skew:
                    off[f"{kind}, {name}, {estimator}"] = (found - true).value / error
            effective = (table["weight"].sum(1) ** 2 / table["square"].sum(1)).sum()
            lines.append(f"| {' | '.join(cells)} | {effective:,.0f} of {table['events'].sum():,.0f} |")
    worst = max(off, key=lambda name: abs(off[name]))
    lines.append(f"\nFurthest off: {worst}, {off[worst]:+.2f} standard errors.")
    write(out / "estimators.md", lines)
    return off


def compare(config: Path, out: Path, jobs: int, quick: bool) -> int:
    """Run a config, and draw and report what came of it."""
    small = [f"--environment.init_args.{key}={value}" for key, value in QUICK.items()] if quick else []
    small += ["--rounds=30", "--seeds=0-1"] if quick else []
    code = conbandit(["run", str(config), "--out", str(out), "--jobs", str(jobs), "--threads", "1", *small])
    return code or conbandit(["report", str(out)]) or conbandit(["plot", str(out)])


def size(out: Path, threads: int, quick: bool, policies: list[str] | None = None) -> int:
    """Play the log of Toutiao's size with one world for all policies, and write `size.md`."""
    small = QUICK | {"hidden": 2}
    changes = [(f"environment.init_args.{key}", str(value)) for key, value in small.items()] if quick else []
    experiment = load(CONFIGS / SIZE, [*changes, ("rounds", "30"), ("log_every", "5")] if quick else changes)
    torch.set_num_threads(threads)
    worlds, (seed,) = Worlds(experiment), experiment.seeds
    start = time.perf_counter()
    worlds.of(seed)
    built, peak = time.perf_counter() - start, peak_memory()
    say(f"the world is built after {built:.1f} s, with a peak of {peak / 1e9:.2f} GB")
    rows = []
    for name in policies or experiment.policies:
        result = run_job(experiment, out, threads, (name, seed), ProgressLines(say, name), worlds=worlds)
        say(describe(result))
        if result.last is None or result.last.ctr is None or result.replayed is None:
            return 1
        with (job_folder(out, name, seed) / METRICS).open(encoding="utf-8") as file:
            table = [(int(row["round"]), float(row["seconds"])) for row in csv.DictReader(file)]
        early = min(table, key=lambda row: abs(row[0] - EARLY))
        times = [1e3 * row[1] / row[0] for row in (early, table[-1])]
        rows.append(
            [
                name,
                *(f"{ms:.1f}" for ms in times),
                f"{table[-1][1]:.0f}",
                f"{result.last.questions:.1f}",
                f"{result.last.counted:,}",
                f"{result.last.ctr:.4f}",
                f"{result.last.ctr / result.replayed.click_rate:.3f}",
                f"{peak_memory() / 1e9:.2f}",
            ]
        )
    early_heading = f"ms per round, first {early[0]}"
    headings = ["policy", early_heading, "all", "s in all", "questions per user", "counted", "CTR"]
    text = markdown([*headings, "of the log's rate", "peak so far, GB"], rows)
    where = f"threads: {threads}; {machine()['processor']}"
    what = f"World built in {built:.1f} s, peak {peak / 1e9:.2f} GB; {where}."
    (out / "size.md").write_text(f"{what}\n\n{text}", encoding="utf-8")
    sys.stdout.write(f"{what}\n\n{text}")
    return 0


def main(words: list[str] | None = None) -> int:
    """Run one result; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("result", choices=("bias", "estimators", *COMPARED, "size"))
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--jobs", type=int, default=1, metavar="J")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="of `size`")
    parser.add_argument("--policies", nargs="+", metavar="NAME", help="of `size`; default all")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args(words)
    if arguments.result == "size":
        return size(arguments.out, arguments.threads, arguments.quick, arguments.policies)
    if arguments.result in COMPARED:
        return compare(CONFIGS / COMPARED[arguments.result], arguments.out, arguments.jobs, arguments.quick)
    small, few = (QUICK, 2) if arguments.quick else ({}, None)
    if arguments.result == "estimators":
        off = list(estimators(arguments.out, EVENTS | small, SEEDS_EVENTS[:few]).values())
    else:
        given = load(CONFIGS / COMPARED["ctr"]).environment["init_args"] | small
        log = {name: value for name, value in given.items() if not isinstance(value, dict)}  # parts: defaults
        off = bias(arguments.out, log, {False: SEEDS[:few], True: SEEDS_ONCE[:few]})
    return int(any(abs(errors) > 3 for errors in off))


if __name__ == "__main__":
    sys.exit(main())
