"""Killed under load: nothing that was acknowledged is missing (`experiments/live_kills.py` kills oftener)."""

import subprocess
import sys

import pytest

from experiments.postgres import binaries
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_ten_kills_under_load_lose_nothing_that_was_acknowledged(store, tmp_path):
    if store == "postgres" and binaries() is None:
        pytest.skip("there is no PostgreSQL on this machine")
    words = ("--kills", "10", "--calls", "30", "--store", store, "--out", str(tmp_path))
    command = [sys.executable, "-m", "experiments.live_kills", *words]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if "ConUCB" in line]
    assert [row[1] for row in rows] == ["5", "5"]
    assert all(int(row[2].replace(",", "")) >= 4 for row in rows), done.stdout  # they were serving
