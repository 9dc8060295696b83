"""The wording of config errors: what was wrong, where, and what would be right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from conbandit_torch.core.errors import ConfigError, choices

__all__ = ["ConfigError", "check_keys", "choices"]


def check_keys(node: Mapping[str, Any], where: str, required: Iterable[str], optional: Iterable[str]) -> None:
    """Refuse keys that are unknown or missing."""
    known = [*required, *optional]
    for key in node:
        if key not in known:
            raise ConfigError(f"{where}: unknown key {key!r}{choices(key, known)}")
    for key in required:
        if key not in node:
            raise ConfigError(f"{where}: the key {key!r} is missing; it needs {', '.join(required)}")
