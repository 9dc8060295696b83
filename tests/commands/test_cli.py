"""The command line as a user meets it."""

import os
import shutil
import subprocess
import sys

import pytest
import yaml

from conbandit_torch.commands.main import main
from conbandit_torch.commands.terminal import Terminal
from tests.conftest import wait_for
from tests.helpers.commands import conbandit, numbers, rows
from tests.helpers.configs import GOOD, changed, write


def test_run_writes_what_it_promises(tmp_path, capsys):
    out = tmp_path / "results"
    assert main(["run", str(write(tmp_path, GOOD)), "--out", str(out), "--log_every", "5"]) == 0
    for policy in ("Lin", "Con"):
        for seed in (0, 1):
            folder = out / policy / f"seed{seed}"
            metrics = rows(folder / "metrics.csv")
            assert list(metrics[0]) == [
                "round",
                "cumulative_regret",
                "reward",
                "theta_error",
                "prediction_error",
                "questions",
                "effective_terms",
                "counted",
                "ctr",
                "seconds",
            ]
            assert [row["round"] for row in metrics] == ["1", "2", "3", "4", "5", "10", "12"]
            config = yaml.safe_load((folder / "config.yaml").read_text())
            assert config["seeds"] == [seed] and list(config["policies"]) == [policy]
            assert config["log_every"] == 5
            assert list(folder.glob("events.out.tfevents.*"))
    summary = rows(out / "summary.csv")
    assert list(summary[0]) == [
        "policy",
        "seed",
        "rounds",
        "cumulative_regret",
        "theta_error",
        "prediction_error",
        "questions",
        "effective_terms",
        "counted",
        "ctr",
        "seconds",
    ]
    assert [(row["policy"], row["seed"]) for row in summary] == [
        ("Lin", "0"),
        ("Lin", "1"),
        ("Con", "0"),
        ("Con", "1"),
    ]
    last = rows(out / "Con" / "seed1" / "metrics.csv")[-1]
    assert summary[3]["cumulative_regret"] == last["cumulative_regret"]
    table = capsys.readouterr().out
    for part in ("After 12 rounds (mean of 2 seeds", "Lin", "Con", "±", f"conbandit watch {out}"):
        assert part in table


def test_a_job_runs_again_from_its_own_config_to_the_same_numbers(tmp_path):
    out = tmp_path / "first"
    main(["run", str(write(tmp_path, GOOD)), "--out", str(out)])
    again = tmp_path / "again"
    assert main(["run", str(out / "Con" / "seed1" / "config.yaml"), "--out", str(again)]) == 0
    first, second = (rows(folder / "Con" / "seed1" / "metrics.csv") for folder in (out, again))
    for one, other in zip(first, second, strict=True):
        assert {**one, "seconds": ""} == {**other, "seconds": ""}


def test_rounds_seeds_and_dotted_overrides(tmp_path):
    out = tmp_path / "results"
    arguments = [
        "--rounds",
        "4",
        "--seeds",
        "3,5",
        "--policies.Con.init_args.mix=0.6",
        "--out",
        str(out),
    ]
    assert main(["run", str(write(tmp_path, GOOD)), *arguments]) == 0
    summary = rows(out / "summary.csv")
    assert [row["seed"] for row in summary] == ["3", "5", "3", "5"]
    assert {row["rounds"] for row in summary} == {"4"}
    config = yaml.safe_load((out / "Con" / "seed3" / "config.yaml").read_text())
    assert config["policies"]["Con"]["init_args"]["mix"] == 0.6


def test_a_single_seed_has_no_interval(tmp_path, capsys):
    main(["run", str(write(tmp_path, GOOD)), "--seeds", "0", "--out", str(tmp_path / "results")])
    table = capsys.readouterr().out
    assert "one seed, so no interval" in table and "±" not in table


def test_results_of_another_config_are_never_overwritten(tmp_path, capsys):
    out = tmp_path / "results"
    config = str(write(tmp_path, GOOD))
    main(["run", config, "--out", str(out)])
    before = (out / "summary.csv").read_text()
    assert main(["run", config, "--out", str(out), "--policies.Con.init_args.mix", "0.9"]) == 2
    message = capsys.readouterr().err.replace("\n", "")
    assert "holds results of another config" in message
    assert "policies.Con.init_args.mix: 0.3 there, 0.9 now" in message
    for key, there, now in (
        ("rounds", "12", "13"),
        ("log_every", "10", "5"),
        ("precision", "'32-true'", "'64-true'"),
        ("bad_feedback", "'stop'", "'skip'"),
    ):
        assert main(["run", config, "--out", str(out), f"--{key}", now.strip("'")]) == 2
        assert f"differs in {key}: {there} there, {now} now" in capsys.readouterr().err.replace("\n", "")
    assert (out / "summary.csv").read_text() == before


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    config = write(folder, GOOD)
    assert main(["run", str(config), "--out", str(folder / "out"), "--threads", "1"]) == 0
    return config, folder / "out"


def test_jobs_side_by_side_give_the_same_numbers(uninterrupted, tmp_path):
    config, expected = uninterrupted
    assert main(["run", str(config), "--jobs", "2", "--out", str(tmp_path / "out")]) == 0
    assert numbers(tmp_path / "out") == numbers(expected)


def test_the_same_command_again_runs_only_what_is_missing(uninterrupted, tmp_path, capsys):
    config, expected = uninterrupted
    out = tmp_path / "out"
    main(["run", str(config), "--out", str(out), "--threads", "1", "--seeds", "1"])
    # A second job that was broken off: a part of its metrics, no result.
    partial = out / "Lin" / "seed0"
    partial.mkdir()
    (partial / "metrics.csv").write_text("round,cumulative_regret\n1,999\n")
    (partial / "events.out.tfevents.0").write_bytes(b"half an event")
    kept = (out / "Con" / "seed1" / "result.json").stat().st_mtime_ns
    capsys.readouterr()
    assert main(["run", str(config), "--out", str(out), "--threads", "1"]) == 0
    progress = capsys.readouterr().err
    assert (
        "holds 2 of 4 jobs" in progress and "Lin seed 0: regret" in progress and "Lin seed 1" not in progress
    )
    assert (out / "Con" / "seed1" / "result.json").stat().st_mtime_ns == kept
    assert not (partial / "events.out.tfevents.0").exists()
    assert numbers(out) == numbers(expected)


def test_fewer_seeds_into_the_same_folder_lose_no_lines(uninterrupted, tmp_path):
    config, expected = uninterrupted
    out = shutil.copytree(expected, tmp_path / "out")
    assert main(["run", str(config), "--out", str(out), "--threads", "1", "--seeds", "1"]) == 0
    lines = {(row["policy"], row["seed"]): row for row in rows(out / "summary.csv")}
    assert lines == {(row["policy"], row["seed"]): row for row in rows(expected / "summary.csv")}


@pytest.mark.slow
@pytest.mark.parametrize("how", [(), ("--jobs", "2", "--backend", "ray")])
def test_a_failing_job_does_not_take_the_others_down(uninterrupted, tmp_path, how):
    (tmp_path / "mine.py").write_text(
        "from conbandit_torch import LinUCB\n"
        "class Fragile(LinUCB):\n"
        "    def learn(self, context, arm, reward):\n"
        "        if self.seed == 1:\n"
        "            raise RuntimeError('seed 1 is too much')\n"
        "        super().learn(context, arm, reward)\n"
    )
    write(tmp_path, changed("policies.Lin", {"class_path": "mine.Fragile"}))
    done = conbandit("run", "config.yaml", "--out", "out", *how, cwd=tmp_path)
    assert done.returncode == 1
    assert "FAILED: Lin seed 1: RuntimeError: seed 1 is too much" in done.stdout
    assert "100%" in done.stdout  # the other seed of that policy is still compared
    summary = rows(tmp_path / "out" / "summary.csv")
    assert [row["error"] for row in summary] == ["", "RuntimeError: seed 1 is too much", "", ""]
    assert all(row["cumulative_regret"] for row in summary if not row["error"])
    assert "raise RuntimeError" in (tmp_path / "out" / "Lin" / "seed1" / "error.txt").read_text()
    for name in ("Con/seed0", "Con/seed1"):  # the same numbers wherever they ran
        assert numbers(tmp_path / "out" / name) == numbers(uninterrupted[1] / name)
    if how:
        return
    # Mended, the same command runs that job and no other.
    (tmp_path / "mine.py").write_text(
        "from conbandit_torch import LinUCB\nclass Fragile(LinUCB):\n    pass\n"
    )
    done = conbandit("run", "config.yaml", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0 and "holds 3 of 4 jobs" in done.stderr
    assert "error" not in rows(tmp_path / "out" / "summary.csv")[0]
    assert not (tmp_path / "out" / "Lin" / "seed1" / "error.txt").exists()


@pytest.mark.slow
def test_a_job_that_kills_its_process_is_named_and_the_others_finish(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import os, signal\n"
        "from conbandit_torch import LinUCB\n"
        "class Deadly(LinUCB):\n"
        "    def learn(self, context, arm, reward):\n"
        "        if self.seed == 1:\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "        super().learn(context, arm, reward)\n"
    )
    write(tmp_path, changed("policies.Lin", {"class_path": "mine.Deadly"}))
    done = conbandit("run", "config.yaml", "--out", "out", "--jobs", "2", cwd=tmp_path)
    assert done.returncode == 1
    assert "FAILED: Lin seed 1: its process died: killed, or out of memory?" in done.stdout
    assert sum(not row["error"] for row in rows(tmp_path / "out" / "summary.csv")) == 3


def test_odd_folder_names_are_printed_as_they_are(tmp_path, capsys):
    out = tmp_path / "a[b]c :smile: [/x]"
    config = write(tmp_path, changed("policies.Lin", "Random"))
    assert main(["run", str(config), "--rounds", "2", "--seeds", "0", "--out", str(out)]) == 0
    assert f"Results: {out}/summary.csv" in capsys.readouterr().out.replace("\n", "")


def test_without_out_every_run_gets_a_new_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = str(write(tmp_path, GOOD))
    for count in (1, 2):
        assert main(["run", config, "--rounds", "2", "--seeds", "0"]) == 0
        assert len(list((tmp_path / "runs").glob("config-*/summary.csv"))) == count


def test_a_class_in_a_file_of_ones_own_is_found(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from conbandit_torch import ConversationMixin, LinUCB\n"
        "class Bold(LinUCB):\n"
        "    def radius(self, candidates):\n"
        "        return 2 * super().radius(candidates)\n"
        "class ConBold(ConversationMixin, Bold):\n"
        "    pass\n"
    )
    part = {"class_path": "mine.ConBold", "init_args": {"mix": 0.4, "alpha": 0.2}}
    write(tmp_path, changed("policies.Con", part))
    done = conbandit("run", "config.yaml", "--out", "results", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "results" / "Con" / "seed0" / "metrics.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nowhere.yaml"], "conbandit: nowhere.yaml: No such file or directory"),
        (
            ["run", "config.yaml", "--rounds", "none"],
            "rounds: expected a whole number of at least 1, got 'none'",
        ),
        (
            ["run", "config.yaml", "--polices.Con.init_args.mix", "1"],
            "no option, and no key of a config (did you mean 'policies'?)",
        ),
        (["run", "config.yaml", "--rounds=3", "stray"], "unexpected argument 'stray'"),
        (
            ["run", "config.yaml", "--policies.Con.init_args.mix"],
            "--policies.Con.init_args.mix: a value is missing",
        ),
        (
            ["run", "config.yaml", "--policies.Con.init_args.ridge", "1"],
            "policies.Con.init_args: ConUCB has no argument 'ridge': with two levels",
        ),
        (["run", "config.yaml", "--out", "config.yaml"], "config.yaml: "),
        (["run", "config.yaml", "--jobs", "0"], "--jobs must be at least 1, got 0"),
        (["run", "config.yaml", "--out", "config.yaml/x"], "config.yaml/x: Not a directory"),
        (["run", "config.yaml", "--accelerator", "abacus"], "config.yaml: accelerator: "),
        (["run", "config.yaml", "--rounds", "2020-13-45"], "--rounds: '2020-13-45' is not a YAML value"),
        (["run", "no:b:[/x].yaml"], "conbandit: no:b:[/x].yaml: No such file or directory"),
    ],
)
def test_mistakes_exit_with_2_and_one_message(tmp_path, arguments, message, monkeypatch, capsys):
    write(tmp_path, GOOD)
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2  # an exception that gets out of `main` is a traceback
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml"]


def test_help_names_the_overrides():
    done = conbandit("run", "--help")
    assert done.returncode == 0 and "--policies.ConUCB.init_args.alpha 0.1" in done.stdout


def test_a_mistake_in_a_real_process_leaves_no_traceback(tmp_path):
    done = conbandit("run", write(tmp_path, changed("rounds", 0)))
    assert done.returncode == 2 and done.stderr.startswith("conbandit: ")
    assert "Traceback" not in done.stderr + done.stdout


def test_no_hidden_features_at_all_is_a_run_like_any_other(tmp_path):
    config = write(
        tmp_path, changed("policies.Con", {"class_path": "HConUCB", "init_args": {"hidden_dim": 0}})
    )
    assert main(["run", str(config), "--seeds", "0", "--out", str(tmp_path / "out")]) == 0


def test_an_option_that_does_not_exist_is_not_blamed_on_the_file(tmp_path, capsys):
    assert main(["run", str(write(tmp_path, GOOD)), "--foo", "10"]) == 2
    assert "--foo: no option, and no key of a config; valid: rounds, " in capsys.readouterr().err
    assert main(["run", str(write(tmp_path, GOOD)), "--policy.Lin.init_args.alpha", "1"]) == 2
    assert "(did you mean 'policies'?)" in capsys.readouterr().err


def test_a_finished_folder_is_told_so(tmp_path, capsys):
    words = ["run", str(write(tmp_path, GOOD)), "--out", str(tmp_path / "out")]
    assert main(words) == 0
    assert main(words) == 0
    assert "jobs: all are done" in capsys.readouterr().err
    assert main(["resume", str(tmp_path / "nowhere")]) == 2
    assert "nowhere: no such folder" in capsys.readouterr().err


def in_a_shell(command, *arguments):
    """A command line with its redirections; `$C` is the program."""
    program = f"{sys.executable} -m conbandit_torch"
    return subprocess.run(
        ["bash", "-c", command, "bash", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"C": program},
    )


@pytest.mark.parametrize("closed", ["2>&-", ">&-", ">&- 2>&-"])
def test_closed_streams_stop_nobody(tmp_path, closed):
    done = in_a_shell(f'$C run "$1" --out "$2" {closed}', write(tmp_path, GOOD), tmp_path / "out")
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert len(rows(tmp_path / "out" / "summary.csv")) == 4
    done = in_a_shell(f'$C report "$1" {closed}', tmp_path / "nowhere")
    assert done.returncode == 2 and "Traceback" not in done.stderr


def test_a_run_goes_on_after_its_reader_has_gone(tmp_path):
    """`true` ends before anything is printed: every line meets a broken pipe."""
    code = tmp_path / "code"
    command = '( $C run "$1" --out "$2" 2>&1; echo $? >"$3" ) | true'
    done = in_a_shell(command, write(tmp_path, GOOD), tmp_path / "out", code)
    assert "Traceback" not in done.stderr
    wait_for(lambda: code.exists() and code.read_text())
    assert code.read_text() == "0\n" and len(rows(tmp_path / "out" / "summary.csv")) == 4


ESCAPE = "\x1b[31mred\x07"


def test_escape_sequences_in_names_are_shown_and_not_sent(tmp_path, capsys):
    config = write(tmp_path, GOOD | {"policies": {ESCAPE: "LinUCB"}})
    assert main(["run", str(config)]) == 2
    assert main(["report", str(tmp_path / ESCAPE)]) == 2
    said = capsys.readouterr().err
    assert "\x1b" not in said and "\x07" not in said
    assert said.count(r"\x1b[31mred\x07") == 3


def test_tables_show_escape_sequences_and_do_not_send_them(capsys):
    from rich.table import Table

    table = Table("policy")
    table.add_row(ESCAPE)
    Terminal().print(table)
    said = capsys.readouterr().out
    assert "\x1b" not in said and r"\x1b[31mred\x07" in said


@pytest.mark.parametrize("name", ["experiment.yaml", "Summary.CSV", "report.md", "plots", "how.json.part"])
def test_names_that_a_results_folder_needs_are_refused(tmp_path, capsys, name):
    config = write(tmp_path, GOOD | {"policies": {name: "LinUCB"}})
    assert main(["run", str(config), "--out", str(tmp_path / "out")]) == 2
    assert f"policies.{name}: a policy's name is a folder's name, and" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
