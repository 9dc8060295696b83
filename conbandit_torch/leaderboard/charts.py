"""Figures of the leaderboard's page, as SVG that stands in it. Colours come from the page's style."""

from __future__ import annotations

from html import escape
from math import ceil, floor, log10
from typing import NamedTuple

_WIDE, _HIGH = 360, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 14, 12, 34


class Point(NamedTuple):
    """A policy in a figure.

    Attributes:
        x: where it is.
        y: where it is.
        name: the policy's.
        group: number of its group, for its colour.
        text: shown when it is pointed at.
    """

    x: float
    y: float
    name: str
    group: int
    text: str


def frontier(points: list[Point], sign: int) -> list[Point]:
    """Those that no other one beats with as many questions or fewer; sign 1: less is better."""
    best: list[Point] = []
    for point in sorted(points, key=lambda point: (point.x, sign * point.y)):
        if not best or sign * point.y < sign * best[-1].y:
            best.append(point)
    return best


def scatter(points: list[Point], *, sign: int, x_label: str, y_label: str) -> str:
    """What policies are judged by against the questions that they ask, with the frontier as a line.

    Args:
        points: the policies; none with a y of 0 or less where less is better, since that axis is logarithmic.
        sign: 1 if less is better, and the axis is logarithmic; -1 if more is.
        x_label: of the axis.
        y_label: of the axis.
    """
    values = [point.y for point in points]
    low, high = min(values), max(values)
    at_most = max(1.0, max(point.x for point in points))
    scale = log10 if sign > 0 else float
    bottom, top = scale(low), scale(high)
    margin = 0.08 * (top - bottom or 1)
    bottom, top = bottom - margin, top + margin

    def place(x: float, y: float) -> tuple[float, float]:
        across = _LEFT + (_WIDE - _LEFT - _RIGHT) * (0.04 + 0.92 * x / at_most)
        return across, _TOP + (_HIGH - _TOP - _BOTTOM) * (top - scale(y)) / (top - bottom)

    parts = [f'<svg class="chart" viewBox="0 0 {_WIDE} {_HIGH}" role="img">']
    for tick in _ticks(low, high, logarithmic=sign > 0):
        _, y = place(0, tick)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDE - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in _ticks(0, at_most, logarithmic=False):
        x, _ = place(tick, low)
        parts.append(f'<text x="{x:.1f}" y="{_HIGH - _BOTTOM + 14}" text-anchor="middle">{tick:g}</text>')
    parts.append(
        f'<text class="axis" x="{_WIDE - _RIGHT}" y="{_HIGH - 4}" text-anchor="end">{x_label}</text>'
    )
    parts.append(f'<text class="axis" x="4" y="{_TOP - 2}">{y_label}</text>')
    edge = frontier(points, sign)
    line = " ".join("{:.1f},{:.1f}".format(*place(point.x, point.y)) for point in edge)
    parts.append(f'<polyline class="frontier" points="{line}"/>')
    for point in points:
        x, y = place(point.x, point.y)
        parts.append(
            f'<circle class="g{point.group}" data-p="{escape(point.name)}" cx="{x:.1f}" cy="{y:.1f}" r="3.6">'
            f"<title>{escape(point.text)}</title></circle>"
        )
    for point in edge:
        x, y = place(point.x, point.y)
        end = x > 0.55 * _WIDE
        parts.append(
            f'<text class="name" x="{x + (-7 if end else 7):.1f}" y="{y + 12:.1f}" '
            f'text-anchor="{"end" if end else "start"}">{escape(point.name)}</text>'
        )
    parts.append("</svg>")
    return "".join(parts)


def _ticks(low: float, high: float, *, logarithmic: bool) -> list[float]:
    """A few round numbers from low to high."""
    if logarithmic:
        exponents = range(floor(log10(low)), ceil(log10(high)) + 1)
        found = [one * 10.0**power for power in exponents for one in (1, 2, 5)]
        return [tick for tick in found if low <= tick <= high]
    step = 10.0 ** floor(log10((high - low) / 2)) if high > low else 1.0
    step = next(step * one for one in (1, 2, 5, 10) if (high - low) / (step * one) <= 6)
    first = ceil(low / step)
    return [round(number * step, 10) for number in range(first, floor(high / step) + 1)]
