"""What became of a job."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from conbandit_torch.running.record import COLUMNS, Record

Job = tuple[str, int]
"""A policy's name and a seed."""

_NUMBERS = tuple(field.name for field in fields(Record) if field.name != "details")
_SUMMARY = tuple(name for name in COLUMNS if name not in ("round", "reward"))


@dataclass(frozen=True)
class Replayed:
    """What a job that replayed a log keeps for its curves.

    Attributes:
        events: events of the log that were replayed.
        click_rate: share of clicks in the log, which is that of a policy that picks at random.
        window: counted events in a window.
        ctr: click-through rate in every full window.
    """

    events: int
    click_rate: float
    window: int
    ctr: list[float]


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
    """

    policy: str
    seed: int
    last: Record | None = None
    error: str = ""
    stopped: str = ""
    users: int = 0
    fingerprint: str = ""
    replayed: Replayed | None = None

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

    def to_json(self) -> str:
        """The result of a finished job as the text of a file."""
        assert self.last is not None, "only finished jobs have results"
        content = {
            "policy": self.policy,
            "seed": self.seed,
            "last": {name: getattr(self.last, name) for name in _NUMBERS},
            "users": self.users,
            "fingerprint": self.fingerprint,
            "replayed": None if self.replayed is None else asdict(self.replayed),
        }
        return json.dumps(content)

    @staticmethod
    def from_json(text: str) -> JobResult:
        """The result that `to_json` wrote.

        Raises:
            ValueError: if the text is not one.
        """
        try:
            content = json.loads(text)
            replayed = content.pop("replayed")
            return JobResult(
                last=Record(**content.pop("last")),
                replayed=None if replayed is None else Replayed(**replayed),
                **content,
            )
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"not a job's result ({error})") from None
