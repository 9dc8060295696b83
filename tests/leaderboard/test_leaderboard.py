"""A leaderboard that runs: equal budgets, what is missing alone, strangers, failures, and the page."""

import json
import signal
import sys
import time
from html.parser import HTMLParser

import pytest
import yaml

from conbandit_torch.commands.main import main
from conbandit_torch.leaderboard.read_board import read_board
from conbandit_torch.results.read import read_results
from conbandit_torch.tuning.tune import finished, open_study
from tests.helpers.boards import RANGE, write_board
from tests.helpers.commands import kill, numbers, rows, start

COMPARING = {"class_path": "RelativeConUCB", "source": "<b>& more</b>"}


def with_a_failure(files):
    """A log has no noise for comparisons, so this policy cannot play there."""
    files["policies.yaml"]["policies"]["Comparing"] = COMPARING | {"tune": {"mix": {"low": 0.2, "high": 0.8}}}


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A board and its folder, all of it run; no test changes it."""
    folder = tmp_path_factory.mktemp("leaderboard")
    board, out = write_board(folder / "board", with_a_failure), folder / "out"
    assert main(["leaderboard", str(board), "--out", str(out)]) == 0
    return board, out


def times(out):
    """When every job's result was written."""
    return {path: path.stat().st_mtime_ns for path in out.rglob("result.json")}


def test_every_policy_has_the_same_number_of_trials_and_the_published_parameters_first(played):
    board, out = played
    found = json.loads((out / "plain" / "found.json").read_text())
    assert {name: one["trials"] for name, one in found.items()} == dict.fromkeys(
        ("LinUCB", "ConUCB", "Comparing"), 2
    )
    assert found["LinUCB"]["published"] == {"alpha": 0.5}
    assert found["ConUCB"]["published"] == {"alpha": 0.25, "term_alpha": 0.25}
    read = read_board(board)
    study = open_study(read.tuning_of(read.tasks["plain"], read.entries["LinUCB"]), out / "plain" / "studies")
    first, second = sorted(finished(study), key=lambda trial: trial.number)
    assert first.params == {"alpha": 0.5} != second.params
    assert found["LinUCB"]["parameters"] == min((first, second), key=lambda trial: trial.value).params


def test_the_evaluation_has_the_best_trials_parameters_and_its_own_seeds(played):
    _, out = played
    found = json.loads((out / "plain" / "found.json").read_text())
    for parameters, alpha in (("published", 0.5), ("tuned", found["LinUCB"]["parameters"]["alpha"])):
        config = yaml.safe_load((out / "plain" / parameters / "LinUCB" / "seed0" / "config.yaml").read_text())
        assert config["policies"]["LinUCB"]["init_args"]["alpha"] == alpha
        assert read_results(out / "plain" / parameters)["LinUCB"].seeds == [0, 1]
    own = yaml.safe_load((out / "own" / "published" / "LinUCB" / "seed0" / "config.yaml").read_text())
    assert own["policies"]["LinUCB"]["init_args"]["alpha"] == 0.7
    assert not (out / "own" / "tuned").exists()


def test_a_policy_that_fails_on_a_task_is_shown_with_the_reason_and_stops_no_other(played):
    _, out = played
    failed = json.loads((out / "log" / "failed.json").read_text())
    assert list(failed) == ["Comparing"]
    assert failed["Comparing"].startswith(
        "tuning: no trial finished: NotImplementedError: GeneratedLog has no"
    )
    assert set(read_results(out / "log" / "tuned")) == {"Random", "LinUCB", "ConUCB"}
    assert "Comparing" in read_results(out / "plain" / "tuned")
    page = (out / "index.html").read_text()
    assert "<h2>Failed</h2>" in page and "noise for comparisons" in page


def test_scores_are_those_of_the_results(played):
    _, out = played
    scores = {(row["task"], row["parameters"], row["policy"]): row for row in rows(out / "scores.csv")}
    regrets = read_results(out / "plain" / "tuned")["ConUCB"].final("cumulative_regret")
    assert float(scores["plain", "tuned", "ConUCB"]["mean"]) == pytest.approx(regrets.mean(), rel=1e-5)
    clicks = read_results(out / "log" / "tuned")["LinUCB"].final("ctr")
    assert float(scores["log", "tuned", "LinUCB"]["mean"]) == pytest.approx(clicks.mean(), rel=1e-5)
    ranked = [name for task, parameters, name in scores if (task, parameters) == ("log", "tuned")]
    means = [float(scores["log", "tuned", name]["mean"]) for name in ranked]
    assert means == sorted(means, reverse=True)  # more clicks are better


def test_the_page_is_whole_needs_no_other_file_and_escapes_what_people_wrote(played):
    class Check(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open, self.outside = [], []

        def handle_starttag(self, tag, attributes):
            if tag not in ("meta", "br"):
                self.open.append(tag)
            for name, value in attributes:
                if name in ("src", "href") and not value.startswith("#"):
                    self.outside.append(value)

        def handle_startendtag(self, tag, attributes):
            pass

        def handle_endtag(self, tag):
            assert self.open and self.open.pop() == tag

    _, out = played
    page = (out / "index.html").read_text()
    check = Check()
    check.feed(page)
    assert check.open == [] and check.outside == []
    assert "&lt;b&gt;&amp; more&lt;/b&gt;" in page and "<b>& more" not in page
    for title in ("Rank over tasks", "Which claims hold", "Regret against questions", "Plain", "Log", "Own"):
        assert title in page


def test_the_same_command_again_runs_nothing_and_writes_the_same_page(played, capsys):
    board, out = played
    before, page = times(out), (out / "index.html").read_text()
    assert main(["leaderboard", str(board), "--out", str(out), "--tasks", "plain"]) == 0
    assert times(out) == before and (out / "index.html").read_text() == page
    assert "trial" not in capsys.readouterr().err


def test_published_parameters_alone_need_no_tuning(tmp_path):
    board, out = write_board(tmp_path / "board"), tmp_path / "out"
    some = ["--tasks", "plain", "--policies", "Random", "LinUCB", "--parameters", "published"]
    assert main(["leaderboard", str(board), "--out", str(out), *some]) == 0
    assert sorted(path.name for path in (out / "plain").iterdir()) == ["published"]
    assert "Not run yet" in (out / "index.html").read_text()


MINE = """
from conbandit_torch import LinUCB

class MyPolicy(LinUCB):
    '''LinUCB by another name.'''
"""


def test_a_stranger_adds_a_policy_and_runs_only_its_part(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    board, out = write_board(tmp_path / "board"), tmp_path / "out"
    some = ["leaderboard", str(board), "--out", str(out), "--tasks", "plain"]
    assert main([*some, "--policies", "LinUCB", "Random"]) == 0
    before = times(out)
    (tmp_path / "my_module.py").write_text(MINE)
    entry = {"class_path": "my_module.MyPolicy", "init_args": {"ridge": 0.3}, "tune": {"alpha": RANGE}}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"policies": {"MyPolicy": entry}}))
    assert main([*some, "--add", "mine.yaml", "--policies", "MyPolicy"]) == 0
    after = times(out)
    assert {path: after[path] for path in before} == before
    new = {path.parent.parent.name for path in set(after) - set(before)}
    assert new == {"MyPolicy"} and len(after) - len(before) == 2 * 2  # published and tuned, two seeds
    assert 'data-p="MyPolicy"' in (out / "index.html").read_text()
    assert main(["leaderboard", str(board), "--out", str(out), "--page-only"]) == 0
    page = (out / "index.html").read_text()
    assert 'data-p="MyPolicy"' in page and "Not run yet" in page and "Plain: ConUCB" in page


def test_a_policy_that_was_changed_is_not_mixed_with_what_it_was(tmp_path, capsys):
    board, out = write_board(tmp_path / "board"), tmp_path / "out"
    some = ["--out", str(out), "--tasks", "plain", "--policies", "Random", "LinUCB"]
    assert main(["leaderboard", str(board), *some]) == 0
    write_board(
        board, lambda files: files["policies.yaml"]["policies"]["LinUCB"].update(init_args={"alpha": 0.6})
    )
    assert main(["leaderboard", str(board), *some]) == 2
    assert "LinUCB was tuned there with another config" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("wait", [4.0, 7.0])
def test_kill_and_resume_loses_nothing(wait, tmp_path, played):
    board, whole = played
    out = tmp_path / "out"
    process = start("leaderboard", board, "--out", out, "--jobs", "2")
    time.sleep(wait)
    kill(process)
    before = times(out) if out.exists() else {}
    assert main(["leaderboard", str(board), "--out", str(out)]) == 0
    assert {path: times(out)[path] for path in before} == before
    for task in ("plain", "log"):  # a trial that was killed is made up for, maybe at another point
        found = json.loads((out / task / "found.json").read_text())
        assert all(one["trials"] == 2 for one in found.values())
        assert set(found) == set(json.loads((whole / task / "found.json").read_text()))
        assert set(read_results(out / task / "tuned")) == set(read_results(whole / task / "tuned"))
    mine, theirs = ({k: v for k, v in numbers(one).items() if "metrics" in k} for one in (out, whole))
    assert set(mine) == set(theirs)
    published = {key for key in mine if "published" in key}
    assert {key: mine[key] for key in published} == {key: theirs[key] for key in published}


@pytest.mark.slow
def test_it_can_be_stopped_and_goes_on(tmp_path):
    long = {"rounds": 3000, "users": 20}
    board = write_board(
        tmp_path / "board", lambda files: files["protocol.yaml"]["protocols"]["tiny"].update(long)
    )
    out = tmp_path / "out"
    process = start("leaderboard", board, "--out", out, "--tasks", "own")
    deadline = time.monotonic() + 60
    while not list(out.glob("own/published/*/seed*/config.yaml")) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert "interrupted; what had finished is kept" in process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert main(["leaderboard", str(board), "--out", str(out), "--tasks", "own"]) == 0
    assert set(read_results(out / "own" / "published")) == {"LinUCB", "ConUCB"}
