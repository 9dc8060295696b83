"""Reading results back: curves, reports, figures."""

import io
import json
import shutil
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from scipy import stats
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.custom_scalar import layout_pb2

from conbandit_torch.commands.main import main
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.core.seals import file_digest
from conbandit_torch.results import plots
from conbandit_torch.results.aggregate import aggregate
from conbandit_torch.results.paired import holm
from conbandit_torch.results.plots import _relative, draw_all, style
from conbandit_torch.results.read import Clicks, PolicyResults, intervals, read_results
from conbandit_torch.results.report import compare
from conbandit_torch.running.objective import CTR
from conbandit_torch.running.result import read_result, write_result
from tests.helpers.commands import rows
from tests.helpers.configs import GOOD, write


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    config = write(folder, GOOD | {"seeds": "0-3", "log_every": 4})
    assert main(["run", str(config), "--out", str(folder / "out")]) == 0
    return folder / "out"


@pytest.fixture
def results(finished, tmp_path):
    """A copy that a test may spoil."""
    return shutil.copytree(finished, tmp_path / "out")


def made_up(**regrets):
    """Results with the given final regrets, one a seed."""
    return {
        name: PolicyResults(
            seeds=list(range(len(values))),
            seconds=np.full(len(values), 2.0),
            rounds=np.array([10, 20]),
            metrics={
                "cumulative_regret": np.array([[0.0, value] for value in values]),
                "theta_error": np.full((len(values), 2), np.nan),
                "questions": np.full((len(values), 2), 3.0),
            },
            num_users=5,
        )
        for name, values in regrets.items()
    }


def test_results_are_read_as_they_were_written(finished):
    results = read_results(finished)
    assert list(results) == ["Lin", "Con"]
    for name, own in results.items():
        assert own.seeds == [0, 1, 2, 3] and own.rounds.tolist() == [1, 2, 3, 4, 8, 12] and own.num_users == 4
        table = rows(finished / name / "seed2" / "metrics.csv")
        np.testing.assert_array_equal(
            own.metrics["cumulative_regret"][2], [float(row["cumulative_regret"]) for row in table]
        )


def test_intervals_are_t_intervals():
    values = np.array([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]])
    mean, half = intervals(values)
    low, high = stats.t.interval(0.95, 2, loc=values[:, 0].mean(), scale=stats.sem(values[:, 0]))
    np.testing.assert_allclose([mean[0] - half[0], mean[0] + half[0]], [low, high], rtol=1e-12)
    assert half[1] == 0
    assert np.isnan(intervals(values[:1])[1]).all()


def test_curves_hold_means_and_intervals_of_every_round(finished):
    table = rows(finished / "curves.csv")
    assert [(row["policy"], row["round"], row["seeds"]) for row in table[:6]] == [
        ("Lin", number, "4") for number in ("1", "2", "3", "4", "8", "12")
    ]
    final = [
        float(row["cumulative_regret"]) for row in rows(finished / "summary.csv") if row["policy"] == "Con"
    ]
    mean, half = intervals(np.array(final))
    last = table[-1]
    assert float(last["cumulative_regret"]) == pytest.approx(mean, rel=1e-8)
    assert float(last["cumulative_regret_low"]) == pytest.approx(mean - half, rel=1e-8)
    assert float(last["cumulative_regret_high"]) == pytest.approx(mean + half, rel=1e-8)


BANDS = {
    "Regret/average over seeds": "cumulative_regret",
    "Regret over seeds/95 % low": "cumulative_regret_low",
    "Regret over seeds/95 % high": "cumulative_regret_high",
    "over seeds/theta error": "theta_error",
    "over seeds/theta error 95 % low": "theta_error_low",
}


def test_tensorboard_has_one_run_per_policy_with_bands(finished):
    curves = rows(finished / "curves.csv")
    for name in ("Lin", "Con"):
        events = EventAccumulator(str(finished / name)).Reload()
        for tag, column in BANDS.items():
            points = events.Scalars(tag)
            expected = [float(row[column]) for row in curves if row["policy"] == name]
            assert [point.step for point in points] == [1, 2, 3, 4, 8, 12]
            np.testing.assert_allclose([point.value for point in points], expected, rtol=1e-6)


def test_tensorboards_charts_with_bands_are_few_and_none_is_empty(finished):
    first, second = (EventAccumulator(str(finished / name)).Reload() for name in ("Lin", "Con"))
    content = first.Tensors("custom_scalars__config__")[0].tensor_proto.string_val[0]
    assert "custom_scalars__config__" not in second.Tags()["tensors"]
    (category,) = layout_pb2.Layout.FromString(content).category
    assert [chart.title for chart in category.chart] == [  # TensorBoard shows the last one first
        "effective terms", "questions", "prediction error", "theta error", "reward", "cumulative regret",
    ]  # fmt: skip
    logged = {*first.Tags()["scalars"], *second.Tags()["scalars"]}
    for chart in category.chart:
        (series,) = chart.margin.series
        assert {series.value, series.lower, series.upper} <= logged


def test_tensorboard_lists_policies_before_their_seeds(finished):
    starts = {
        str(path.relative_to(finished)): EventAccumulator(str(path)).Reload().FirstEventTimestamp()
        for path in [*finished.glob("*/seed?"), finished / "Lin", finished / "Con"]
    }
    assert sorted(starts, key=starts.get)[:2] == ["Lin", "Con"]


def test_a_policy_with_one_seed_left_has_no_curves_over_seeds(results):
    (results / "aggregate" / "Lin").mkdir(parents=True)  # as earlier versions had it
    for seed in (1, 2, 3):
        shutil.rmtree(results / "Con" / f"seed{seed}")
    aggregate(results)
    assert list((results / "Lin").glob("events.*")) and not list((results / "Con").glob("events.*"))
    assert not (results / "aggregate").exists()


def test_paired_tests_see_what_unpaired_intervals_hide():
    """Seeds differ by far more than the policies do, but always in the same direction."""
    base = np.array([10.0, 30.0, 50.0, 70.0, 90.0])
    report = compare(made_up(A=base, B=base - [1.0, 1.1, 0.9, 1.0, 1.05]))
    assert report.order == "Order by regret: B < A"
    line = report.lines[0]
    assert line[0] == "B" and line[4].startswith("1.01 ± ") and line[5] == "< 0.001"


def test_orders_are_claimed_only_where_seeds_support_them():
    base = np.array([50.0, 52.0, 51.0, 53.0, 49.0, 50.5])
    report = compare(
        made_up(
            A=base + np.array([5, 5.1, 5, 4.9, 5, 5]),
            B=base + np.array([1.0, -1.2, 0.8, -1.0, 1.1, -0.9]),
            C=base,
        ),
        "A",
    )
    assert report.order == "Order by regret: B ~ C < A"


def test_a_policy_without_a_number_is_last_and_hides_nothing():
    base = np.array([50.0, 52.0, 51.0, 53.0, 49.0])
    lost = np.array([1.0, np.nan, 1.0, 1.0, 1.0])
    report = compare(made_up(A=base, N=lost, B=base - [5, 5.1, 5, 4.9, 5]), "A")
    assert report.order == "Order by regret: B < A ~ N"
    assert report.lines[-1][:6] == ["N", "5", "-", "-", "-", "-"]


def test_a_policy_without_a_full_window_is_left_out_of_the_curves_and_no_other(tmp_path):
    results = {}
    for name, windows in {
        "Lin": [[0.2, 0.0], [0.2, 0.3]],
        "Con": [[0.4, 0.5], [0.3, 0.6]],
        "Few": [[], []],
    }.items():
        ctr = np.array(windows).reshape(2, -1)
        own = made_up(**{name: [1.0, 2.0]})[name]
        metrics = own.metrics | {"ctr": own.metrics["cumulative_regret"]}
        clicks = Clicks(ctr, 500, np.array([0.1, 0.1]))
        results[name] = replace(own, metrics=metrics, objective=CTR, clicks=clicks)
    names = [path.name for path in draw_all(results, tmp_path, "Lin") if path.suffix == ".png"]
    assert names == ["ctr.png", "ctr_of_baseline.png", "final_ctr.png", "frontier.png"]
    assert len(draw_all(results, tmp_path, "Few")) == 6  # nothing can be drawn relative to Few
    ratio = _relative(results["Con"], results["Con"].clicks.ctr, results["Lin"], results["Lin"].clicks.ctr)
    np.testing.assert_allclose(ratio, [[2, np.nan], [1.5, 2]])
    with pytest.raises(ConfigError, match="--baseline Lon: there is no such policy"):
        draw_all(results, tmp_path, "Lon")


def test_holms_correction_by_hand():
    corrected = holm({("a", "b"): 0.01, ("a", "c"): 0.04, ("b", "c"): 0.03, ("c", "d"): float("nan")})
    assert corrected["a", "b"] == pytest.approx(0.03)
    assert corrected["b", "c"] == pytest.approx(0.06)
    assert corrected["a", "c"] == pytest.approx(0.06)  # never below a smaller p's
    assert np.isnan(corrected["c", "d"])


def test_a_single_seed_gets_no_interval_and_no_test_and_says_so():
    report = compare(made_up(A=[3.0], B=[2.0]))
    assert [line[2] for line in report.lines] == ["2.00", "3.00"]
    assert "There is only one seed, so there is no interval and no test." in report.notes
    assert report.order == "Order by regret: B ~ A"


def test_a_narrow_terminal_breaks_names_and_never_numbers():
    long = {
        "a policy with a very long name": [131.0, 132.0],
        "another one that is longer still": [89.0, 90.0],
    }
    terminal = Console(width=80, record=True, file=io.StringIO())
    terminal.print(compare(made_up(**long)).table())
    shown = terminal.export_text()
    assert "131.50 ± " in shown and "89.50 ± " in shown and "…" not in shown


def test_report_is_shown_and_written(results, capsys):
    assert main(["report", str(results), "--baseline", "Con"]) == 0
    text = capsys.readouterr().out
    assert "Order by regret: " in text and "us per" in text
    written = (results / "report.md").read_text()
    assert written.startswith("# Report\n\n| policy | seeds | regret | of Con | less than Con |")
    assert max(len(line) for line in text.splitlines() if line.startswith(("┃", "│"))) <= 80


def test_figures_are_drawn(results):
    assert main(["plot", str(results)]) == 0
    names = sorted(path.name for path in (results / "plots").iterdir())
    assert names == [
        f"{name}.{ending}"
        for name in ("final_regret", "frontier", "regret", "theta_error")
        for ending in ("pdf", "png")
    ]
    for path in (results / "plots").iterdir():
        assert path.read_bytes()[:4] in (b"%PDF", b"\x89PNG")


def test_without_matplotlib_plot_says_what_to_install(results, capsys, monkeypatch):
    monkeypatch.setattr("conbandit_torch.commands.plot.find_spec", lambda name: None)
    assert main(["plot", str(results)]) == 2
    assert "conbandit plot needs matplotlib: pip install matplotlib" in capsys.readouterr().err


def test_a_policy_looks_the_same_everywhere_and_like_no_other():
    published = ["LinUCB", "ConUCB", "Arm-Con", "Var-RS", "Var-MRC", "Var-LCR", "hLinUCB", "Random"]
    looks = [
        (style(name)["color"], str(style(name)["linestyle"]), style(name)["marker"]) for name in published
    ]
    for part in zip(*looks, strict=True):
        assert len(set(part)) == len(published)  # each of colour, line and marker tells them apart
    assert style("hConUCB") == style("ConUCB") and style("HVarLCR") == style("Var-LCR")
    assert style("mine") == style("mine") != style("yours")


def of_another_experiment(own):
    """As if the job's folder had been copied from elsewhere."""
    path = own / "config.yaml"
    path.write_text(path.read_text().replace("log_every: 4", "log_every: 3"))
    result = read_result(own)
    origin = replace(result.origin, shared="another")
    write_result(own, replace(result, origin=origin, config=file_digest(path)))


@pytest.mark.parametrize("command", ["report", "plot"])
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda out: shutil.rmtree(out), "no such folder"),
        (lambda out: [path.unlink() for path in out.rglob("result.json")], "holds no finished runs"),
        (
            lambda out: [path.write_text("") for path in out.rglob("result.json")],
            "none of the finished runs can be read",
        ),
        (
            lambda out: of_another_experiment(out / "Con" / "seed0"),
            "in log_every; they cannot be compared",
        ),
    ],
)
def test_folders_that_cannot_be_compared_are_refused(results, capsys, command, spoil, message):
    spoil(results)
    assert main([command, str(results)]) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")


def made_up_with(seeds, **regrets):
    """Results with the given final regrets by seed."""
    made = made_up(**regrets)
    return {name: replace(own, seeds=list(seeds[name])) for name, own in made.items()}


def test_policies_are_ranked_on_the_seeds_that_they_are_tested_on():
    """ConUCB is better on every common seed, and worse over all of its own."""
    report = compare(
        made_up_with(
            {"LinUCB": range(5), "ConUCB": range(8)},
            LinUCB=[50.0, 52.0, 51.0, 53.0, 49.0],
            ConUCB=[49.0, 50.9, 50.1, 52.0, 47.9, 90.0, 91.0, 92.0],
        )
    )
    assert report.order == "Order by regret: ConUCB < LinUCB"
    assert [line[:2] for line in report.lines] == [["ConUCB", "5"], ["LinUCB", "5"]]
    assert report.lines[0][2].startswith("49.98 ± ")
    assert "all numbers are of those that all have: 0, 1, 2, 3, 4." in report.notes


def test_without_a_common_seed_nothing_is_claimed():
    report = compare(made_up_with({"A": (0, 1), "B": (2, 3)}, A=[3.0, 3.1], B=[1.0, 1.1]))
    assert report.order == "Order by regret: B ~ A" and "none is tested" in report.notes


def test_copies_of_one_run_are_no_sample():
    report = compare(made_up(A=[3.0] * 5, B=[2.0] * 5))
    assert report.order == "Order by regret: B ~ A"
    assert [line[5] for line in report.lines] == ["-", "-"]
    assert "one run and no sample: A, B." in report.notes
    assert "No test, because all seeds have the same difference: A and B." in report.notes


SPOILT = {
    "empty result": ("result.json", lambda path: path.write_text(""), "result.json is damaged: it is empty"),
    "result of another job": (
        "result.json",
        lambda path: [
            shutil.copy(path.parent.parent / "seed1" / name, path.parent)
            for name in ("result.json", "metrics.csv")
        ],
        "result.json: is of Con seed 1",
    ),
    "bytes for a result": (
        "result.json",
        lambda path: path.write_bytes(b"\xff\x00"),
        "result.json is damaged",
    ),
    "no config": ("config.yaml", lambda path: path.unlink(), "config.yaml: No such file or directory"),
    "empty config": (
        "config.yaml",
        lambda path: path.write_text(""),
        "config.yaml is damaged, or was edited",
    ),
    "no table": ("metrics.csv", lambda path: path.unlink(), "metrics.csv: No such file or directory"),
    "half a table": (
        "metrics.csv",
        lambda path: path.write_text("".join(path.read_text().splitlines(True)[:2])),
        "metrics.csv is damaged: it is not what the job wrote",
    ),
}


@pytest.mark.parametrize("kind", SPOILT)
def test_one_bad_job_is_named_and_blocks_no_other(results, capsys, kind):
    name, spoil, message = SPOILT[kind]
    path = results / "Con" / "seed0" / name
    spoil(path)
    for command in ("report", "plot"):
        assert main([command, str(results)]) == 0
        shown = capsys.readouterr()
        assert f"{path.parent}/{message}" in shown.out + shown.err
    assert read_results(results)["Con"].seeds == [1, 2, 3] and read_results(results)["Lin"].seeds[0] == 0


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_regrets_that_are_no_numbers_are_drawn_around(tmp_path, bad):
    for regrets in ({"A": [1.0, 2.0], "B": [bad, 1.0]}, {"A": [bad, bad], "B": [bad, bad]}):
        files = draw_all(made_up(**regrets), tmp_path / str(len(regrets)))
        assert {path.name for path in files} >= {"regret.png", "final_regret.pdf"}


def test_unfinished_runs_are_left_out(results):
    (results / "Con" / "seed3" / "result.json").unlink()
    own = read_results(results)
    assert own["Con"].seeds == [0, 1, 2] and own["Lin"].seeds == [0, 1, 2, 3]
    assert "different seeds" in compare(own).notes


def test_jobs_without_a_result_are_named_since_a_mean_of_the_others_is_another(tmp_path):
    """A seed that failed with every policy would be left out by all of them, and nobody would know."""
    config, out = write(tmp_path, GOOD | {"seeds": "0-2"}), tmp_path / "out"
    assert main(["run", str(config), "--out", str(out)]) == 0
    assert main(["report", str(out)]) == 0
    assert "Without a result" not in (out / "report.md").read_text()
    for policy in ("Lin", "Con"):
        (out / policy / "seed1" / "result.json").unlink()
    (out / "Con" / "seed1" / "error.txt").write_text("NumericsError")
    assert main(["report", str(out)]) == 0
    said = "Without a result, and so in no number here: Lin seed 1, Con seed 1 (failed)."
    assert said in (out / "report.md").read_text()


def test_an_unknown_baseline_is_named(results, capsys):
    assert main(["report", str(results), "--baseline", "Kon"]) == 2
    assert (
        "--baseline Kon: there is no such policy (did you mean 'Con'?); valid: Lin, Con"
        in capsys.readouterr().err
    )


def test_results_keep_the_number_of_users(finished):
    assert json.loads((finished / "Con" / "seed0" / "result.json").read_text())["users"] == 4


@pytest.mark.parametrize("log_x", [False, True])
def test_regret_begins_at_round_0_unless_its_axis_is_logarithmic(log_x, tmp_path, monkeypatch):
    drawn, real = {}, plots.figure

    @contextmanager
    def keeping(stem, files):
        with real(stem, files) as axes:
            yield axes
        drawn[stem.name] = axes

    monkeypatch.setattr(plots, "figure", keeping)
    draw_all(made_up(A=[3.0, 5.0]), tmp_path, log_x=log_x)
    (line,) = drawn["regret"].lines
    points = list(zip(line.get_xdata(), line.get_ydata(), strict=True))
    assert points == ([(10, 0), (20, 4)] if log_x else [(0, 0), (10, 0), (20, 4)])
    assert drawn["regret"].get_xscale() == ("log" if log_x else "linear")
