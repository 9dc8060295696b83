"""What reports say of replayed logs: the wider interval, off-policy estimates and advice, what was hidden."""

import json
import shutil

import numpy as np
import pytest

from conbandit_torch.commands.main import main
from conbandit_torch.core.seals import sealed
from conbandit_torch.results.over_users import Ratio
from conbandit_torch.results.read import intervals, read_results
from conbandit_torch.results.report import compare
from conbandit_torch.running.user_sums import read_user_sums
from tests.helpers.configs import GOOD, write

LOG = {"users": 30, "arms": 40, "terms": 8, "dim": 5, "events": 60, "pool": 4}


def run(folder, kind, **arguments):
    environment = {"class_path": kind, "init_args": LOG | arguments}
    config = GOOD | {"environment": environment, "rounds": 35, "seeds": "0-2", "log_every": 40}
    assert main(["run", str(write(folder, config)), "--out", str(folder / "out")]) == 0
    return folder / "out"


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    return run(tmp_path_factory.mktemp("replayed"), "GeneratedLog", data_seed=0, hidden=2)


@pytest.fixture(scope="module")
def skewed(tmp_path_factory):
    return run(tmp_path_factory.mktemp("skewed"), "GeneratedEvents", data_seed=0, skew=3.0)


def test_the_report_uses_the_wider_interval_and_says_which(replayed):
    results = read_results(replayed)
    report = compare(results, "Lin")
    sums = {
        name: [read_user_sums(replayed / name / f"seed{seed}" / "users.csv") for seed in range(3)]
        for name in results
    }
    ratios = {
        name: Ratio.of(np.stack([one.clicks for one in own]), np.stack([one.counted for one in own]))
        for name, own in sums.items()
    }
    over = {"users": [], "seeds": []}
    for line in report.lines:
        name = line[0]
        mean, seeds = intervals(results[name].final("ctr"))
        assert ratios[name].value == pytest.approx(mean, rel=1e-12)
        over["seeds" if seeds > ratios[name].half else "users"].append(name)
        assert line[2] == f"{mean:.4f} ± {max(seeds, ratios[name].half):.4f}"
    for kind, names in over.items():
        if names:
            assert f"over {kind}: {'all' if len(names) == 2 else names[0]}" in report.notes
    difference = ratios["Con"] - ratios["Lin"]
    con = next(line for line in report.lines if line[0] == "Con")
    _, seeds = intervals(results["Con"].final("ctr") - results["Lin"].final("ctr"))
    assert con[4] == f"{difference.value:.4f} ± {max(seeds, difference.half):.4f}"
    assert "which replay one log with other candidates" in report.notes


def test_users_of_other_logs_are_other_users(tmp_path):
    results = read_results(run(tmp_path, "GeneratedLog"))
    assert not results["Lin"].clicks.same_log
    assert results["Lin"].clicks.ratio([0, 1, 2]).influence.shape == (3, 30)
    assert "which replay logs of their own" in compare(results).notes


def test_a_single_seed_has_an_interval_over_users(tmp_path):
    environment = {"class_path": "GeneratedLog", "init_args": LOG}
    config = GOOD | {"environment": environment, "rounds": 35, "seeds": "0", "log_every": 40}
    assert main(["run", str(write(tmp_path, config)), "--out", str(tmp_path / "out")]) == 0
    report = compare(read_results(tmp_path / "out"))
    assert all("±" in line[2] for line in report.lines)
    assert "over users: all" in report.notes and "There is only one seed" not in report.notes
    assert report.lines[1][5] != "-" or report.lines[0][5] != "-"  # a test over users


def test_results_without_sums_per_user_are_still_read(replayed, tmp_path):
    """As a former version wrote them."""
    folder = shutil.copytree(replayed, tmp_path / "out")
    for path in folder.glob("*/seed*/result.json"):
        content = json.loads(path.read_text())
        content = {key: value for key, value in content.items() if key not in ("hidden", "checksum")}
        content["replayed"] = {k: content["replayed"][k] for k in ("events", "click_rate", "window", "ctr")}
        path.write_text(sealed(content))
        (path.parent / "users.csv").unlink()
    report = compare(read_results(folder))
    assert "for want of sums per user" in report.notes and "Hidden" not in report.notes


def test_damaged_sums_per_user_are_noticed(replayed, tmp_path):
    folder = shutil.copytree(replayed, tmp_path / "out")
    path = folder / "Lin" / "seed1" / "users.csv"
    path.write_text(path.read_text().replace(",1", ",2", 1))
    results = read_results(folder)
    assert results["Lin"].seeds == [0, 2] and "users.csv is damaged" in results.left_out[0]


def test_reports_say_what_was_hidden_and_whether_seeds_agree(replayed, tmp_path):
    notes = compare(read_results(replayed)).notes
    shares = sorted({own.share for own in read_results(replayed)["Lin"].hidden})
    assert len(shares) == 3
    assert f"2 features, other ones per seed, {shares[0]:.1%} to {shares[-1]:.1%}" in notes
    fixed = read_results(run(tmp_path, "GeneratedLog", hidden=["feature 3"]))
    assert "Hidden from the policies: feature 3 (" in compare(fixed).notes


def test_off_policy_estimates_are_shown_with_advice(skewed, capsys):
    assert main(["report", str(skewed)]) == 0
    shown, kept = capsys.readouterr().out, (skewed / "report.md").read_text()
    for text in (shown, kept):
        assert "doubly" in text and "replay is biased" in text
    results = read_results(skewed)
    sums = [read_user_sums(skewed / "Lin" / f"seed{seed}" / "users.csv") for seed in range(3)]
    table = compare(results).off_policy
    line = next(line for line in table if line[0] == "Lin")
    assert table[0] == ["policy", "IPS", "self-normalised IPS", "doubly robust", "effective sample"]
    rates = [one.earned.sum() / one.events.sum() for one in sums]
    assert line[1].startswith(f"{np.mean(rates):.4f} ± ")
    effective = np.mean([one.weight.sum() ** 2 / one.square.sum() for one in sums])
    assert line[4] == f"{effective:,.0f}"


def test_replay_alone_has_no_table_of_estimates_but_advice(replayed):
    report = compare(read_results(replayed))
    assert not report.off_policy and "uniformly at random: replay" in report.notes
