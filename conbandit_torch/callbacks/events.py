"""TensorBoard's event files: histograms; cut back to an earlier round so that a run can go on; threads."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

_PATTERN = "events.out.tfevents.*"
_BINS = 64  # TensorBoard shows 30


def add_histogram(writer: Any, tag: str, values: Tensor, step: int) -> None:
    """What the writer's own `add_histogram` does, without NumPy.

    There, a product of long vectors starts threads of NumPy's own, which wait for more by spinning, beside
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


def keep_events(folder: Path, rounds: int) -> None:
    """Drop what the folder's event files hold of later rounds than `rounds`, or of a run's end.

    What is kept goes into one new file, byte for byte; events that a kill left half-written are dropped.
    """
    files = sorted(folder.glob(_PATTERN))
    if not files:
        return
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.summary.writer.record_writer import RecordWriter

    logging.getLogger("tensorboard").setLevel(logging.ERROR)
    kept = folder / "events.part"
    seen: set[bytes] = set()
    with kept.open("wb") as file:
        writer = RecordWriter(file)
        for number, path in enumerate(files):
            for raw in RawEventFileLoader(str(path)).Load():
                event = Event.FromString(raw)
                later = event.step > rounds or (number > 0 and event.HasField("file_version"))
                of_the_end = any(
                    value.tag.startswith(("_hparams_/", "final/")) for value in event.summary.value
                )
                if not later and not of_the_end and raw not in seen:
                    writer.write(raw)
                    seen.add(raw)
    # A kill between the next two steps leaves events twice; `seen` drops them at the next attempt.
    kept.replace(files[0])
    for path in files[1:]:
        path.unlink()


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
