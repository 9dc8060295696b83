"""What a job's numbers came from: the data, the config, the version of this package."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from conbandit_torch.core.version import VERSION

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
        version: the package's version.
        kernels: which functions did the work of a round, such as "torch" or "numba 0.60"; empty: unknown.
        data: digest of the environment's catalogue, truth and data, for the job's seed; empty: unknown.
        config: digest of all that the job's numbers depend on, its policy and seed included; empty: unknown.
        shared: digest of what all policies and seeds of an experiment share; empty: unknown.
    """

    version: str = ""
    kernels: str = ""
    data: str = ""
    config: str = ""
    shared: str = ""

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
        if self.kernels and self.kernels != now.kernels:
            _log.warning(
                "%s: was made with the kernels %s, and these are %s: numbers may differ in the last digits, "
                "and decisions with them, from those of one kind alone",
                *(where, self.kernels, now.kernels),
            )
