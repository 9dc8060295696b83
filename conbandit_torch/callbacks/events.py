"""TensorBoard's event files: histograms, syncing, errors of the writing thread."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from conbandit_torch.core.files import sync
from conbandit_torch.running.folder import event_files

_BINS = 64  # TensorBoard shows 30


def add_histogram(writer: Any, tag: str, values: Tensor, step: int) -> None:
    """What the writer's own `add_histogram` does, without NumPy.

    There, a product of long vectors starts NumPy's own threads, which wait for more by spinning, beside
    torch's: rounds that logged 25,000 hidden features took three times as long.
    """
    values = values.detach().flatten().double().cpu()
    values = values[values.isfinite()]
    if not len(values):
        return
    least, most = (float(end) for end in values.aminmax())
    low, high = (least, most) if least < most else (least - 0.5, most + 0.5)
    writer.add_histogram_raw(
        tag,
        min=least,
        max=most,
        num=len(values),
        sum=float(values.sum()),
        sum_squares=float(values.square().sum()),
        bucket_limits=torch.linspace(low, high, _BINS + 1, dtype=torch.float64)[1:].tolist(),
        bucket_counts=values.histc(_BINS, low, high).tolist(),
        global_step=step,
    )


def sync_events(folder: Path) -> None:
    """Bring the event files to the disk."""
    for path in event_files(folder):
        sync(path)
    sync(folder)


def say_errors_once() -> None:
    """Keep TensorBoard's writing threads from printing their tracebacks.

    What ends such a thread is raised again at the next write, flush or close, where a run reports it.
    """
    others = threading.excepthook
    if getattr(others, "of_conbandit", False):
        return

    def hook(args: threading.ExceptHookArgs) -> None:
        if not type(args.thread).__module__.startswith("tensorboard."):
            others(args)

    hook.of_conbandit = True  # type: ignore[attr-defined]
    threading.excepthook = hook
