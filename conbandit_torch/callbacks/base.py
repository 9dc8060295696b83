"""What a callback is told of."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conbandit_torch.core.rounds import Round
    from conbandit_torch.loop import Simulation
    from conbandit_torch.running.record import Record


class StoppedError(Exception):
    """The simulation was told to stop before its last round."""


class Callback:
    """Told of a simulation's events. Override the hooks you need.

    A method called `on_...` that is not a hook is refused when the class is made, because it would
    never be called.

    A simulation has callbacks of its own, built anew when it is resumed: what they hold is in no checkpoint,
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

    def on_start(self, simulation: Simulation) -> None:
        """Before the first round that is played; `simulation.round` is above 0 if it was resumed."""

    def on_round(self, simulation: Simulation, played: Round) -> None:
        """After every round, and its record if it has one; in the hot loop: do not wait for the device."""

    def on_record(self, simulation: Simulation, record: Record) -> None:
        """After every record of the metrics."""

    def on_checkpoint(self, simulation: Simulation) -> None:
        """Before a checkpoint is written: bring to the disk what you hold of the rounds so far."""

    def on_end(self, simulation: Simulation) -> None:
        """After the last round."""

    def on_exception(self, simulation: Simulation, error: BaseException) -> None:
        """When the run breaks off; `error` is raised again afterwards."""


class Forgiving(Callback):
    """Goes on without a callback when it fails: says so, and does not call it again.

    Args:
        callback: one that a run can do without, such as a logger.
    """

    def __init__(self, callback: Callback) -> None:
        self._callback: Callback | None = callback

    def on_start(self, simulation: Simulation) -> None:
        """Pass it on."""
        self._pass_on("on_start", simulation)

    def on_round(self, simulation: Simulation, played: Round) -> None:
        """Pass it on."""
        self._pass_on("on_round", simulation, played)

    def on_record(self, simulation: Simulation, record: Record) -> None:
        """Pass it on."""
        self._pass_on("on_record", simulation, record)

    def on_checkpoint(self, simulation: Simulation) -> None:
        """Pass it on."""
        self._pass_on("on_checkpoint", simulation)

    def on_end(self, simulation: Simulation) -> None:
        """Pass it on."""
        self._pass_on("on_end", simulation)

    def on_exception(self, simulation: Simulation, error: BaseException) -> None:
        """Pass it on."""
        self._pass_on("on_exception", simulation, error)

    def _pass_on(self, hook: str, *arguments: Any) -> None:
        if self._callback is None:
            return
        try:
            getattr(self._callback, hook)(*arguments)
        except Exception as error:
            name = type(self._callback).__name__
            logging.getLogger(__name__).warning(
                "%s failed and is left out from here on: %s: %s", name, type(error).__name__, error
            )
            self._callback = None
