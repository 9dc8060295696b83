"""The measuring scripts in their quick forms: what they write, never how fast it was."""

import json
import math

import pytest

from experiments import benchmark, precision, scaling, scaling_report
from experiments.measuring import Breakdown
from tests.helpers.commands import cells


def test_benchmark_measures_every_policy_asked_for(tmp_path, capsys):
    names = ["LinUCB", "LinThompson", "hConUCB"]
    benchmark.main(["--quick", "--policies", *names, "--out", str(tmp_path)])
    found = json.loads((tmp_path / "benchmark.json").read_text())
    assert list(found["policies"]) == names and found["sizes"]["users"] == 6
    for own in found["policies"].values():
        assert own["ours"] > 0 and own["loop"] > 0 and own["over_loop"] > 0
        assert set(own["parts"]) == set(benchmark.PARTS)
        for part in ("draws", "rewards", "gather", "scores", "updates", "metrics", "logging", "loop"):
            assert own["parts"][part] > 0, part
    assert found["policies"]["LinThompson"]["bare"] is None and found["policies"]["hConUCB"]["bare"] > 0
    assert found["policies"]["LinThompson"]["by_hand"] is None and found["policies"]["LinUCB"]["by_hand"] > 0
    table = cells(tmp_path / "benchmark.md")
    assert [row[0] for row in table[1 : 1 + len(names)]] == names
    assert (tmp_path / "benchmark.png").stat().st_size > 5000
    assert "LinUCB" in capsys.readouterr().out


@pytest.mark.parametrize(("precision_name", "floor"), [("32-true", 90), ("64-true", 45)])
def test_a_floor_is_halved_in_float64_and_compared_with_the_ratio(precision_name, floor):
    figures = {
        ratio: benchmark.Figures(1.0, ratio, 1.0, None, ratio, over_bare, 60.0, {})
        for ratio, over_bare in ((floor, 1.8), (floor - 1, 1.9))
    }
    for ratio, met in ((floor, "yes"), (floor - 1, "no")):
        _, [row] = benchmark.table({"LinUCB": figures[ratio]}, precision_name)
        assert row[4:6] == [str(floor), met] and row[-3] == met


def test_breakdown_counts_a_part_without_the_parts_it_calls(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    class Nested:
        def outer(self):
            now[0] += 1
            self.inner()
            now[0] += 2

        def inner(self):
            now[0] += 4

    nested, clocks = Nested(), Breakdown()
    clocks.watch(nested, "outer", "a")
    clocks.watch(nested, "inner", "b")
    nested.outer()
    now[0] += 8  # nothing runs
    nested.inner()
    assert dict(clocks.seconds) == {"a": 3.0, "b": 8.0}


@pytest.mark.slow
def test_scaling_measures_every_point_in_a_process_of_its_own(tmp_path):
    words = ["--quick", "--seconds", "0.01", "--threads", "1", "--axes", "users", "rounds"]
    scaling.main([*words, "--policies", "hConUCB", "--out", str(tmp_path)])
    points = json.loads((tmp_path / "scaling.json").read_text())["points"]
    own = points["users"]["hConUCB"]
    assert list(own) == ["6", "12"] and list(points["rounds"]["hConUCB"]) == ["10", "30"]
    for value, point in own.items():
        assert point["microseconds"] > 0 and point["rounds"] >= 5 and point["users"] == int(value)
    assert own["12"]["state"] > own["6"]["state"]
    assert len(cells(tmp_path / "scaling.md")) == 1 + 4
    for figure in ("scaling_time", "scaling_bytes"):
        assert (tmp_path / f"{figure}.png").stat().st_size > 5000


def test_scaling_says_which_sizes_it_left_out(tmp_path):
    words = ["--quick", "--axes", "users", "--policies", "LinUCB", "--memory", "1e-6"]
    scaling.main([*words, "--out", str(tmp_path)])
    assert "above --memory" in (tmp_path / "scaling.md").read_text()


def users_points(time_at_many, peak_at_many):
    few, fewer, many = scaling_report.SMALL, scaling_report.FEWER, scaling_report.LARGE
    point = {"microseconds": 10.0, "peak": 1_000_000 + fewer * 40_000}
    own = {few: point, fewer: point, many: {"microseconds": time_at_many, "peak": peak_at_many}}
    return {"users": {"ConUCB": own}}


def test_scaling_judges_time_and_memory_at_many_users():
    bound = 1.3 * (4 * 50**2 + 8 * 50) * 4
    highest = (
        1_000_000 + scaling_report.FEWER * 40_000 + (scaling_report.LARGE - scaling_report.FEWER) * bound
    )
    good = scaling_report.checks(users_points(12.9, highest - 1), 50)
    bad = scaling_report.checks(users_points(13.1, highest + 100_000), 50)
    assert all(line.endswith(": met.") for line in good) and len(good) == 2
    assert all(line.endswith(": NOT MET.") for line in bad) and len(bad) == 2


def test_a_user_rounds_time_has_its_share_of_questions_and_records():
    clock = scaling.Clock(1.0)
    clock.plain, clock.asking, clock.recording, clock.questions = [1.0, 3.0], [12.0], [7.0], 5
    assert math.isclose(clock.user_round(10), (2 + 0.03 * 10 / 5 + 5 / 10) / 10)


def test_precision_compares_regrets_and_inverses(tmp_path):
    precision.main(["--quick", "--policies", "ConUCB", "--out", str(tmp_path)])
    found = json.loads((tmp_path / "precision.json").read_text())
    assert [own["case"] for own in found["inverse"]] == ["random", "few arms", "one arm", "LinUCB"]
    for own in found["inverse"]:
        assert list(own["errors"]) == ["500", "1000"] and own["failed"] == ""
        assert all(0 < error < 1 for error in own["errors"].values())  # float32, so not 0
    assert found["inverse"][0]["errors"]["1000"] < 1e-5  # some ten roundings of float32
    rows = [row for row in cells(tmp_path / "precision.md") if row[0] in ("random", "one arm")]
    assert [row[2] for row in rows] == ["yes" if float(row[1]) < 1e-3 else "no" for row in rows]
    [own] = found["regret"]
    assert own["policy"] == "ConUCB" and own["difference"] < 0.02  # 40 rounds: hardly a decision differs
    assert (tmp_path / "precision.png").stat().st_size > 5000
