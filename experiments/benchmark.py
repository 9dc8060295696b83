"""How fast every policy is: against plain NumPy loops, and against the products its rule cannot avoid.

    python -m experiments.benchmark --out DIR

Ours is a whole `Simulation`: environment, policy, and metrics every 10 rounds, all in one process. The NumPy
loop (`loops.py`) plays the same rule and the same number of rounds with its environment, for a few users. The
bare products are `torch.bmm` of [U, A, D] and [U, D, D], as many a round as the rule's scores need, on
tensors that lie ready. All three are measured in turn: the bare products twenty times within each of our
runs, the loop between our runs. Times are medians over the repeats, ratios medians of the repeats' ratios. A
further run, with clocks around the public methods and with TensorBoard and `metrics.csv` written, tells what
the time goes into. LinUCB is also measured written out by hand (`by_hand.py`), to tell the framework's share
of its time from PyTorch's.

Writes `benchmark.md`, `benchmark.json`, `benchmark.png` and `.pdf` into DIR. `--busy` measures with as
many idle loops beside it as there are cores, `--quick` a small world, to see that it works.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from conbandit_torch import Simulation, Synthetic
from conbandit_torch.callbacks.base import Callback
from conbandit_torch.callbacks.metrics_file import MetricsFile
from conbandit_torch.callbacks.tensorboard import TensorBoard
from conbandit_torch.core.rounds import Round
from conbandit_torch.kernels import TORCH, all_threads, name_of
from experiments import by_hand
from experiments.benchmark_plot import draw
from experiments.contenders import CONTENDERS, PLAIN, Contender, numpy_side
from experiments.loops import play
from experiments.measuring import Breakdown, machine, markdown, say, show, write_json

PARTS = ("draws", "rewards", "gather", "scores", "questions", "updates", "metrics", "logging", "loop")
FLOORS = {  # loop over ours, in float32
    **{"LinUCB": 90.0, "ConUCB": 90.0, "ConLinUCB": 90.0, "hLinUCB": 80.0, "hConUCB": 90.0},
    "LinThompson": 50.0,
}
CEILINGS = {"LinUCB": 1.8, "ConUCB": 1.8}  # ours over the bare products
BLOCKS, PER_BLOCK = 20, 10  # interruptions of a run, and bare rounds in each

QUICK = ["--users", "6", "--rounds", "25", "--dim", "8", "--pool", "5", "--arms", "80", "--terms", "10"]
QUICK += ["--hidden", "2", "--repeats", "1", "--threads", "1"]


@dataclass
class Figures:
    """A policy's times, in microseconds per user-round.

    Attributes:
        ours: a simulation's.
        loop: the NumPy loop's.
        bare: the bare products'; None: the rule needs none.
        by_hand: that of the same rounds written out by hand; None: nobody has written them.
        over_loop: the loop's time by ours.
        over_bare: ours by that of the bare products.
        calls: of torch's operators a round, those that `Tensor.numpy` makes included.
        parts: what the instrumented run's time went into.
    """

    ours: float
    loop: float
    bare: float | None
    by_hand: float | None
    over_loop: float
    over_bare: float | None
    calls: float
    parts: dict[str, float]


class Calls(TorchDispatchMode):
    """Counts the calls of torch's operators."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 0

    def __torch_dispatch__(self, call: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        """Count, and call."""
        self.number += 1
        return call(*arguments, **(named or {}))


class Interleaved(Callback):
    """Stops a run's clock now and then, to time the bare products in between.

    Args:
        rounds: rounds of the run.
        products: how many a round.
        sizes: U, A, D.
        dtype: of the run.
    """

    def __init__(
        self, rounds: int, products: int | None, sizes: tuple[int, int, int], dtype: torch.dtype
    ) -> None:
        users, pool, dim = sizes
        self.stops = {rounds * (block + 1) // BLOCKS for block in range(BLOCKS)} - {0}
        self.products = products
        self.vectors = [torch.full((users, pool, dim), 0.1, dtype=dtype) for _ in range(1 + (products or 0))]
        self.matrices = [torch.full((users, dim, dim), 0.1, dtype=dtype) for _ in range(products or 0)]
        self.seconds, self.bare, self._since = 0.0, [0.0], 0.0

    def on_start(self, simulation: Simulation) -> None:
        """Start the clock."""
        self.bare.clear()
        self._multiply()  # the first is slower
        self._since = time.perf_counter()

    def on_round(self, simulation: Simulation, played: Round) -> None:
        """A block of bare rounds, when it is time."""
        if simulation.round not in self.stops:
            return
        now = time.perf_counter()
        with all_threads():  # of which a simulation leaves torch only one
            self._multiply()  # the first wakes them
            now, before = time.perf_counter(), now
            for _ in range(PER_BLOCK):
                self._multiply()
            then = time.perf_counter()
        self.seconds += before - self._since
        self.bare.append((then - now) / PER_BLOCK)
        self._since = time.perf_counter()

    def _multiply(self) -> None:
        for step, matrix in enumerate(self.matrices):
            torch.bmm(self.vectors[step], matrix, out=self.vectors[step + 1])


def world(contender: Contender, options: argparse.Namespace, *, seen: bool = False) -> Synthetic:
    """A new environment; `seen`: with all features seen."""
    hidden = options.hidden if contender.hidden and not seen else 0
    sizes = {"users": options.users, "arms": options.arms, "terms": options.terms, "dim": options.dim}
    most = min(5, options.terms)
    return Synthetic(**sizes, pool=options.pool, max_terms=most, hidden=hidden, seed=options.seed)


def simulation(
    contender: Contender, options: argparse.Namespace, callbacks: tuple[Callback, ...]
) -> Simulation:
    """A new run of the policy."""
    environment = world(contender, options)
    policy = contender.build(environment)
    return Simulation(
        policy, environment, rounds=options.rounds, precision=options.precision, callbacks=callbacks
    )


def time_ours(contender: Contender, options: argparse.Namespace) -> tuple[float, float]:
    """Seconds per user-round of a run, and of the bare products in between."""
    sizes = (options.users, options.pool, options.dim)
    clock = Interleaved(options.rounds, contender.products, sizes, _dtype(options))
    simulation(contender, options, (clock,)).run()
    return clock.seconds / options.rounds / options.users, statistics.median(clock.bare) / options.users


def time_loop(contender: Contender, options: argparse.Namespace) -> float:
    """Seconds per user-round of the NumPy loop."""
    environment = world(contender, options)
    graph, users_side = numpy_side(environment, world(contender, options, seen=True))
    loop = contender.loop(graph, options.loop_users, contender.build(environment))
    start = time.perf_counter()
    play(loop, users_side, options.loop_users, options.rounds, lambda t: 5 * int(math.log(max(t, 1))))
    return (time.perf_counter() - start) / options.rounds / options.loop_users


def time_by_hand(options: argparse.Namespace) -> float:
    """Seconds per user-round of LinUCB written out by hand."""
    environment = world(CONTENDERS["LinUCB"], options).to(_dtype(options))
    return by_hand.play(environment, options.rounds, **PLAIN)[0] / options.rounds / options.users


def _dtype(options: argparse.Namespace) -> torch.dtype:
    return torch.float64 if options.precision == "64-true" else torch.float32


def count_calls(contender: Contender, options: argparse.Namespace) -> float:
    """Calls of torch's operators a round."""
    with Calls() as calls:
        simulation(contender, options, ()).run()
        before_and_after = calls.number
    with Calls() as calls:  # what is called once, when a run is built and starts
        simulation(contender, argparse.Namespace(**{**vars(options), "rounds": 1}), ()).run()
    return (before_and_after - calls.number) / max(options.rounds - 1, 1)


def break_down(contender: Contender, options: argparse.Namespace) -> dict[str, float]:
    """Microseconds per user-round of each part of a run, which writes its files too."""
    with tempfile.TemporaryDirectory() as name:
        files = (MetricsFile(Path(name) / "metrics.csv"), TensorBoard(Path(name), "", {}))
        run = simulation(contender, options, files)
        clocks = Breakdown()
        policy, environment = run.policy, run.environment
        watched: list[tuple[Any, str, str]] = [(run, "run", "loop")]
        watched += [(environment, method, "rewards") for method in ("observe", "answer", "pull")]
        watched += [(environment, method, "draws") for method in ("pools", "arm_noise", "term_noise")]
        watched += [(policy.representation, method, "gather") for method in ("of", "terms")]
        watched += [(policy, "choose", "scores"), (policy, "ask", "questions")]
        watched += [(policy, method, "updates") for method in ("listen", "update")]
        watched += [(run.metrics, method, "metrics") for method in ("add", "read")]
        watched += [
            (file, method, "logging") for file in files for method in ("on_start", "on_record", "on_end")
        ]
        for owner, method, part in watched:
            clocks.watch(owner, method, part)
        run.run()
    return {part: 1e6 * clocks.seconds[part] / options.rounds / options.users for part in PARTS}


def measure(name: str, options: argparse.Namespace) -> Figures:
    """All figures of a policy."""
    contender = CONTENDERS[name]
    simulation(contender, argparse.Namespace(**{**vars(options), "rounds": 3}), ()).run()  # loads kernels
    ours, bare, loop, written = [], [], [], []
    for _ in range(options.repeats):
        own, products = time_ours(contender, options)
        ours.append(1e6 * own)
        bare.append(1e6 * products)
        if name == "LinUCB":
            written.append(1e6 * time_by_hand(options))
        loop.append(1e6 * time_loop(contender, options))
    over_bare = None
    if contender.products is not None:
        over_bare = statistics.median(a / b for a, b in zip(ours, bare, strict=True))
    return Figures(
        ours=statistics.median(ours),
        loop=statistics.median(loop),
        bare=None if contender.products is None else statistics.median(bare),
        by_hand=statistics.median(written) if written else None,
        over_loop=statistics.median(a / b for a, b in zip(loop, ours, strict=True)),
        over_bare=over_bare,
        calls=count_calls(contender, options),
        parts=break_down(contender, options),
    )


def floor_of(name: str, precision: str) -> float | None:
    """How many times as fast as the loop the policy must be; in float64 half of that will do."""
    floor = FLOORS.get(name)
    return floor if floor is None or precision == "32-true" else floor / 2


def table(found: dict[str, Figures], precision: str) -> tuple[list[str], list[list[str]]]:
    """Times and ratios."""
    headings = ["policy", "ours (us)", "NumPy loop (us)", "loop / ours", "floor", "met"]
    headings += ["bare (us)", "ours / bare", "ceiling", "met", "by hand (us)", "torch calls a round"]
    rows = []
    for name, own in found.items():
        floor, ceiling = floor_of(name, precision), CEILINGS.get(name)
        row = [name, f"{own.ours:.2f}", f"{own.loop:.0f}", f"{own.over_loop:.1f}"]
        row += ["", ""] if floor is None else [f"{floor:g}", "yes" if own.over_loop >= floor else "no"]
        if own.bare is None or own.over_bare is None:
            row += ["-", "-", "", ""]
        else:
            row += [f"{own.bare:.2f}", f"{own.over_bare:.2f}"]
            row += (
                ["", ""] if ceiling is None else [f"{ceiling:g}", "yes" if own.over_bare <= ceiling else "no"]
            )
        rows.append([*row, "" if own.by_hand is None else f"{own.by_hand:.2f}", f"{own.calls:.0f}"])
    return headings, rows


def parts_table(found: dict[str, Figures]) -> tuple[list[str], list[list[str]]]:
    """What the time goes into."""
    rows = [
        [name, *(f"{own.parts[part]:.2f}" for part in PARTS), f"{sum(own.parts.values()):.2f}"]
        for name, own in found.items()
    ]
    return ["policy", *PARTS, "sum"], rows


PARTS_TEXT = """Microseconds per user-round of a run with clocks (which cost a little) and with files:
draws (candidates, noise), rewards (the rest of the environment: true means, best candidate), gather (features
of candidates and key-terms), scores (the arm rule, where features are gathered already), questions (which
key-term; Arm-Con's are under scores), updates (rewards and answers), metrics, logging (TensorBoard and
`metrics.csv`), loop (what is left). Features that the rule gathers are not gathered again for the rewards.
"""


def options_from(words: list[str] | None) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    sizes = {"users": 200, "rounds": 1000, "dim": 50, "pool": 50, "arms": 5000, "terms": 500, "threads": 2}
    others = {"hidden": 5, "repeats": 3, "loop-users": 1, "seed": 0}
    for name, value in (sizes | others).items():
        parser.add_argument(f"--{name}", type=int, default=value, metavar="N", help=f"default {value}")
    parser.add_argument("--precision", choices=("32-true", "64-true"), default="32-true")
    parser.add_argument("--policies", nargs="+", choices=CONTENDERS, default=list(CONTENDERS), metavar="NAME")
    parser.add_argument("--busy", action="store_true", help="keep all cores busy with something else")
    parser.add_argument("--quick", action="store_true", help="a small world; other sizes are ignored")
    options = parser.parse_args(words)
    if options.quick:
        parser.parse_args(["--out", str(options.out), *QUICK], namespace=options)
    return options


@contextmanager
def busy(number: int) -> Iterator[None]:
    """So many processes beside this one that do nothing, as fast as they can."""
    beside = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for process in beside:
            process.kill()
            process.wait()


def main(words: list[str] | None = None) -> None:
    """Measure all policies."""
    options = options_from(words)
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(options.threads)
    found: dict[str, Figures] = {}
    with busy(os.cpu_count() or 1 if options.busy else 0):
        for name in options.policies:
            found[name] = measure(name, options)
            own = found[name]
            say(f"{name}: {own.ours:.2f} us per user-round, the NumPy loop {own.over_loop:.0f} times that")
    sizes = {key: value for key, value in vars(options).items() if key not in ("out", "policies", "quick")}
    title = (
        f"{options.users} users, {options.rounds} rounds, d = {options.dim}, pool {options.pool}, "
        f"{options.arms} arms, {options.terms} key-terms, {options.precision}, {options.threads} threads"
        f"{', all cores busy with something else' if options.busy else ''}"
    )
    times, parts = table(found, options.precision), parts_table(found)
    show(title, *times)
    show("Microseconds per user-round, by part", *parts)
    text = f"{title}; {machine()['processor']}.\n\n{markdown(*times)}\n{PARTS_TEXT}\n{markdown(*parts)}"
    if name_of("cpu") != TORCH:
        from experiments import kernel_limits  # needs numba

        text += f"\n{kernel_limits.__doc__}\n{kernel_limits.tell(options, _dtype(options))}"
    (options.out / "benchmark.md").write_text(text, encoding="utf-8")
    content = {name: asdict(own) for name, own in found.items()}
    write_json(options.out / "benchmark.json", {"sizes": sizes, "machine": machine(), "policies": content})
    draw(content, {name: floor_of(name, options.precision) for name in found}, options.out / "benchmark")


if __name__ == "__main__":
    main()
