"""Disks that fill up, folders that vanish, loggers that fail: nothing computed is lost, and it is said."""

import contextlib
import resource
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from conbandit_torch.callbacks.tensorboard import TensorBoard
from conbandit_torch.commands.main import main
from conbandit_torch.running.record import Record
from tests.helpers.commands import conbandit, numbers, rows
from tests.helpers.configs import GOOD, changed, write

FEW = GOOD | {"seeds": "0", "checkpoint_every": 5}


@pytest.mark.slow
def test_a_disk_that_fills_up_stops_the_job_clearly_and_keeps_what_there_is(tmp_path):
    """A limit on a file's size stands in for the disk; only the conversing policy's events exceed it."""
    config = write(tmp_path, FEW | {"if_logger_fails": "stop"})
    main(["run", str(config), "--out", str(tmp_path / "whole"), "--threads", "1"])
    events = ((tmp_path / "whole" / name).rglob("events*") for name in ("Lin", "Con"))
    limit = sum(max(file.stat().st_size for file in files) for files in events) // 2
    command = [sys.executable, "-m", "conbandit_torch", "run", str(config), "--out", str(tmp_path / "full")]
    done = subprocess.run(
        [*command, "--threads", "1"],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 1, done.stderr
    assert "FAILED: Con seed 0: " in done.stdout and "File too large" in done.stdout
    assert (tmp_path / "full" / "Lin" / "seed0" / "result.json").exists()
    # With room again, the same command finishes it.
    assert conbandit("run", config, "--out", tmp_path / "full", "--threads", "1").returncode == 0
    assert numbers(tmp_path / "full") == numbers(tmp_path / "whole")


def test_a_folder_that_vanishes_fails_its_job_and_no_other(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import os\n"
        "from conbandit_torch import LinUCB\n"
        "class Vandal(LinUCB):\n"
        "    def learn(self, context, arm, reward):\n"
        "        super().learn(context, arm, reward)\n"
        "        if int(context.rounds[0]) == 5:\n"
        "            os.rename('out/Lin', 'gone')  # at once: TensorBoard's thread may be writing\n"
    )
    write(tmp_path, changed("policies.Lin", {"class_path": "mine.Vandal"}) | {"seeds": "0", "log_every": 2})
    done = conbandit("run", "config.yaml", "--out", "out", cwd=tmp_path)
    assert done.returncode == 1
    assert "FAILED: Lin seed 0: FileNotFoundError" in done.stdout and "Traceback" not in done.stderr
    assert rows(tmp_path / "out" / "Con" / "seed0" / "metrics.csv")


def test_what_ends_tensorboards_thread_is_raised_and_not_printed(tmp_path, capsys):
    board = TensorBoard(tmp_path / "run")
    simulation = SimpleNamespace(round=0)
    board.on_start(simulation)
    board.on_checkpoint(simulation)
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(FileNotFoundError):
        for _ in range(100):  # the thread fails at the first; this one hears of it at a later one
            board.on_record(simulation, Record(1, 1.0, 1.0, 1.0, None, None, 0.0))
            board.on_checkpoint(simulation)
    with contextlib.suppress(FileNotFoundError):
        board.on_exception(simulation, OSError())
    assert "Traceback" not in capsys.readouterr().err


def fail(self, simulation, record):
    raise OSError(28, "No space left on device", "events.out")


def test_a_logger_that_fails_stops_the_run_if_told_to(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(TensorBoard, "on_record", fail)
    config = write(tmp_path, FEW | {"if_logger_fails": "stop"})
    assert main(["run", str(config), "--out", str(tmp_path / "out")]) == 1
    assert "No space left on device" in capsys.readouterr().out


def test_otherwise_the_run_goes_on_without_it_and_says_so(tmp_path, monkeypatch, capsys, caplog):
    config = write(tmp_path, FEW)
    main(["run", str(config), "--out", str(tmp_path / "whole")])
    monkeypatch.setattr(TensorBoard, "on_record", fail)
    out = tmp_path / "out"
    assert main(["run", str(config), "--out", str(out)]) == 0
    assert "TensorBoard failed and is left out from here on: OSError" in caplog.text
    assert numbers(out) == numbers(tmp_path / "whole")


def test_the_settings_are_checked(tmp_path, capsys):
    for key, valid in {"if_logger_fails": "stop, continue", "bad_feedback": "stop, skip"}.items():
        assert main(["run", str(write(tmp_path, FEW)), f"--{key}", "pray"]) == 2
        assert f"{key}: expected one of {valid}, got 'pray'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["metrics.csv", "config.yaml"])
def test_a_file_where_a_folder_should_be_is_a_failure_of_that_job_alone(tmp_path, name):
    out = tmp_path / "out"
    (out / "Lin" / "seed0" / name).mkdir(parents=True)
    done = conbandit("run", write(tmp_path, FEW), "--out", out)
    assert done.returncode == 1 and "FAILED: Lin seed 0: IsADirectoryError" in done.stdout
    assert rows(out / "Con" / "seed0" / "metrics.csv")
