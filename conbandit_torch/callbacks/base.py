"""What a callback is told of, and the one place that tells it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.core.processes import Processes
from conbandit_torch.core.rounds import Round
from conbandit_torch.environments.base import Environment
from conbandit_torch.running.checkpoint import SavedState
from conbandit_torch.running.metrics import Metrics
from conbandit_torch.running.record import Record

_log = logging.getLogger(__name__)


class StoppedError(Exception):
    """The simulation was told to stop before its last round."""


class SimulationView(Protocol):
    """What a hook sees of the simulation.

    Attributes:
        round: rounds played.
        rounds: rounds to play.
        records: the records so far.
        folder: where callbacks may put their files; None: nowhere.
        policy: what decides.
        environment: what answers.
        metrics: what sums up the rounds.
        processes: over which users are split.
        callbacks: all callbacks of the simulation.
    """

    round: int
    rounds: int
    records: list[Record]
    folder: Path | None
    policy: Bandit
    environment: Environment
    metrics: Metrics
    processes: Processes
    callbacks: Callbacks

    def stop(self) -> None:
        """End after the current round."""

    def state(self) -> SavedState:
        """Everything that another simulation of the same kind needs to go on from here."""


class Callback:
    """Told of a simulation's events. Override the hooks you need.

    A method called `on_...` that is not a hook is refused when the class is made, because it would
    never be called.

    Every simulation has its own callbacks, built anew when it is resumed: what they hold is in no checkpoint,
    so one that sums up rounds must look in `on_start` where `simulation.round` is, and read back what it has
    written. Files belong into `simulation.folder`, and are opened in `on_start`, not in the constructor,
    which also runs to check a config.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        hooks = [name for name in vars(Callback) if name.startswith("on_")]
        for name in vars(cls):
            if name.startswith("on_") and name not in hooks:
                raise TypeError(f"{cls.__name__}.{name} is not a hook; hooks are {', '.join(hooks)}")

    def on_start(self, simulation: SimulationView) -> None:
        """Before the first round that is played; `simulation.round` is above 0 if it was resumed."""

    def on_round(self, simulation: SimulationView, played: Round) -> None:
        """After every round, and its record if it has one; in the hot loop: do not wait for the device."""

    def on_record(self, simulation: SimulationView, record: Record) -> None:
        """After every record of the metrics."""

    def on_checkpoint(self, simulation: SimulationView) -> None:
        """Before a checkpoint is written: bring to the disk what you hold of the rounds so far."""

    def on_end(self, simulation: SimulationView) -> None:
        """After the last round: bring to the disk what you hold; the job's result is written next."""

    def on_exception(self, simulation: SimulationView, error: BaseException) -> None:
        """When the run breaks off; `error` is raised again afterwards."""


class Callbacks(Callback):
    """All callbacks of a simulation, told in their order.

    Args:
        callbacks: whom to tell.
    """

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self._callbacks = tuple(callbacks)

    def __iter__(self) -> Iterator[Callback]:
        return iter(self._callbacks)

    def on_start(self, simulation: SimulationView) -> None:
        """Tell all."""
        for callback in self._callbacks:
            callback.on_start(simulation)

    def on_round(self, simulation: SimulationView, played: Round) -> None:
        """Tell all."""
        for callback in self._callbacks:
            callback.on_round(simulation, played)

    def on_record(self, simulation: SimulationView, record: Record) -> None:
        """Tell all."""
        for callback in self._callbacks:
            callback.on_record(simulation, record)

    def on_checkpoint(self, simulation: SimulationView) -> None:
        """Tell all."""
        for callback in self._callbacks:
            callback.on_checkpoint(simulation)

    def on_end(self, simulation: SimulationView) -> None:
        """Tell all."""
        for callback in self._callbacks:
            callback.on_end(simulation)

    def on_exception(self, simulation: SimulationView, error: BaseException) -> None:
        """Tell all, whatever becomes of the others: a full disk fails every one of them."""
        for callback in self._callbacks:
            try:
                callback.on_exception(simulation, error)
            except Exception as another:  # the first error is the one to report
                _log.warning("%s could not close its files: %s", type(callback).__name__, another)


class Forgiving(Callback):
    """Goes on without a callback when it fails: says so, and does not call it again.

    Args:
        callback: one that a run can do without, such as a logger.
        name: what to call it; None: by its class.
    """

    def __init__(self, callback: Callback, name: str | None = None) -> None:
        self._callback: Callback | None = callback
        self._name = type(callback).__name__ if name is None else name

    def on_start(self, simulation: SimulationView) -> None:
        """Pass it on."""
        self._pass_on("on_start", simulation)

    def on_round(self, simulation: SimulationView, played: Round) -> None:
        """Pass it on."""
        self._pass_on("on_round", simulation, played)

    def on_record(self, simulation: SimulationView, record: Record) -> None:
        """Pass it on."""
        self._pass_on("on_record", simulation, record)

    def on_checkpoint(self, simulation: SimulationView) -> None:
        """Pass it on."""
        self._pass_on("on_checkpoint", simulation)

    def on_end(self, simulation: SimulationView) -> None:
        """Pass it on."""
        self._pass_on("on_end", simulation)

    def on_exception(self, simulation: SimulationView, error: BaseException) -> None:
        """Pass it on."""
        self._pass_on("on_exception", simulation, error)

    def _pass_on(self, hook: str, *arguments: Any) -> None:
        if self._callback is None:
            return
        try:
            getattr(self._callback, hook)(*arguments)
        except Exception as error:
            kind = type(error).__name__
            _log.warning("%s failed and is left out from here on: %s: %s", self._name, kind, error)
            self._callback = None
