"""Runs what a leaderboard lacks: the studies that tune, then the evaluations. What is there is kept.

Of every task the folder holds

- `studies/<policy>.journal`: Optuna's trials
- `found.json`: what the studies found, by policy
- `failed.json`: the policies that cannot play the task, and why
- `published/`, `tuned/`: results folders, for `conbandit report`, `plot` and `watch` too
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from conbandit_torch.configuration.build import build_environment, build_policy
from conbandit_torch.configuration.load import resolve
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.core.files import make_folder, write_atomically
from conbandit_torch.leaderboard.board import PROTOCOL, Board, Entry, Part, Task
from conbandit_torch.running.runner import run
from conbandit_torch.running.workers import Backend, Crashed, results_of
from conbandit_torch.tuning.score import describe
from conbandit_torch.tuning.tune import NoTrialFinishedError, finished, open_study, tune

STUDIES, FOUND, FAILED = "studies", "found.json", "failed.json"
PUBLISHED, TUNED = "published", "tuned"


def play(
    board: Board,
    folder: Path,
    console: Console,
    *,
    tasks: list[str],
    policies: list[str],
    parameters: Sequence[str] = (TUNED, PUBLISHED),
    jobs: int = 1,
    backend: Backend = "local",
) -> None:
    """Bring some policies on some tasks up to the protocol, task by task: the studies, then the evaluation.

    A policy that fails on a task is noted there with the reason, and nothing else stops.

    Args:
        board: what is compared.
        folder: where results are, and go.
        console: where progress is told.
        tasks: their names.
        policies: their names.
        parameters: with which they are evaluated; without the tuned ones, nothing is tuned.
        jobs: studies, or runs, at the same time. A study's own trials come one after the other, so that what
            it finds does not depend on this number.
        backend: where they run.

    Raises:
        KeyboardInterrupt: if it was stopped; the same call goes on.
    """
    board.check(tasks, policies)
    for name in tasks:
        task, own = board.tasks[name], folder / name
        entries = [entry for entry in board.entries_of(task).values() if entry.name in policies]
        make_folder(own)
        _forget_failures(own, entries)
        parts = {}
        if TUNED in parameters and not task.paper:
            _tune(board, task, entries, own, console, jobs, backend)
            found = read_json(own / FOUND)
            parts[TUNED] = {
                entry.name: found[entry.name]["part"] if entry.space else entry.part
                for entry in entries
                if not entry.space or entry.name in found
            }
        if PUBLISHED in parameters or task.paper:
            parts[PUBLISHED] = {entry.name: entry.part for entry in entries}
        for which, those in parts.items():
            _say(console, f"{name}, {which} parameters: {len(those)} policies")
            _evaluate(board, task, those, own / which, console, jobs, backend)


def read_json(path: Path) -> dict[str, Any]:
    """What was noted there; nothing, if there is no such file."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ConfigError(f"{path}: damaged ({error}); remove it, and run the leaderboard again") from None
    return content


def _note(path: Path, more: Mapping[str, Any]) -> None:
    text = json.dumps(read_json(path) | dict(more), indent=1, sort_keys=True)
    write_atomically(path, f"{text}\n")


def _forget_failures(own: Path, entries: list[Entry]) -> None:
    """They are tried again: what was wrong may have been put right."""
    failed = read_json(own / FAILED)
    names = {entry.name for entry in entries}
    left = {name: why for name, why in failed.items() if name not in names}
    if left != failed:
        write_atomically(own / FAILED, json.dumps(left, indent=1, sort_keys=True) + "\n")


def _tune(
    board: Board,
    task: Task,
    entries: list[Entry],
    own: Path,
    console: Console,
    jobs: int,
    backend: Backend,
) -> None:
    """All studies that are missing or unfinished; what they find is noted as soon as it is known."""
    found = read_json(own / FOUND)
    todo = [entry for entry in entries if entry.space and not _is_done(board, entry, found)]
    study = partial(_study, board, task, own / STUDIES)
    for done, (entry, what) in enumerate(results_of(study, todo, jobs, backend), start=1):
        where = f"{task.name}: {entry.name}: study {done} of {len(todo)}"
        if isinstance(what, dict):
            _note(own / FOUND, {entry.name: what})
            _say(console, f"{where}: {what['best']}, at first {what['first']}")
        else:
            reason = what.reason if isinstance(what, Crashed) else what
            _note(own / FAILED, {entry.name: f"tuning: {reason}"})
            _say(console, f"{where}: FAILED, {reason}")


def _is_done(board: Board, entry: Entry, found: Mapping[str, Any]) -> bool:
    held = found.get(entry.name)
    if held is None or held["own"] != entry.part or held["space"] != entry.space:
        return False
    return bool(held["trials"] >= board.protocol.trials)


def _study(board: Board, task: Task, where: Path, entry: Entry) -> dict[str, Any] | str:
    """What tuning finds for a policy on a task, or what was wrong."""
    tuning = board.tuning_of(task, entry)
    try:
        best = tune(tuning, where, Console(quiet=True), trials=board.protocol.trials)
    except NoTrialFinishedError as error:
        return _reason(error, entry.name)
    trials = finished(open_study(tuning, where))
    first = min(trials, key=lambda trial: trial.number)
    return {
        "part": tuning.with_parameters(tuning.config, best.params)["policies"][entry.name],
        "parameters": best.params,
        "published": first.params,
        "best": describe(best),
        "first": describe(first),
        "trials": len(trials),
        "own": entry.part,
        "space": entry.space,
    }


def _evaluate(
    board: Board,
    task: Task,
    parts: Mapping[str, Part],
    where: Path,
    console: Console,
    jobs: int,
    backend: Backend,
) -> None:
    """Every policy on the evaluation's seeds, in a results folder; those that fail are noted beside it."""
    noted = where.parent / FAILED
    parts = {name: part for name, part in parts.items() if name not in read_json(noted)}
    if not parts:
        return
    plan = resolve(board.config_of(task, parts), board.folder / PROTOCOL)
    first = plan.seeds[0]
    environment = build_environment(plan, first)
    failed = {}
    for name in parts:
        try:
            build_policy(plan, name, environment, first)
        except ConfigError as error:  # it does not fit the task: the others do not wait for it
            failed[name] = _reason(error, name)
    sound = {name: part for name, part in parts.items() if name not in failed}
    if sound:
        plan = resolve(board.config_of(task, sound), board.folder / PROTOCOL)
        results = run(plan, where, console, jobs=jobs, threads=1, backend=backend)
        if len(results) < len(plan.jobs()) or any(result.stopped for result in results):
            raise KeyboardInterrupt
        failed |= {one.policy: f"seed {one.seed}: {one.error}" for one in results if one.error}
    if failed:
        _note(noted, failed)
        for name, reason in failed.items():
            _say(console, f"{task.name}: {name}: FAILED, {reason}")


def _reason(error: ConfigError, policy: str) -> str:
    """What was wrong with a policy; its file and name are known where this is shown."""
    text = str(error)
    return text.partition(f"policies.{policy}: ")[2] or text


def _say(console: Console, line: str) -> None:
    console.print(line, soft_wrap=True)
