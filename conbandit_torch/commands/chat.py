"""conbandit chat: a person at this terminal, and a policy that asks and recommends."""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Callable
from pathlib import Path

from rich.text import Text

from conbandit_torch.commands.terminal import Terminal
from conbandit_torch.configuration.load import load
from conbandit_torch.configuration.packaged import find_config
from conbandit_torch.core.errors import ConfigError, choices
from conbandit_torch.live.chatting import Chat
from conbandit_torch.live.owners import OwnedError
from conbandit_torch.live.study import Study
from conbandit_torch.live.visitors import Visitor


def main(options: argparse.Namespace, overrides: list[tuple[str, str]], console: Terminal) -> int:
    """Run the command; returns the exit code."""
    plan = load(find_config(options.config), overrides)
    policy = options.policy or next(iter(plan.policies))
    if policy not in plan.policies:
        raise ConfigError(f"--policy {policy}: there is no such policy{choices(policy, plan.policies)}")
    user = options.user or _login()
    folder = study_folder(options.out, options.config)
    output = Terminal()
    try:
        study = Study(plan, folder, store=options.store, slate=options.items)
    except OwnedError as error:
        raise ConfigError(str(error)) from None
    try:
        visitor = _seat(study, user, policy, explicit=options.policy is not None)
        terms = len(next(iter(study.recommenders.values())).terms)
        output.print(
            f"{len(study.cards)} items with {terms} key-terms · you are {user} · {visitor.policy} recommends",
            style="bold",
            soft_wrap=True,
        )
        Chat(study, visitor, output, None if sys.stdin.isatty() else _plain(output)).run()
    finally:
        study.close()
    output.print(f"\nKept in {folder}. The same command goes on.", soft_wrap=True)
    return 0


def study_folder(out: Path | None, config: Path) -> Path:
    """Where a study is kept: as given, or under the config's name, so that the same command goes on."""
    return out if out is not None else Path("people") / Path(config).with_suffix("").name


def _seat(study: Study, user: str, policy: str, *, explicit: bool) -> Visitor:
    """The person with a policy; who changes it is another person to the new one."""
    visitor = study.join(user, policy)
    if explicit and visitor.policy != policy:
        visitor = study.join(f"{user} ({policy})", policy)
    return visitor


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "you"


def _plain(output: Terminal) -> Callable[[Text], str]:
    """Reading of lines where nobody types: from a pipe or a file, without a line editor."""

    def read(prompt: Text) -> str:
        output.print(prompt, end="")
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        output.print(line.rstrip("\n"))
        return line

    return read
