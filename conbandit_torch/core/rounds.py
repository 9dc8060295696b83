"""What came of a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from conbandit_torch.core.checks import expect_rows
from conbandit_torch.core.context import Context
from conbandit_torch.core.questions import Answer, Question
from conbandit_torch.core.serving import Serving


@dataclass(frozen=True)
class Feedback:
    """Rewards that came in, of one round of their users: this one, or an earlier one where they are late.

    Attributes:
        context: the context that was decided in, of the rows whose rewards these are.
        arm: [B] positions of the arms that were shown then.
        reward: [B] what they earned.
    """

    context: Context
    arm: Tensor
    reward: Tensor

    def __post_init__(self) -> None:
        expect_rows("Feedback.arm", self.arm, len(self.context))
        expect_rows("Feedback.reward", self.reward, len(self.context))


class Weighted(NamedTuple):
    """What off-policy estimates need of a round of a log whose propensities are known.

    Attributes:
        rows: [M] rows of the context whose arm was served, in the order of the feedback.
        weight: [M] 1 / propensity of what was served.
        guess: [B] what a model that has not seen the event expects of the arm shown.
    """

    rows: Tensor
    weight: Tensor
    guess: Tensor


@dataclass(frozen=True)
class Outcome:
    """What came of showing one arm to every row.

    Attributes:
        feedback: the rewards that came in now: usually this round's, of all rows. A replayed log has those of
            the rows that matched; where rewards are late, these are of earlier rounds.
        regret: [B] expected loss against the best candidate; for metrics, never for the policy. None where
            nobody knows it.
        weighted: for off-policy estimates; None unless a log is replayed whose propensities are known.
    """

    feedback: list[Feedback]
    regret: Tensor | None
    weighted: Weighted | None = None


class Logged(NamedTuple):
    """The log that an environment replays, or the first part of it.

    Attributes:
        events: how many events it has.
        click_rate: their mean reward, which is what showing candidates at random would earn if items were
            served so, or if nobody knows how they were.
        serving: how items were chosen.
        digest: of the whole log: two environments with the same one have the same users.
    """

    events: int
    click_rate: float
    serving: Serving = "unknown"
    digest: str = ""


@dataclass(frozen=True)
class Round:
    """One round, complete enough to be written down and played again.

    Attributes:
        context: who was here, at which of their rounds, with which candidates.
        dialogue: what was asked, and answered, in order.
        arm: [B] positions of the arms shown among the candidates.
        outcome: what came of it.
    """

    context: Context
    dialogue: list[tuple[Question, Answer]]
    arm: Tensor
    outcome: Outcome

    @property
    def arm_ids(self) -> Tensor:
        """[B] catalogue ids of the arms shown."""
        return self.context.arms.gather(1, self.arm[:, None]).squeeze(1)
