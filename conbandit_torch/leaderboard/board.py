"""What a leaderboard compares: tasks, policies and claims, under one protocol. All of it is data, in YAML.

A board is a folder of three files: `protocol.yaml`, `policies.yaml` and `claims.yaml` (see those of the
package in `configs/leaderboard`). Other files like `policies.yaml` add policies to it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from conbandit_torch.configuration.errors import check_keys
from conbandit_torch.configuration.load import parse_seeds, resolve
from conbandit_torch.configuration.packaged import board_folder
from conbandit_torch.configuration.yaml_files import read_yaml
from conbandit_torch.core.errors import ConfigError, choices
from conbandit_torch.tuning.search_space import Tuning, read_tunings

PROTOCOL, POLICIES, CLAIMS = "protocol.yaml", "policies.yaml", "claims.yaml"
ADDED = "added"

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


def read_board(folder: Path | None = None, protocol: str | None = None, added: Iterable[Path] = ()) -> Board:
    """A board, read from its folder and checked as far as that goes without building anything.

    Args:
        folder: where its files are; None: the package's own.
        protocol: one of the protocols in `protocol.yaml`; None: the first.
        added: more files like `policies.yaml`.

    Raises:
        ConfigError: what is wrong, in which file, and what would be right.
    """
    folder = board_folder() if folder is None else folder
    path = folder / PROTOCOL
    content = _read(path, ("protocols", "tasks"))
    protocols, nodes = _mapping(f"{path}: protocols", content["protocols"]), content["tasks"]
    name = next(iter(protocols)) if protocol is None else protocol
    if name not in protocols:
        raise ConfigError(f"{path}: there is no protocol {name!r}{choices(name, protocols)}")
    entries = _read_entries(folder / POLICIES)
    for file in added:
        new = _read_entries(file, group=ADDED)
        for other in new:
            if other in entries:
                raise ConfigError(f"{file}: policies.{other}: is on the board already; choose another name")
        entries |= new
    tasks = {
        str(one): _task(f"{path}: tasks.{one}", str(one), node, entries, protocols)
        for one, node in _mapping(f"{path}: tasks", nodes).items()
    }
    claims, papers = _read_claims(folder / CLAIMS, tasks, entries)
    return Board(
        folder, _protocol(f"{path}: protocols.{name}", name, protocols[name]), tasks, entries, claims, papers
    )


def _read(path: Path, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    content = read_yaml(path, required)
    check_keys(content, f"{path}", required=required, optional=optional)
    return content


def _mapping(where: str, node: Any) -> dict[str, Any]:
    if not isinstance(node, dict) or not node:
        raise ConfigError(f"{where}: expected a mapping, got {node!r}")
    return node


def _protocol(where: str, name: str, node: Any) -> Protocol:
    names = [one.name for one in fields(Protocol) if one.name != "name"]
    check_keys(_mapping(where, node), where, required=names, optional=())
    for key in ("users", "rounds", "log_every", "trials"):
        if not isinstance(node[key], int) or isinstance(node[key], bool) or node[key] < 1:
            raise ConfigError(f"{where}.{key}: expected a whole number of at least 1, got {node[key]!r}")
    seeds = {key: _seeds(f"{where}.{key}", node[key]) for key in ("seeds", "tuning_seeds")}
    both = sorted(set(seeds["seeds"]) & set(seeds["tuning_seeds"]))
    if both:
        raise ConfigError(
            f"{where}.tuning_seeds: {both[0]} is a seed of the evaluation too (seeds: {node['seeds']}); "
            "parameters tuned on it would look better than they are"
        )
    return Protocol(name, **(node | seeds))


def _seeds(where: str, given: Any) -> list[int]:
    try:
        return parse_seeds(given)
    except (ValueError, TypeError):
        raise ConfigError(f"{where}: expected numbers like 0,1,2 or 0-9, got {given!r}") from None


def _task(
    where: str, name: str, node: Any, entries: Mapping[str, Entry], protocols: Mapping[str, Any]
) -> Task:
    known = [one.name for one in fields(Task) if one.name != "name"]
    required = known[:3]
    check_keys(_mapping(where, node), where, required=required, optional=known[3:])
    environment = node["environment"]
    environment = {"class_path": environment} if isinstance(environment, str) else environment
    given = node.get("policies") or {}
    given = (
        dict.fromkeys(given) if isinstance(given, list) else _mapping(f"{where}.policies", given or {"": 0})
    )
    own = {policy: arguments or {} for policy, arguments in given.items() if policy}
    if node.get("paper") and not own:
        raise ConfigError(f"{where}: a paper's own setting names its policies")
    for policy in own:
        _known(f"{where}.policies", "policy", policy, entries)
    for protocol in node.get("sizes", {}):
        _known(f"{where}.sizes", "protocol", protocol, protocols)
    return Task(**(node | {"name": name, "environment": environment, "policies": own}))


def _known(where: str, what: str, name: str, known: Mapping[str, Any]) -> None:
    if name not in known:
        raise ConfigError(f"{where}: there is no {what} {name!r}{choices(name, known)}")


def _read_entries(path: Path, group: str = "") -> dict[str, Entry]:
    """The policies of a file; a group holds until the next policy that names one."""
    content = _read(path, ("policies",), ("ranges",))
    found = {}
    for name, node in _mapping(f"{path}: policies", content["policies"]).items():
        where = f"{path}: policies.{name}"
        node = {"class_path": node} if isinstance(node, str) else _mapping(where, node)
        check_keys(node, where, required=("class_path",), optional=("init_args", "tune", "source", "group"))
        group = str(node.get("group", group))
        part = {"class_path": node["class_path"], "init_args": node.get("init_args") or {}}
        space = node.get("tune") or {}
        for key, value in (("init_args", part["init_args"]), ("tune", space)):
            if not isinstance(value, dict):
                raise ConfigError(f"{where}.{key}: expected a mapping of arguments, got {value!r}")
        found[str(name)] = Entry(str(name), part, space, str(node.get("source", "")), group, path)
    return found


def _read_claims(
    path: Path, tasks: Mapping[str, Task], entries: Mapping[str, Entry]
) -> tuple[list[Claim], dict[str, str]]:
    content = _read(path, ("papers", "claims"))
    papers = _mapping(f"{path}: papers", content["papers"])
    claims = []
    for number, node in enumerate(content["claims"] or []):
        where = f"{path}: claims[{number}]"
        check_keys(_mapping(where, node), where, ("paper", "says", "better", "worse"), ("own", "tasks"))
        _known(f"{where}.paper", "paper", node["paper"], papers)
        claim = Claim(**({"own": "", "tasks": []} | node))
        for policy in (claim.better, *claim.worse):
            _known(where, "policy", policy, entries)
        for task in (*([claim.own] if claim.own else []), *claim.tasks):
            _known(where, "task", task, tasks)
        claims.append(claim)
    return claims, papers


def picked(option: str, given: Iterable[str] | None, known: Mapping[str, Any]) -> list[str]:
    """The names that were given, all of them known; None: all that are known."""
    names = list(known) if given is None else list(dict.fromkeys(given))
    for name in names:
        _known(option, option.removeprefix("--").removesuffix("s").replace("policie", "policy"), name, known)
    return names
