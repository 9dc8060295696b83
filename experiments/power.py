"""Cuts the power after every step of a run, resumes what a disk may hold then, and compares what comes out.

    python experiments/power.py --out DIR

Three kinds of run are recorded: one job after the other, two at a time, and the resume of a resume. After
every step (see `recorder`) all images that a power failure may leave are built: what was synced alone, names
without their data, data cut in the middle, everything, and random subsets. Each is resumed, and its
`metrics.csv`, `summary.csv`, TensorBoard's scalars (but for times) and fingerprints of the policies' final
states are compared with those of an uninterrupted run. Of every job that had been reported as finished the
result must be there before anything is resumed. Prints a table and writes it to `DIR/power.md`; the exit code
is 1 if anything was lost or differed.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from conbandit_torch.running.folder import EXPERIMENT, HOW, job_folder
from conbandit_torch.running.result import ResultError, read_result
from experiments import kills
from experiments.recorder import LOG, ROOT, Image, images

REPOSITORY = Path(__file__).resolve().parent.parent
CONFIG: dict[str, Any] = kills.CONFIG | {"rounds": 12, "seeds": "0", "log_every": 4, "checkpoint_every": 5}
_SITE = "from experiments.recorder import install_from_environment\ninstall_from_environment()\n"
_MAIN = """
import sys
from conbandit_torch.commands.main import main
from conbandit_torch.running import runner
from experiments.recorder import Recorder, LOG, ROOT
import os
from pathlib import Path
recorder = Recorder(Path(os.environ[ROOT]), Path(os.environ[LOG]))
describe = runner.describe
def reporting(result):
    if result.last is not None:
        recorder.report(result.job)
    return describe(result)
runner.describe = reporting
sys.exit(main(sys.argv[1:]))
"""


@dataclass
class Outcome:
    """What came of a kind of run.

    Attributes:
        steps: steps recorded.
        kinds: images tried, by kind.
        lost: images without a result that had been reported.
        failed: images that could not be resumed.
        different: images that ended otherwise than an uninterrupted run.
    """

    steps: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """All that went wrong."""
        return [*self.lost, *self.failed, *self.different]


def record(root: Path, log: Path, *words: str) -> None:
    """Run a conbandit command that works below `root`, and record its steps."""
    shutil.rmtree(log, ignore_errors=True)
    site = log / "site"
    site.mkdir(parents=True)
    (site / "sitecustomize.py").write_text(_SITE)
    path = os.pathsep.join([str(site), str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {LOG: str(log), ROOT: str(root), "PYTHONPATH": path}
    command = [sys.executable, "-c", _MAIN, *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)} ended with exit code {done.returncode}:\n{done.stderr}")


def resume(config: Path, out: Path) -> int:
    """Go on with what there is, as a user would; returns the exit code."""
    if (out / HOW).exists() and (out / EXPERIMENT).exists():
        code = kills.wait(kills.start("resume", str(out), "--jobs", "1"))
        if code != 2:  # refused: one of the two is damaged, and the message says to run the config again
            return code
    return kills.wait(kills.start("run", str(config), "--out", str(out), "--threads", "1"))


def judge(image: Image, config: Path, folder: Path, expected: dict[str, Any], outcome: Outcome) -> None:
    """Resume one image."""
    shutil.rmtree(folder, ignore_errors=True)
    image.write(folder)
    out = folder / "out"
    name = f"after step {image.step}, {image.kind}"
    outcome.kinds[image.kind.partition(" ")[0] if "subset" in image.kind else image.kind] += 1
    for job in image.reported:
        try:
            if read_result(job_folder(out, *job)) is None:
                outcome.lost.append(f"{name}: {job} had been reported, and has no result")
        except ResultError as error:
            outcome.lost.append(f"{name}: {job} had been reported: {error}")
    code = resume(config, out)
    if code != 0:
        outcome.failed.append(f"{name}: resuming ended with exit code {code}")
    elif kills.results(out) != expected:
        outcome.different.append(f"{name}: other results")


def recordings(config: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """The kinds of run, each with its record."""
    for title, jobs in (("one job after the other", "1"), ("two jobs at a time", "2")):
        root, log = folder / f"disk{jobs}", folder / f"log{jobs}"
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        record(root, log, "run", str(config), "--out", str(root / "out"), "--jobs", jobs, "--threads", "1")
        yield title, log
    log = folder / "log1"
    for number in (1, 2):  # half of what is left is lost each time
        every = [image for image in images(log, 0) if image.kind == "only what was synced"]
        begun = [image for image in every if any("manifest.json" in path for path in image.files)]
        root, log = folder / f"resumed{number}", folder / f"log-resumed{number}"
        shutil.rmtree(root, ignore_errors=True)
        begun[len(begun) // 2].write(root)
        record(root, log, "resume", str(root / "out"))
    yield "resume of a resume", log


def play(config: Path, folder: Path, subsets: int, most: int | None, seed: int) -> dict[str, Outcome]:
    """All kinds of run; at most `most` images of each, drawn at random."""
    whole = folder / "whole"
    shutil.rmtree(whole, ignore_errors=True)
    if kills.wait(kills.start("run", str(config), "--out", str(whole), "--threads", "1")) != 0:
        sys.exit(f"{whole}: the uninterrupted run failed")
    expected = kills.results(whole)
    outcomes = {}
    for title, log in recordings(config, folder):
        outcome = outcomes[title] = Outcome(len((log / "steps.jsonl").read_text().splitlines()))
        every = list(images(log, subsets, seed))
        if most is not None and most < len(every):
            every = random.Random(seed).sample(every, most)
        for number, image in enumerate(every):
            judge(image, config, folder / "image", expected, outcome)
            if (number + 1) % 50 == 0:
                bad = len(outcome.problems)
                sys.stderr.write(f"{title}: {number + 1} of {len(every)} images, {bad} problems\n")
    return outcomes


def table(outcomes: dict[str, Outcome]) -> str:
    """For people."""
    lines = ["| run | steps | images | reported results lost | not resumed | different |"]
    lines += ["|---|---:|---:|---:|---:|---:|"]
    lines += [
        f"| {title} | {own.steps} | {own.kinds.total()} | {len(own.lost)} | {len(own.failed)} | "
        f"{len(own.different)} |"
        for title, own in outcomes.items()
    ]
    kinds: Counter[str] = sum((own.kinds for own in outcomes.values()), Counter())
    lines += ["", "Images: " + ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()) + "."]
    lines += [f"- {title}: {problem}" for title, own in outcomes.items() for problem in own.problems]
    return "\n".join(lines)


def main() -> int:
    """Record, cut, resume, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--subsets", type=int, default=3, help="random images after each step (3)")
    parser.add_argument("--most", type=int, default=None, help="images of each kind of run (all)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    config = options.out / "config.yaml"
    config.write_text(yaml.safe_dump(CONFIG, sort_keys=False))
    outcomes = play(config, options.out.resolve(), options.subsets, options.most, options.seed)
    text = table(outcomes)
    (options.out / "power.md").write_text(text + "\n")
    sys.stdout.write(text + "\n")
    return 1 if any(outcome.problems for outcome in outcomes.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
