"""Every config of the repository runs, and the paper's gives the paper's order."""

import os
from pathlib import Path
from statistics import fmean

import pytest
import yaml

from conbandit_torch.commands.main import main
from conbandit_torch.configuration.load import load
from conbandit_torch.configuration.packaged import packaged_configs
from tests.conftest import REPOSITORY
from tests.helpers.commands import rows

CONFIGS = [config.path for config in packaged_configs()]


def final_regret(config, out, *arguments):
    """Final regrets by policy and seed."""
    assert main(["run", str(REPOSITORY / "configs" / config), "--out", str(out), *arguments]) == 0
    return {
        (row["policy"], row["seed"]): float(row["cumulative_regret"]) for row in rows(out / "summary.csv")
    }


def data_of(path):
    """Where a config's data are; None if it makes its own."""
    data = yaml.safe_load(path.read_text())["environment"]["init_args"].get("data")
    return None if data is None else Path(os.path.expandvars(data["init_args"]["path"]))


# Of a config that is about its size, a part will do.
SMALLER = {"toutiao_size": {"users": 40, "arms": 2000, "terms": 50, "dim": 20, "events": 300}}


@pytest.mark.slow
@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_every_config_runs(path, tmp_path):
    """Those on real data only where $CONBANDIT_DATA has them; without, they are read."""
    policies = list(load(path).policies)
    if data_of(path) is not None and not data_of(path).is_dir():
        pytest.skip("read, but not run: its data are not in $CONBANDIT_DATA")
    out = tmp_path / "out"
    smaller = [f"--environment.init_args.{key}={size}" for key, size in SMALLER.get(path.stem, {}).items()]
    assert main(["run", str(path), "--out", str(out), "--rounds", "4", "--seeds", "0", *smaller]) == 0
    assert [row["policy"] for row in rows(out / "summary.csv")] == policies


@pytest.mark.slow
def test_quickstart_shows_the_gap(tmp_path):
    """ConUCB is below three quarters of LinUCB for every seed (measured: 0.63 to 0.67)."""
    regret = final_regret("quickstart.yaml", tmp_path / "out")
    for seed in "012":
        assert regret["ConUCB", seed] < 0.75 * regret["LinUCB", seed]


@pytest.mark.slow
def test_the_papers_order_on_its_synthetic_setting(tmp_path):
    """LinUCB loses most, then Arm-Con, then Var-RS; the other three less, ConUCB as little as any.

    Three seeds separate the first three from the rest by several standard errors. They do not separate
    ConUCB from Var-MRC and Var-LCR: over 20 seeds it is lowest, but the three are within 1 %, so 1 % is
    the slack given here.
    """
    regret = final_regret("paper/synthetic.yaml", tmp_path / "out", "--seeds", "0-2", "--log_every", "100")
    mean = {name: fmean(regret[name, seed] for seed in "012") for name, _ in regret}
    assert mean["LinUCB"] > mean["Arm-Con"] > mean["Var-RS"] > max(mean["Var-MRC"], mean["Var-LCR"])
    assert mean["ConUCB"] < mean["Var-RS"]
    assert mean["ConUCB"] < 1.01 * min(mean.values())


@pytest.mark.slow
def test_the_papers_order_with_hidden_features_and_what_refit_adds(tmp_path):
    """hConUCB < hArm-Con < hLinUCB < LinUCB, and refit every 50 rounds takes off more than a quarter.

    Measured over seeds 0 to 2: 190, 205, 213, 263, and 133 with refit (0.70); in the last 100 rounds 0.069 a
    round without refit against 0.005 with it. The order also holds for each seed by itself.
    """
    policies = ("LinUCB", "hLinUCB", "hArm-Con", "hConUCB")
    config = yaml.safe_load((REPOSITORY / "configs" / "paper" / "hidden_synthetic.yaml").read_text())
    config["policies"] = {name: config["policies"][name] for name in policies}
    refit = {**config["policies"]["hConUCB"]["init_args"], "refit_every": 50}
    config["policies"]["refit"] = {"class_path": "HConUCB", "init_args": refit}
    path, out = tmp_path / "config.yaml", tmp_path / "out"
    path.write_text(yaml.safe_dump(config))
    regret = final_regret(path, out, "--seeds", "0-1", "--log_every", "100")
    for seed in "01":
        assert (
            regret["hConUCB", seed]
            < regret["hArm-Con", seed]
            < regret["hLinUCB", seed]
            < regret["LinUCB", seed]
        )
    mean = {name: fmean(regret[name, seed] for seed in "01") for name, _ in regret}
    assert mean["refit"] <= 0.72 * mean["hConUCB"]

    def late(name):
        """Regret of the last 100 rounds."""
        curves = [rows(out / name / f"seed{seed}" / "metrics.csv") for seed in "01"]
        return fmean(float(c[-1]["cumulative_regret"]) - float(c[-2]["cumulative_regret"]) for c in curves)

    assert late("refit") <= 0.15 * late("hConUCB")
