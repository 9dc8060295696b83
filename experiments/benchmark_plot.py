"""The benchmark's figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Light to dark with different hatches, so that neighbours differ in print.
LOOKS = (
    ("#dddddd", ""),
    ("#bbbbbb", "//"),
    ("#56B4E9", ""),
    ("#0072B2", ""),
    ("#E69F00", "xx"),
    ("#D55E00", ""),
    ("#F0E442", ".."),
    ("#ffffff", "\\\\"),
    ("#333333", ""),
)


def draw(found: dict[str, dict[str, Any]], floors: dict[str, float | None], stem: Path) -> None:
    """Speed against the NumPy loops, and what our time goes into, as `stem`.png and .pdf."""
    from matplotlib.figure import Figure

    names = list(found)
    figure = Figure(figsize=(11, 1.6 + 0.3 * len(names)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(2, 3))
    rows = range(len(names))
    ratios = [found[name]["over_loop"] for name in names]
    left.barh(rows, ratios, color="#bbbbbb", edgecolor="black", linewidth=0.6)
    for row, ratio in zip(rows, ratios, strict=True):
        left.annotate(
            f"{ratio:.0f}", (ratio, row), xytext=(3, 0), textcoords="offset points", va="center", fontsize=8
        )
    required = [(floors[name], row) for row, name in enumerate(names) if floors[name] is not None]
    if required:
        left.plot(
            *zip(*required, strict=True), "|", color="black", markersize=16, markeredgewidth=2, label="floor"
        )
        left.legend(frameon=False, fontsize="small")
    left.set_yticks(rows, names)
    left.invert_yaxis()
    left.margins(x=0.12)
    left.set(xlabel="times as fast as a plain NumPy loop")

    start = [0.0] * len(names)
    parts = list(found[names[0]]["parts"])
    for part, (colour, hatch) in zip(parts, LOOKS, strict=True):
        times = [found[name]["parts"][part] for name in names]
        right.barh(
            rows, times, left=start, color=colour, hatch=hatch, edgecolor="black", linewidth=0.5, label=part
        )
        start = [a + b for a, b in zip(start, times, strict=True)]
    bare = [(found[name]["bare"], row) for row, name in enumerate(names) if found[name]["bare"] is not None]
    if bare:
        right.plot(
            *zip(*bare, strict=True), "D", color="white", markeredgecolor="black", label="bare products"
        )
    right.set(xlabel="microseconds per user-round")
    right.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    for ending in (".png", ".pdf"):
        figure.savefig(stem.with_suffix(ending), dpi=120)
