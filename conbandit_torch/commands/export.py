"""conbandit export: the events of a study as tables that `Table` and `Replay` read."""

from __future__ import annotations

import argparse
import csv
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from conbandit_torch.commands.terminal import Terminal
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.core.files import make_folder, replacing
from conbandit_torch.live.folder import ITEMS, KeptStudy
from conbandit_torch.live.records import Happened

FEEDBACK = "feedback.csv"
ANSWERS = "answers.csv"


def main(options: argparse.Namespace, overrides: list[tuple[str, str]], console: Terminal) -> int:
    """Run the command; returns the exit code."""
    study, out = KeptStudy(options.folder, options.store), options.to
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out}: is there already; name a new folder")
    every = sorted(
        ((event, policy) for policy in study.policies for event in study.events(policy)),
        key=lambda pair: pair[0].time,
    )
    rewards = [pair for pair in every if pair[0].kind == "reward"]
    answers = [pair for pair in every if pair[0].kind == "answer"]
    if not rewards:
        raise ConfigError(f"{options.folder}: nobody has rated anything yet: there is nothing to export")
    make_folder(out)
    _write(
        out / FEEDBACK, ["user", "item", "value", "time", "policy", "round", "place"], map(_reward, rewards)
    )
    _write(
        out / ANSWERS,
        ["user", "kind", "first", "second", "value", "time", "policy", "round"],
        map(_answer, answers),
    )
    with replacing(out / ITEMS) as unfinished:
        shutil.copyfile(options.folder / ITEMS, unfinished)
    people = len({event.user for event, _ in rewards})
    Terminal().print(
        f"{len(rewards):,} rewards and {len(answers):,} answers of {people:,} people: {out}\n"
        f"A config reads them with data: {{class_path: Table, init_args: {{path: {out}}}}}",
        soft_wrap=True,
    )
    return 0


def _reward(pair: tuple[Happened, str]) -> list[Any]:
    event, policy = pair
    return [event.user, event.names[0], event.value, int(event.time), policy, event.round, event.place]


def _answer(pair: tuple[Happened, str]) -> list[Any]:
    event, policy = pair
    first, second = (*event.names, "")[:2]
    value = "" if event.value is None else event.value  # they do not know
    return [event.user, event.question, first, second, value, int(event.time), policy, event.round]


def _write(path: Path, heading: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with replacing(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(heading)
        table.writerows(rows)
