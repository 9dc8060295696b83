"""What became of a job."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from conbandit_torch.core.files import write_atomically
from conbandit_torch.core.seals import file_digest, sealed, unsealed
from conbandit_torch.core.serving import Serving
from conbandit_torch.running.folder import METRICS, RESULT, USERS
from conbandit_torch.running.origin import Origin
from conbandit_torch.running.record import COLUMNS, Record

Job = tuple[str, int]
"""A policy's name and a seed."""

FORMAT = 2

_NUMBERS = tuple(one.name for one in fields(Record) if one.name != "details")
_MADE_OF_PARTS = ("last", "replayed", "hidden", "origin", "error", "stopped")
_SUMMARY = tuple(name for name in COLUMNS if name not in ("round", "reward"))
SUMMARY_COLUMNS = ("policy", "seed", "rounds", *_SUMMARY)


@dataclass(frozen=True)
class Replayed:
    """What a job that replayed a log keeps for its curves.

    Attributes:
        events: events of the log that were replayed.
        click_rate: share of clicks in the log, which is that of a policy that picks at random.
        window: counted events in a window.
        ctr: click-through rate in every full window.
        serving: how the log's items were chosen: "unknown", "uniform" or "skewed".
        log: digest of the log: seeds with the same one have the same users.
        users: digest of the job's `users.csv`; empty: it has none, as before there were such files.
    """

    events: int
    click_rate: float
    window: int
    ctr: list[float]
    serving: Serving = "unknown"
    log: str = ""
    users: str = ""


@dataclass(frozen=True)
class HiddenShare:
    """Features that were kept from the policies.

    Attributes:
        names: of the columns.
        share: their part of the arms' summed `|x|^2`.
    """

    names: list[str]
    share: float


@dataclass(frozen=True)
class JobResult:
    """What became of a job: it has finished, failed, or was stopped.

    Attributes:
        policy: the policy's name.
        seed: the job's seed.
        last: the metrics at the last round; None unless the job has finished.
        error: why the job failed; empty if it did not.
        stopped: where the job was stopped; empty if it was not.
        users: users of the whole run.
        fingerprint: digest of the policy's final state.
        replayed: what replay of a log gave; None: no log was replayed.
        hidden: features that were kept from the policy; None: all were seen.
        metrics: digest of the job's `metrics.csv`.
        config: digest of its `config.yaml`.
        kept: digest of its `policy.safetensors`; empty: the policy was not kept.
        origin: what the numbers came from.
    """

    policy: str
    seed: int
    last: Record | None = None
    error: str = ""
    stopped: str = ""
    users: int = 0
    fingerprint: str = ""
    replayed: Replayed | None = None
    hidden: HiddenShare | None = None
    metrics: str = ""
    config: str = ""
    kept: str = ""
    origin: Origin = field(default_factory=Origin)

    @property
    def job(self) -> Job:
        """Which job it was."""
        return self.policy, self.seed

    def summary(self) -> dict[str, Any]:
        """The job's line of `summary.csv`, by column; a job that failed has an error in place of numbers."""
        line: dict[str, Any] = {"policy": self.policy, "seed": self.seed}
        if self.last is None:
            return line | {"error": self.error}
        return line | {"rounds": self.last.round} | {name: getattr(self.last, name) for name in _SUMMARY}


class ResultError(Exception):
    """A result that cannot be used, and why."""


class OtherFormatError(ResultError):
    """A result of another version of this package, in a format that this one does not read."""


def write_result(folder: Path, result: JobResult) -> None:
    """Write a finished job's `result.json`, which is on the disk afterwards."""
    if result.last is None:
        raise ValueError(f"{result.policy} seed {result.seed} has not finished: it has no result to write")
    simple = (one.name for one in fields(JobResult) if one.name not in _MADE_OF_PARTS)
    content = {name: getattr(result, name) for name in simple}
    content |= {
        "format": FORMAT,
        "last": {name: getattr(result.last, name) for name in _NUMBERS},
        "replayed": None if result.replayed is None else asdict(result.replayed),
        "hidden": None if result.hidden is None else asdict(result.hidden),
        "origin": asdict(result.origin),
    }
    write_atomically(folder / RESULT, sealed(content))


def read_result(folder: Path) -> JobResult | None:
    """The result of a finished job; None: the folder holds none.

    Raises:
        ResultError: if a file is damaged, or of another version; with its name and the reason.
    """
    path = folder / RESULT
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
        content = unsealed(text)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ResultError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        if text.startswith('{"users": '):
            raise OtherFormatError(_other_format(path, 1)) from None
        raise ResultError(f"{path} is damaged: {error}") from None
    version = content.pop("format", None)
    if version != FORMAT:
        raise OtherFormatError(_other_format(path, version))
    result = _parsed(path, content)
    digests = {METRICS: result.metrics, USERS: result.replayed.users if result.replayed else ""}
    for name, digest in digests.items():
        try:
            if digest and file_digest(folder / name) != digest:
                raise ResultError(f"{folder / name} is damaged: it is not what the job wrote")
        except OSError as error:
            raise ResultError(f"{folder / name}: {error.strerror or error}") from None
    return result


def _other_format(path: Path, version: Any) -> str:
    return (
        f"{path}: format {version}, and this version of conbandit_torch reads format {FORMAT}: use the "
        "version that wrote it, or name another folder"
    )


def _parsed(path: Path, content: dict[str, Any]) -> JobResult:
    try:
        replayed, hidden = content.pop("replayed"), content.pop("hidden", None)
        return JobResult(
            last=Record(**content.pop("last")),
            replayed=None if replayed is None else Replayed(**replayed),
            hidden=None if hidden is None else HiddenShare(**hidden),
            origin=Origin(**content.pop("origin")),
            **content,
        )
    except (KeyError, TypeError) as error:
        raise ResultError(f"{path}: not the result of a job ({error})") from None
