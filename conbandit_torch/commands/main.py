"""The program `conbandit`: reads its arguments, runs one command, and tells errors in one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from conbandit_torch.commands.overrides import read_overrides
from conbandit_torch.commands.parser import build_parser
from conbandit_torch.commands.terminal import Terminal
from conbandit_torch.core.errors import ConfigError, DataError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code: 0 done, 1 some runs failed, 2 bad input, 130 interrupted."""
    _have_streams()
    options, rest = build_parser().parse_known_args(arguments)
    console = Terminal(stderr=True)
    try:
        overrides = read_overrides(options, rest)
        sys.path.insert(0, str(Path.cwd()))  # so that a config can name a class in a file beside it
        command = import_module(f"conbandit_torch.commands.{options.command}")  # it alone knows what it needs
        code: int = command.main(options, overrides, console)
    except KeyboardInterrupt:
        console.print("conbandit: interrupted; what had finished is kept", style="red")
        return 130
    except (ConfigError, DataError) as error:
        problem = str(error)
    except OSError as error:
        problem = f"{error.filename or 'results'}: {error.strerror or error}"
    else:
        return code
    console.print(f"conbandit: {problem}", style="red", soft_wrap=True)
    return 2


def _have_streams() -> None:
    """Give a program that was started with closed streams (`2>&-`) some that nobody reads."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
