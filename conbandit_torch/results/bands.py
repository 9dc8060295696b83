"""Curves over seeds for TensorBoard: a run per policy, with means and the ends of their 95 % t intervals.

What policies are judged by comes first (see `Objective.group`), all other metrics are in one group below.
The files are written record by record, without torch, because TensorBoard lists and colours runs by the time
of their first event: policies come first and one after the other, then their seeds.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from conbandit_torch.core.files import make_folder
from conbandit_torch.results.read import METRICS, PolicyResults, intervals
from conbandit_torch.running.folder import CONFIG, EVENTS, event_files, job_folders, put_events_first

if TYPE_CHECKING:
    from tensorboard.compat.proto.event_pb2 import Event

_APART = 1e-3  # seconds between the first events of two policies


def write_bands(folder: Path, results: dict[str, PolicyResults]) -> None:
    """Write the curves of policies that have several seeds to their folders; the layout to the first."""
    several = {name: own for name, own in results.items() if len(own.seeds) > 1}
    for path in {path.parent for path in job_folders(folder)}:
        if path.name not in several:
            for rest in event_files(path):
                rest.unlink()
    start = _start(folder)
    for number, (name, own) in enumerate(several.items()):
        with_layout = several if number == 0 else None
        _replace_events(folder / name, own, start - _APART * (len(several) - number), with_layout)


def band(values: np.ndarray) -> tuple[np.ndarray, ...]:
    """Mean, low and high [T] of values [S, T]."""
    mean, half = intervals(values)
    return mean, mean - half, mean + half


def tags(metric: str, own: PolicyResults) -> tuple[str, str, str]:
    """Of a metric's mean, low and high."""
    if metric == own.objective.column:
        return own.objective.tags_over_seeds
    mean = f"over seeds/{metric.replace('_', ' ')}"
    return mean, f"{mean} 95 % low", f"{mean} 95 % high"


def _start(folder: Path) -> float:
    """When the first job began: it writes its config before its first event."""
    configs = [path / CONFIG for path in job_folders(folder)]
    return min((path.stat().st_mtime for path in configs if path.is_file()), default=0.0)


def _replace_events(
    folder: Path, own: PolicyResults, time: float, with_layout: dict[str, PolicyResults] | None
) -> None:
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog
    from tensorboard.summary.writer.record_writer import RecordWriter

    make_folder(folder)
    put_events_first(folder)
    earlier = event_files(folder)
    events = [
        Event(wall_time=time, file_version="brain.Event:2"),
        # A TensorBoard that is running forgets what earlier files said, from round 0 on.
        Event(wall_time=time, step=0, session_log=SessionLog(status=SessionLog.START)),
        *_scalars(own, time),
    ]
    if with_layout is not None:
        events.append(_layout(with_layout, time))
    # A new name: a TensorBoard that is running would look for news at the end of a file that it knows.
    with (folder / f"{EVENTS}{time_ns()}.over_seeds").open("wb") as file:
        writer = RecordWriter(file)
        for event in events:
            writer.write(event.SerializeToString())
    for path in earlier:
        path.unlink()


def _scalars(own: PolicyResults, time: float) -> Iterator[Event]:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    for metric in METRICS:
        for tag, line in zip(tags(metric, own), band(own.metrics[metric]), strict=True):
            for number, value in zip(own.rounds, line, strict=True):
                if not np.isnan(value):
                    summary = Summary(value=[Summary.Value(tag=tag, simple_value=float(value))])
                    yield Event(wall_time=time, step=int(number), summary=summary)


def _layout(results: dict[str, PolicyResults], time: float) -> Event:
    """Charts with bands, of the metrics that a policy has; TensorBoard shows the last of them first."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.plugins.custom_scalar import layout_pb2, metadata

    first = next(iter(results.values()))
    shown = [
        metric
        for metric in METRICS
        if any(not np.isnan(own.metrics[metric]).all() for own in results.values())
    ]
    shown.sort(key=lambda metric: metric != first.objective.column)
    charts: list[Any] = []
    for metric in reversed(shown):
        mean, low, high = tags(metric, first)
        series = layout_pb2.MarginChartContent.Series(value=mean, lower=low, upper=high)
        charts.append(
            layout_pb2.Chart(
                title=metric.replace("_", " "), margin=layout_pb2.MarginChartContent(series=[series])
            )
        )
    category = layout_pb2.Category(title="mean over seeds, 95 % t interval", chart=charts)
    layout = layout_pb2.Layout(version=0, category=[category])
    plugin = SummaryMetadata.PluginData(plugin_name=metadata.PLUGIN_NAME)
    value = Summary.Value(
        tag=metadata.CONFIG_SUMMARY_TAG,
        tensor=TensorProto(dtype="DT_STRING", string_val=[layout.SerializeToString()]),
        metadata=SummaryMetadata(plugin_data=plugin),
    )
    return Event(wall_time=time, step=0, summary=Summary(value=[value]))
