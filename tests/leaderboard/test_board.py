"""A board's files: what is read, and what is refused before anything runs."""

import copy
import re

import pytest
import yaml

from conbandit_torch.commands.main import main
from conbandit_torch.configuration.kinds import classes_of
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.leaderboard.read_board import read_board
from tests.helpers.boards import RANGE, write_board


def protocol(files):
    return files["protocol.yaml"]["protocols"]["tiny"]


def policies(files):
    return files["policies.yaml"]["policies"]


def claim(files):
    return files["claims.yaml"]["claims"][1]


def put(node, key, value):
    node[key] = value


def test_the_packages_own_board_is_sound():
    board = read_board()
    assert {"synthetic", "hidden", "logistic", "movielens", "lastfm", "replay"} <= set(board.tasks)
    assert list(read_board(protocol="full").tasks) == list(board.tasks)
    assert all(entry.source and entry.group for entry in board.entries.values())
    assert all(claim.own or claim.tasks for claim in board.claims)


def test_every_policy_is_on_the_board():
    on_it = {entry.part["class_path"] for entry in read_board().entries.values()}
    base = {"LinearBandit"}  # which is Greedy, or LinUCB
    assert set(classes_of("policies")) - base == on_it


def test_an_argument_has_the_same_range_for_every_policy():
    ranges = {}
    for entry in read_board().entries.values():
        for argument, where in entry.space.items():
            if "." not in argument and argument != "epsilon":  # of two policies, with two meanings
                ranges.setdefault(argument, []).append(where)
    assert len(ranges["alpha"]) > 10
    assert all(where == those[0] for those in ranges.values() for where in those)


def test_a_papers_own_setting_has_its_own_arguments_and_no_tuning(tmp_path):
    board = read_board(write_board(tmp_path / "board"))
    entries = board.entries_of(board.tasks["own"])
    assert list(entries) == ["LinUCB", "ConUCB"]
    assert entries["LinUCB"].part["init_args"] == {"alpha": 0.7}
    assert not any(entry.space for entry in entries.values())
    assert board.entries["LinUCB"].part["init_args"] == {"alpha": 0.5}


def test_the_protocol_gives_users_where_the_task_does_not(tmp_path):
    board = read_board(write_board(tmp_path / "board"))
    users = {
        name: board.config_of(task, {})["environment"]["init_args"]["users"]
        for name, task in board.tasks.items()
    }
    assert users == {"plain": 3, "log": 8, "own": 3}


def test_a_protocol_changes_sizes_of_a_task(tmp_path):
    def change(files):
        files["protocol.yaml"]["protocols"]["large"] = copy.deepcopy(protocol(files))
        files["protocol.yaml"]["tasks"]["plain"]["sizes"] = {"large": {"arms": 77, "users": 9}}

    folder = write_board(tmp_path / "board", change)
    sizes = []
    for name in ("tiny", "large"):
        board = read_board(folder, name)
        arguments = board.config_of(board.tasks["plain"], {})["environment"]["init_args"]
        sizes.append([arguments[key] for key in ("arms", "users", "terms")])
    assert sizes == [[40, 3, 8], [77, 9, 8]]


BAD = {
    "seeds overlap": (
        lambda files: put(protocol(files), "tuning_seeds", "1-4"),
        r"protocol.yaml: protocols.tiny.tuning_seeds: 1 is a seed of the evaluation too \(seeds: 0-1\)",
    ),
    "no seeds": (lambda files: put(protocol(files), "seeds", "ten"), "tiny.seeds: expected numbers like"),
    "no trials": (lambda files: put(protocol(files), "trials", 0), "tiny.trials: expected a whole number"),
    "a missing key": (lambda files: protocol(files).pop("users"), "the key 'users' is missing"),
    "an unknown key": (
        lambda files: put(policies(files)["LinUCB"], "tunes", {}),
        "policies.LinUCB: unknown key 'tunes' .did you mean 'tune'",
    ),
    "no such argument": (
        lambda files: put(policies(files)["LinUCB"], "tune", {"alpa": RANGE}),
        "alpa.*(did you mean|valid)",
    ),
    "a range upside down": (
        lambda files: put(policies(files)["LinUCB"], "tune", {"alpha": {"low": 2.0, "high": 1.0}}),
        "policies.yaml: tune.space.LinUCB.alpha: ",
    ),
    "a range of words": (
        lambda files: put(policies(files)["LinUCB"], "tune", {"alpha": {"low": "a", "high": "b"}}),
        "policies.yaml: tune.space.LinUCB.alpha: ",
    ),
    "no such class": (
        lambda files: put(policies(files)["ConUCB"], "class_path", "ConUBC"),
        "unknown class 'ConUBC' .did you mean 'ConUCB'",
    ),
    "a task's policy": (
        lambda files: put(files["protocol.yaml"]["tasks"]["own"], "policies", ["LinUBC"]),
        "tasks.own.policies: there is no policy 'LinUBC' .did you mean 'LinUCB'",
    ),
    "a task's sizes": (
        lambda files: put(files["protocol.yaml"]["tasks"]["plain"], "sizes", {"tinny": {}}),
        "tasks.plain.sizes: there is no protocol 'tinny' .did you mean 'tiny'",
    ),
    "a paper's setting without policies": (
        lambda files: files["protocol.yaml"]["tasks"]["own"].pop("policies"),
        "tasks.own: a paper's own setting names its policies",
    ),
    "a claim's policy": (
        lambda files: put(claim(files), "better", "ConUBC"),
        r"claims\[1\]: there is no policy 'ConUBC' .did you mean 'ConUCB'",
    ),
    "a claim's task": (
        lambda files: put(claim(files), "tasks", ["plane"]),
        r"claims\[1\]: there is no task 'plane' .did you mean 'plain'",
    ),
    "a claim's paper": (
        lambda files: put(claim(files), "paper", "Zhang02"),
        r"claims\[1\].paper: there is no paper 'Zhang02' .did you mean 'Zhang20'",
    ),
    "an environment's argument": (
        lambda files: put(files["protocol.yaml"]["tasks"]["plain"]["environment"]["init_args"], "arm", 3),
        "protocol.yaml: environment.*arm",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_board_is_refused_and_nothing_is_written(case, tmp_path, capsys):
    change, message = BAD[case]
    board = write_board(tmp_path / "board", change)
    assert main(["leaderboard", str(board), "--out", str(tmp_path / "out")]) == 2
    assert re.search(message, capsys.readouterr().err.replace("\n", " "))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policies", "LinUBC"], "--policies: there is no policy 'LinUBC' .did you mean 'LinUCB'"),
        (["--tasks", "plane"], "--tasks: there is no task 'plane' .did you mean 'plain'"),
        (["--protocol", "tinny"], "there is no protocol 'tinny' .did you mean 'tiny'"),
        (["--jobs", "0"], "--jobs must be at least 1"),
        (["--page-only"], "no such folder"),
        (["--trials", "3"], "unexpected argument '--trials'"),
        (["--add", "nowhere.yaml"], "nowhere.yaml: No such file"),
    ],
)
def test_bad_options_are_refused_and_nothing_is_written(arguments, message, tmp_path, capsys):
    board = write_board(tmp_path / "board")
    assert main(["leaderboard", str(board), "--out", str(tmp_path / "out"), *arguments]) == 2
    assert re.search(message, capsys.readouterr().err.replace("\n", " "))
    assert not (tmp_path / "out").exists()


def test_a_name_that_is_on_the_board_is_not_added_again(tmp_path):
    board = write_board(tmp_path / "board")
    mine = tmp_path / "mine.yaml"
    mine.write_text(yaml.safe_dump({"policies": {"LinUCB": "LinUCB"}}))
    with pytest.raises(ConfigError, match="mine.yaml: policies.LinUCB: is on the board already"):
        read_board(board, added=[mine])


def test_a_group_holds_until_the_next(tmp_path):
    def change(files):
        policies(files)["Greedy"] = copy.deepcopy(policies(files)["Random"]) | {"group": "more"}

    entries = read_board(write_board(tmp_path / "board", change)).entries
    groups = {name: entry.group for name, entry in entries.items()}
    assert groups == {"Random": "plain", "LinUCB": "plain", "ConUCB": "asking", "Greedy": "more"}
