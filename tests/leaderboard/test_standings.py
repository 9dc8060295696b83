"""Ranks, verdicts and figures, from numbers that can be checked by hand."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from conbandit_torch.leaderboard.board import Claim
from conbandit_torch.leaderboard.charts import Point, _ticks, frontier, scatter
from conbandit_torch.leaderboard.read_board import read_board
from conbandit_torch.leaderboard.standings import Score, TaskStandings, check_claims, rank_policies
from conbandit_torch.results.logs import UserIntervals
from conbandit_torch.running.objective import CTR, REGRET
from tests.helpers.boards import write_board

SEEDS = 8
DRAWS = np.random.default_rng(5).normal(size=(4, SEEDS))


@pytest.fixture
def board(tmp_path):
    return read_board(write_board(Path(tmp_path) / "board"))


def standings(board, task, values, objective=REGRET, failed=(), parameters="tuned"):
    scores = [Score(name, np.asarray(own, float), 0.1, 0.0, 1.0) for name, own in values.items()]
    scores.sort(key=lambda score: objective.sign * score.mean)
    by_name = {score.policy: score for score in scores}
    clicks = {parameters: UserIntervals({}, [])}
    failed = dict.fromkeys(failed, "why")
    return TaskStandings(board.tasks[task], objective, {parameters: by_name}, failed, {}, [], clicks)


def test_ranks_by_hand(board):
    plain = standings(board, "plain", {"a": [1, 1, 1], "b": [2, 2, 2], "c": [3, 3, 3]})
    log = standings(board, "log", {"a": [0.1] * 3, "b": [0.3] * 3}, CTR, failed=["c"])  # more is better
    found = {rank.policy: rank for rank in rank_policies([plain, log])}
    assert found["a"].by_task == {"plain": 1, "log": 2} and found["a"].mean == 1.5
    assert found["b"].by_task == {"plain": 2, "log": 1} and found["b"].mean == 1.5
    assert found["c"].by_task == {"plain": 3, "log": 3} and found["c"].mean == 3  # failed: last
    assert all(rank.low == rank.mean == rank.high for rank in found.values())  # seeds all alike


def test_a_rank_has_an_interval_over_seeds_and_needs_all_tasks(board):
    noisy = {"a": DRAWS[0], "b": DRAWS[1] + 0.2, "c": DRAWS[2] + 30, "d": DRAWS[3]}
    plain = standings(board, "plain", noisy)
    log = standings(board, "log", {name: noisy[name] for name in "abc"})
    own = standings(board, "own", {"d": DRAWS[0]}, parameters="published")  # a paper's own does not count
    found = {rank.policy: rank for rank in rank_policies([plain, log, own])}
    assert set(found) == {"a", "b", "c"}
    assert found["c"].low == found["c"].high == 3
    assert found["a"].low <= found["a"].mean < found["a"].high and found["b"].low < found["b"].high
    assert rank_policies([]) == []


def test_verdicts_and_their_correction_by_hand(board, monkeypatch):
    good, bad, close = DRAWS[0], DRAWS[0] + 3 + 0.1 * DRAWS[1], DRAWS[0] + 0.1 * DRAWS[2]
    claims = [
        Claim("ours", "", "good", ["bad", "close", "absent"], "", ["plain"]),
        Claim("ours", "", "bad", ["good"], "", ["plain"]),
    ]
    object.__setattr__(board, "claims", claims)
    every = [standings(board, "plain", {"good": good, "bad": bad, "close": close})]
    first, second = check_claims(board, every)
    by_name = {test.worse: test for test in first.tests["plain"]}
    assert {name: test.verdict for name, test in by_name.items()} == {
        "bad": "holds",
        "close": "not separated",
        "absent": "not run",
    }
    assert first.verdict("plain") == "not run" and second.verdict("plain") == "reversed"
    raw = stats.ttest_rel(good, bad).pvalue
    assert by_name["bad"].p == pytest.approx(3 * raw)  # the smallest of three tests that were made
    assert by_name["bad"].gain == pytest.approx((bad - good).mean())
    assert by_name["close"].p == pytest.approx(stats.ttest_rel(good, close).pvalue)  # the largest


def test_of_clicks_more_are_better_in_a_claim(board):
    object.__setattr__(board, "claims", [Claim("ours", "", "more", ["less"], "", ["log"])])
    values = {"more": 0.5 + 0.01 * DRAWS[0], "less": 0.3 + 0.01 * DRAWS[1]}
    (checked,) = check_claims(board, [standings(board, "log", values, CTR)])
    assert checked.verdict("log") == "holds" and checked.tests["log"][0].gain > 0


def test_those_as_good_as_the_best(board):
    values = {"best": DRAWS[0], "close": DRAWS[0] + 0.05 * DRAWS[1] + 0.02, "far": DRAWS[0] + 9 + DRAWS[2]}
    assert standings(board, "plain", values).as_good() == {"best", "close"}
    assert standings(board, "plain", {}).as_good() == set()


def test_the_frontier_by_hand():
    points = [Point(x, y, name, 0, "") for x, y, name in [(0, 9, "a"), (5, 7, "b"), (5, 8, "c"), (9, 7, "d")]]
    assert [point.name for point in frontier(points, 1)] == ["a", "b"]
    assert [point.name for point in frontier(points, -1)] == ["a"]
    chart = scatter(points, sign=1, x_label="asked", y_label="regret")
    assert chart.count("<circle") == 4 and chart.count('class="name"') == 2


def test_ticks_are_round_numbers_within():
    assert _ticks(3, 40, logarithmic=True) == [5, 10, 20]
    assert _ticks(0, 30, logarithmic=False) == [0, 10, 20, 30]
    assert _ticks(4, 4, logarithmic=False) == [4]
