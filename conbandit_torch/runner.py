"""Runs an experiment's jobs, one policy with one seed each, and writes what came out."""

from __future__ import annotations

import csv
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from conbandit_torch.callbacks import (
    MetricsFile,
    ProgressBar,
    TensorBoard,
    progress_bars,
    summary_row,
)
from conbandit_torch.config import build_environment, build_policy
from conbandit_torch.config_errors import ConfigError
from conbandit_torch.experiment import Experiment
from conbandit_torch.loop import Simulation


def results_folder(out: Path | None, source: Path) -> Path:
    """`out`, or a new dated folder under `runs/`; one that holds results is refused."""
    if out is None:
        name = f"{source.stem}-{datetime.now():%Y%m%d-%H%M%S}"
        folder = Path("runs") / name
        for number in range(2, 100):
            if not folder.exists():
                break
            folder = Path("runs") / f"{name}-{number}"
        return folder
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out {out}: not a folder")
    held = next(out.rglob("metrics.csv"), None) if out.is_dir() else None
    if held or (out / "summary.csv").exists():
        raise ConfigError(
            f"--out {out}: holds results already ({held or out / 'summary.csv'}); "
            "name another folder, or remove this one first"
        )
    return out


def run(experiment: Experiment, folder: Path, console: Console) -> list[dict[str, Any]]:
    """All jobs; returns the rows of `summary.csv`, which is written after every job."""
    # Try everything once before anything runs: a bad last policy must not cost hours of good ones.
    _check_accelerator(experiment)
    environment = build_environment(experiment, experiment.seeds[0])
    if environment.length is not None and experiment.rounds > environment.length:
        raise ConfigError(
            f"{experiment.source}: rounds: {experiment.rounds}, but the environment holds only "
            f"{environment.length}"
        )
    for name in experiment.policies:
        build_policy(experiment, name, environment, experiment.seeds[0])
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    with progress_bars(console=console, transient=True) as bars:
        for name in experiment.policies:
            for seed in experiment.seeds:
                job = f"{name} seed {seed}"
                rows.append(run_job(experiment, name, seed, folder, ProgressBar(bars, job)))
                write_rows(folder / "summary.csv", rows)
                regret, seconds = rows[-1]["cumulative_regret"], rows[-1]["seconds"]
                console.print(f"{job}: regret {regret:.2f} per user, {seconds:.1f} s", highlight=False)
    return rows


def _check_accelerator(experiment: Experiment) -> None:
    from lightning.fabric import Fabric

    try:
        Fabric(accelerator=experiment.accelerator, devices=1)
    except Exception as error:  # Lightning has many kinds for this
        raise ConfigError(f"{experiment.source}: accelerator: {error}") from None


def run_job(
    experiment: Experiment, name: str, seed: int, folder: Path, progress: ProgressBar
) -> dict[str, Any]:
    """One policy with one seed, into `folder/<policy>/seed<k>`; returns its row of the summary."""
    environment = build_environment(experiment, seed)
    policy = build_policy(experiment, name, environment, seed)
    job_folder = folder / name / f"seed{seed}"
    job_folder.mkdir(parents=True, exist_ok=True)
    config = experiment.dump(name, seed)
    (job_folder / "config.yaml").write_text(config, encoding="utf-8")
    records = Simulation(
        policy,
        environment,
        rounds=experiment.rounds,
        log_every=experiment.log_every,
        callbacks=[
            MetricsFile(job_folder / "metrics.csv"),
            TensorBoard(job_folder, config, experiment.hparams(name, seed)),
            progress,
        ],
        precision=experiment.precision,
        accelerator=experiment.accelerator,
    ).run()
    return summary_row(name, seed, records[-1])


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """A CSV file with one line a row."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
