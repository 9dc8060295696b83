"""Regret against questions: who stands where, who is best, and what is drawn."""

import numpy as np
import pytest

from conbandit_torch.results import frontier
from conbandit_torch.results.plots import draw_all, new_figure, style
from conbandit_torch.running.objective import CTR, REGRET
from tests.helpers.results import made_up


def test_points_are_means_at_the_end_with_their_intervals():
    found = frontier.points(made_up(A=(30.0, [1.0, 2.0, 6.0]), B=(0.0, [5.0]), C=(1.0, [float("nan"), 1.0])))
    assert [point.name for point in found] == ["A", "B"]  # C has no number
    assert found[0].asked == 30 and found[0].value == 3
    half = 4.302653 * np.std([1.0, 2.0, 6.0], ddof=1) / np.sqrt(3)  # Student's t of 2 degrees
    assert found[0].value_half == pytest.approx(half, rel=1e-6) and np.isnan(found[1].value_half)


@pytest.mark.parametrize(("objective", "wanted"), [(REGRET, ["D", "B", "A"]), (CTR, ["D", "C"])])
def test_the_best_are_those_that_none_beats_with_as_few_questions(objective, wanted):
    """More regret is worse, more clicks are better."""
    found = frontier.points(
        made_up(objective, A=(30.0, [2.0]), B=(10.0, [4.0]), C=(20.0, [9.0]), D=(0.0, [8.0]), E=(30.0, [3.0]))
    )
    assert [point.name for point in frontier.best(found, objective.sign)] == wanted


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("WorthAsking 30", "WorthAsking"),
        ("WorthAsking at 0.5", "WorthAsking at"),
        ("hConUCB+refit20", "hConUCB+refit"),
        ("ConUCB", "ConUCB"),
        ("30", "30"),
    ],
)
def test_a_family_differs_in_the_last_number(name, family):
    assert frontier.Point(name, 0, 0, 0, 0).family == family


def test_a_family_is_one_line_and_every_family_is_named_once():
    results = made_up(
        **{"Log 5": (5.0, [9.0, 8.0]), "Log 30": (30.0, [3.0, 4.0]), "Never": (0.0, [12.0, 11.0])}
    )
    axes = new_figure().axes[0]
    frontier.draw(axes, frontier.points(results), 1, style)
    assert sorted(text.get_text() for text in axes.texts) == ["Log", "Never"]
    lines = [container.lines[0] for container in axes.containers]
    assert [line.get_xdata().tolist() for line in lines] == [[5.0, 30.0], [0.0]]
    assert axes.lines[0].get_xdata().tolist() == [0.0, 5.0, 30.0]  # the best


def test_many_names_keep_their_distance():
    names = {f"policy {chr(97 + number)}": (30.0, [10.0 + 0.01 * number, 10.2]) for number in range(20)}
    axes = new_figure().axes[0]
    frontier.draw(axes, frontier.points(made_up(**names)), 1, style)
    heights = sorted(text.xyann[1] for text in axes.texts)
    assert len(heights) == 20 and min(np.diff(heights)) > 0.04 and heights[0] >= -1e-9 and heights[-1] <= 1


def test_there_is_no_figure_where_nobody_asks(tmp_path):
    asking = draw_all(made_up(A=(30.0, [1.0, 2.0]), B=(0.0, [5.0, 4.0])), tmp_path / "asking")
    silent = draw_all(made_up(A=(0.0, [1.0, 2.0]), B=(0.0, [5.0, 4.0])), tmp_path / "silent")
    assert "frontier.png" in {path.name for path in asking}
    assert "frontier.png" not in {path.name for path in silent}
