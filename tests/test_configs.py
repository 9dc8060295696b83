"""Every config of the repository runs, and the paper's gives the paper's order."""

from statistics import fmean

import pytest

from conbandit_torch.cli import main
from conbandit_torch.config import load
from tests.conftest import REPOSITORY
from tests.test_cli import rows

CONFIGS = sorted((REPOSITORY / "configs").rglob("*.yaml"))


def final_regret(config, out, *arguments):
    """Final regrets by policy and seed."""
    assert main(["run", str(REPOSITORY / "configs" / config), "--out", str(out), *arguments]) == 0
    return {
        (row["policy"], row["seed"]): float(row["cumulative_regret"]) for row in rows(out / "summary.csv")
    }


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_every_config_runs(path, tmp_path):
    final = final_regret(path, tmp_path / "out", "--rounds", "9", "--seeds", "0")
    assert [name for name, _ in final] == list(load(path).policies)


def test_quickstart_shows_the_gap(tmp_path):
    """ConUCB is below three quarters of LinUCB for every seed (measured: 0.63 to 0.67)."""
    regret = final_regret("quickstart.yaml", tmp_path / "out")
    for seed in "012":
        assert regret["ConUCB", seed] < 0.75 * regret["LinUCB", seed]


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
