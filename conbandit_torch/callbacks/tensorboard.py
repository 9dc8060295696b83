"""The records in TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conbandit_torch.callbacks.base import Callback, SimulationView
from conbandit_torch.callbacks.events import add_histogram, say_errors_once, sync_events
from conbandit_torch.core.files import make_folder, naming
from conbandit_torch.running.folder import put_events_first
from conbandit_torch.running.objective import REGRET, objective_of
from conbandit_torch.running.record import Record

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


def scalars_of(record: Record) -> dict[str, float]:
    """A record's numbers by tag, those of its details among them."""
    scalars = {
        REGRET.tag: record.cumulative_regret,
        "Regret/instant": record.regret,
        "reward/mean": record.reward,
        "error/theta": record.theta_error,
        "error/prediction": record.prediction_error,
        "questions/per_user": record.questions,
    }
    scalars |= {tag: float(detail) for tag, detail in record.details.items() if detail.numel() == 1}
    return {tag: value for tag, value in scalars.items() if value is not None}


class TensorBoard(Callback):
    """Logs the records to TensorBoard.

    Tags: Regret/cumulative, Regret/instant, reward/mean, error/theta, error/prediction,
    CTR/cumulative, CTR/window (the last full one), CTR/events counted (of a replayed log; no regret then),
    questions/per_user, questions/distinct_terms, questions/effective_terms, questions/top10_share,
    width/arm, width/term, width/hidden, hidden/last_change, hidden/refit_seconds, and whatever else the
    policy's `diagnostics` has; histograms questions/times_asked and hidden/features.

    A resumed simulation starts a new file, which tells TensorBoard to forget what earlier ones hold of the
    rounds that are played again.

    Args:
        folder: where the events go.
        config: the run's resolved config, shown as text.
        hparams: hyper-parameters, shown beside the final regret.
    """

    def __init__(self, folder: Path, config: str = "", hparams: Mapping[str, Any] | None = None) -> None:
        self._folder, self._config, self._hparams = folder, config, dict(hparams or {})
        self._opened: SummaryWriter | None = None

    def on_start(self, simulation: SimulationView) -> None:
        """Open a file, and log the config into the first one."""
        # Imported here: TensorBoard takes a second to import, and a config is checked without it.
        from torch.utils.tensorboard import SummaryWriter

        say_errors_once()
        make_folder(self._folder)
        put_events_first(self._folder)
        purge_step = simulation.round + 1 if simulation.round else None
        with naming(self._folder):
            self._opened = SummaryWriter(str(self._folder), purge_step=purge_step)
            if not simulation.round:
                self._writer.add_text("config", f"```yaml\n{self._config}\n```", 0)

    @property
    def _writer(self) -> SummaryWriter:
        if self._opened is None:
            raise RuntimeError("TensorBoard's writer is opened by on_start")
        return self._opened

    def on_checkpoint(self, simulation: SimulationView) -> None:
        """Bring to the disk what was logged so far."""
        with naming(self._folder):
            self._writer.flush()
        sync_events(self._folder)

    def on_record(self, simulation: SimulationView, record: Record) -> None:
        """Log the numbers."""
        with naming(self._folder):
            for tag, detail in record.details.items():
                if detail.numel() > 1:
                    add_histogram(self._writer, tag, detail, record.round)
            for tag, value in scalars_of(record).items():
                self._writer.add_scalar(tag, value, record.round)

    def on_end(self, simulation: SimulationView) -> None:
        """Log the hyper-parameters, beside the curve of regret or click-through rate, and close."""
        from torch.utils.tensorboard.summary import hparams

        last = simulation.records[-1]
        with naming(self._folder):
            # Not by the writer's own `add_hparams`, which opens another file, and at round 0: if this end is
            # played again, what it logged is purged with the rounds. HParams looks a metric's value up in the
            # curve of that tag, so none is given here.
            files: Any = self._writer.file_writer
            for summary in hparams(self._hparams, {objective_of([last]).tag: None}):
                files.add_summary(summary, last.round)
            self._writer.close()
        sync_events(self._folder)

    def on_exception(self, simulation: SimulationView, error: BaseException) -> None:
        """Close, keeping what was logged."""
        if self._opened is not None:
            with naming(self._folder):
                self._opened.close()
            sync_events(self._folder)
