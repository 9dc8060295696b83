"""The reference: every command, and every public name."""

from __future__ import annotations

import argparse

import conbandit_torch.testing
from conbandit_torch.commands.parser import build_parser
from conbandit_torch.core.names import PUBLIC
from making.writing import Made, cell, prose, table

_ROOMS = {
    "loop": "The loop",
    "running": "Experiments",
    "results": "Results",
    "bandits": "Bandits",
    "conversation": "Conversation",
    "models": "Models",
    "environments": "Environments",
    "datasets": "Data",
    "live": "Live",
    "core": "Core",
    "callbacks": "Callbacks",
    "testing": "Testing",
}


def commands() -> list[Made]:
    """The page of the command line."""
    parser = build_parser()
    parts = [
        "# Commands",
        "Generated from the program's own help. The exit code is 0 if all is done, 1 if some jobs failed, "
        "2 if the input was wrong, 130 if it was interrupted.",
    ]
    for name, command in _subcommands(parser).items():
        below = _subcommands(command)
        shown = {f"{name} {key}": one for key, one in below.items()} or {name: command}
        for title, one in shown.items():
            parts += [
                f"## conbandit {title}",
                prose(one.description or ""),
                _arguments(one),
                prose(one.epilog or ""),
            ]
    return [Made("reference/commands.md", "Commands", "\n\n".join(part for part in parts if part) + "\n")]


def names() -> list[Made]:
    """A page per room, with the public names that are defined there."""
    rooms: dict[str, list[str]] = {}
    for name, module in sorted(PUBLIC.items()):
        rooms.setdefault(module.split(".")[1], []).append(f"{module}.{name}")
    checks = conbandit_torch.testing
    rooms["testing"] = [
        f"{one.__module__}.{one.__name__}"
        for one in (checks.check_policy, checks.decisions, checks.ContractError)
    ]
    titles = {
        room: _ROOMS.get(room, room.capitalize())
        for room in sorted(rooms, key=lambda one: [*_ROOMS, one].index(one))
    }
    made = []
    for room, title in titles.items():
        blocks = "\n\n".join(f"::: {path}" for path in rooms[room])
        package = "conbandit_torch.testing" if room == "testing" else "conbandit_torch"
        about = f"The public names of the room `{room}`: `from {package} import NAME`."
        text = f"# {title}\n\n{about}\n\n{blocks}\n"
        made.append(Made(f"reference/api/{room}.md", title, text, "Python"))
    return made


def _subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {one.dest: one.help for one in action._choices_actions}
            for name, command in action.choices.items():
                command.description = command.description or f"{(helps[name] or '').capitalize()}."
            return dict(action.choices)
    return {}


def _arguments(parser: argparse.ArgumentParser) -> str:
    rows = []
    for action in parser._actions:
        if action.dest == "help":
            continue
        value = action.metavar or ("|".join(action.choices) if action.choices else action.dest.upper())
        name = ", ".join(action.option_strings)
        shown = f"{name} {value}" if name and action.nargs != 0 else name or str(value)
        rows.append((cell(shown), prose(action.help or "")))
    return table(("argument", "meaning"), rows) if rows else ""
