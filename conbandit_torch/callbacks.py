"""What happens around the loop: logging, files, progress."""

from __future__ import annotations

import csv
import logging
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from conbandit_torch.events import add_histogram, keep_events, say_errors_once
from conbandit_torch.files import at_once

if TYPE_CHECKING:
    from conbandit_torch.loop import Simulation
    from conbandit_torch.metrics import Record
    from conbandit_torch.records import Round


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


class MetricsFile(Callback):
    """Writes the records to a CSV file, a row as soon as it is known.

    Args:
        path: the file, which is made anew, with the records that a resumed simulation has already.
    """

    columns = (
        "round",
        "cumulative_regret",
        "reward",
        "theta_error",
        "prediction_error",
        "questions",
        "effective_terms",
        "counted",
        "ctr",
        "seconds",
    )

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_start(self, simulation: Simulation) -> None:
        """Write the header, and the records so far."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with at_once(self.path) as unfinished:
            self._write(unfinished, "w", self.columns, *map(self._row, simulation.records))

    def on_record(self, simulation: Simulation, record: Record) -> None:
        """Write a row."""
        self._write(self.path, "a", self._row(record))

    def _row(self, record: Record) -> list[Any]:
        values = vars(record)
        return [values[column] for column in self.columns]

    @staticmethod
    def _write(path: Path, mode: str, *rows: Any) -> None:
        with path.open(mode, newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


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
        final = {"final/cumulative_regret": last.cumulative_regret, "final/ctr": last.ctr}
        final = {tag: value for tag, value in final.items() if value is not None}
        # run_name "." keeps them in this run instead of a new one beside it
        self._logger.experiment.add_hparams(self._hparams, final, run_name=".")
        self._logger.finalize("success")

    def on_exception(self, simulation: Simulation, error: BaseException) -> None:
        """Close, keeping what was logged."""
        self._logger.finalize("failed")


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


class ProgressBar(Callback):
    """A line with the round, the regret or the click-through rate so far, and the speed.

    Args:
        bars: where the line appears; made by `progress_bars`.
        title: what is running.
    """

    def __init__(self, bars: Progress, title: str) -> None:
        self._bars, self._title = bars, title
        self._task = TaskID(0)
        self._start, self._first = 0.0, 0

    def on_start(self, simulation: Simulation) -> None:
        """Show the line."""
        self._start, self._first = time.perf_counter(), simulation.round
        self._task = self._bars.add_task(
            self._title, total=simulation.rounds, completed=simulation.round, outcome="", speed=""
        )

    def on_record(self, simulation: Simulation, record: Record) -> None:
        """Move on."""
        speed = (record.round - self._first) / (time.perf_counter() - self._start)
        self._bars.update(
            self._task,
            completed=record.round,
            outcome=headline(vars(record)),
            speed=f"{speed:,.0f} rounds/s",
        )

    def on_end(self, simulation: Simulation) -> None:
        """Make room for the next."""
        self._bars.remove_task(self._task)


def progress_bars(**kwargs: Any) -> Progress:
    """Bars for `ProgressBar`, to be used as a context manager."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("round {task.completed}/{task.total}"),
        TextColumn("{task.fields[outcome]}"),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
        **kwargs,
    )


def headline(values: Mapping[str, Any]) -> str:
    """How a run went, from the values of a record or of a row of `summary.csv`."""
    if values["cumulative_regret"] is not None:
        return f"regret {values['cumulative_regret']:.2f} per user"
    if values["ctr"] is None:
        return "no event has counted"
    return f"CTR {values['ctr']:.4f} of {values['counted']:,} events"


def summary_row(policy: str, seed: int, record: Record) -> dict[str, Any]:
    """A finished run's row of `summary.csv`."""
    values = asdict(record)
    return {"policy": policy, "seed": seed, "rounds": record.round} | {
        name: values[name] for name in MetricsFile.columns if name not in ("round", "reward")
    }
