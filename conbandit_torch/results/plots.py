"""Figures of a results folder, for papers: PNG and PDF, the same colour for a policy everywhere."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from conbandit_torch.results import frontier
from conbandit_torch.results.policies import PolicyResults, intervals, pick
from conbandit_torch.running.objective import CTR, REGRET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FEW = 8  # policies that a legend within the axes has room for

# Okabe and Ito's palette, which colour-blind readers can tell apart; line and marker serve print in grey.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (7, 2)), (0, (3, 3)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_PUBLISHED = ("linucb", "conucb", "armcon", "varrs", "varmrc", "varlcr", "hlinucb", "random")


def style(name: str) -> dict[str, Any]:
    """Colour, line and marker of a policy, by its name alone; hConUCB looks like ConUCB, and so on."""
    plain = "".join(letter for letter in name.lower() if letter.isalnum())
    if plain not in _PUBLISHED:
        plain = plain.removeprefix("h")
    if plain in _PUBLISHED:
        colour = line = _PUBLISHED.index(plain)
    else:
        line, colour = divmod(zlib.crc32(name.encode()) % 64, 8)
    return {"color": _COLOURS[colour], "linestyle": _LINES[line], "marker": _MARKERS[line]}


def draw_all(
    results: Mapping[str, PolicyResults], folder: Path, baseline: str | None = None, *, log_x: bool = False
) -> list[Path]:
    """All figures; returns the files written.

    Args:
        results: what the policies did.
        folder: where the files go.
        baseline: what relative figures are relative to; None: the first policy.
        log_x: rounds on a logarithmic axis, which begins at the first record instead of round 0.
    """
    baseline = next(iter(results)) if baseline is None else baseline
    objective = pick(results, baseline, "--baseline").objective
    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    if objective is REGRET:
        _draw_regret(results, folder, files, log_x)
    else:
        _draw_clicks(results, folder, baseline, files)
    found = frontier.points(results)
    if any(point.asked > 0 for point in found):
        with figure(folder / "frontier", files) as axes:
            frontier.draw(axes, found, objective.sign, style)
            axes.set(ylabel=objective.label)
            _widen(axes, 7.5)
    return files


def draw_curves(results: Mapping[str, PolicyResults], metric: str) -> Figure:
    """One metric over the rounds, as a figure that notebooks show."""
    figure = new_figure()
    axes = figure.axes[0]
    _curves(axes, results, metric, log_x=False, at_start=0.0 if metric == REGRET.column else None)
    labels = {objective.column: objective.label for objective in (REGRET, CTR)}
    axes.set(ylabel=labels.get(metric, metric.replace("_", " ")), ylim=(0, None))
    return figure


def _draw_regret(results: Mapping[str, PolicyResults], folder: Path, files: list[Path], log_x: bool) -> None:
    """Regret and the error of theta over the rounds, and the regret at the end."""
    with figure(folder / "regret", files) as axes:
        _curves(axes, results, REGRET.column, log_x, at_start=None if log_x else 0.0)
        axes.set(ylabel=REGRET.label, ylim=(0, None))
    with_theta = {n: own for n, own in results.items() if not np.isnan(own.metrics["theta_error"]).any()}
    if with_theta:
        with figure(folder / "theta_error", files) as axes:
            _curves(axes, with_theta, "theta_error", log_x)
            axes.set(ylabel=r"$\|\theta_t - \theta_*\|$, mean over users", yscale="log")
    with figure(folder / "final_regret", files) as axes:
        last = max(own.rounds[-1] for own in results.values())
        _bars(axes, results, REGRET.column, ".1f")
        axes.set(ylabel=f"{REGRET.label} at round {last}")


def _draw_clicks(
    results: Mapping[str, PolicyResults], folder: Path, baseline: str, files: list[Path]
) -> None:
    """Click-through rate in windows, relative to the log's own and to the baseline's, and at the end."""
    # Of the policies that have a full window.
    curves = {
        name: own.clicks.ctr
        for name, own in results.items()
        if own.clicks is not None and own.clicks.ctr.size and own.clicks.logged.all()
    }
    if curves:
        with figure(folder / "ctr", files) as axes:
            for name, curve in curves.items():
                clicks = results[name].clicks
                assert clicks is not None  # see `curves`; for the type checker
                _windows(axes, name, results[name], curve / clicks.logged[:, None])
            axes.axhline(1, color="black", linewidth=0.8)  # where picking at random is, over the whole log
            axes.set(ylabel="CTR relative to the log's click rate", xlim=(0, None))
    if baseline in curves:
        with figure(folder / "ctr_of_baseline", files) as axes:
            for name, curve in curves.items():
                ratio = _relative(results[name], curve, results[baseline], curves[baseline])
                if ratio.size:
                    _windows(axes, name, results[name], ratio)
            axes.set(ylabel=f"CTR relative to {baseline}", xlim=(0, None))
    with figure(folder / "final_ctr", files) as axes:
        _bars(axes, results, CTR.column, ".3f")
        axes.set(ylabel=CTR.label)


def _relative(
    own: PolicyResults, curve: np.ndarray, base: PolicyResults, base_curve: np.ndarray
) -> np.ndarray:
    """[S, W] ratios, of the seeds and windows that both have; NaN where the base had no clicks."""
    seeds = [seed for seed in own.seeds if seed in base.seeds]
    shared = min(curve.shape[1], base_curve.shape[1])
    above = curve[[own.seeds.index(seed) for seed in seeds], :shared]
    below = base_curve[[base.seeds.index(seed) for seed in seeds], :shared]
    ratio: np.ndarray = np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)
    return ratio


def _windows(axes: Axes, name: str, own: PolicyResults, values: np.ndarray) -> None:
    """Values [S, W] over counted events, at the windows' ends."""
    assert own.clicks is not None  # the caller's promise, for the type checker
    counted = own.clicks.window * np.arange(1, values.shape[1] + 1)
    _band(axes, name, own, counted, values)
    axes.set(xlabel=f"counted events, in windows of {own.clicks.window}")
    _legend(axes)


def _curves(
    axes: Axes,
    results: Mapping[str, PolicyResults],
    metric: str,
    log_x: bool,
    at_start: float | None = None,
) -> None:
    """Mean over seeds with its interval as a band, at the recorded rounds, and at round 0 if known there."""
    for name, own in results.items():
        rounds, values = own.rounds, own.metrics[metric]
        if at_start is not None:
            rounds = np.concatenate(([0], rounds))
            values = np.pad(values, ((0, 0), (1, 0)), constant_values=at_start)
        _band(axes, name, own, rounds, values)
    if log_x:
        axes.set(xlabel="round", xscale="log")
    else:
        axes.set(xlabel="round", xlim=(0, None))
    _legend(axes)


def _band(axes: Axes, name: str, own: PolicyResults, x: np.ndarray, values: np.ndarray) -> None:
    """Mean of values [S, T] over seeds, with its interval as a band."""
    mean, half = intervals(values)
    look = style(name)
    axes.plot(x, mean, label=_label(name, own), markevery=0.1, markersize=4, **look)
    if not np.isnan(half).all():
        axes.fill_between(x, mean - half, mean + half, color=look["color"], alpha=0.15, linewidth=0)


def _bars(axes: Axes, results: Mapping[str, PolicyResults], metric: str, form: str) -> None:
    """Means over seeds at the end, with their intervals; a policy without a number has no bar."""
    for position, (name, own) in enumerate(results.items()):
        mean, half = (float(value) for value in intervals(own.final(metric)))
        error = half if isfinite(half) else None
        height = mean if isfinite(mean) else 0.0
        axes.bar(position, height, yerr=error, capsize=3, color=style(name)["color"], alpha=0.85, width=0.7)
        axes.annotate(
            format(mean, form),
            (position, height + (error or 0)),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize="small",
        )
    turn = 20 if len(results) <= _FEW else 60
    labels = [_label(*item) for item in results.items()]
    axes.set_xticks(range(len(results)), labels, rotation=turn, ha="right", rotation_mode="anchor")
    _widen(axes, 0.45 * len(results))
    axes.margins(y=0.1)
    axes.set_ylim(bottom=0)


def _legend(axes: Axes) -> None:
    """Within the axes, or beside them where it has many lines."""
    number = len(axes.get_legend_handles_labels()[1])
    if number <= _FEW:
        axes.legend(frameon=False, fontsize="small")
        return
    columns = -(-number // 24)
    _widen(axes, 6 + 2.2 * columns)
    axes.legend(
        frameon=False, fontsize="x-small", ncols=columns, loc="upper left", bbox_to_anchor=(1.01, 1.0)
    )


def _widen(axes: Axes, width: float) -> None:
    """Make the figure at least so many inches wide, and a wide one a little higher."""
    own = axes.get_figure(root=True)
    if own is not None and own.get_figwidth() < width:
        own.set_size_inches(width, 4.8 if width > 9 else own.get_figheight())


def _label(name: str, own: PolicyResults) -> str:
    return name if len(own.seeds) > 1 else f"{name} (one seed)"


@contextmanager
def figure(stem: Path, files: list[Path]) -> Iterator[Axes]:
    """Axes of a new figure, which is written to `stem`.png and .pdf afterwards."""
    figure = new_figure()
    yield figure.axes[0]
    for ending in (".png", ".pdf"):
        files.append(stem.with_suffix(ending))
        figure.savefig(files[-1], dpi=150)


def new_figure() -> Figure:
    """A figure with empty axes. It is none of pyplot's, so that nobody has to close it."""
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        def _repr_png_(self) -> bytes:
            image = BytesIO()
            self.savefig(image, format="png", dpi=100)
            return image.getvalue()

    figure = NotebookFigure(figsize=(6, 3.8), layout="constrained")
    axes = figure.add_subplot()
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    return figure
