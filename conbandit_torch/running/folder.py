"""A results folder: the names of all that is in it, and who may write there.

- `experiment.yaml`, `how.json`: the whole experiment and how it is run, for `conbandit resume`
- `summary.csv`, `curves.csv`, `windows.csv`, `report.md`, `plots/`: made from all jobs
- `<policy>/events.out.tfevents.*`: made from all jobs of a policy that has several
- `<policy>/seed<k>/`: one job:
    - `config.yaml`, `metrics.csv`, `events.out.tfevents.*`: written while it runs
    - `checkpoints/<round>/` with `manifest.json` and `state.safetensors`: while it has not finished
    - `policy.safetensors`: what the policy has learned, if policies are kept
    - `users.csv`: sums per user, if a log was replayed
    - `result.json`: written last: the job has finished
    - `error.txt`: why the last attempt failed
"""

from __future__ import annotations

import logging
import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from conbandit_torch.core.files import UNFINISHED, sync

EXPERIMENT = "experiment.yaml"
HOW = "how.json"
LOCK = ".lock"
SUMMARY = "summary.csv"
CURVES = "curves.csv"
WINDOWS = "windows.csv"
REPORT = "report.md"
AGGREGATE = "aggregate"  # earlier versions had the curves over seeds there
PLOTS = "plots"
TUNED = "tuned.yaml"
STUDY = "study.yaml"  # of a folder that people fill, not runs: see `live/folder.py`
_TOP = (EXPERIMENT, HOW, LOCK, SUMMARY, CURVES, WINDOWS, REPORT, AGGREGATE, PLOTS, TUNED, STUDY)

CONFIG = "config.yaml"
METRICS = "metrics.csv"
USERS = "users.csv"
RESULT = "result.json"
POLICY = "policy.safetensors"
ERROR = "error.txt"
CHECKPOINTS = "checkpoints"
MANIFEST = "manifest.json"
EVENTS = "events.out.tfevents."  # how the names of TensorBoard's files begin

_PATIENCE = 1.0  # seconds for which waiting is not worth a word

_log = logging.getLogger(__name__)


class FolderInUseError(Exception):
    """Another process writes into the folder."""


def is_reserved(policy: str) -> bool:
    """Whether a policy cannot have this name, because a results folder needs it for a file or folder.

    Some file systems do not distinguish capital letters, so neither does this.
    """
    taken = {name.casefold() for name in _TOP}
    return policy.casefold() in taken | {name + UNFINISHED for name in taken}


def job_folder(folder: Path, policy: str, seed: int) -> Path:
    """Where one job's files are."""
    return folder / policy / f"seed{seed}"


def job_folders(folder: Path) -> list[Path]:
    """The folders of all jobs that have begun, whether of the present experiment or of earlier ones."""
    found = (path for path in folder.glob("*/seed*") if re.fullmatch(r"seed[0-9]+", path.name))
    return sorted(path for path in found if path.is_dir())


def error_file(rank: int) -> str:
    """Where a process says why its part of a job failed."""
    path = Path(ERROR)
    return f"{path.stem}-{rank}{path.suffix}" if rank else ERROR


def error_files(folder: Path) -> list[Path]:
    """What earlier attempts at a job have said."""
    path = Path(ERROR)
    return sorted(folder.glob(f"{path.stem}*{path.suffix}"))


def event_files(folder: Path) -> list[Path]:
    """TensorBoard's files, in the order in which it reads them."""
    return sorted(folder.glob(f"{EVENTS}*"))


def put_events_first(folder: Path) -> None:
    """Rename the event files of earlier attempts so that TensorBoard reads them before any new one.

    Their names begin with the second at which they were made, and go on with the process's id: of two
    attempts within one second, the later one could come first, and what it purges would be purged too early.
    """
    earlier = event_files(folder)
    for number, path in enumerate(earlier):
        path.rename(path.with_name(f"{EVENTS}{number:010d}.earlier"))
    if earlier:
        sync(folder)


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Refuse to work on a folder that another process works on; a crash releases it."""
    path = folder / LOCK
    owner = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        path.write_text(owner, encoding="utf-8")  # trying to lock it has emptied it
        raise FolderInUseError(f"another process is writing there ({owner or 'unknown'})") from None
    try:
        path.write_text(f"process {os.getpid()} on {platform.node()}", encoding="utf-8")
        yield
    finally:
        lock.release()


@contextmanager
def job_lock(folder: Path) -> Iterator[None]:
    """Wait for, and hold, the right to work on a job: a worker may outlive its command, and still hold it."""
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=_PATIENCE)
    except Timeout:
        _log.warning("%s: another process is still at work on this job; waiting until it has ended", folder)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
