"""Runs that were killed: the same command finishes them, and nothing shows."""

import os
import signal
import subprocess
import sys
import time

from conbandit_torch.cli import main
from tests.test_cli import conbandit, numbers
from tests.test_config import GOOD, write


def start(*arguments):
    """A command in a process group of its own, so that its workers can be killed with it."""
    command = [sys.executable, "-m", "conbandit_torch", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def test_a_parallel_run_killed_half_way_ends_as_if_nothing_had_happened(tmp_path):
    config = write(tmp_path, GOOD | {"rounds": 300, "seeds": "0-3"})
    assert main(["run", str(config), "--out", str(tmp_path / "whole"), "--threads", "1"]) == 0
    out = tmp_path / "killed"
    process = start("run", config, "--jobs", "2", "--out", out)
    wait_for(lambda: len(list(out.rglob("result.json"))) >= 2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    held = len(list(out.rglob("result.json")))
    assert 2 <= held < 8
    done = conbandit("run", config, "--jobs", "2", "--out", out)
    assert done.returncode == 0, done.stderr
    assert f"holds {held} of 8 jobs" in done.stderr
    assert numbers(out) == numbers(tmp_path / "whole")
