"""Runs that were killed: the same command finishes them, and nothing shows."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading

import psutil
import pytest
from filelock import FileLock

from conbandit_torch.commands.main import main
from conbandit_torch.running import runner
from conbandit_torch.running.checkpoint import list_checkpoints
from conbandit_torch.running.signals import pass_on_to_children, stop_on_signals
from conbandit_torch.running.workers import results_of
from experiments import kills
from tests.conftest import REPOSITORY, wait_for
from tests.helpers.commands import kill, numbers, start
from tests.helpers.configs import GOOD, TUNABLE, write


@pytest.mark.slow
def test_a_parallel_run_killed_half_way_ends_as_if_nothing_had_happened(tmp_path, capsys):
    config = write(tmp_path, GOOD | {"rounds": 300, "seeds": "0-3"})
    assert main(["run", str(config), "--out", str(tmp_path / "whole"), "--threads", "1"]) == 0
    out = tmp_path / "killed"
    process = start("run", config, "--jobs", "2", "--out", out)
    wait_for(lambda: len(list(out.rglob("result.json"))) >= 2)
    kill(process)
    held = len(list(out.rglob("result.json")))
    assert 2 <= held < 8
    assert main(["run", str(config), "--jobs", "2", "--out", str(out)]) == 0
    assert f"holds {held} of 8 jobs" in capsys.readouterr().err
    assert numbers(out) == numbers(tmp_path / "whole")


LONG = GOOD | {"rounds": 2000, "seeds": "0", "checkpoint_every": 100}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    config = write(folder, LONG)
    assert main(["run", str(config), "--out", str(folder / "out"), "--threads", "1"]) == 0
    return config, folder / "out"


def everything(out):
    """What must not depend on interruptions, TensorBoard's steps in the order of its files included."""
    return kills.results(out)


@pytest.mark.parametrize(("jobs", "number"), [("1", signal.SIGINT), ("2", signal.SIGTERM)])
def test_a_signal_stops_a_run_in_good_order_and_resume_finishes_it(whole, tmp_path, jobs, number):
    config, expected = whole
    out = tmp_path / "out"
    process = start("run", config, "--jobs", jobs, "--out", out, "--threads", "1")
    wait_for(lambda: list(out.rglob("checkpoints/*[0-9]/manifest.json")))
    process.send_signal(number)  # to the parent alone
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert f"conbandit: stopped; to go on: conbandit resume {out}" in said
    stopped = {int(number) for number in re.findall(r"stopped after round (\d+) of 2000", said)}
    newest = {int(list_checkpoints(folder)[0].name) for folder in out.rglob("checkpoints")}
    assert newest == stopped and not list(out.rglob("*.part"))
    assert main(["resume", str(out)]) == 0
    assert everything(out) == everything(expected)
    assert not list(out.rglob("checkpoints"))


def slow_to_get_ready(folder):
    """Whether it was told to stop, though the signal came before it could be."""
    (folder / f"started-{os.getpid()}").touch()
    wait_for(lambda: (folder / "signalled").exists())
    stops = []
    with stop_on_signals(lambda: stops.append(True), may_insist=False):
        return stops == [True]


def test_a_signal_waits_for_a_process_that_is_not_ready_for_it(tmp_path):
    def signal_when_started():
        wait_for(lambda: len(list(tmp_path.glob("started-*"))) == 2)
        pass_on_to_children()
        (tmp_path / "signalled").touch()

    sender = threading.Thread(target=signal_when_started)
    sender.start()
    told = [result for _, result in results_of(slow_to_get_ready, [tmp_path] * 2, 2)]
    sender.join()
    assert told == [True, True]


def was_told(number):
    stops = []
    with stop_on_signals(lambda: stops.append(True), may_insist=False):
        return bool(stops)


def test_a_signal_for_an_earlier_run_is_not_kept_for_the_next(tmp_path):
    stopping = threading.Event()
    for _, told in results_of(was_told, [0, 1], 2, stopping=stopping):
        if not stopping.is_set():
            assert not told
            stopping.set()
            pass_on_to_children()  # the other worker is at work, or idle: whichever, it is for this run alone
    assert not any(told for _, told in results_of(was_told, range(4), 2))


def test_a_run_that_waits_for_another_ones_worker_can_be_stopped(tmp_path):
    config, out = write(tmp_path, LONG), tmp_path / "out"
    with contextlib.ExitStack() as held:
        for name in ("Lin", "Con"):
            (out / name / "seed0").mkdir(parents=True)
            held.enter_context(FileLock(out / name / "seed0" / ".lock"))
        process = start("run", config, "--jobs", "2", "--out", out)
        workers = lambda: [  # noqa: E731
            child
            for child in psutil.Process(process.pid).children()
            if "LokyProcess" in " ".join(child.cmdline())
        ]
        wait_for(lambda: len(workers()) == 2)
        process.terminate()
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and said.count("stopped before it began to play") == 2


def test_trials_end_with_the_command_that_started_them(tmp_path):
    config = write(tmp_path, TUNABLE | {"rounds": 10**7})
    process = start("tune", config, "--jobs", "2", "--trials", "4", "--out", tmp_path / "out")
    busy = lambda child: child.cpu_times().user > 0 and "LokyProcess" in " ".join(child.cmdline())  # noqa: E731
    wait_for(lambda: len([c for c in psutil.Process(process.pid).children() if busy(c)]) == 2)
    workers = [child for child in psutil.Process(process.pid).children() if busy(child)]
    os.killpg(process.pid, signal.SIGTERM)
    process.communicate(timeout=60)
    assert not psutil.wait_procs(workers, timeout=60)[1]


@pytest.mark.slow
def test_only_the_parent_is_killed_and_what_its_workers_finish_is_taken(whole, tmp_path):
    config, expected = whole
    out = tmp_path / "out"
    process = start("run", config, "--jobs", "2", "--out", out)
    wait_for(lambda: list(out.rglob("checkpoints/*[0-9]/manifest.json")))
    process.kill()
    process.wait()
    process.stderr.close()  # its workers still hold the other end
    assert main(["resume", str(out)]) == 0
    assert everything(out) == everything(expected)


def test_a_second_process_on_the_same_folder_is_refused(whole, tmp_path, capsys):
    config, _ = whole
    out = tmp_path / "out"
    process = start("run", config, "--out", out, "--rounds", "1000000")
    try:
        wait_for(lambda: list(out.rglob("metrics.csv")))
        for _ in range(2):  # the first refusal must not spoil the second's message
            assert main(["run", str(config), "--out", str(out), "--rounds", "1000000"]) == 2
            refusal = f"another process is writing there (process {process.pid} on "
            assert refusal in capsys.readouterr().err
    finally:
        kill(process)
    shutil.rmtree(out / "Lin")
    assert main(["run", str(config), "--out", str(out), "--rounds", "9"]) == 0  # the dead one's lock is gone


def test_a_checkpoint_of_another_config_is_not_gone_on_from(whole, tmp_path, capsys):
    config, _ = whole
    out = tmp_path / "out"
    process = start("run", config, "--out", out)
    wait_for(lambda: list(out.rglob("checkpoints/*[0-9]/manifest.json")))
    kill(process)
    assert main(["run", str(config), "--out", str(out), "--policies.Lin.init_args.alpha", "0.9"]) == 2
    assert "holds results of another config" in capsys.readouterr().err
    # How often checkpoints are made is no part of the experiment.
    assert main(["run", str(config), "--out", str(out), "--checkpoint_every", "700", "--threads", "1"]) == 0


@pytest.mark.parametrize("content", [None, "{", "[]", '{"threads": "many", "jobs": 1, "backend": "local"}'])
def test_only_a_results_folder_can_be_resumed(tmp_path, content, capsys):
    if content is not None:
        (tmp_path / "how.json").write_text(content)
    assert main(["resume", str(tmp_path)]) == 2
    assert f"{tmp_path}: no results folder, how.json is missing or damaged" in capsys.readouterr().err


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_wherever_a_run_is_killed_a_folder_with_an_experiment_can_be_resumed(tmp_path, monkeypatch, writes):
    """Killed between the two files of the folder, a run left an experiment that `resume` refused."""
    left, real = iter(range(writes)), runner.write_atomically

    def killed_before(path, text):
        next(left)  # StopIteration stands for the kill
        real(path, text)

    out, config = tmp_path / "out", write(tmp_path, GOOD)
    with monkeypatch.context() as patch, pytest.raises((StopIteration, RuntimeError)):
        patch.setattr(runner, "write_atomically", killed_before)
        patch.setattr(runner, "SummaryFile", lambda *_: next(iter(())))
        main(["run", str(config), "--out", str(out)])
    begun = (out / "experiment.yaml").exists()
    assert begun == (writes == 2)
    assert main(["resume", str(out)] if begun else ["run", str(config), "--out", str(out)]) == 0


def test_a_resumed_experiment_cannot_be_changed(whole, capsys):
    assert main(["resume", str(whole[1]), "--rounds", "5"]) == 2
    assert "unexpected argument '--rounds': a resumed experiment cannot be changed" in capsys.readouterr().err


@pytest.mark.slow
def test_ten_kills_at_random_instants_leave_no_trace(tmp_path):
    script = REPOSITORY / "experiments" / "kills.py"
    command = [sys.executable, script, "--kills", "10", "--parallel", "1", "--out", tmp_path / "out"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 kills (1 of parallel runs): 10 identical final results, 0 different." in done.stdout
