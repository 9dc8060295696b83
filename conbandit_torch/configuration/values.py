"""Single values of a config, read as the type that their argument has."""

from __future__ import annotations

from argparse import ArgumentError
from typing import Any

from jsonargparse import ArgumentParser

# What jsonargparse raises for a value that it does not take. Its messages are not read.
REFUSALS = (ArgumentError, TypeError, ValueError, ImportError, AttributeError, SystemExit)


def parse_value(value: Any, kind: Any) -> Any:
    """The value as the type `kind`, such as 3 for "3"; one of `REFUSALS` if it is not of the type."""
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--value", type=kind)
    return parser.parse_object({"value": value}).value
