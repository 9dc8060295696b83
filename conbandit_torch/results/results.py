"""What an experiment gave, as Python and notebooks see it: tables, curves, a comparison, a plot."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from conbandit_torch.core.errors import ConfigError, choices
from conbandit_torch.results.plots import draw_curves
from conbandit_torch.results.policies import PolicyResults, intervals, pick, with_interval
from conbandit_torch.results.report import Report, compare

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


_MOST_NAMED = 10  # unfinished jobs


class Results(dict[str, PolicyResults]):
    """What the policies of a results folder did, by name; a notebook shows a table and the curves.

    Args:
        folder: the results folder.

    Attributes:
        folder: the results folder.
        left_out: one line for every finished job that could not be read: which, and why.
        unfinished: jobs of the folder's experiment without a result, and which of them failed.
        mixed: what the runs do not have in common though it can change last digits, and how many have which.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.left_out: list[str] = []
        self.unfinished: list[str] = []
        self.mixed: list[str] = []

    def frame(self) -> DataFrame:
        """All records, as pandas' table: a line per policy, seed and recorded round, a column per metric."""
        frame = _pandas_frame()
        parts = []
        for name, own in self.items():
            seeds, rounds = len(own.seeds), len(own.rounds)
            columns = {"policy": [name] * (seeds * rounds), "seed": np.repeat(own.seeds, rounds)}
            columns |= {"round": np.tile(own.rounds, seeds)}
            parts.append(columns | {metric: values.reshape(-1) for metric, values in own.metrics.items()})
        return frame({key: np.concatenate([part[key] for part in parts]) for key in parts[0]})

    def curves(self) -> DataFrame:
        """Means over seeds with 95 % t intervals, as pandas' table: a line per policy and recorded round.

        Columns are as in `curves.csv`: `cumulative_regret`, `cumulative_regret_low`, and so on; the ends of
        an interval are NaN where there is one seed.
        """
        frame = _pandas_frame()
        parts = []
        for name, own in self.items():
            number = len(own.rounds)
            part = {"policy": [name] * number, "round": own.rounds, "seeds": [len(own.seeds)] * number}
            for metric, values in own.metrics.items():
                mean, half = intervals(values)
                part |= {metric: mean, f"{metric}_low": mean - half, f"{metric}_high": mean + half}
            parts.append(part)
        return frame({key: np.concatenate([part[key] for part in parts]) for key in parts[0]})

    def report(self, baseline: str | None = None) -> Report:
        """Which policies differ, and which do not, by paired tests over seeds.

        Args:
            baseline: the policy that the others are compared with; None: the first.
        """
        return compare(self, baseline, self.remarks())

    def remarks(self) -> list[str]:
        """What readers of the numbers have to know of the runs behind them."""
        found = []
        if self.unfinished:
            first, rest = self.unfinished[:_MOST_NAMED], len(self.unfinished) - _MOST_NAMED
            more = f" and {rest:,} more" if rest > 0 else ""
            found.append(f"Without a result, and so in no number here: {', '.join(first)}{more}.")
        found += [
            f"The runs are of {what}: last digits, and decisions with them, may differ for that reason alone."
            for what in self.mixed
        ]
        if self.left_out:
            found += ["Left out, because they cannot be read:", *(f"- {line}" for line in self.left_out)]
        return found

    def plot(self, metric: str | None = None) -> Figure:
        """A metric over the rounds, mean over seeds with its 95 % t interval: a figure of matplotlib's.

        Args:
            metric: a column of `frame`; None: what the policies are judged by, regret or click-through rate.
        """
        if find_spec("matplotlib") is None:
            raise ConfigError("Results.plot needs matplotlib: pip install matplotlib")
        first = next(iter(self.values()))
        metric = first.objective.column if metric is None else metric
        if metric not in first.metrics:
            raise ConfigError(f"plot: there is no metric {metric!r}{choices(metric, first.metrics)}")
        return draw_curves(self, metric)

    def final(self, policy: str) -> str:
        """What the policy is judged by, at the last round: mean over seeds with its interval."""
        own = pick(self, policy, "policy")
        return with_interval(own.final(own.objective.column), own.objective.digits)

    def __repr__(self) -> str:
        if not self:
            return f"Results({str(self.folder)!r}: no finished runs)"
        first = next(iter(self.values()))
        lines = [f"Results({str(self.folder)!r}: {first.objective.name} after {first.rounds[-1]:,} rounds"]
        lines += [f"    {name}: {self.final(name)} ({_seeds(own)})" for name, own in self.items()]
        return "\n".join(lines) + ")"

    def _repr_html_(self) -> str:
        """For notebooks: the comparison as a table and, where matplotlib is installed, the curves."""
        if not self:
            return f"<pre>{escape(repr(self))}</pre>"
        report = self.report()
        head = "".join(f"<th>{escape(heading)}</th>" for heading in report.headings)
        rows = ("".join(f"<td>{escape(cell)}</td>" for cell in line) for line in report.lines)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        text = (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{escape(report.order)}</p>"
        )
        if find_spec("matplotlib") is None:
            return text
        image = b64encode(self.plot()._repr_png_()).decode()  # type: ignore[attr-defined]
        return f'{text}<img alt="curves" src="data:image/png;base64,{image}">'


def _seeds(own: PolicyResults) -> str:
    return f"{len(own.seeds)} seeds" if len(own.seeds) > 1 else "one seed"


def _pandas_frame() -> type[DataFrame]:
    try:
        from pandas import DataFrame
    except ModuleNotFoundError:
        raise ConfigError("tables of results need pandas: pip install pandas") from None
    return DataFrame
