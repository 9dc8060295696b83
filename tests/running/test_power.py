"""Power failures: at any step, what the disk may hold is resumed to the same results."""

import os
import subprocess
import sys

import pytest

from experiments.recorder import LOG, ROOT, images
from tests.conftest import REPOSITORY

WRITER = """
import os, sys
from pathlib import Path
from experiments.recorder import install_from_environment
install_from_environment()
folder = Path(sys.argv[1])
def sync(path):
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)
(folder / "old").write_text("kept")
sync(folder / "old")
sync(folder)
(folder / "new.part").write_text("some text")
if "data" in sys.argv:
    sync(folder / "new.part")
(folder / "new.part").rename(folder / "old")
if "names" in sys.argv:
    sync(folder)
(folder / "end").touch()
"""


@pytest.mark.parametrize(
    ("synced", "possible"),
    [
        ((), {"kept", "", "some", "some text"}),
        (("data",), {"kept", "some text"}),
        (("names",), {"", "some", "some text"}),
        (("data", "names"), {"some text"}),
    ],
    ids=["nothing", "data", "names", "both"],
)
def test_a_replaced_file_may_be_lost_unless_its_data_and_its_name_were_synced(tmp_path, synced, possible):
    root, log = tmp_path / "disk", tmp_path / "log"
    root.mkdir()
    environment = os.environ | {LOG: str(log), ROOT: str(root), "PYTHONPATH": str(REPOSITORY)}
    subprocess.run([sys.executable, "-c", WRITER, str(root), *synced], env=environment, check=True)
    last = max(image.step for image in images(log, 0))
    found = {image.files["old"].decode() for image in images(log, 20) if image.step == last}
    started = {image.files["old"].decode() for image in images(log, 20) if "old" in image.files}
    assert started <= {"kept", "", "ke", "so", "some", "some text"}
    assert found <= possible and ("some text" in found or "kept" in found)
    if len(synced) == 2:
        assert found == possible


@pytest.mark.slow
def test_whatever_a_power_failure_leaves_is_resumed_to_the_same_results(tmp_path):
    # A process of its own: it forks, and nothing must have run before.
    command = [sys.executable, "-m", "experiments.power", "--out", str(tmp_path)]
    command += ["--subsets", "1", "--most", "8"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if "|" in line
    ]
    assert [row[0] for row in rows[2:]] == [
        "one job after the other",
        "two jobs at a time",
        "resume of a resume",
    ]
    for _, steps, *counts in rows[2:]:
        assert int(steps) > 50 and counts == ["8", "0", "0", "0"]
