"""Feeds mutated configs, recordings, checkpoints and data to the package, and counts what becomes of them.

    python -m experiments.fuzz --inputs 10000 --seed 0 --out DIR

A quarter each: config files (load, read the search space, build what is small), recordings (`Recorded`),
checkpoints (read and restore) and real data (read and prepare); `fuzz_inputs` has the strategies by which
Hypothesis draws them. An input is accepted, or it is refused with the one error that the package promises:
`ConfigError`, `ValueError`, `CheckpointError`, `DataError`. Any other exception, ten seconds (of the
processor) without an end, and code of an input that was run are failures. Prints a table, and writes it to
`DIR/fuzz.md`; of every sort of failure the first few inputs are kept in `DIR/failed`. The exit code is 1 if
there are any. The same seed and number of inputs give the same inputs again.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import io
import logging
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import hypothesis
import optuna.distributions  # noqa: F401 - imported before the first input: its seconds are counted
import torch

import conbandit_torch
from experiments.fuzz_inputs import KINDS, NOTHING, Input, Kind

PACKAGE = f"{Path(conbandit_torch.__file__).parent}/"
SECONDS = 10  # of patience with one input, in time of the processor: the machine may be busy
HEADROOM = 4 * 2**30  # bytes that an input may take
KEPT = 3  # inputs of each sort of failure


class HangError(BaseException):
    """An input took too long; no Exception, so that nobody catches it on the way."""


def outcome(kind: Kind, folder: Path) -> BaseException | bool:
    """Whether the input was accepted, or what went wrong."""
    try:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        # What sleeps, or never comes back to Python, hears no alarm: then the program ends, with a traceback.
        faulthandler.dump_traceback_later(20 * SECONDS, exit=True)
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            kind.use(folder)
    except kind.refusal:
        return False
    except (Exception, HangError, SystemExit) as error:
        return error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
    return True


def sort_of(error: BaseException) -> str:
    """The exception and the last line of the package that it came through."""
    name = type(error).__name__
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(PACKAGE):
            path = frame.filename.removeprefix(PACKAGE)
            return f"{name} in {path}, {frame.name}, line {frame.lineno}"
    return name


def hang(*_: Any) -> None:
    """What the alarm does."""
    raise HangError(f"no end after {SECONDS} s")


def limit_memory() -> None:
    """An input that asks for more than there is gets a MemoryError, not the machine."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    if pages:
        held = pages * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + HEADROOM, resource.getrlimit(resource.RLIMIT_AS)[1]))


def table(title: str, counts: dict[str, Counter[str]]) -> list[str]:
    """One line for each key of the counts."""
    columns = ("inputs", "accepted", "refused", "failed")
    lines = [f"| {title} | " + " | ".join(columns) + " |", "|---|---:|---:|---:|---:|"]
    for name, count in counts.items():
        numbers = [count.total(), *(count[column] for column in columns[1:])]
        lines.append(f"| {name} | " + " | ".join(map(str, numbers)) + " |")
    return lines


class Report:
    """Tries inputs, counts what becomes of them, and keeps those that fail."""

    def __init__(self, out: Path) -> None:
        self.out, self.exploded = out, out / "exploded"
        self.by_kind: dict[str, Counter[str]] = {}
        self.by_change: dict[str, Counter[str]] = {}
        self.failures: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()

    def try_input(self, name: str, kind: Kind, drawn: Input) -> None:
        """Write the input's files, use them, and note what came of it."""
        folder = self.out / "input"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for file, content in drawn.files.items():
            if content is None:
                (folder / file).mkdir()
            else:
                (folder / file).write_bytes(content)
        start = time.monotonic()
        result = outcome(kind, folder)
        self.seconds[name] += time.monotonic() - start
        if drawn.change == NOTHING and not result:
            result = RuntimeError("a good input was refused")
        if self.exploded.exists():
            self.exploded.unlink()
            result = RuntimeError("code of the input was run")
        word = "failed" if isinstance(result, BaseException) else "accepted" if result else "refused"
        self.by_kind.setdefault(name, Counter())[word] += 1
        self.by_change.setdefault(f"{name}: {drawn.change}", Counter())[word] += 1
        if isinstance(result, BaseException):
            self._keep(f"{name}: {sort_of(result)}", drawn.change, folder, result)

    def _keep(self, sort: str, change: str, folder: Path, error: BaseException) -> None:
        self.failures[sort] += 1
        number = sum(count.total() for count in self.by_kind.values())
        sys.stderr.write(f"input {number} ({change}): {sort}\n")
        if self.failures[sort] <= KEPT:
            kept = self.out / "failed" / f"{number:06d}"
            shutil.copytree(folder, kept)
            (kept / "error.txt").write_text("".join(traceback.format_exception(error)), errors="replace")

    def text(self) -> str:
        """The tables."""
        every = sum(self.by_kind.values(), Counter())
        lines = [*table("kind", self.by_kind | {"all": every}), ""]
        lines += table("what was changed", dict(sorted(self.by_change.items())))
        if self.failures:
            lines += ["", "| failure | inputs |", "|---|---:|"]
            lines += [f"| {sort} | {count} |" for sort, count in self.failures.most_common()]
        each = ", ".join(
            f"{name} {1e3 * self.seconds[name] / n.total():.0f}" for name, n in self.by_kind.items()
        )
        return "\n".join([*lines, "", f"Milliseconds per input: {each}."])


def try_inputs(report: Report, name: str, kind: Kind, number: int, seed: int) -> None:
    """Try so many inputs of a kind."""

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=number,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],  # failures are kept as they are: other inputs wait
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(kind.inputs)
    def try_all(drawn: Input) -> None:
        if report.by_kind.get(name, Counter()).total() < number:
            report.try_input(name, kind, drawn)

    try_all()


def main() -> int:
    """Try all inputs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    out = options.out.resolve()
    shutil.rmtree(out / "failed", ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    report = Report(out)
    report.exploded.unlink(missing_ok=True)
    logging.disable()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    sys.argv = ["fuzz"]  # should an input import a program
    kinds: dict[str, Kind] = {name: make(report.exploded) for name, make in KINDS.items()}
    limit_memory()
    signal.signal(signal.SIGPROF, hang)
    began = time.monotonic()
    for place, (name, kind) in enumerate(kinds.items()):
        number = len(range(place, options.inputs, len(kinds)))  # a quarter each
        if number:
            try_inputs(report, name, kind, number, options.seed)
    shutil.rmtree(out / "input", ignore_errors=True)
    failed = report.failures.total()
    spent = f"{options.inputs} inputs in {time.monotonic() - began:.0f} s"
    text = f"{report.text()}\n\n{spent}, seed {options.seed}: {failed} failures.\n"
    (out / "fuzz.md").write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
