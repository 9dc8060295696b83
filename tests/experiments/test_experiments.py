"""The drivers of the published results, in their quick forms."""

import numpy as np
import pytest
import yaml

from conbandit_torch.results.read import read_results, with_interval
from experiments import paper
from tests.helpers.commands import cells, rows


def check_sweep(folder, values, policies, key):
    """One column a policy, one row a value, from runs that really had that value."""
    heading, *lines = cells(folder / "sweep.md")
    assert heading[1:] == policies and [line[0] for line in lines] == list(map(str, values))
    for value, line in zip(values, lines, strict=True):
        results = read_results(folder / str(value))
        assert line[1:] == [with_interval(results[name].final("cumulative_regret")) for name in policies]
        for name in policies:
            config = yaml.safe_load((folder / str(value) / name / "seed0" / "config.yaml").read_text())
            assert key(config, name) == value
    assert len(rows(folder / "sweep.csv")) == 2 * len(values) * len(policies)
    for ending in ("png", "pdf"):
        assert (folder / f"sweep.{ending}").stat().st_size > 5000


def test_regret_and_accuracy(tmp_path):
    paper.main(["regret", "--quick", "--out", str(tmp_path)])
    results = read_results(tmp_path)
    assert list(results) == ["LinUCB", "Arm-Con", "Var-RS", "Var-MRC", "Var-LCR", "ConUCB"]
    heading, line = cells(tmp_path / "theta_error.md")
    assert heading == ["round", *results] and line[0] == "50"
    errors = [own.metrics["theta_error"][:, list(own.rounds).index(50)].mean() for own in results.values()]
    np.testing.assert_allclose([float(cell) for cell in line[1:]], errors, atol=5e-5)
    assert "Order by regret" in (tmp_path / "report.md").read_text()
    for figure in ("regret", "theta_error", "final_regret"):
        assert (tmp_path / "plots" / f"{figure}.png").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "values", "name"),
    [
        ("log", [1, 2, 5, 10], "questions"),
        ("linear", [1, 2, 5, 10], "questions"),
        ("every", [20, 50, 100], "every"),
    ],
)
def test_schedules(tmp_path_factory, part, values, name):
    folder = tmp_path_factory.getbasetemp() / "schedules"
    paper.main(["schedules", "--quick", "--out", str(folder)])  # the second and third time it is all there
    policies = ["Arm-Con", "ConUCB"]

    def schedule(config, policy):
        return config["policies"][policy]["init_args"]["schedule"]["init_args"][name]

    check_sweep(folder / part, values, policies, schedule)


@pytest.mark.slow
def test_pools(tmp_path):
    paper.main(["pools", "--quick", "--out", str(tmp_path)])

    def pool(config, policy):
        return config["environment"]["init_args"]["pool"]

    check_sweep(tmp_path, [25, 50, 100, 200, 500], ["LinUCB", "Arm-Con", "ConUCB"], pool)


@pytest.mark.slow
def test_hidden_and_concentration(tmp_path):
    paper.main(["hidden", "--quick", "--out", str(tmp_path), "--jobs", "2"])
    results = read_results(tmp_path)
    assert len(results) == 7
    shown = dict(cells(tmp_path / "concentration.md")[1:])
    for name, own in results.items():
        effective = own.final("effective_terms").mean()
        assert shown[name] == ("-" if np.isnan(effective) else f"{effective:.1f}")
    assert shown["LinUCB"] == shown["hArm-Con"] == "-" and 1 <= float(shown["hVar-RS"]) <= 30
