"""What a store's events are of: another policy would make something else of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.core.digests import catalogue_digest, fingerprint
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.core.parts import called_with, node_of, path_of
from conbandit_torch.core.rows import row_buffers
from conbandit_torch.core.seals import text_digest
from conbandit_torch.live.beliefs import has_learned


def identity_of(policy: Bandit, items: Sequence[str], terms: Sequence[str]) -> dict[str, Any]:
    """The policy before its first event, by what decides how events change it."""
    rows = set() if has_learned(policy) else set(row_buffers(policy, "user"))
    state = {name: value for name, value in policy.state_dict().items() if name not in rows}
    return {
        "policy": path_of(type(policy)),
        "arguments": {
            name: _argument(value, name) for name, value in called_with(policy).items() if name != "num_users"
        },
        "precision": str(policy.catalogue.arm_features.dtype).removeprefix("torch."),
        "catalogue": catalogue_digest(policy.catalogue)[:16],
        "names": text_digest(json.dumps([list(items), list(terms)]))[:16],
        "state": fingerprint(state)[:16],
    }


def _argument(value: Any, name: str) -> Any:
    if isinstance(value, Tensor):
        return fingerprint({name: value})[:16]
    try:
        return json.loads(json.dumps(node_of(value, name)))
    except (ConfigError, TypeError, ValueError):
        return type(value).__name__
