"""What it costs each policy that people do not answer with the mean: config in; one table out.

    python -m experiments.answer_models --jobs 2 --out DIR

plays configs/beyond/answers.yaml with every answer model, a results folder each. `--quick` plays a small
world for a few rounds, to see that it works. The same command continues.

The world's numbers: items' expected rewards have a standard deviation of 1.65 per user. People's ratings of
items have one of about 1 star of 5, so a star is 1.65 here, five stars reach from -3.3 to 3.3, and 0.4 of a
star, which people's answers about categories were above the mean of their items, is 0.66.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import yaml
from rich.console import Console

from conbandit_torch import (
    AnswerModel,
    BestItem,
    BestShare,
    Biased,
    Corrupted,
    DontKnow,
    Graded,
    ItemMean,
    YesNo,
)
from conbandit_torch.configuration.load import load
from conbandit_torch.core.parts import node_of
from conbandit_torch.results.policies import PolicyResults, intervals, with_interval
from conbandit_torch.results.read import read_results
from conbandit_torch.running.runner import run
from experiments.paper import QUICK

CONFIG = Path(__file__).parent.parent / "configs" / "beyond" / "answers.yaml"
STAR = 1.65

MODELS: dict[str, AnswerModel] = {
    "mean": ItemMean(),
    "best 20 %": BestShare(0.2),
    "best item": BestItem(),
    "5 stars": Graded(5, -2 * STAR, 2 * STAR),
    "yes or no": YesNo(),
    "don't know": DontKnow(0.5, STAR),
    "+0.4 stars": Biased(0.4 * STAR),
    "+0.4 ± 0.4 stars": Biased(0.4 * STAR, 0.4 * STAR),
    "first 10 turned": Corrupted(10),
    "all of it": Graded(5, -2 * STAR, 2 * STAR, of=DontKnow(0.5, STAR, of=Biased(0.4 * STAR, 0.4 * STAR))),
}


def play(name: str, arguments: argparse.Namespace) -> dict[str, PolicyResults]:
    """The config with one answer model."""
    node = yaml.safe_dump(node_of(MODELS[name], name), default_flow_style=True, width=10**6).strip()
    users = ("environment.init_args.users", str(arguments.users))
    overrides = [("environment.init_args.answers", node), ("seeds", arguments.seeds), users]
    overrides += QUICK if arguments.quick else []
    folder = arguments.out / "".join(letter for letter in name if letter.isalnum())
    experiment = load(CONFIG, overrides)
    console = Console(stderr=True, quiet=True)
    results = run(experiment, folder, console, jobs=arguments.jobs, threads=1)
    if len(results) < len(experiment.jobs()) or any(result.stopped or result.error for result in results):
        sys.exit(f"{folder}: stopped, or runs failed; the same command goes on")
    return read_results(folder)


def table(results: dict[str, dict[str, PolicyResults]]) -> list[str]:
    """Regret where answers are the mean; what each other model adds, paired over seeds; the worst of all."""
    every = [set(own.seeds) for policies in results.values() for own in policies.values()]
    seeds = sorted(set.intersection(*every))
    finals = {
        model: {name: own.final("cumulative_regret", seeds) for name, own in policies.items()}
        for model, policies in results.items()
    }
    base, others = finals["mean"], [model for model in finals if model != "mean"]
    lines = [
        f"| policy | mean (Eq. 4) | {' | '.join(others)} | worst |",
        f"|---|{'---:|' * (len(others) + 2)}",
    ]
    for name in sorted(base, key=lambda one: float(base[one].mean())):
        added = {model: finals[model][name] - base[name] for model in others}
        cells = [f"{float(own.mean()):+.1f}" + ("" if _separated(own) else " ~") for own in added.values()]
        worst = max((finals[model][name] for model in others), key=lambda own: float(own.mean()))
        lines.append(
            f"| {name} | {with_interval(base[name], 1)} | {' | '.join(cells)} | {worst.mean():.1f} |"
        )
    return [*lines, "", "`~`: the 95 % interval of the difference, paired over seeds, holds 0."]


def _separated(differences: np.ndarray) -> bool:
    mean, half = (float(value) for value in intervals(differences))
    return abs(mean) > half


def main(given: list[str] | None = None) -> None:
    """The program."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", default="0-9")
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args(given)
    results = {}
    for name in MODELS:
        results[name] = play(name, arguments)
        sys.stderr.write(f"{name}: done\n")
    text = "\n".join(table(results))
    (arguments.out / "answers.md").write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
