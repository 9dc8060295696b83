"""Feedback that is not finite: refused, or left out and counted, before it reaches anybody."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn

from conbandit_torch.core.checks import all_finite
from conbandit_torch.core.context import Context
from conbandit_torch.core.questions import Answer, Question
from conbandit_torch.core.rounds import Feedback, Outcome

BadFeedback = Literal["stop", "skip"]


class FeedbackError(ValueError):
    """A reward or an answer that is NaN or infinite."""


class Screen(nn.Module):
    """Stands between an environment and a policy, and lets only finite feedback pass.

    Args:
        bad_feedback: what to do about rewards and answers that are NaN or infinite: "stop" with an error, or
            "skip" and count them; a skipped answer counts as a question, as "don't know" does.
    """

    skipped: Tensor  # [] rewards and answers that were not finite, and left out

    def __init__(self, bad_feedback: BadFeedback = "stop") -> None:
        super().__init__()
        self.bad_feedback = bad_feedback
        self.register_buffer("skipped", torch.zeros((), dtype=torch.int64))

    def answer(self, context: Context, question: Question, answer: Answer) -> Answer:
        """The answer, of which only what is finite is known."""
        if all_finite(answer.value):
            return answer
        known = torch.ones_like(answer.value, dtype=torch.bool) if answer.known is None else answer.known
        good = answer.value.isfinite() | ~known
        if bool(good.all()):
            return answer
        self._refuse_or_count("answer", context.take(question.rows), answer.value, good)
        return replace(answer, known=known & good)

    def outcome(self, outcome: Outcome) -> Outcome:
        """The outcome, with only the feedback that is finite."""
        if all(all_finite(feedback.reward) for feedback in outcome.feedback):
            return outcome
        return replace(outcome, feedback=[self._finite(feedback) for feedback in outcome.feedback])

    def _finite(self, feedback: Feedback) -> Feedback:
        good = feedback.reward.isfinite()
        if bool(good.all()):
            return feedback
        self._refuse_or_count("reward", feedback.context, feedback.reward, good)
        rows = good.nonzero().squeeze(1)
        return Feedback(feedback.context.take(rows), feedback.arm[rows], feedback.reward[rows])

    def _refuse_or_count(self, kind: str, context: Context, values: Tensor, good: Tensor) -> None:
        if self.bad_feedback == "skip":
            self.skipped += (~good).sum()
            return
        row = int((~good).nonzero()[0])
        raise FeedbackError(
            f"the {kind} of user {int(context.users[row])} in its round {int(context.rounds[row]) + 1} is "
            f"{float(values[row])}; it must be finite (`bad_feedback: skip` leaves such ones out)"
        )


STRICT = Screen()
