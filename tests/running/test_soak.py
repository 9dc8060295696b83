"""The soak test's machinery, in short: whether memory and time grow shows only in long runs."""

import re
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY


@pytest.mark.slow
def test_a_short_soak_measures_ten_windows_of_every_policy(tmp_path):
    script = REPOSITORY / "experiments" / "soak.py"
    command = [sys.executable, script, "--rounds", "500", "--no-judge", "--out", tmp_path]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == (tmp_path / "soak.md").read_text()
    for policy in ("ConUCB", "hConUCB", "hConUCB+refit"):
        lines = re.findall(rf"^\| {re.escape(policy)} \|(.+)\|$", done.stdout, re.MULTILINE)
        windows = [[float(number) for number in line.split("|")] for line in lines]
        assert [window[0] for window in windows] == list(range(1, 11))
        assert [window[1] for window in windows] == list(range(50, 501, 50))
        for _, _, memory, log, median, mean in windows:
            assert memory > 10 and median > 0 and mean > 0
            assert log == 0 or policy == "hConUCB+refit"
        assert (windows[-1][3] > 0) == (policy == "hConUCB+refit")
    assert (tmp_path / "soak.png").read_bytes().startswith(b"\x89PNG")
