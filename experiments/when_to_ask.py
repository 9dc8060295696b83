"""When to ask: every schedule with the same patience, by regret; config-free, tables and a figure out.

    python -m experiments.when_to_ask plain --jobs 2 --out DIR

`plain`   all features seen, one level (ConLinUCB-MCR, as tuned in configs/beyond/synthetic_tuned.yaml)
`levels`  the same with two levels (ConUCB)
`hidden`  5 of 50 features hidden (hConLinUCB, as tuned in configs/beyond/hidden_tuned.yaml)
`--quick` plays a few rounds, to see that it works. The same command continues.

Every schedule may ask 5, 10, 20, 30 and 60 questions, whenever it likes. `WorthAsking` is also played by its
price alone, with patience for 200. Tests are paired over seeds, with Holm's correction over all pairs of
schedules with the same patience.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from conbandit_torch import (
    ConLinUCBMCR,
    ConUCB,
    EigenvalueTest,
    Experiment,
    HConLinUCB,
    LinearSchedule,
    LogSchedule,
    NoConversation,
    Schedule,
    Synthetic,
    WhileUncertain,
    WorthAsking,
)
from conbandit_torch.results.paired import LEVEL, holm, paired_p
from conbandit_torch.results.plots import draw_all
from conbandit_torch.results.policies import PolicyResults, with_interval

ROUNDS, SPREAD = 1000, 1.6  # of the candidates' expected rewards in this world
PATIENCE = (5, 10, 20, 30, 60)
PRICES = (4.0, 2.0, 1.0, 0.5, 0.2, 0.1)
LINEAR = {5: (1, 200), 10: (1, 100), 20: (1, 50), 30: (3, 100), 60: (3, 50)}  # questions every so many rounds
OURS = "WorthAsking"

POLICIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "plain": (ConLinUCBMCR, {"ridge": 0.0192, "alpha": 0.013}),
    "levels": (ConUCB, {"mix": 0.932, "term_ridge": 1.56, "alpha": 0.0236, "term_alpha": 0.0663}),
    "hidden": (
        HConLinUCB,
        {"ridge": 0.901, "alpha": 0.0682, "hidden_dim": 5, "hidden_alpha": 0.238, "hidden_ridge": 4.33}
        | {"init_scale": 0.01, "refit_every": 50},
    ),
}


def schedules(patience: int) -> dict[str, Schedule]:
    """Every schedule, with so many questions in 1,000 rounds."""
    return {
        "log": LogSchedule(patience / 6),  # floor(log 1000) = 6
        "linear": LinearSchedule(*LINEAR[patience]),
        "WhileUncertain": WhileUncertain(0.5, patience),
        "WhileUncertain5": WhileUncertain(0.5, patience, 5),
        "EigenvalueTest": EigenvalueTest(1.0, patience),
        OURS: WorthAsking(0.0, patience, SPREAD, ROUNDS),
    }


def play(setting: str, out: Path, seeds: str, jobs: int, *, quick: bool) -> dict[str, PolicyResults]:
    """All schedules, in one results folder."""
    cls, arguments = POLICIES[setting]
    asking: dict[str, Schedule] = {"never asked": NoConversation()}
    for patience in PATIENCE:
        asking |= {f"{name} {patience}": part for name, part in schedules(patience).items()}
    asking |= {f"{OURS} at {price:g}": WorthAsking(price, 200, SPREAD, ROUNDS) for price in PRICES}
    world = {"users": 100, "arms": 1000, "terms": 200, "dim": 50, "pool": 50}
    experiment = Experiment(
        environment=partial(
            Synthetic, **world | ({"users": 5} if quick else {}), hidden=5 if setting == "hidden" else 0
        ),
        policies={name: partial(cls, **arguments, schedule=part) for name, part in asking.items()},
        rounds=20 if quick else ROUNDS,
        seeds="0-1" if quick else seeds,
        log_every=50,
        keep_policies=False,
    )
    return experiment.run(out, jobs=jobs)


def tables(results: dict[str, PolicyResults]) -> list[str]:
    """Regret by patience, tests at every patience, and what prices buy; as Markdown."""
    names = list(schedules(PATIENCE[0]))
    seeds = sorted(set.intersection(*(set(own.seeds) for own in results.values())))
    finals = {name: own.final("cumulative_regret", seeds) for name, own in results.items()}
    lines = [
        f"{len(seeds)} seeds; never asked: {with_interval(finals['never asked'])}",
        "",
        f"| schedule | {' | '.join(f'{patience} questions' for patience in PATIENCE)} |",
        f"|---|{'---:|' * len(PATIENCE)}",
    ]
    for name in names:
        cells = [with_interval(finals[f"{name} {patience}"]) for patience in PATIENCE]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", f"| patience | below {OURS} | not separated | above {OURS} |", "|---|---|---|---|"]
    for patience in PATIENCE:
        own = {name: finals[f"{name} {patience}"] for name in names}
        p_values = holm({(a, b): paired_p(own[a], own[b]) for a, b in combinations(names, 2)})
        groups: dict[str, list[str]] = {"below": [], "equal": [], "above": []}
        for name in names[:-1]:
            difference = float(np.mean(own[name] - own[OURS]))
            separated = p_values[name, OURS] < LEVEL
            groups["equal" if not separated else "below" if difference < 0 else "above"].append(
                f"{name} ({difference:+.2f})"
            )
        lines.append(f"| {patience} | {' | '.join(', '.join(group) or '-' for group in groups.values())} |")
    lines += ["", "| price of a question | questions | regret |", "|---:|---:|---:|"]
    for price in PRICES:
        own = results[f"{OURS} at {price:g}"]
        asked, regret = (with_interval(own.final(m)) for m in ("questions", "cumulative_regret"))
        lines.append(f"| {price:g} | {asked} | {regret} |")
    return lines


def main(given: list[str] | None = None) -> None:
    """The program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("setting", choices=POLICIES)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", default="0-9")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args(given)
    results = play(arguments.setting, arguments.out, arguments.seeds, arguments.jobs, quick=arguments.quick)
    text = "\n".join(tables(results))
    (arguments.out / "when_to_ask.md").write_text(text + "\n", encoding="utf-8")
    draw_all(results, arguments.out / "plots")
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
