"""What questions buy: regret, or click-through rate, against the questions asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from conbandit_torch.results.policies import PolicyResults, intervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Style = Callable[[str], dict[str, Any]]  # colour, line and marker of a name
QUESTIONS = "questions"  # the metric: so far, mean per user


class Point(NamedTuple):
    """Where a policy stands at the end.

    Attributes:
        name: of the policy.
        asked: questions per user, mean over seeds.
        asked_half: half the width of its interval; NaN with one seed.
        value: what the policy is judged by, mean over seeds.
        value_half: half the width of its interval.
    """

    name: str
    asked: float
    asked_half: float
    value: float
    value_half: float

    @property
    def family(self) -> str:
        """The name without a number at its end: policies that differ in it alone are drawn as one line."""
        return re.sub(r"[ _+-]*\d+(\.\d+)?$", "", self.name) or self.name


def points(results: Mapping[str, PolicyResults]) -> list[Point]:
    """Where the policies stand, without those that have no number."""
    found = []
    for name, own in results.items():
        asked, value = (
            [float(number) for number in intervals(own.final(metric))]
            for metric in (QUESTIONS, own.objective.column)
        )
        if isfinite(asked[0]) and isfinite(value[0]):
            found.append(Point(name, *asked, *value))
    return found


def best(found: list[Point], sign: int) -> list[Point]:
    """Those that none beats with as few questions, fewest first.

    Args:
        found: where the policies stand.
        sign: 1 where less is better, -1 where more is.
    """
    front: list[Point] = []
    for point in sorted(found, key=lambda one: (one.asked, sign * one.value)):
        if not front or sign * point.value < sign * front[-1].value:
            front.append(point)
    return front


def draw(axes: Axes, found: list[Point], sign: int, style: Style) -> None:
    """Points with their intervals, families as lines with their names beside them, and the best of all.

    Args:
        axes: where.
        found: where the policies stand.
        sign: 1 where less is better, -1 where more is.
        style: gives colour, line and marker of a name.
    """
    front = best(found, sign)
    axes.plot(
        [one.asked for one in front],
        [one.value for one in front],
        color="0.9",
        linewidth=8,
        solid_capstyle="round",
        solid_joinstyle="round",
        zorder=1,
        label="best with so many questions",
    )
    families: dict[str, list[Point]] = {}
    for point in found:
        families.setdefault(point.family, []).append(point)
    ends = []  # name, colour and last point of every family
    for family, own in families.items():
        own.sort(key=lambda one: one.asked)
        name = own[0].name if len(own) == 1 else family
        look = style(name)
        axes.errorbar(
            [one.asked for one in own],
            [one.value for one in own],
            xerr=[_bar(one.asked_half) for one in own],
            yerr=[_bar(one.value_half) for one in own],
            **look,
            markersize=5,
            linewidth=1.2,
            elinewidth=1,
            capsize=2,
            zorder=2,
        )
        ends.append((name, look["color"], own[-1]))
    axes.set(xlabel="questions per user")
    most = max(one.asked for one in found)
    axes.set_xlim(-0.03 * most, 1.03 * most)
    if sign > 0:
        axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize="x-small", loc="upper right" if sign > 0 else "lower right")
    _name_beside(axes, ends)


def _name_beside(axes: Axes, ends: list[tuple[str, str, Point]]) -> None:
    """Names in a column right of the axes, each as high as its point where there is room."""
    low, high = axes.get_ylim()
    ends.sort(key=lambda end: end[2].value)
    gap = min(0.055, 1.0 / max(1, len(ends) - 1))  # of the axes' height
    heights: list[float] = []
    for _, _, point in ends:  # from below, each at least a gap above the one before
        wanted = (point.value - low) / (high - low)
        heights.append(max(wanted, heights[-1] + gap) if heights else max(0.0, wanted))
    limit = 1.0
    for place in reversed(range(len(heights))):  # what was pushed out at the top comes back
        heights[place] = min(heights[place], limit)
        limit = heights[place] - gap
    for (name, colour, point), height in zip(ends, heights, strict=True):
        axes.annotate(
            name,
            (point.asked, point.value),
            xytext=(1.04, height),
            textcoords="axes fraction",
            fontsize="x-small",
            va="center",
            color=colour,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "alpha": 0.35, "linewidth": 0.6}
            | {"relpos": (0.0, 0.5), "shrinkA": 1, "shrinkB": 4},
        )


def _bar(half: float) -> float:
    return half if isfinite(half) else 0.0
