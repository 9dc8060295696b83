"""What came of a round."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor

from conbandit_torch.core.blocks import EVERY_ROW, Index
from conbandit_torch.core.context import Context
from conbandit_torch.core.questions import Question


@dataclass(frozen=True)
class Outcome:
    """What came of showing one arm to every row.

    Attributes:
        reward: [B] feedback.
        regret: [B] expected loss against the best candidate; for metrics, never for the policy. None where
            nobody knows it.
        rows: rows whose reward was really seen: all, except when replaying a log.
    """

    reward: Tensor
    regret: Tensor | None
    rows: Index = field(default_factory=lambda: EVERY_ROW)


class Logged(NamedTuple):
    """The log that an environment replays, or the first part of it.

    Attributes:
        events: how many events it has.
        click_rate: their mean reward, which is what showing candidates at random would earn.
    """

    events: int
    click_rate: float


@dataclass(frozen=True)
class Round:
    """One round, complete enough to be written down and played again."""

    context: Context
    dialogue: list[tuple[Question, Tensor]]
    arm: Tensor  # [B] positions among the candidates
    outcome: Outcome

    @property
    def arm_ids(self) -> Tensor:
        """[B] catalogue ids of the arms shown."""
        return self.context.arms.gather(1, self.arm[:, None]).squeeze(1)
