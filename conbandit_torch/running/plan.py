"""What to run, resolved: several policies on the same rounds, seed by seed."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import yaml

from conbandit_torch.core.seals import text_digest

if TYPE_CHECKING:  # results are read without torch
    from conbandit_torch.core.screen import BadFeedback
    from conbandit_torch.kernels import Kernels
    from conbandit_torch.running.processes import Precision

# Which kernels run depends on the machine too: a result says which did (see `Origin`), the config need not.
_INCIDENTAL = ("seeds", "checkpoint_every", "keep_policies", "if_logger_fails", "kernels", "loggers")

IfLoggerFails = Literal["stop", "continue"]


@dataclass(frozen=True)
class Plan:
    """What to run, resolved: every argument spelled out with its value.

    Attributes:
        source: the config file, for error messages.
        rounds: rounds to play.
        environment: `class_path` and `init_args` of the environment.
        policies: `class_path` and `init_args` of each policy, by name.
        seeds: one run of every policy for each.
        log_every: rounds between records.
        precision: "32-true" or "64-true".
        accelerator: Lightning's name of the device.
        kernels: "torch", "compiled", or "auto": compiled on a CPU where numba is installed.
        checkpoint_every: rounds between checkpoints.
        keep_policies: whether finished jobs keep their policies.
        bad_feedback: "stop" at rewards and answers that are NaN or infinite, or "skip" and count them.
        if_logger_fails: "continue" without a logger that fails, TensorBoard or another, or "stop" the job.
        callbacks: `class_path` and `init_args` of the user's callbacks, by name; every job builds its own.
        loggers: `class_path` and given `init_args` of Lightning loggers beside TensorBoard, by name.
    """

    source: str
    rounds: int
    environment: dict[str, Any]
    policies: dict[str, dict[str, Any]]
    seeds: list[int] = field(default_factory=lambda: [0])
    log_every: int = 10
    precision: Precision = "32-true"
    accelerator: str = "cpu"
    kernels: Kernels = "auto"
    checkpoint_every: int = 1000
    keep_policies: bool = True
    bad_feedback: BadFeedback = "stop"
    if_logger_fails: IfLoggerFails = "continue"
    callbacks: dict[str, dict[str, Any]] = field(default_factory=dict)
    loggers: dict[str, dict[str, Any]] = field(default_factory=dict)

    def jobs(self) -> list[tuple[str, int]]:
        """(policy, seed) of every run, seed by seed: policies can be compared from the first seed on."""
        return [(policy, seed) for seed in self.seeds for policy in self.policies]

    def dump(self, policy: str | None = None, seed: int | None = None) -> str:
        """YAML that runs the experiment, or one policy with one seed, again."""
        names = (one.name for one in fields(self) if one.name != "source")
        config = {name: getattr(self, name) for name in names}
        for key in (
            "callbacks",
            "loggers",
        ):  # results of versions without these stay the same config's
            if not config[key]:
                del config[key]
        if policy is not None:
            config["policies"] = {policy: self.policies[policy]}
        if seed is not None:
            config["seeds"] = [seed]
        return yaml.safe_dump(config, sort_keys=False)

    def identity(self, policy: str | None = None) -> dict[str, Any]:
        """All that results depend on, except for the seed: of one policy, or what all policies share."""
        config = yaml.safe_load(self.dump(policy))
        if policy is None:
            del config["policies"]
        return without_incidentals(config)

    @cached_property
    def shared_digest(self) -> str:
        """A digest of what all policies and seeds share."""
        return text_digest(yaml.safe_dump(self.identity()))

    @cached_property
    def _policy_digests(self) -> dict[str, str]:
        return {policy: text_digest(yaml.safe_dump(self.identity(policy))) for policy in self.policies}

    def digest(self, policy: str, seed: int) -> str:
        """A digest of all that a job's numbers depend on."""
        return text_digest(f"{self._policy_digests[policy]} {seed}")

    def hparams(self, policy: str, seed: int) -> dict[str, Any]:
        """The policy's arguments, flat; `-` for those that only other policies have.

        TensorBoard takes the columns of its table from one run, so all runs must have the same. Arguments
        that no policy makes use of (all have None) have no column.
        """
        flat = {name: _flat(part["init_args"]) for name, part in self.policies.items()}
        used = dict.fromkeys(
            key for arguments in flat.values() for key, value in arguments.items() if value is not None
        )
        own = {key: "none" if value is None else value for key, value in flat[policy].items()}
        return {"policy": policy, "seed": seed} | {key: own.get(key, "-") for key in used}


def without_incidentals(config: dict[str, Any]) -> dict[str, Any]:
    """A job's config without what its numbers do not depend on, and without its seeds."""
    return {key: value for key, value in config.items() if key not in _INCIDENTAL}


def first_difference(one: Any, other: Any, key: str = "") -> str:
    """Dotted key, with both values, of the first place in which two configs differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in [*one, *other]:
            if one.get(name) != other.get(name):
                return first_difference(one.get(name), other.get(name), f"{key}.{name}".strip("."))
    return f"{key}: {one!r} there, {other!r} now"


def _flat(node: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in node.items():
        if isinstance(value, dict):
            if "class_path" in value:
                flat[prefix + key] = value["class_path"].rpartition(".")[2]
            flat |= _flat(value.get("init_args", {}), f"{prefix}{key}.")
        else:
            plain = value is None or isinstance(value, bool | int | float)
            flat[prefix + key] = value if plain else str(value)
    return flat
