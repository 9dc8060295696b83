"""Does the package work with the lowest versions that it says it takes, and on other versions of Python?

    python -m experiments.versions --out DIR
    python -m experiments.versions --out DIR --python python3.10 --python python3.13

Two checks, each in an environment of its own:

- `lowest`: this Python, with the light dependencies at the lowest versions that pyproject.toml allows. torch,
  and what depends on its version, is taken from this environment, since other builds are gigabytes. A small
  experiment is run, reported and drawn. Its final states must be those of this environment, bit for bit.
- `--python P`: another Python, with the light dependencies at their newest, and without torch. So what needs
  none is tried: every module compiles, the program answers, and results are read and reported.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import venv
from pathlib import Path

from experiments.release import lend

REPOSITORY = Path(__file__).resolve().parent.parent
HEAVY = ("torch", "lightning", "numba", "jsonargparse")  # tied to torch's version, or to one another's
WITHOUT_TORCH = (
    "numpy",
    "pyyaml",
    "rich",
    "scipy",
    "filelock",
    "safetensors",
    "psutil",
    "joblib",
    "tensorboard",
)
RUN = (
    "run",
    "quickstart",
    "--rounds",
    "30",
    "--seeds",
    "0-1",
    "--threads",
    "1",
    "--environment.init_args.users",
    "20",
)


def main(words: list[str] | None = None) -> int:
    """Check everything; gives the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where environments are made")
    parser.add_argument("--python", action="append", default=[], metavar="P", help="another Python to try")
    options = parser.parse_args(words)
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    _conbandit(sys.executable, out, *RUN, "--out", "usual")
    lowest(out)
    for python in options.python:
        other(python, out)
    return 0


def lowest(out: Path) -> None:
    """Run with the lowest versions of the light dependencies."""
    wanted = lowest_versions()
    folder = out / "lowest"
    venv.create(folder, clear=True, with_pip=True)
    python = str(folder / "bin" / "python")
    lend(Path(python))
    _run(python, "-m", "pip", "install", "-q", "--no-deps", *wanted)
    _conbandit(python, out, *RUN, "--out", "with_lowest")
    _conbandit(python, out, "report", "with_lowest")
    _conbandit(python, out, "plot", "with_lowest")
    if _fingerprints(out / "usual") != _fingerprints(out / "with_lowest"):
        raise SystemExit("the final states differ from those with the newest versions")
    sys.stdout.write(f"lowest: {', '.join(wanted)}: the same states\n")


def other(python: str, out: Path) -> None:
    """Try what needs no torch on another Python."""
    folder = out / f"with_{Path(python).name}"
    _run(python, "-m", "venv", "--clear", str(folder))
    inside = str(folder / "bin" / "python")
    _run(inside, "-m", "pip", "install", "-q", *WITHOUT_TORCH, "typing_extensions")
    prefix = f"pycache_prefix={folder / 'compiled'}"  # not into the clone
    _run(inside, "-X", prefix, "-m", "compileall", "-q", "-f", str(REPOSITORY / "conbandit_torch"))
    for command in (("--help",), ("configs",), ("report", "usual")):
        _conbandit(inside, out, *command)
    said = subprocess.run([inside, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    sys.stdout.write(f"{said}: compiles, answers and reports\n")


def lowest_versions() -> list[str]:
    """`name==version` of every light dependency, and of matplotlib, at its lower bound."""
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    section = (
        text.partition("\ndependencies = [")[2].partition("]\n\n")[0]
        + text.partition("\nplot = [")[2].partition("]")[0]
    )
    found = re.findall(r'"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)', section)
    return [f"{name}=={_full(version)}" for name, version in found if name not in HEAVY]


def _full(version: str) -> str:
    """6 is 6.0, as packages write it."""
    return version if "." in version else f"{version}.0"


def _fingerprints(folder: Path) -> dict[str, str]:
    paths = sorted(folder.rglob("result.json"))
    return {
        str(path.relative_to(folder)): json.loads(path.read_text(encoding="utf-8"))["fingerprint"]
        for path in paths
    }


def _conbandit(python: str, folder: Path, *words: str) -> None:
    subprocess.run(
        [python, "-m", "conbandit_torch", *words],
        check=True,
        cwd=folder,
        env={"PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.DEVNULL,
    )


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    sys.exit(main())
