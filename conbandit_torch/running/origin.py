"""What a job's numbers came from: the data, the config, the version of this package."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path

from conbandit_torch.core.version import VERSION

THEN = ", then "  # between what a run began with and what it went on with

_log = logging.getLogger(__name__)


class OtherOriginError(Exception):
    """Results, or a checkpoint, that came from something else."""


def package_version() -> str:
    """The version of this package."""
    return VERSION


@dataclass(frozen=True)
class Origin:
    """What a result, or a checkpoint, came from.

    Attributes:
        version: the package's version; of a run that went on under another one, "0.1, then 0.2".
        kernels: which functions did the work of a round, such as "torch" or "numba 0.60", or "torch, then
            numba 0.60"; empty: unknown.
        data: digest of the environment's catalogue, truth and data, for the job's seed; empty: unknown.
        config: digest of all that the job's numbers depend on, its policy and seed included; empty: unknown.
        shared: digest of what all policies and seeds of an experiment share; empty: unknown.
    """

    version: str = ""
    kernels: str = ""
    data: str = ""
    config: str = ""
    shared: str = ""

    @property
    def last_kernels(self) -> str:
        """Those that ran last."""
        return self.kernels.rpartition(THEN)[2]

    def after(self, before: Origin) -> Origin:
        """Of a run that had begun there and went on here: the versions and the kernels of both."""
        version, kernels = _then(before.version, self.version), _then(before.kernels, self.kernels)
        return replace(self, version=version, kernels=kernels)

    def refuse_other_data(self, now: Origin, where: Path) -> None:
        """Refuse to go on with other data than these."""
        if self.data and now.data and self.data != now.data:
            raise OtherOriginError(
                f"{where}: was made from other data (sha256 {self.data[:12]} there, {now.data[:12]} now): "
                "what the environment reads or draws has changed since; name another folder"
            )

    def warn_of_other_version(self, now: Origin, where: Path) -> None:
        """Say what may differ if another version goes on from here."""
        if self.version != now.version:
            _log.warning(
                "%s: was made by conbandit_torch %s, and this is %s: numbers may differ in the last digits, "
                "and decisions with them, from those of one version alone",
                *(where, self.version or "of an unknown version", now.version),
            )

    def warn_of_other_kernels(self, now: Origin, where: Path) -> None:
        """Say what may differ if other kernels go on from here."""
        if self.kernels and self.last_kernels != now.kernels:
            _log.warning(
                "%s: was made with the kernels %s, and these are %s: numbers may differ in the last digits, "
                "and decisions with them, from those of one kind alone",
                *(where, self.kernels, now.kernels),
            )


def _then(before: str, now: str) -> str:
    if not before or before.rpartition(THEN)[2] == now:
        return before or now
    return f"{before}{THEN}{now}"
