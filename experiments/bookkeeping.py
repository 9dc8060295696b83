"""Measures what bookkeeping costs in a folder of many jobs: it must grow with their number, not faster.

    python experiments/bookkeeping.py --jobs 10000 --out DIR

Jobs that play nothing leave what a real one leaves: a config, a file of metrics and a result, all synced.
What is measured is the rest: reading the folder back and checking that nothing else is in it, a line of the
summary per job, bands over seeds while jobs run (at most a twentieth of the time), and the curves at the end;
and the same command again, when all jobs are done. Prints a table, and writes it to `DIR/bookkeeping.md`; the
exit code is 1 if the cost per job at the largest size is more than twice that at the smallest.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from conbandit_torch.callbacks.metrics_file import MetricsFile
from conbandit_torch.configuration.build import build_environment
from conbandit_torch.configuration.load import load
from conbandit_torch.core.digests import data_digest
from conbandit_torch.core.files import make_folder
from conbandit_torch.core.seals import file_digest
from conbandit_torch.running import runner
from conbandit_torch.running.folder import CONFIG, METRICS, job_folder
from conbandit_torch.running.job import origin_of, write_config
from conbandit_torch.running.metrics import Record
from conbandit_torch.running.plan import Plan
from conbandit_torch.running.result import Job, JobResult, write_result

RECORDS = 20
SLOWER = 2.0
POLICIES = {"LinUCB": "LinUCB", "ConUCB": "ConUCB"}
WORLD = {"users": 4, "arms": 40, "terms": 8, "dim": 5, "pool": 6, "max_terms": 3}


class Played:
    """Stands in for playing: writes what a job leaves, and takes the time that it does so.

    Args:
        experiment: whose jobs they are.
    """

    def __init__(self, experiment: Plan) -> None:
        self.seconds = 0.0
        # Of one world for all seeds: building and hashing worlds is no bookkeeping.
        self._origin = origin_of(
            experiment, experiment.jobs()[0], data_digest(build_environment(experiment, 0))
        )

    def __call__(
        self, experiment: Plan, folder: Path, threads: int, job: Job, *_: Any, **__: Any
    ) -> JobResult:
        """The job's result."""
        start = time.perf_counter()
        own = job_folder(folder, *job)
        make_folder(own)
        origin = replace(self._origin, config=experiment.digest(*job))
        write_config(experiment, own, job, origin)
        rounds = [experiment.rounds * (number + 1) // RECORDS for number in range(RECORDS)]
        records = [Record(number, job[1] + number, 0.1, 0.9, 0.5, 0.2, 3.0, seconds=0.1) for number in rounds]
        simulation: Any = argparse.Namespace(records=records)
        metrics = MetricsFile(own / METRICS)
        metrics.on_start(simulation)
        result = JobResult(
            *job,
            last=records[-1],
            users=4,
            fingerprint="0" * 64,
            metrics=file_digest(own / METRICS),
            config=file_digest(own / CONFIG),
            origin=origin,
        )
        write_result(own, result)
        self.seconds += time.perf_counter() - start
        return result


def measure(folder: Path, jobs: int) -> dict[str, float]:
    """Seconds of a run of so many jobs, but for the jobs themselves, and of the same command again."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = folder / "config.yaml"
    content = {
        "rounds": 1000,
        "seeds": f"0-{jobs // len(POLICIES) - 1}",
        "environment": {"class_path": "Synthetic", "init_args": WORLD},
        "policies": POLICIES,
    }
    config.write_text(yaml.safe_dump(content, sort_keys=False))
    experiment = load(config)
    played = Played(experiment)
    real, runner.run_job = runner.run_job, played  # type: ignore[assignment]
    try:
        start = time.perf_counter()
        runner.run(experiment, folder / "out", Console(quiet=True), threads=1)
        first = time.perf_counter() - start
        start = time.perf_counter()
        runner.run(experiment, folder / "out", Console(quiet=True), threads=1)
        again = time.perf_counter() - start
    finally:
        runner.run_job = real
    shutil.rmtree(folder)
    return {"bookkeeping": first - played.seconds, "files of the jobs": played.seconds, "again": again}


def main() -> int:
    """Measure all sizes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=10_000, help="the largest number of jobs (10,000)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    if options.jobs < 80:
        parser.error(f"--jobs must be at least 80, got {options.jobs}")
    lines = [
        "| jobs | bookkeeping (s) | per job (ms) | all done, again (s) | per job (ms) | jobs' files (s) |"
    ]
    lines += ["|---:|---:|---:|---:|---:|---:|"]
    costs = []
    for part in (16, 4, 2, 1):
        jobs = options.jobs // part // 2 * 2
        took = measure(options.out / "folder", jobs)
        costs.append((took["bookkeeping"] / jobs, took["again"] / jobs))
        lines.append(
            f"| {jobs:,} | {took['bookkeeping']:.1f} | {1e3 * costs[-1][0]:.2f} | {took['again']:.1f} | "
            f"{1e3 * costs[-1][1]:.2f} | {took['files of the jobs']:.1f} |"
        )
        sys.stderr.write(lines[-1] + "\n")
    linear = all(last <= SLOWER * first for first, last in zip(costs[0], costs[-1], strict=True))
    lines += [
        "",
        "The cost per job does not grow." if linear else "The cost per job GROWS with their number.",
    ]
    text = "\n".join(lines)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "bookkeeping.md").write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")
    return 0 if linear else 1


if __name__ == "__main__":
    sys.exit(main())
