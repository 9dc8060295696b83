"""How long it takes until something happens: times of fresh processes, as multiples of `import torch`.

    python -m experiments.startup --out DIR

All are measured in turn, `--repeats` times, and medians are told. Kernels are compiled before (that time is
told as well, of a cache that is empty), so that a run finds them compiled, as every run but the first does.
Writes `startup.md` and `startup.json` into DIR.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from experiments.measuring import machine, markdown, say, show, write_json

ROUND = """
from conbandit_torch import {policy}, Simulation, Synthetic
world = Synthetic(20, 500, 50, 10, pool=10, seed=0)
Simulation({policy}(world.catalogue, world.num_users), world, rounds=1, precision="{precision}").run()
"""
RESULTS = """
import sys
from conbandit_torch.commands.main import main
code = main({words})
sys.exit(code or 100 * ("torch" in sys.modules))
"""
CONFIG = """
rounds: 20
seeds: [0, 1]
environment:
  class_path: Synthetic
  init_args: {users: 8, arms: 40, terms: 6, dim: 5, pool: 6}
policies:
  LinUCB: {class_path: LinUCB}
  ConUCB: {class_path: ConUCB}
"""


def seconds(words: list[str], **environment: str) -> float:
    """How long a process takes."""
    start = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ | environment, check=False)
    if done.returncode:
        raise RuntimeError(f"{words}: exit code {done.returncode}\n{done.stderr}")
    return time.perf_counter() - start


def main(words: list[str] | None = None) -> None:
    """Measure, and tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="default 5")
    options = parser.parse_args(words)
    options.out.mkdir(parents=True, exist_ok=True)
    python = [sys.executable, "-c"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compiling = {
            precision: seconds(
                [*python, ROUND.format(policy="LinUCB", precision=precision)], NUMBA_CACHE_DIR=name
            )
            for precision in ("32-true", "64-true")
        }
        (folder / "small.yaml").write_text(CONFIG, encoding="utf-8")
        program = [sys.executable, "-m", "conbandit_torch"]
        seconds([*program, "run", str(folder / "small.yaml"), "--out", str(folder / "out")])
        cases = {
            "import torch": [*python, "import torch"],
            "conbandit --help": [*program, "--help"],
            "conbandit report (torch is not imported)": [
                *python,
                RESULTS.format(words=["report", str(folder / "out")]),
            ],
            "conbandit plot (torch is not imported)": [
                *python,
                RESULTS.format(words=["plot", str(folder / "out")]),
            ],
            "first round of LinUCB": [*python, ROUND.format(policy="LinUCB", precision="32-true")],
            "first round of hConUCB": [*python, ROUND.format(policy="HConUCB", precision="32-true")],
        }
        times: dict[str, list[float]] = {case: [] for case in cases}
        for _ in range(options.repeats):
            for case, command in cases.items():
                times[case].append(seconds(command))
    unit = statistics.median(times["import torch"])
    rows = [
        [case, f"{statistics.median(own):.2f}", f"{statistics.median(own) / unit:.2f}"]
        for case, own in times.items()
    ]
    rows += [
        [f"first round, {p}, nothing compiled yet", f"{own:.1f}", f"{own / unit:.1f}"]
        for p, own in compiling.items()
    ]
    table = ["process", "seconds", "times `import torch`"], rows
    show("Start-up", *table)
    (options.out / "startup.md").write_text(markdown(*table), encoding="utf-8")
    write_json(options.out / "startup.json", {"machine": machine(), "seconds": times, "compiling": compiling})
    say(f"written into {options.out}")


if __name__ == "__main__":
    main()
