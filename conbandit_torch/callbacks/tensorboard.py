"""The records in TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conbandit_torch.callbacks.base import Callback
from conbandit_torch.callbacks.events import add_histogram, keep_events, say_errors_once
from conbandit_torch.running.objective import objective_of

if TYPE_CHECKING:
    from conbandit_torch.loop import Simulation
    from conbandit_torch.running.record import Record


class TensorBoard(Callback):
    """Logs the records to TensorBoard, through Lightning's logger.

    Tags: regret/cumulative, regret/instant, reward/mean, error/theta, error/prediction,
    ctr/cumulative, ctr/window (the last full one), ctr/counted (when a log is replayed; no regret then),
    questions/per_user, questions/distinct_terms, questions/effective_terms, questions/top10_share,
    width/arm, width/term, width/hidden, hidden/last_change, hidden/refit_seconds, and whatever else the
    policy's `diagnostics` has; histograms questions/times_asked and hidden/features.

    Args:
        folder: where the events go.
        config: the run's resolved config, shown as text.
        hparams: hyper-parameters, shown beside the final regret.
    """

    def __init__(self, folder: Path, config: str = "", hparams: Mapping[str, Any] | None = None) -> None:
        from lightning.fabric.loggers.tensorboard import TensorBoardLogger

        say_errors_once()
        self._logger = TensorBoardLogger(root_dir=folder.parent, name=None, version=folder.name)
        self._folder, self._config, self._hparams = folder, config, dict(hparams or {})

    def on_start(self, simulation: Simulation) -> None:
        """Log the config; a resumed simulation goes on where its records end."""
        if simulation.round:
            keep_events(self._folder, simulation.round)
        else:
            self._logger.experiment.add_text("config", f"```yaml\n{self._config}\n```", 0)

    def on_checkpoint(self, simulation: Simulation) -> None:
        """Write what the logger holds back."""
        self._logger.experiment.flush()

    def on_record(self, simulation: Simulation, record: Record) -> None:
        """Log the numbers."""
        scalars: dict[str, float | None] = {
            "regret/cumulative": record.cumulative_regret,
            "regret/instant": record.regret,
            "reward/mean": record.reward,
            "error/theta": record.theta_error,
            "error/prediction": record.prediction_error,
            "questions/per_user": record.questions,
        }
        # Through the writer itself: the logger's own `log_metrics` hides why writing failed.
        writer = self._logger.experiment
        for tag, detail in record.details.items():
            if detail.numel() == 1:
                scalars[tag] = float(detail)
            elif detail.numel() > 1:
                add_histogram(writer, tag, detail, record.round)
        for name, value in scalars.items():
            if value is not None:
                writer.add_scalar(name, value, record.round)

    def on_end(self, simulation: Simulation) -> None:
        """Log the hyper-parameters with the final regret or click-through rate, and close."""
        last = simulation.records[-1]
        objective = objective_of([last])
        value = objective.value(last)
        final = {} if isnan(value) else {f"final/{objective.column}": value}
        # run_name "." keeps them in this run instead of a new one beside it
        self._logger.experiment.add_hparams(self._hparams, final, run_name=".")
        self._logger.finalize("success")

    def on_exception(self, simulation: Simulation, error: BaseException) -> None:
        """Close, keeping what was logged."""
        self._logger.finalize("failed")
