"""What `scaling.py` tells of its points: a table, whether bounds are met, and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conbandit_torch.results.plots import style

Points = dict[str, dict[str, dict[int, dict[str, Any]]]]  # axis, policy, value

SMALL, FEWER, LARGE = 200, 5000, 20_000  # users that are compared: for time, for memory, the many
MOST = 1.3  # how much more than they should the many may take

LABELS = {
    "users": "users",
    "arms": "arms",
    "terms": "key-terms",
    "dim": "features d",
    "pool": "candidates",
    "rounds": "rounds",
}


def checks(points: Points, dim: int) -> list[str]:
    """Whether time and memory stay within their bounds with many users, in words."""
    told = []
    for policy in points["users"]:
        small, large = (points["users"][policy].get(users, {}) for users in (SMALL, LARGE))
        if "microseconds" in small and "microseconds" in large:
            ratio = large["microseconds"] / small["microseconds"]
            verdict = "met" if ratio <= MOST else "NOT MET"
            told.append(
                f"{policy}: a user-round takes {ratio:.2f} times as long at {LARGE:,} users as at {SMALL}; "
                f"at most {MOST} allowed: {verdict}."
            )
    fewer, large = (points["users"].get("ConUCB", {}).get(users, {}) for users in (FEWER, LARGE))
    if fewer.get("peak") is not None and large.get("peak") is not None:
        user = (large["peak"] - fewer["peak"]) / (LARGE - FEWER)  # what does not grow with users drops out
        bound = MOST * (4 * dim**2 + 8 * dim) * 4
        verdict = "met" if user <= bound else "NOT MET"
        told.append(
            f"ConUCB: peak memory is {large['peak'] / 1e6:,.0f} MB at {LARGE:,} users, beside the catalogue; "
            f"it grows by {user:,.0f} bytes per user from {FEWER:,} on, beside a workspace of "
            f"{(large['peak'] - LARGE * user) / 1e6:,.0f} MB; at most {MOST} (4 D^2 + 8 D) 4 = {bound:,.0f} "
            f"allowed: {verdict}."
        )
    return told or [f"Not checked: that needs {SMALL}, {FEWER:,} and {LARGE:,} users."]


def rows_of(points: Points) -> list[list[str]]:
    """One line a point."""
    rows = []
    for axis, by_policy in points.items():
        for policy, own in by_policy.items():
            for value, point in own.items():
                row = [axis, policy, f"{value:,}"]
                if "left_out" in point:
                    row += ["-", "-", "-", "-", point["left_out"]]
                else:
                    users, peak = point["users"], point["peak"]
                    row += [f"{point['microseconds']:.2f}", f"{point['state'] / users:,.0f}"]
                    row += ["-" if peak is None else f"{peak / 1e6:,.0f}", f"{point['rounds']:,}", ""]
                rows.append(row)
    return rows


def draw(points: Points, folder: Path) -> None:
    """`scaling_time` and `scaling_bytes`, as .png and .pdf."""
    _panels(points, "microseconds", "microseconds per user-round", folder / "scaling_time")
    _panels(points, "bytes", "bytes per user: state (filled), peak (open)", folder / "scaling_bytes")


def _panels(points: Points, kind: str, label: str, stem: Path) -> None:
    from matplotlib.figure import Figure

    columns = min(3, len(points))
    figure = Figure(figsize=(1 + 3.2 * columns, 2.9 * -(-len(points) // columns)), layout="constrained")
    panels = figure.subplots(-(-len(points) // columns), columns, squeeze=False, sharey=True).flatten()
    for axes, (axis, by_policy) in zip(panels, points.items(), strict=False):
        for policy, own in by_policy.items():
            look = style(policy)
            if policy.startswith("h"):  # a look of its own beside the policy without hidden features
                look = {"color": "#009E73", "linestyle": "-.", "marker": "^"}
            measured = {value: point for value, point in own.items() if "left_out" not in point}
            if not measured:
                continue
            axes.set(xscale="log", yscale="log")
            if kind == "microseconds":
                times = [point["microseconds"] for point in measured.values()]
                axes.plot(list(measured), times, label=policy, markersize=5, **look)
                continue
            state = [point["state"] / point["users"] for point in measured.values()]
            axes.plot(list(measured), state, label=policy, markersize=5, **look)
            peaks = {v: p["peak"] / p["users"] for v, p in measured.items() if p["peak"] is not None}
            axes.plot(list(peaks), list(peaks.values()), markersize=6, fillstyle="none", **look, alpha=0.7)
        axes.set(xlabel=LABELS[axis])
        axes.grid(alpha=0.3)
    for axes in panels[len(points) :]:
        axes.remove()
    if panels[0].lines:
        panels[0].legend(frameon=False, fontsize="small")
    figure.supylabel(label, fontsize="medium")
    for ending in (".png", ".pdf"):
        figure.savefig(stem.with_suffix(ending), dpi=120)
