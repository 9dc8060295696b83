"""Plays long runs and watches their memory and their speed: neither may get worse with the rounds.

    python experiments/soak.py --rounds 100000 --out DIR

ConUCB, hConUCB and hConUCB with a history refit, one after the other, each in its own process and with
all that a run writes: the metrics file, TensorBoard's events and checkpoints. In each of ten windows of
rounds it takes the resident memory at the end, and the median time per round (of the processor, so that other
programs count little). Prints a table, writes it to `DIR/soak.md` and draws `DIR/soak.png`. The exit code is
1 if, in the last half, a run's memory grew by more than 5 % (without the refit's log, which grows by 20 bytes
per observation, see `History`) or its time per round by more than 50 %.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import multiprocessing
import shutil
import statistics
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil
import yaml

from conbandit_torch.callbacks.base import Callback
from conbandit_torch.configuration.load import load
from conbandit_torch.core.rounds import Round
from conbandit_torch.loop import Simulation
from conbandit_torch.models.history import History
from conbandit_torch.running.job import run_job

WINDOWS = 10
MEMORY, TIME = 1.05, 1.5  # how much more the end may take than the middle
ASKING = {"class_path": "LogSchedule", "init_args": {"questions": 5}}
POLICIES: dict[str, dict[str, Any]] = {
    "ConUCB": {"class_path": "ConUCB", "init_args": {"schedule": ASKING}},
    "hConUCB": {"class_path": "HConUCB", "init_args": {"hidden_dim": 3, "schedule": ASKING}},
    "hConUCB+refit": {
        "class_path": "HConUCB",
        "init_args": {"hidden_dim": 3, "refit_every": 1000, "schedule": ASKING},
    },
}
WORLD = {"users": 20, "arms": 500, "terms": 50, "dim": 20, "hidden": 3, "pool": 20}


@dataclass
class Window:
    """What was seen in a tenth of a run.

    Attributes:
        rounds: rounds played by its end.
        memory: resident bytes at its end.
        log: of these, those of the refit's log.
        microseconds: median time per round.
        mean: mean time per round, which has what only some rounds do: refits, records, checkpoints.
    """

    rounds: int
    memory: int
    log: int
    microseconds: float
    mean: float


class Watch(Callback):
    """Takes the time of every round, and the memory at the end of every window.

    Args:
        rounds: rounds of the run.
    """

    def __init__(self, rounds: int) -> None:
        self.ends = [rounds * (window + 1) // WINDOWS for window in range(WINDOWS)]
        self.windows: list[Window] = []
        self._process, self._times = psutil.Process(), [0.0]
        self._last = 0.0

    def on_start(self, simulation: Simulation) -> None:
        """Start the clock."""
        self._times.clear()
        self._last = time.process_time()

    def on_round(self, simulation: Simulation, played: Round) -> None:
        """From the same place in the round before: with all that the other callbacks do."""
        now = time.process_time()
        self._times.append(1e6 * (now - self._last))
        self._last = now
        if simulation.round in self.ends:
            parent = multiprocessing.parent_process()
            if parent is not None and not parent.is_alive():
                simulation.stop()  # nobody is left to tell
            _give_back()
            self.windows.append(
                Window(
                    rounds=simulation.round,
                    memory=self._process.memory_info().rss,
                    log=_log_bytes(simulation),
                    microseconds=statistics.median(self._times),
                    mean=statistics.fmean(self._times),
                )
            )
            self._times.clear()
            self._last = time.process_time()


def play(config: Path, out: Path, policy: str, results: Connection) -> None:
    """One policy's run, as `conbandit run` does it; sends its windows."""
    experiment = load(config)
    watch = Watch(experiment.rounds)
    result = run_job(experiment, out, 1, (policy, experiment.seeds[0]), watch)
    if result.last is None:
        sys.exit(f"{policy}: {result.error or result.stopped}")
    results.send(watch.windows)


def play_apart(config: Path, out: Path, policy: str) -> list[Window]:
    """The windows of a policy's run in a new process, whose memory is this run's alone."""
    fresh = multiprocessing.get_context("spawn")
    receiving, sending = fresh.Pipe(duplex=False)
    process = fresh.Process(target=play, args=(config, out, policy, sending))
    process.start()
    sending.close()
    try:
        windows: list[Window] = receiving.recv()
    except EOFError:
        sys.exit(f"{policy}: the run did not end")
    finally:
        process.join()
    return windows


def problems(policy: str, windows: list[Window]) -> list[str]:
    """What got worse in the second half."""
    middle, last = windows[WINDOWS // 2 - 1], windows[-1]
    found = []
    growth = (last.memory - last.log) / (middle.memory - middle.log)
    if growth > MEMORY:
        found.append(f"{policy}: memory without the log grew by {growth - 1:.1%} in the second half")
    times = [window.microseconds for window in windows]
    # Three windows each: one may have been played while the machine was busy.
    slower = statistics.median(times[-3:]) / statistics.median(times[-6:-3])
    if slower > TIME:
        found.append(f"{policy}: a round took {slower - 1:.0%} longer at the end than in the middle")
    return found


def draw(found: dict[str, list[Window]], path: Path) -> None:
    """Memory and time over rounds."""
    from matplotlib.figure import Figure  # not in the runs' processes

    figure = Figure(figsize=(8, 3.4), layout="constrained")
    memory, speed = figure.subplots(1, 2)
    for policy, windows in found.items():
        rounds = [window.rounds for window in windows]
        memory.plot(rounds, [window.memory / 1e6 for window in windows], "o-", label=policy)
        speed.plot(rounds, [window.microseconds for window in windows], "o-", label=policy)
    memory.set(xlabel="round", ylabel="resident memory (MB)", ylim=(0, None))
    speed.set(xlabel="round", ylabel="microseconds per round (median)", ylim=(0, None))
    memory.legend()
    figure.savefig(path, dpi=100)


def _give_back() -> None:
    """Return freed memory to the system, as far as the C library can: what is left is in use."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _log_bytes(simulation: Simulation) -> int:
    """Bytes of the refit's log, with the room that it has to grow."""
    logs = (module for module in simulation.policy.modules() if isinstance(module, History))
    return sum(buffer.nbytes for log in logs for buffer in log.buffers())


def main() -> int:
    """Play all policies."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--no-judge", action="store_true", help="only measure: the exit code is 0")
    options = parser.parse_args()
    if options.rounds < WINDOWS:
        parser.error(f"--rounds must be at least {WINDOWS}, got {options.rounds}")
    runs, config = options.out / "runs", options.out / "config.yaml"
    shutil.rmtree(runs, ignore_errors=True)
    options.out.mkdir(parents=True, exist_ok=True)
    content = {
        "rounds": options.rounds,
        "seeds": "0",
        "checkpoint_every": 5000,
        "environment": {"class_path": "Synthetic", "init_args": WORLD},
        "policies": POLICIES,
    }
    config.write_text(yaml.safe_dump(content, sort_keys=False))
    found: dict[str, list[Window]] = {}
    for policy in POLICIES:
        sys.stderr.write(f"{policy}: {options.rounds} rounds\n")
        found[policy] = play_apart(config, runs, policy)
    lines = ["| policy | window | rounds | MB | of these, the log | microseconds per round | mean |"]
    lines += ["|---|---:|---:|---:|---:|---:|---:|"]
    lines += [
        f"| {policy} | {number} | {window.rounds} | {window.memory / 1e6:.1f} | {window.log / 1e6:.1f} | "
        f"{window.microseconds:.0f} | {window.mean:.0f} |"
        for policy, windows in found.items()
        for number, window in enumerate(windows, start=1)
    ]
    worse = [problem for policy, windows in found.items() for problem in problems(policy, windows)]
    lines += ["", *(worse or ["Nothing grew in the second half."])]
    text = "\n".join(lines)
    (options.out / "soak.md").write_text(text + "\n", encoding="utf-8")
    draw(found, options.out / "soak.png")
    sys.stdout.write(text + "\n")
    return 1 if worse and not options.no_judge else 0


if __name__ == "__main__":
    sys.exit(main())
