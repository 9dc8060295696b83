"""The drivers of the studies about questions, in their quick forms."""

import pytest
import torch

from conbandit_torch.results.read import read_results, with_interval
from experiments import answer_models, when_to_ask
from tests.helpers.commands import cells
from tests.helpers.results import made_up


@pytest.mark.parametrize("patience", when_to_ask.PATIENCE)
def test_all_schedules_have_the_same_patience(patience):
    last = torch.tensor([when_to_ask.ROUNDS])
    for name, schedule in when_to_ask.schedules(patience).items():
        assert (name, int(schedule.total(last).floor())) == (name, patience)


@pytest.mark.slow
def test_when_to_ask(tmp_path):
    when_to_ask.main(["levels", "--quick", "--out", str(tmp_path)])
    results = read_results(tmp_path)
    written = cells(tmp_path / "when_to_ask.md")
    ours = [
        with_interval(results[f"WorthAsking {n}"].final("cumulative_regret")) for n in when_to_ask.PATIENCE
    ]
    assert ["WorthAsking", *ours] in written
    assert (tmp_path / "plots" / "frontier.png").exists()


def test_a_table_of_answer_models_adds_what_each_costs():
    results = {
        "mean": made_up(A=(1.0, [10.0, 12.0]), B=(1.0, [20.0, 20.0])),
        "best item": made_up(A=(1.0, [15.0, 17.1]), B=(1.0, [20.0, 20.5])),
    }
    lines = answer_models.table(results)
    assert lines[2].startswith("| A | 11.0 ± ") and lines[2].endswith(" | +5.1 | 16.1 |")
    assert lines[3].endswith(" | +0.2 ~ | 20.2 |")
