"""Kills runs at random instants, resumes them, and compares what comes out with an uninterrupted run.

    python experiments/kills.py --kills 200 --out DIR

Every trial starts a run into a fresh folder, kills it with SIGKILL after a random time (its whole process
group, or only the parent), finishes it with `conbandit resume`, and compares `metrics.csv`, `summary.csv`
and TensorBoard's scalars (but for times), and the fingerprint of the policies' final state. Prints a table,
and writes it to `DIR/kills.md`; the exit code is 1 if anything differed.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import logging
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import scipy.stats  # noqa: F401 - imported before forking: a child must not spend its time on it
import torch
import torch.utils.tensorboard
import yaml
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import conbandit_torch.running.runner  # noqa: F401
from conbandit_torch.commands.main import main as conbandit
from conbandit_torch.kernels import kernels_for

kernels_for(torch.empty(0))  # imports them, and runs none: threads do not survive a fork

ASKING = {"class_path": "LogSchedule", "init_args": {"questions": 3}}
CONFIG = {
    "rounds": 120,
    "seeds": "0-1",
    "log_every": 7,
    "checkpoint_every": 11,
    "environment": {
        "class_path": "Synthetic",
        "init_args": {"users": 10, "arms": 200, "terms": 20, "dim": 8, "pool": 10, "hidden": 2},
    },
    "policies": {
        "ConUCB": {"class_path": "ConUCB", "init_args": {"schedule": ASKING}},
        "hConUCB": {
            "class_path": "HConUCB",
            "init_args": {"hidden_dim": 2, "refit_every": 30, "schedule": ASKING},
        },
    },
}


def results(folder: Path) -> dict[str, Any]:
    """Everything that must not depend on interruptions."""
    logging.getLogger("tensorboard").setLevel(logging.ERROR)
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*.csv")):
        with path.open(newline="") as file:
            lines = [{**row, "seconds": ""} for row in csv.DictReader(file)]
        found[str(path.relative_to(folder))] = lines
    for path in sorted(folder.glob("*/seed*/result.json")):
        found[str(path.relative_to(folder))] = json.loads(path.read_text())["fingerprint"]
        events = EventAccumulator(str(path.parent), size_guidance={"scalars": 0})
        events.Reload()
        for tag in sorted(set(events.Tags()["scalars"]) - {"hidden/refit_seconds"}):
            # As TensorBoard shows them: a doubled, missing or late step shows.
            steps = [(event.step, event.value) for event in events.Scalars(tag)]
            found[f"{path.parent.relative_to(folder)}: {tag}"] = steps
    return found


def start(*words: str) -> int:
    """A conbandit command in a new process group, without the time it takes to import torch."""
    child = os.fork()
    if child == 0:
        os.setsid()
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        code = 3
        with contextlib.suppress(SystemExit):
            code = conbandit(words)
        os._exit(code)
    return child


def wait(child: int) -> int:
    """The child's exit code; negative if a signal killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def trial(config: Path, out: Path, jobs: int, patience: float, group: bool) -> str:
    """Start, kill, resume; returns what had been done when the kill came."""
    child = start("run", str(config), "--out", str(out), "--jobs", str(jobs), "--threads", "1")
    time.sleep(patience)
    with contextlib.suppress(ProcessLookupError):
        (os.killpg if group else os.kill)(child, signal.SIGKILL)
    finished = wait(child) == 0
    jobs_done = len(list(out.glob("*/seed*/result.json")))
    begun = any(out.rglob("checkpoints/*/manifest.json"))
    if not (out / "experiment.yaml").exists():  # killed before it had begun: there is nothing to resume
        state, again = "nothing", start("run", str(config), "--out", str(out), "--threads", "1")
    else:
        state = "all" if finished else f"{jobs_done} jobs" + (", one in part" if begun else "")
        again = start("resume", str(out))
    code = wait(again)
    if code != 0:
        sys.exit(f"{out}: resuming ended with exit code {code}")
    return state


def main() -> int:
    """Run all trials."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--parallel", type=int, default=None, help="of those, runs with --jobs 2 (a tenth)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    parallel = options.kills // 10 if options.parallel is None else options.parallel
    options.out.mkdir(parents=True, exist_ok=True)
    config = options.out / "config.yaml"
    config.write_text(yaml.safe_dump(CONFIG, sort_keys=False))
    durations = {}
    # The first run may have kernels to compile: what the second one takes is the time to kill within.
    for jobs in (1, 1, 2) if parallel else (1, 1):
        whole = options.out / f"whole{jobs}"
        shutil.rmtree(whole, ignore_errors=True)  # of an earlier version, perhaps
        began = time.monotonic()
        if wait(start("run", str(config), "--out", str(whole), "--jobs", str(jobs), "--threads", "1")) != 0:
            sys.exit(f"{whole}: the uninterrupted run failed")
        durations[jobs] = time.monotonic() - began
    expected = results(options.out / "whole1")
    generator = random.Random(options.seed)
    states: Counter[str] = Counter()
    different = 0
    for number in range(options.kills):
        jobs = 2 if number < parallel else 1
        out = options.out / "trial"
        patience = generator.uniform(0, durations[jobs])
        state = trial(config, out, jobs, patience, group=generator.random() < 0.5)
        same = results(out) == expected
        states[state] += 1
        different += not same
        sys.stderr.write(f"kill {number + 1}/{options.kills} after {patience:.2f} s ({state}): ")
        sys.stderr.write("identical\n" if same else "DIFFERENT\n")
        if not same:
            shutil.copytree(out, options.out / f"different{number}")
        shutil.rmtree(out)
    lines = ["| done when killed | kills |", "|---|---:|"]
    lines += [f"| {state} | {count} |" for state, count in sorted(states.items())]
    outcome = f"{options.kills - different} identical final results, {different} different."
    lines += ["", f"{options.kills} kills ({parallel} of parallel runs): {outcome}"]
    text = "\n".join(lines)
    (options.out / "kills.md").write_text(text + "\n")
    sys.stdout.write(text + "\n")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
