"""The worlds that an experiment's jobs play in: one per seed, which the policies of that seed share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import uuid4

from conbandit_torch.configuration.build import build_environment
from conbandit_torch.core.digests import data_digest
from conbandit_torch.environments.base import Environment
from conbandit_torch.running.plan import Plan
from conbandit_torch.running.processes import device_of, dtype_of


class World(NamedTuple):
    """An environment for a job.

    Attributes:
        environment: in the experiment's precision, with all users; a simulation starts it at its first round.
        data: digest of what it was given, before its numbers were converted.
    """

    environment: Environment
    data: str


def build_world(experiment: Plan, seed: int) -> World:
    """A new one."""
    environment = build_environment(experiment, seed)
    data = data_digest(environment)
    # Policies are built for the world as it is then, so that nothing is ever in a precision it does not need.
    return World(environment.to(dtype_of(experiment.precision)), data)


# The last world of this process, with its seed, by the run that it belongs to: when the same experiment runs
# again, the files that it was read from may have changed.
_kept: dict[str, tuple[int, World]] = {}


@dataclass(frozen=True)
class Worlds:
    """A run's worlds; the last one is kept, in every process that a job of the run is sent to.

    Jobs come seed by seed, so that a process builds a world once per seed.

    Args:
        experiment: whose worlds.
        keep: not, where jobs change them: those whose users are split over processes cut them.
    """

    experiment: Plan
    keep: bool = True
    _run: str = field(default_factory=lambda: uuid4().hex)

    def of(self, seed: int) -> World:
        """The seed's world: a new one, or the one that the last job has played in."""
        if self._run in _kept and _kept[self._run][0] == seed:
            return _kept[self._run][1]
        self.forget()  # first: two may not fit
        world = build_world(self.experiment, seed)
        # On another device a policy would be built where the first job has left its world.
        if self.keep and device_of(self.experiment.accelerator).type == "cpu":
            _kept[self._run] = seed, world
        return world

    def forget(self) -> None:
        """Let go of the world that is kept in this process."""
        _kept.clear()
