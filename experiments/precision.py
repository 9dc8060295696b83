"""Whether float32 is enough: regret against float64, and the error of the inverses after 100,000 updates.

    python -m experiments.precision --out DIR

Regret: every policy plays 10,000 rounds in float32 and in float64, on the same draws; the mean regrets over
users and seeds must differ by less than 2 %. Inverse: regressions in float32 are fed 100,000 observations
each, and M^-1 is compared with the inverse of M summed up in float64 from the same numbers: the relative
error in the Frobenius norm, of the worst user, must be below 1e-3. The cases, from easy to hard:

`random`     new features every time
`few arms`   20 random ones, then the same three arms for ever: most directions keep the ridge alone
`one arm`    20 random ones, then the same arm for ever
`LinUCB`     what LinUCB shows to users who have the same 30 candidates in every round, until it has converged

Writes `precision.md`, `precision.json`, `precision.png` and `.pdf`. `--quick` plays and updates a little;
`--refresh-every` sets the regressions' own; `--paper` adds the paper's size to the regrets, which takes
several minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from conbandit_torch import RidgeRegression, Simulation, Synthetic, play_round
from conbandit_torch.core.randomness import Stream
from conbandit_torch.models.inverses import NumericsError
from experiments.contenders import CONTENDERS
from experiments.measuring import machine, markdown, say, show, write_json

POLICIES = ("LinUCB", "ConUCB", "hConUCB")
SMALL = {"users": 20, "arms": 500, "terms": 50, "dim": 20, "pool": 20, "hidden": 3}
PAPER = {"users": 200, "arms": 5000, "terms": 500, "dim": 50, "pool": 50, "hidden": 5}
MOST_REGRET, MOST_ERROR = 0.02, 1e-3
MODELS, DIM, RIDGE, WEIGHT, SPREAD = 8, 50, 0.5, 0.5, 0.4  # ConUCB's arm level; features like synthetic ones
CHUNK, BEFORE = 500, 20  # observations drawn at once; those before users see the same arms for ever

Figures = dict[str, Any]


def regret(policy: str, sizes: dict[str, int], rounds: int, precision: Any, seed: int) -> float:
    """Cumulative regret, mean over users."""
    contender = CONTENDERS[policy]
    hidden = sizes["hidden"] if contender.hidden else 0
    environment = Synthetic(**(sizes | {"hidden": hidden}), seed=seed)
    built = contender.policy(
        environment.catalogue, environment.num_users, **(contender.arguments | {"seed": seed})
    )
    simulation = Simulation(built, environment, rounds=rounds, log_every=rounds, precision=precision)
    return simulation.run()[-1].cumulative_regret


def compare_regrets(size: str, sizes: dict[str, int], options: argparse.Namespace) -> list[Figures]:
    """Float32 against float64, for every policy."""
    found = []
    for policy in options.policies:
        pairs = [
            [regret(policy, sizes, options.rounds, precision, seed) for precision in ("32-true", "64-true")]
            for seed in range(options.seeds)
        ]
        single, double = (fmean(column) for column in zip(*pairs, strict=True))
        own = {"size": size, "policy": policy, "float32": single, "float64": double}
        found.append(own | {"difference": abs(single / double - 1), "by_seed": pairs})
        say(f"{size}, {policy}: regret {single:.3f} in float32, {double:.3f} in float64")
    return found


def random_features(updates: int) -> Iterator[Tensor]:
    """[n, models, D], new ones every time."""
    stream = Stream(0, "precision")
    for start in range(0, updates, CHUNK):
        rounds = torch.arange(start, min(start + CHUNK, updates))
        users = torch.arange(MODELS).repeat(len(rounds))
        drawn = stream.normal(users, rounds.repeat_interleave(MODELS), DIM)
        yield SPREAD * drawn.view(len(rounds), MODELS, DIM)


def few_arms(updates: int, arms: int) -> Iterator[Tensor]:
    """[n, models, D]: random at first, then of the same arms for ever."""
    start = next(random_features(BEFORE))
    again = torch.arange(CHUNK) % arms
    yield torch.cat((start, start[again[BEFORE:]]))
    for done in range(CHUNK, updates, CHUNK):
        yield start[again[: updates - done]]


def shown_by_linucb(updates: int) -> Iterator[Tensor]:
    """[n, models, D]: of the arms that LinUCB shows, to users with the same candidates in every round."""
    arms, most = 30, 5
    environment = Synthetic(users=MODELS, arms=arms, terms=10, dim=DIM, pool=arms, max_terms=most)
    policy = CONTENDERS["LinUCB"].build(environment)
    table = environment.catalogue.arm_features
    for start in range(0, updates, CHUNK):
        number = min(CHUNK, updates - start)
        yield table[torch.stack([play_round(policy, environment).arm_ids for _ in range(number)])]


def errors(case: str, source: Iterator[Tensor], marks: list[int], refresh_every: int) -> Figures:
    """Relative errors of the inverses, of the worst model, at the marks."""
    eye = torch.eye(DIM, dtype=torch.float64)
    exact = (RIDGE * eye).repeat(MODELS, 1, 1)  # [models, D, D]
    model = RidgeRegression(MODELS, DIM, RIDGE, WEIGHT, refresh_every=refresh_every)
    everyone, targets = slice(0, MODELS), torch.zeros(MODELS)
    found: dict[int, float] = {}
    done, failed = 0, ""
    try:
        for chunk in source:
            features = chunk.float()  # what the regression sees is what is summed up
            for row in features:
                model.update(everyone, row, targets)
            double = features.double().transpose(0, 1)  # [models, n, D]
            exact += WEIGHT * torch.bmm(double.transpose(1, 2), double)
            done += len(features)
            if done in marks:
                truth = torch.linalg.inv(exact)
                difference = (model.inverse.double() - truth).norm(dim=(1, 2))
                found[done] = float((difference / truth.norm(dim=(1, 2))).max())
                say(f"{case}: relative error {found[done]:.1e} after {done:,} updates")
    except NumericsError as error:
        failed = f"after {done:,} updates: {error}"
    return {"case": case, "errors": found, "failed": failed}


def draw(cases: list[Figures], stem: Path) -> None:
    """Errors against updates."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for own, look in zip(cases, ("o-", "s--", "^-.", "D:"), strict=True):
        marks, values = list(own["errors"]), list(own["errors"].values())
        axes.plot(marks, values, look, label=own["case"], color="black", markersize=5)
    axes.axhline(MOST_ERROR, color="gray", linewidth=1)
    place: Any = ("axes fraction", "data")
    axes.annotate("allowed", (0.02, MOST_ERROR), xycoords=place, va="bottom", color="gray")
    axes.set(xscale="log", yscale="log", xlabel="updates of every user")
    axes.set(ylabel="relative error of $M^{-1}$, worst user")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small")
    for ending in (".png", ".pdf"):
        figure.savefig(stem.with_suffix(ending), dpi=120)


def met(value: float, most: float) -> str:
    """Whether it is below what is allowed."""
    return "yes" if value < most else "no"


def main(words: list[str] | None = None) -> None:
    """Measure all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    numbers = {"rounds": 10_000, "updates": 100_000, "seeds": 2, "threads": 2, "refresh-every": 500}
    for name, value in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=value, metavar="N", help=f"default {value}")
    parser.add_argument("--policies", nargs="*", choices=POLICIES, default=list(POLICIES), metavar="NAME")
    parser.add_argument("--paper", action="store_true", help="regrets at the paper's size too")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(words)
    if options.quick:
        options.rounds, options.updates, options.seeds, options.threads = 40, 1000, 1, 1
    if options.updates < CHUNK or options.updates % CHUNK:
        parser.error(f"--updates must be a multiple of {CHUNK}, got {options.updates}")
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(options.threads)

    marks = sorted({CHUNK, 1000, 3000, 10_000, 30_000, 100_000, options.updates})
    sources = {
        "random": random_features(options.updates),
        "few arms": few_arms(options.updates, 3),
        "one arm": few_arms(options.updates, 1),
        "LinUCB": shown_by_linucb(options.updates),
    }
    with torch.no_grad():
        cases = [errors(case, source, marks, options.refresh_every) for case, source in sources.items()]
    regrets = compare_regrets("small", SMALL, options)
    if options.paper:
        regrets += compare_regrets("paper", PAPER, options)

    error_rows = []
    for own in cases:
        last = own["errors"].get(options.updates, float("nan"))
        verdict = met(last, MOST_ERROR)
        error_rows.append([own["case"], f"{last:.1e}", verdict, own["failed"]])
    regret_rows = [
        [
            *(own["size"], own["policy"], f"{own['float32']:.3f}", f"{own['float64']:.3f}"),
            *(f"{own['difference']:.2%}", met(own["difference"], MOST_REGRET)),
        ]
        for own in regrets
    ]
    tables = (
        (
            f"Relative error of M^-1 after {options.updates:,} updates, worst of {MODELS} users; d = {DIM}, "
            f"ridge {RIDGE}; below {MOST_ERROR:g} allowed",
            ["observations", "error", "met", "failed"],
            error_rows,
        ),
        (
            f"Regret a user after {options.rounds:,} rounds, mean of {options.seeds} seeds; a difference "
            f"below {MOST_REGRET:.0%} allowed",
            ["size", "policy", "float32", "float64", "difference", "met"],
            regret_rows,
        ),
    )
    for title, headings, rows in tables:
        show(title, headings, rows)
    text = "\n".join(f"{title}:\n\n{markdown(headings, rows)}" for title, headings, rows in tables)
    (options.out / "precision.md").write_text(text, encoding="utf-8")
    content = {"machine": machine(), "sizes": {"small": SMALL, "paper": PAPER}, "rounds": options.rounds}
    write_json(options.out / "precision.json", content | {"inverse": cases, "regret": regrets})
    draw(cases, options.out / "precision")


if __name__ == "__main__":
    main()
