"""Reads a board, which is a folder of three files: `protocol.yaml`, `policies.yaml` and `claims.yaml`.

Those of the package are in `configs/leaderboard`. Other files like `policies.yaml` add policies to a board.
Every error names the file, the key, what was wrong and what would be right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from conbandit_torch.configuration.errors import check_keys
from conbandit_torch.configuration.load import parse_seeds
from conbandit_torch.configuration.packaged import board_folder
from conbandit_torch.configuration.yaml_files import read_yaml
from conbandit_torch.core.errors import ConfigError, choices
from conbandit_torch.leaderboard.board import PROTOCOL, Board, Claim, Entry, Protocol, Task

POLICIES, CLAIMS = "policies.yaml", "claims.yaml"
ADDED = "added"  # the group of policies that a board does not have itself


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
    given = dict.fromkeys(given) if isinstance(given, list) else given
    if not isinstance(given, dict):
        raise ConfigError(f"{where}.policies: expected names, or a mapping of names, got {given!r}")
    own = {policy: arguments or {} for policy, arguments in given.items()}
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


def picked(option: str, what: str, given: Iterable[str] | None, known: Mapping[str, Any]) -> list[str]:
    """The names that were given as `option`, all of them known; None: all that are known."""
    names = list(known) if given is None else list(dict.fromkeys(given))
    for name in names:
        _known(option, what, name, known)
    return names
