"""How time and memory grow with users, arms, key-terms, features, candidates and rounds.

    python -m experiments.scaling --out DIR

LinUCB, ConUCB and hConUCB; one size varies, the others are the paper's. Every point is measured in a process
of its own, for `--seconds` and at least five rounds, so that its memory peak is its own. The questions of
b(t) = 5 floor(log t) come mostly in the first rounds, so they are timed apart, as are records of the metrics,
and what is shown is a user-round of 1,000 rounds: a plain round, 30 questions in a thousand, and a record in
ten. Along the axis `rounds` few users play on to 10^5 rounds; each mark is the mean of plain rounds in the
half before it.

Peak memory is the growth of the resident memory from before the policy is built (catalogue and environment
are there already) to its highest, in these rounds and in one more in which every user's exact refresh is due,
as it is every 500 rounds; it needs Linux. Sizes whose state is above `--memory` are left out, and the
table says so. Writes `scaling.md`, `scaling.json`, `scaling_time.png`, `scaling_bytes.png` and both as .pdf.
`--quick` is a small world.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import statistics
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from conbandit_torch import Bandit, RidgeRegression, Simulation, Synthetic, play_round
from conbandit_torch.callbacks.base import Callback, StoppedError
from conbandit_torch.core.rounds import Round
from experiments.capacity import STATES
from experiments.contenders import CONTENDERS
from experiments.measuring import machine, markdown, say, show, write_json
from experiments.scaling_report import Points, checks, draw, rows_of

POLICIES = ("LinUCB", "ConUCB", "hConUCB")
DEFAULTS = {"users": 200, "arms": 5000, "terms": 500, "dim": 50, "pool": 50}
AXES = {
    "users": (200, 1000, 5000, 20_000, 100_000),
    "arms": (1000, 10_000, 100_000, 1_000_000),
    "terms": (100, 500, 2000, 10_000),
    "dim": (10, 25, 50, 100, 200),
    "pool": (25, 50, 100, 250, 1000),
}
MARKS = (1000, 10_000, 100_000)
QUICK_DEFAULTS = {"users": 6, "arms": 60, "terms": 10, "dim": 8, "pool": 5}
QUICK_AXES = {"users": (6, 12), "arms": (60, 90), "terms": (6, 10), "dim": (7, 8), "pool": (5, 9)}
QUICK_MARKS = (10, 30)
HIDDEN, FEW_USERS = 5, 8
LEAST_ROUNDS, LOG_EVERY = 5, 4  # the third asks, the fourth is recorded, the others are plain
HORIZON, USUAL_LOG_EVERY = 1000, 10  # rounds that a user-round's share of questions and records is of

Point = dict[str, Any]


class Clock(Callback):
    """Times plain rounds, questions and records, until the time is up.

    Args:
        seconds: when to stop, once the least number of rounds is played.
        marks: rounds at whose ends to note the mean time of the last rounds; the last mark ends the run.
    """

    def __init__(self, seconds: float, marks: tuple[int, ...] = ()) -> None:
        self.seconds, self.marks = seconds, marks
        self.plain, self.asking, self.recording, self.questions = [0.0], [0.0], [0.0], 0
        self.at_marks: dict[int, float] = {}
        self._start = self._last = 0.0

    def on_start(self, simulation: Simulation) -> None:
        """Start."""
        for times in (self.plain, self.asking, self.recording):
            times.clear()
        self._start = self._last = time.perf_counter()

    def on_round(self, simulation: Simulation, played: Round) -> None:
        """From the same place in the round before."""
        now = time.perf_counter()
        recorded = simulation.round % LOG_EVERY == 0
        if not (recorded and played.dialogue):
            times = self.asking if played.dialogue else self.recording if recorded else self.plain
            times.append(now - self._last)
            self.questions += len(played.dialogue)
        if simulation.round in self.marks:
            window = self.plain[-max(1, simulation.round // 2) :]
            self.at_marks[simulation.round] = sum(window) / len(window)
        least = simulation.round >= LEAST_ROUNDS
        if (least and now - self._start > self.seconds) or simulation.round == max(self.marks, default=0):
            simulation.stop()
        self._last = time.perf_counter()

    def user_round(self, users: int) -> float:
        """Seconds per user-round of `HORIZON` rounds."""
        plain = statistics.fmean(self.plain)
        record = statistics.fmean(self.recording) - plain
        question = (sum(self.asking) - len(self.asking) * plain) / max(1, self.questions)
        share = 5 * int(math.log(HORIZON)) / HORIZON
        return (plain + share * question + record / USUAL_LOG_EVERY) / users


def measure(
    policy: str,
    sizes: dict[str, int],
    seconds: float,
    marks: tuple[int, ...],
    threads: int,
    results: Connection,
) -> None:
    """One point; sends what was found."""
    torch.set_num_threads(threads)
    contender = CONTENDERS[policy]
    hidden = min(HIDDEN, sizes["dim"] - 1) if contender.hidden else 0
    most = min(5, sizes["terms"])
    warm = Synthetic(users=2, arms=20, terms=5, dim=6, pool=5, hidden=1 if hidden else 0)
    _play(Simulation(contender.build(warm), warm, rounds=10))  # imports, threads and their memory
    environment = Synthetic(**sizes, max_terms=most, hidden=hidden)
    environment.to(torch.float32)  # so that the policy's state is never in float64
    before = _start_peak()
    built = contender.build(environment)
    clock = Clock(seconds, marks)
    simulation = Simulation(built, environment, rounds=10**9, log_every=LOG_EVERY, callbacks=(clock,))
    _play(simulation)
    _refresh_everyone(built, environment)
    state = sum(tensor.nbytes for tensor in built.state_dict().values())
    users = sizes["users"]
    results.send(
        {
            "microseconds": 1e6 * clock.user_round(users),
            "at_marks": {mark: 1e6 * seconds / users for mark, seconds in clock.at_marks.items()},
            "rounds": simulation.round,
            "state": state,
            "peak": None if before is None else _status("VmHWM") - before,
        }
    )


def measure_apart(
    policy: str, sizes: dict[str, int], options: argparse.Namespace, marks: tuple[int, ...]
) -> Point:
    """A point, measured in a new process; what went wrong, if it did not end."""
    name = STATES[policy]
    observed = sizes["dim"] - (HIDDEN if name.per_arm else 0)
    needed = sizes["users"] * name.user_bytes(observed) + sizes["arms"] * name.arm_bytes(observed)
    if needed > 1e9 * options.memory:
        return {"left_out": f"its state is {needed / 1e9:.1f} GB, above --memory {options.memory:g}"}
    fresh = multiprocessing.get_context("forkserver")
    imported_once = ["lightning.fabric", "experiments.contenders", "experiments.scaling_report"]
    fresh.set_forkserver_preload(imported_once)  # for all points
    receiving, sending = fresh.Pipe(duplex=False)
    seconds = options.rounds_seconds if marks else options.seconds
    process = fresh.Process(target=measure, args=(policy, sizes, seconds, marks, options.threads, sending))
    process.start()
    sending.close()
    try:
        found: Point = receiving.recv()
    except EOFError:
        return {"left_out": "the process ended without a result"}
    finally:
        process.join()
    return found


def collect(options: argparse.Namespace) -> Points:
    """All points: axis, policy, value."""
    defaults, axes, marks = DEFAULTS, AXES, MARKS
    if options.quick:
        defaults, axes, marks = QUICK_DEFAULTS, QUICK_AXES, QUICK_MARKS
    known: dict[tuple[Any, ...], Point] = {}
    points: Points = {}
    for axis in options.axes:
        points[axis] = {}
        for policy in options.policies:
            own = points[axis][policy] = {}
            if axis == "rounds":
                users = min(FEW_USERS, defaults["users"])
                found = measure_apart(policy, defaults | {"users": users}, options, marks)
                for mark in marks:
                    at = found.get("at_marks", {}).get(mark)
                    missing = found.get("left_out", f"not reached in {options.rounds_seconds:g} s")
                    own[mark] = {"left_out": missing}
                    if at is not None:
                        own[mark] = found | {"users": users, "microseconds": at, "rounds": mark}
                say(f"{axis}, {policy}: {[point.get('microseconds') for point in own.values()]}")
                continue
            for value in axes[axis]:
                sizes = defaults | {axis: value}
                key = (policy, *sizes.values())
                if key not in known:
                    known[key] = measure_apart(policy, sizes, options, ()) | {"users": sizes["users"]}
                    say(f"{axis} {value}, {policy}: {known[key].get('microseconds')} us per user-round")
                own[value] = known[key]
    return points


def main(words: list[str] | None = None) -> None:
    """Measure all points."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--seconds", type=float, default=2.0, help="time a point (default 2)")
    parser.add_argument("--rounds-seconds", type=float, default=75.0, help="the axis `rounds`, a policy")
    parser.add_argument("--memory", type=float, default=9.0, help="largest state in GB (default 9)")
    parser.add_argument("--threads", type=int, default=2)
    every_axis = [*AXES, "rounds"]
    parser.add_argument("--axes", nargs="+", choices=every_axis, default=every_axis, metavar="AXIS")
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES), metavar="NAME")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(words)
    options.out.mkdir(parents=True, exist_ok=True)
    points = collect(options)
    headings = [
        "axis",
        "policy",
        "value",
        "us per user-round",
        "state bytes / users",
        "peak MB",
        "rounds",
        "note",
    ]
    rows = rows_of(points)
    told = checks(points, DEFAULTS["dim"]) if "users" in points else []
    show("Scaling", headings, rows)
    text = "\n".join(
        [
            f"Other sizes: {DEFAULTS if not options.quick else QUICK_DEFAULTS}; along `rounds` "
            f"{FEW_USERS} users. float32, {options.threads} threads; {machine()['processor']}. State bytes "
            "of hConUCB hold the arms' hidden features and their regressions.\n",
            markdown(headings, rows),
            *told,
        ]
    )
    (options.out / "scaling.md").write_text(text + "\n", encoding="utf-8")
    write_json(options.out / "scaling.json", {"machine": machine(), "points": points, "checks": told})
    draw(points, options.out)
    for line in told:
        say(line)


def _play(simulation: Simulation) -> None:
    try:
        simulation.run()
    except StoppedError:
        return


def _refresh_everyone(policy: Bandit, environment: Synthetic) -> None:
    """A round in which all inverses are computed anew."""
    for module in policy.modules():
        if isinstance(module, RidgeRegression):
            module.refresh_every = 1
    policy.load_state_dict(policy.state_dict())  # regressions look at their counts anew
    with torch.no_grad():
        play_round(policy, environment)


def _status(field: str) -> int:
    """Bytes of a field of /proc/self/status."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{field}:"):
            return 1024 * int(line.split()[1])
    raise ValueError(f"/proc/self/status has no {field}")


def _start_peak() -> int | None:
    """Resident memory now, which becomes the highest so far; None where the system cannot tell."""
    reset = Path("/proc/self/clear_refs")
    if not reset.exists():
        return None
    reset.write_text("5", encoding="ascii")  # 5: forget the peak
    return _status("VmRSS")


if __name__ == "__main__":
    main()
