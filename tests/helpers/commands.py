"""Commands in processes of their own, and what they leave in a results folder."""

import csv
import os
import signal
import subprocess
import sys


def conbandit(*arguments, cwd=None):
    """A command that has ended."""
    command = [sys.executable, "-m", "conbandit_torch", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120)


def start(*arguments):
    """A command that runs in a process group of its own, so that its workers can be killed with it."""
    command = [sys.executable, "-m", "conbandit_torch", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def kill(process):
    """Kill what `start` began."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def rows(path):
    """The lines of a CSV file by column."""
    with path.open() as file:
        return list(csv.DictReader(file))


def numbers(out):
    """All metrics of a results folder except the times."""
    return {
        str(path.relative_to(out)): [{**row, "seconds": ""} for row in rows(path)]
        for path in sorted(out.rglob("*.csv"))
    }


def cells(path):
    """A Markdown table's rows, without its rule."""
    lines = path.read_text().splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [table[0], *table[2:]]
