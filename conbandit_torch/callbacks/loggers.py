"""The records in a Lightning logger: CSV, MLflow, Weights & Biases, or one of your own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from conbandit_torch.callbacks.base import Callback, SimulationView
from conbandit_torch.callbacks.tensorboard import scalars_of
from conbandit_torch.running.record import Record

if TYPE_CHECKING:
    from lightning.fabric.loggers.logger import Logger


class LoggerCallback(Callback):
    """Hands a Lightning logger what TensorBoard shows as curves, and the hyper-parameters.

    These loggers cannot forget: a resumed simulation has a new run in them, which begins with the records so
    far (without what only the policy knows, such as widths).

    Args:
        make: makes the logger; called when the simulation starts.
        hparams: hyper-parameters.
    """

    def __init__(self, make: Callable[[], Logger], hparams: Mapping[str, Any] | None = None) -> None:
        self._make, self._hparams = make, dict(hparams or {})
        self._logger: Logger | None = None

    def on_start(self, simulation: SimulationView) -> None:
        """Make the logger, and log the hyper-parameters and the records so far."""
        self._logger = self._make()
        self._logger.log_hyperparams(self._hparams)
        for record in simulation.records:
            self.on_record(simulation, record)

    def on_record(self, simulation: SimulationView, record: Record) -> None:
        """Log the numbers."""
        if self._logger is not None:
            self._logger.log_metrics(scalars_of(record), step=record.round)

    def on_checkpoint(self, simulation: SimulationView) -> None:
        """Have the logger write what it holds."""
        if self._logger is not None:
            self._logger.save()

    def on_end(self, simulation: SimulationView) -> None:
        """Close the logger."""
        self._close("success")

    def on_exception(self, simulation: SimulationView, error: BaseException) -> None:
        """Close the logger, which says that the run failed."""
        self._close("failed")

    def _close(self, status: str) -> None:
        logger, self._logger = self._logger, None
        if logger is None:
            return
        logger.save()
        logger.finalize(status)
        # Weights & Biases would give the next job of this process the same run, unless it is finished.
        finish = getattr(getattr(logger, "experiment", None), "finish", None)
        if callable(finish):
            finish()
