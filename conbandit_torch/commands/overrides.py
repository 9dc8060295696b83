"""Values of a config on the command line: `--policies.ConUCB.init_args.alpha 0.1`."""

from __future__ import annotations

import argparse

from conbandit_torch.core.errors import ConfigError


def read_overrides(options: argparse.Namespace, rest: list[str]) -> list[tuple[str, str]]:
    """Dotted `--a.b value` or `--a.b=value` arguments as pairs; refused where a command takes none."""
    if options.command == "resume" and rest:
        raise ConfigError(f"unexpected argument {rest[0]!r}: a resumed experiment cannot be changed")
    if (
        options.command in ("leaderboard", "report", "export", "plot", "configs", "init", "list", "describe")
        and rest
    ):
        raise ConfigError(f"unexpected argument {rest[0]!r}")
    pairs, words = [], iter(rest)
    for word in words:
        key, equals, value = word.partition("=")
        if not key.startswith("--"):
            raise ConfigError(f"unexpected argument {word!r}; overrides are written --key value")
        if not equals:
            value = next(words, "")
            if not value:
                raise ConfigError(f"{key}: a value is missing")
        pairs.append((key.removeprefix("--"), value))
    if getattr(options, "rounds", None) is not None:
        pairs.append(("rounds", options.rounds))
    return pairs
