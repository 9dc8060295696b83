"""Draws the cumulative regret of a results folder: mean over seeds, 95 % t interval as a band.

python experiments/plot_regret.py runs/quickstart-... docs/quickstart.png
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from conbandit_torch.tables import t_interval


def curves(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Rounds [T] and cumulative regrets [seeds, T] of one policy's folder."""
    seeds = []
    for path in sorted(folder.glob("seed*/metrics.csv")):
        with path.open() as file:
            seeds.append([(int(r["round"]), float(r["cumulative_regret"])) for r in csv.DictReader(file)])
    table = np.array(seeds)  # [seeds, T, 2]
    return table[0, :, 0], table[:, :, 1]


def main(results: Path, picture: Path) -> None:
    """Draw the policies of `results` into `picture`."""
    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    with (results / "summary.csv").open() as file:
        policies = list(dict.fromkeys(row["policy"] for row in csv.DictReader(file)))
    for name, style in zip(policies, ("-", "--", "-.", ":") * len(policies), strict=False):
        rounds, regret = curves(results / name)
        mean = regret.mean(0)
        axes.plot(rounds, mean, style, label=name)
        half = [t_interval(list(column)) for column in regret.T]
        if None not in half:
            axes.fill_between(rounds, mean - half, mean + half, alpha=0.2, linewidth=0)
    axes.set(xlabel="round", ylabel="cumulative regret per user", xlim=(0, None), ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(picture, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
