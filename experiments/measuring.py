"""What the measuring scripts share: clocks, reports and what they say of the machine."""

from __future__ import annotations

import json
import os
import platform
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

Rows = Sequence[Sequence[str]]


class Breakdown:
    """Time by part, each without the parts that it calls.

    `watch` puts a clock around a method of an object; it stays until the object is thrown away.
    """

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._running: list[str] = []
        self._since = 0.0

    def watch(self, owner: Any, method: str, part: str) -> None:
        """Count the time of `owner.method` as `part`."""
        original: Callable[..., Any] = getattr(owner, method)

        def timed(*arguments: Any, **named: Any) -> Any:
            self._turn()
            self._running.append(part)
            try:
                return original(*arguments, **named)
            finally:
                self._turn()
                self._running.pop()

        setattr(owner, method, timed)

    def _turn(self) -> None:
        """What ran until now gets the time since the last turn."""
        now = time.perf_counter()
        if self._running:
            self.seconds[self._running[-1]] += now - self._since
        self._since = now


def machine() -> dict[str, Any]:
    """Where the figures come from."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def peak_memory() -> int:
    """Bytes of this process's highest resident memory so far."""
    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return highest if sys.platform == "darwin" else 1024 * highest


def say(text: str) -> None:
    """A line of progress."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stderr.flush()


def show(title: str, headings: Sequence[str], rows: Rows) -> None:
    """A table for the terminal."""
    table = Table(title=title)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    width = None if sys.stdout.isatty() else 200  # in a file nothing need be cut
    Console(markup=False, highlight=False, width=width).print(table)


def markdown(headings: Sequence[str], rows: Rows) -> str:
    """A table in Markdown."""
    rule = ["---", *["---:"] * (len(headings) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (headings, rule, *rows)) + "\n"


def write_json(path: Path, content: Any) -> None:
    """The figures, for programs."""
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _processor() -> str:
    """The processor's name, where the system tells."""
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
