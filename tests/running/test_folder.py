"""Results folders: damage is named and made good, names are guarded, bookkeeping is said and cheap."""

import re
import threading

import pytest
import yaml
from filelock import FileLock
from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from conbandit_torch import Synthetic
from conbandit_torch.commands.main import main
from conbandit_torch.configuration.load import load
from conbandit_torch.core.files import replacing, write_atomically
from conbandit_torch.running import folder as results_folder
from conbandit_torch.running import runner, summary
from conbandit_torch.running.record import Record
from conbandit_torch.running.result import JobResult
from tests.conftest import wait_for
from tests.helpers.commands import conbandit, numbers, rows
from tests.helpers.configs import GOOD, changed, write


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    config = write(folder, GOOD)
    assert main(["run", str(config), "--out", str(folder / "out"), "--threads", "1"]) == 0
    return config, numbers(folder / "out")


def flip(path):
    """One flipped bit, in a number."""
    content = bytearray(path.read_bytes())
    place = content.index(b'"seconds": ') + 11
    content[place] ^= 1
    path.write_bytes(content)


DAMAGE = {
    "an empty result": lambda own: (own / "result.json").write_text(""),
    "a cut result": lambda own: (own / "result.json").write_text((own / "result.json").read_text()[:50]),
    "a flipped bit": lambda own: flip(own / "result.json"),
    "an empty config": lambda own: (own / "config.yaml").write_text(""),
    "a config of nothing": lambda own: (own / "config.yaml").write_text("[1, 2"),
    "no config": lambda own: (own / "config.yaml").unlink(),
    "empty metrics": lambda own: (own / "metrics.csv").write_text(""),
    "no metrics": lambda own: (own / "metrics.csv").unlink(),
    "an odd checkpoint": lambda own: (own / "checkpoints" / "²").mkdir(parents=True),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_small_file_is_said_and_made_good(whole, tmp_path, caplog, capsys, name):
    config, expected = whole
    out = tmp_path / "out"
    words = ["run", str(config), "--out", str(out), "--threads", "1"]
    assert main(words) == 0
    kept = (out / "Lin" / "seed1" / "result.json").stat().st_mtime_ns
    own = out / "Con" / "seed0"
    DAMAGE[name](own)
    if name != "an odd checkpoint":
        capsys.readouterr()
        assert main(["report", str(out)]) == 0  # of the others
        assert f"- {own}/" in capsys.readouterr().out
    assert main(words) == 0
    if name != "an odd checkpoint":
        assert str(own) in caplog.text
        assert "damaged" in caplog.text or "No such file" in caplog.text
    config = yaml.safe_load((own / "config.yaml").read_text())
    assert config["seeds"] == [0] and list(config["policies"]) == ["Con"]
    assert numbers(out) == expected
    assert (out / "Lin" / "seed1" / "result.json").stat().st_mtime_ns == kept
    assert main(["report", str(out)]) == 0


def test_a_damaged_job_of_another_experiment_blocks_nobody(whole, tmp_path, caplog):
    config, _ = whole
    out = tmp_path / "out"
    assert main(["run", str(config), "--out", str(out), "--seeds", "5"]) == 0
    (out / "Lin" / "seed5" / "result.json").write_text("{")
    assert main(["run", str(config), "--out", str(out), "--seeds", "0"]) == 0
    assert f"{out}/Lin/seed5/result.json is damaged" in caplog.text
    assert {(row["policy"], row["seed"]) for row in rows(out / "summary.csv")} == {
        ("Lin", "0"),
        ("Con", "0"),
        ("Con", "5"),
    }


@pytest.mark.parametrize(
    "name", ["experiment.yaml", "how.json", "Summary.csv", "report.md", "plots", "aggregate"]
)
def test_a_policy_cannot_have_the_name_of_a_file_of_the_folder(tmp_path, name, capsys):
    config = changed("policies", {name: "Random"})
    assert main(["run", str(write(tmp_path, config)), "--out", str(tmp_path / "out")]) == 2
    assert f"policies.{name}: a policy's name is a folder's name" in capsys.readouterr().err


def test_escape_sequences_in_names_are_not_echoed(tmp_path):
    config = write(tmp_path, changed("policies", {"a\x1b[31m\x07": "Random"}))
    done = conbandit("run", config, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "\x1b" not in done.stderr and "\x07" not in done.stderr and "a\\x1b[31m\\x07" in done.stderr


def test_a_full_disk_names_the_file(tmp_path):
    path = tmp_path / "folder" / "file.txt"
    path.parent.mkdir()
    path.write_text("before")
    with pytest.raises(OSError, match=f"No space left on device: '{path}'"), replacing(path) as unfinished:
        unfinished.write_text("half")
        raise OSError(28, "No space left on device")
    assert path.read_text() == "before" and list(path.parent.iterdir()) == [path]
    write_atomically(path, "after")
    assert path.read_text() == "after" and list(path.parent.iterdir()) == [path]


def test_waiting_for_another_process_is_said(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(results_folder, "_PATIENCE", 0.01)
    held = FileLock(tmp_path / ".lock", thread_local=False)
    held.acquire()
    entered = threading.Event()

    def wait():
        with results_folder.job_lock(tmp_path):
            entered.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    wait_for(lambda: "another process is still at work on this job" in caplog.text)
    assert not entered.is_set()
    held.release()
    waiting.join()
    assert entered.is_set() and str(tmp_path) in caplog.text


def test_a_world_too_large_for_the_memory_says_how_much_it_would_need():
    with pytest.raises(
        ValueError, match=r"1,000,000,000 users .* would need [\d,.]+ GiB of memory; this machine"
    ):
        Synthetic(users=10**9)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("environment.init_args", {"users": 1000, "dim": 10**4, "arms": 40, "terms": 8, "pool": 6}, r"policies.Lin: the state of 1,000 users"),
        ("environment", {"class_path": "GeneratedLog", "init_args": {"events": 10**10}}, "environment: a log of 10,000,000,000 events"),
        ("environment.init_args.pool", 10**12, "environment: a world of 4 users"),
        ("policies.Lin.init_args.representation", {"class_path": "HiddenOnTerms", "init_args": {"size": 10**5}}, "policies.Lin: HiddenOnTerms of 8 key-terms"),
        ("policies.Lin", {"class_path": "HLinUCB", "init_args": {"hidden_dim": 10**6}}, r"policies.Lin: .* would need [\d,.]+ GiB"),
    ],
)  # fmt: skip
def test_a_size_in_a_config_that_no_memory_holds_is_refused_before_it_is_filled(
    tmp_path, capsys, key, value, said
):
    assert main(["run", str(write(tmp_path, changed(key, value))), "--out", str(tmp_path / "out")]) == 2
    shown = capsys.readouterr().err.replace("\n", " ")
    assert re.search(said, shown) and "GiB of memory; this machine has" in shown


def test_a_result_costs_a_line_of_the_summary_however_many_there_are(tmp_path, monkeypatch):
    writes = []
    real = summary.replacing
    monkeypatch.setattr(summary, "replacing", lambda path: writes.append(path) or real(path))
    experiment = load(write(tmp_path, GOOD | {"seeds": "0-99"}))
    file = summary.SummaryFile(tmp_path, experiment, {})
    for number, (policy, seed) in enumerate(experiment.jobs()):
        last = Record(12, 1.0, 1.0, 1.0, None, None, 0.0)
        failed = JobResult(policy, seed, error='a "bad"\nday, indeed')
        file.add(failed if number == 3 else JobResult(policy, seed, last=last))
        assert len(rows(tmp_path / "summary.csv")) == number + 1
    file.finish()
    assert len(writes) == 2
    table = rows(tmp_path / "summary.csv")
    assert [(row["policy"], row["seed"]) for row in table] == [
        (policy, str(seed)) for policy in ("Lin", "Con") for seed in range(100)
    ]
    assert [row["error"] for row in table if row["error"]] == ['a "bad"\nday, indeed']


def test_jobs_go_seed_by_seed_and_bands_appear_while_they_run(tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    seen = []
    real = runner._aggregate

    def watch(folder):
        real(folder)
        lines = [(row["policy"], row["seed"]) for row in rows(out / "summary.csv")]
        bands = {}
        for path in sorted(out.glob("*/events.*")):
            points = EventAccumulator(str(path.parent)).Reload().Scalars("Regret/average over seeds")
            bands[path.parent.name] = [point.step for point in points]
        seen.append((lines, bands))

    monkeypatch.setattr(runner, "_aggregate", watch)
    monkeypatch.setattr(runner, "Sparingly", lambda function: function)
    config = write(tmp_path, GOOD | {"seeds": "0-2"})
    runner.run(load(config), out, Console(quiet=True))
    jobs = [(policy, str(seed)) for seed in range(3) for policy in ("Lin", "Con")]
    assert [lines for lines, _ in seen[:5]] == [jobs[: number + 1] for number in range(5)]
    assert [sorted(bands) for _, bands in seen] == [[], [], ["Lin"], *3 * [["Con", "Lin"]]]
    assert all(steps == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12] for _, bands in seen for steps in bands.values())


def test_without_a_terminal_there_is_a_line_a_minute(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "_A_MINUTE", 0.0)
    assert main(["run", str(write(tmp_path, GOOD)), "--out", str(tmp_path / "out"), "--log_every", "6"]) == 0
    said = capsys.readouterr().err
    assert "Lin seed 0: round 6 of 12, regret " in said and "Con seed 1: round 12 of 12, regret " in said


def test_results_are_worked_out_at_most_a_share_of_the_time(monkeypatch):
    clock, calls = [0.0], []

    def work():
        calls.append(clock[0])
        clock[0] += 1.0

    monkeypatch.setattr(summary.time, "monotonic", lambda: clock[0])
    sparing = summary.Sparingly(work, share=0.1)
    while clock[0] < 100:
        sparing()
        clock[0] += 0.5
    assert calls[0] == 0.0 and 9 <= len(calls) <= 10
