"""The figures of `scaling.py`: time and bytes, a panel an axis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conbandit_torch.plots import style

LABELS = {
    "users": "users",
    "arms": "arms",
    "terms": "key-terms",
    "dim": "features d",
    "pool": "candidates",
    "rounds": "rounds",
}


def draw(points: dict[str, dict[str, dict[int, dict[str, Any]]]], folder: Path) -> None:
    """`scaling_time` and `scaling_bytes`, as .png and .pdf."""
    _panels(points, "microseconds", "microseconds a user-round", folder / "scaling_time")
    _panels(points, "bytes", "bytes a user: state (filled), peak (open)", folder / "scaling_bytes")


def _panels(
    points: dict[str, dict[str, dict[int, dict[str, Any]]]], kind: str, label: str, stem: Path
) -> None:
    from matplotlib.figure import Figure

    columns = min(3, len(points))
    figure = Figure(figsize=(1 + 3.2 * columns, 2.9 * -(-len(points) // columns)), layout="constrained")
    panels = figure.subplots(-(-len(points) // columns), columns, squeeze=False, sharey=True).flatten()
    for axes, (axis, by_policy) in zip(panels, points.items(), strict=False):
        for policy, own in by_policy.items():
            look = style("LinUCB" if policy == "LinUCB" else policy)
            if policy.startswith("h"):  # a look of its own beside the policy without hidden features
                look = {"color": "#009E73", "linestyle": "-.", "marker": "^"}
            measured = {value: point for value, point in own.items() if "left_out" not in point}
            if kind == "microseconds":
                times = [point["microseconds"] for point in measured.values()]
                axes.plot(list(measured), times, label=policy, markersize=5, **look)
                continue
            state = [point["state"] / point["users"] for point in measured.values()]
            axes.plot(list(measured), state, label=policy, markersize=5, **look)
            peaks = {v: p["peak"] / p["users"] for v, p in measured.items() if p["peak"] is not None}
            axes.plot(list(peaks), list(peaks.values()), markersize=6, fillstyle="none", **look, alpha=0.7)
        axes.set(xlabel=LABELS[axis], xscale="log", yscale="log")
        axes.grid(alpha=0.3)
    for axes in panels[len(points) :]:
        axes.remove()
    panels[0].legend(frameon=False, fontsize="small")
    figure.supylabel(label, fontsize="medium")
    for ending in (".png", ".pdf"):
        figure.savefig(stem.with_suffix(ending), dpi=120)
