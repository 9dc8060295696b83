"""conbandit init: a config to change and run, copied from one of this package."""

from __future__ import annotations

import argparse

from conbandit_torch.commands.terminal import Terminal
from conbandit_torch.configuration.packaged import find_config
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.core.files import write_atomically


def main(options: argparse.Namespace, overrides: list[tuple[str, str]], console: Terminal) -> int:
    """Run the command; returns the exit code."""
    source, path = find_config(options.source), options.path
    if path.exists():
        raise ConfigError(f"{path}: exists already, and is left as it is; name another file")
    if not path.parent.is_dir():
        raise ConfigError(f"{path}: there is no folder {path.parent}")
    write_atomically(path, source.read_text(encoding="utf-8"))
    Terminal().print(f"Wrote {path}. Change what you like, and run it: conbandit run {path}", soft_wrap=True)
    return 0
