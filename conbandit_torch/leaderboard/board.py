"""What a leaderboard compares: tasks, policies and claims, under one protocol. All of it is data, in YAML.

`read_board` reads it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from conbandit_torch.configuration.load import resolve
from conbandit_torch.tuning.search_space import Tuning, read_tunings

PROTOCOL = "protocol.yaml"

Part = dict[str, Any]
"""`class_path` and `init_args`."""


@dataclass(frozen=True)
class Protocol:
    """What is the same for every policy of a task.

    Attributes:
        name: what it is called.
        about: what was scaled, in a sentence.
        users: users of a task whose environment does not say how many.
        rounds: rounds of a task that does not say how many.
        seeds: of the evaluation.
        log_every: rounds between records.
        trials: of every study.
        tuning_seeds: of every trial, none of them one of the evaluation's.
    """

    name: str
    about: str
    users: int
    rounds: int
    seeds: list[int]
    log_every: int
    trials: int
    tuning_seeds: list[int]


@dataclass(frozen=True)
class Task:
    """Where policies are compared.

    Attributes:
        name: its folder's name.
        title: what people call it.
        about: a sentence.
        environment: as in a config.
        sizes: arguments of the environment that a protocol changes, by protocol.
        rounds: rounds to play; None: the protocol's.
        paper: whose own setting it is, for those policies alone and with published parameters alone; or "".
        policies: arguments that differ from `policies.yaml`, by policy; empty: every policy plays, as it is.
    """

    name: str
    title: str
    about: str
    environment: Part
    sizes: dict[str, dict[str, Any]] = field(default_factory=dict)
    rounds: int | None = None
    paper: str = ""
    policies: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """A policy of the board.

    Attributes:
        name: what it is called.
        part: `class_path` and `init_args`, with the published parameters.
        space: where tuning may look, by argument; empty: there is nothing to tune.
        source: where it comes from.
        group: what it is shown among.
        file: where it is written.
    """

    name: str
    part: Part
    space: dict[str, Any]
    source: str
    group: str
    file: Path


@dataclass(frozen=True)
class Claim:
    """What a paper says: one policy is better than others.

    Attributes:
        paper: whose claim it is.
        says: the claim, in a sentence.
        better: a policy.
        worse: policies.
        own: the paper's own setting; or "".
        tasks: on which it is tested with equal tuning.
    """

    paper: str
    says: str
    better: str
    worse: list[str]
    own: str
    tasks: list[str]


@dataclass(frozen=True)
class Board:
    """Tasks, policies and claims, under one protocol.

    Attributes:
        folder: where they are written.
        protocol: what is the same for every policy of a task.
        tasks: by name.
        entries: the policies, by name.
        claims: of the papers.
        papers: what their short names stand for.
    """

    folder: Path
    protocol: Protocol
    tasks: dict[str, Task]
    entries: dict[str, Entry]
    claims: list[Claim]
    papers: dict[str, str]

    def entries_of(self, task: Task) -> dict[str, Entry]:
        """The policies that play a task, with the task's own arguments."""
        found = {}
        for name in task.policies or self.entries:
            entry = self.entries[name]
            own = task.policies.get(name, {})
            part = entry.part | {"init_args": entry.part["init_args"] | own}
            found[name] = replace(entry, part=part, space={} if task.paper else entry.space)
        return found

    def config_of(self, task: Task, parts: Mapping[str, Part]) -> dict[str, Any]:
        """The config of the task's evaluation, with these policies."""
        environment = copy.deepcopy(task.environment)
        own = environment.get("init_args", {}) | task.sizes.get(self.protocol.name, {})
        environment["init_args"] = {"users": self.protocol.users} | own
        return {
            "rounds": task.rounds or self.protocol.rounds,
            "seeds": list(self.protocol.seeds),
            "log_every": self.protocol.log_every,
            "keep_policies": False,
            "environment": environment,
            "policies": copy.deepcopy(dict(parts)),
        }

    def tuning_of(self, task: Task, entry: Entry) -> Tuning:
        """What is looked for in the study of a policy on a task."""
        config = self.config_of(task, {entry.name: entry.part})
        config["tune"] = {"seeds": list(self.protocol.tuning_seeds), "space": {entry.name: entry.space}}
        (tuning,) = read_tunings(config, entry.file)
        return tuning

    def check(self, tasks: Iterable[str], policies: Iterable[str]) -> None:
        """Refuse classes, arguments, environments and search spaces that cannot be, before anything runs."""
        for name in tasks:
            some = next(iter(self.entries_of(self.tasks[name]).values()))
            resolve(self.config_of(self.tasks[name], {some.name: some.part}), self.folder / PROTOCOL)
        first = next(iter(self.tasks.values()))
        for name in policies:
            entry = self.entries[name]
            if entry.space:
                self.tuning_of(first, entry)
            else:
                resolve(self.config_of(first, {name: entry.part}), entry.file)
