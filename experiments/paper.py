"""Every result of the paper on synthetic data: config in; tables and figures out.

    python experiments/paper.py regret --jobs 2 --out DIR

`regret`     cumulative regret, and the accuracy of the learned parameters every 50 rounds
`schedules`  effect of the conversation frequency b(t)
`pools`      effect of the number of candidates
`hidden`     policies that learn hidden features, and how concentrated their questions are
`--quick` plays a small world for a few rounds, to see that it works. The same command continues.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from rich.console import Console

from conbandit_torch.configuration.load import load
from conbandit_torch.results.plots import draw_all, figure, style
from conbandit_torch.results.read import PolicyResults, intervals, read_results, with_interval
from conbandit_torch.results.report import compare
from conbandit_torch.running.runner import run

CONFIGS = Path(__file__).parent.parent / "configs" / "paper"

Overrides = list[tuple[str, str]]

QUICK: Overrides = [
    ("rounds", "60"),
    ("seeds", "0-1"),
    ("environment.init_args.users", "4"),
    ("environment.init_args.arms", "600"),
    ("environment.init_args.terms", "30"),
    ("environment.init_args.dim", "12"),
]


def regret(arguments: argparse.Namespace) -> None:
    """Cumulative regret and accuracy."""
    results = play("synthetic_tuned.yaml", arguments.out, arguments)
    summarise(results, arguments.out)
    write_table(
        arguments.out / "theta_error.md",
        ["round", *results],
        [
            [str(number), *(cell(own, "theta_error", t, ".4f") for own in results.values())]
            for t, number in enumerate(next(iter(results.values())).rounds)
            if number % 50 == 0
        ],
    )


def schedules(arguments: argparse.Namespace) -> None:
    """b(t) = Q floor(log t), and b(t) = Q floor(t / every)."""
    policies = load(CONFIGS / "schedules.yaml").policies

    def asking(schedule: str) -> Overrides:
        return [(f"policies.{name}.init_args.schedule", schedule) for name in policies]

    def log(questions: int) -> Overrides:
        return asking(f"{{class_path: LogSchedule, init_args: {{questions: {questions}}}}}")

    def linear(questions: int, every: int) -> Overrides:
        init_args = f"{{questions: {questions}, every: {every}}}"
        return asking(f"{{class_path: LinearSchedule, init_args: {init_args}}}")

    out = arguments.out
    frequencies = (1, 2, 5, 10)
    sweep(
        "schedules.yaml",
        "Q in b(t) = Q floor(log t)",
        {q: log(q) for q in frequencies},
        out / "log",
        arguments,
    )
    in_50 = {q: linear(q, 50) for q in frequencies}
    sweep("schedules.yaml", "Q in b(t) = Q floor(t / 50)", in_50, out / "linear", arguments)
    by_length = {every: linear(5, every) for every in (20, 50, 100)}
    sweep("schedules.yaml", "n in b(t) = 5 floor(t / n)", by_length, out / "every", arguments)


def pools(arguments: argparse.Namespace) -> None:
    """From 25 to 500 candidates."""
    sizes = {n: [("environment.init_args.pool", str(n))] for n in (25, 50, 100, 200, 500)}
    sweep("pools.yaml", "candidates per round", sizes, arguments.out, arguments)


def hidden(arguments: argparse.Namespace) -> None:
    """Regret with hidden features, and the effective number of key-terms that each rule asks about."""
    results = play("hidden_tuned.yaml", arguments.out, arguments)
    summarise(results, arguments.out)
    write_table(
        arguments.out / "concentration.md",
        ["policy", "effective key-terms"],
        [[name, cell(own, "effective_terms", -1, ".1f")] for name, own in results.items()],
    )


def play(
    config: str, folder: Path, arguments: argparse.Namespace, extra: Overrides | None = None
) -> dict[str, PolicyResults]:
    """Run a config into `folder`, with `extra` values, and read the results."""
    experiment = load(CONFIGS / config, [*(QUICK if arguments.quick else []), *(extra or [])])
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    console.print(f"{config} -> {folder}", soft_wrap=True)
    results = run(experiment, folder, console, jobs=arguments.jobs, threads=1)
    if len(results) < len(experiment.jobs()) or any(result.stopped for result in results):
        sys.exit(f"{folder}: stopped; the same command goes on")
    if any(result.error for result in results):
        sys.exit(f"{folder}: some runs failed; see summary.csv")
    return read_results(folder)


def summarise(results: dict[str, PolicyResults], folder: Path) -> None:
    """Report and figures of a results folder."""
    report = compare(results)
    (folder / "report.md").write_text(report.markdown(), encoding="utf-8")
    console = Console(markup=False, emoji=False, highlight=False)
    console.print(report.table())
    console.print(report.order, soft_wrap=True)
    for path in draw_all(results, folder / "plots"):
        console.print(str(path), soft_wrap=True)


def sweep(
    config: str, label: str, settings: dict[int, Overrides], folder: Path, arguments: argparse.Namespace
) -> None:
    """Final regret of every policy against a setting: `sweep.csv`, `sweep.md`, `sweep.png` and `.pdf`."""
    by_value = {
        value: play(config, folder / str(value), arguments, extra) for value, extra in settings.items()
    }
    policies = list(next(iter(by_value.values())))
    with (folder / "sweep.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["setting", "value", "policy", "seed", "cumulative_regret", "questions"])
        for value, results in by_value.items():
            for name, own in results.items():
                finals = (own.seeds, own.final("cumulative_regret"), own.final("questions"))
                writer.writerows([label, value, name, *final] for final in zip(*finals, strict=True))
    table = [
        [str(value), *(with_interval(results[name].final("cumulative_regret")) for name in policies)]
        for value, results in by_value.items()
    ]
    write_table(folder / "sweep.md", [label, *policies], table)
    with figure(folder / "sweep", files := []) as axes:
        for name in policies:
            mean, half = np.array(
                [intervals(by_value[v][name].final("cumulative_regret")) for v in settings]
            ).T
            axes.errorbar(list(settings), mean, yerr=half, capsize=3, label=name, markersize=4, **style(name))
        axes.set(xlabel=label, ylabel="cumulative regret per user", xscale="log", ylim=(0, None))
        axes.set_xticks(list(settings), map(str, settings))
        axes.minorticks_off()
        axes.legend(frameon=False, fontsize="small")
    for path in files:
        Console(markup=False, highlight=False).print(str(path), soft_wrap=True)


def cell(own: PolicyResults, metric: str, at: int, form: str) -> str:
    """A metric's mean over seeds at a record; `-` if the policy has none."""
    mean = own.metrics[metric][:, at].mean()
    return "-" if np.isnan(mean) else format(mean, form)


def write_table(path: Path, headings: list[str], lines: Iterable[list[str]]) -> None:
    """A table in Markdown."""
    rule = ["---:"] * len(headings)
    path.write_text(
        "\n".join(f"| {' | '.join(row)} |" for row in (headings, rule, *lines)) + "\n", encoding="utf-8"
    )


def main(words: list[str] | None = None) -> None:
    """Run one result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("result", choices=("regret", "schedules", "pools", "hidden"))
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--jobs", type=int, default=1, metavar="J")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args(words)
    {"regret": regret, "schedules": schedules, "pools": pools, "hidden": hidden}[arguments.result](arguments)


if __name__ == "__main__":
    main()
