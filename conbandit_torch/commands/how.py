"""The options of commands that run jobs, checked."""

from __future__ import annotations

import argparse
from importlib.util import find_spec

from conbandit_torch.core.errors import ConfigError


def check_how(options: argparse.Namespace) -> None:
    """Refuse numbers below 1, and a backend that is not installed."""
    for name in ("jobs", "threads", "trials", "devices", "num_nodes"):
        if (value := getattr(options, name, None)) is not None and value < 1:
            raise ConfigError(f"--{name.replace('_', '-')} must be at least 1, got {value}")
    if options.backend == "ray" and find_spec("ray") is None:
        raise ConfigError("--backend ray needs Ray: pip install ray")
