"""What every policy is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import torch
from torch import Tensor, nn

from conbandit_torch.core.blocks import EVERY_ROW, Index, add_at, rows_of
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.checks import all_finite, expect_rows, highest
from conbandit_torch.core.context import Context
from conbandit_torch.core.processes import ALONE, Processes
from conbandit_torch.core.questions import Question
from conbandit_torch.core.randomness import Stream

BadFeedback = Literal["stop", "skip"]


class FeedbackError(ValueError):
    """A reward or an answer that is NaN or infinite."""


class Bandit(nn.Module, ABC):
    """A policy for many users at once. Four verbs: ask, listen, choose, update.

    To write one, implement `scores` and `learn`; leave the verbs alone. All state is buffers, so that
    `state_dict` is the whole policy; row u of a per-user buffer is user u's.

    Args:
        catalogue: arms and key-terms; its dtype and device are those of the policy's state.
        num_users: U.
        seed: seed of the policy's own random draws, if it makes any.
    """

    users_are_independent = True  # what one user does never changes another's model
    processes: Processes = ALONE  # over which users are split; what users share is exchanged there
    first_user = 0  # id of this process's first user among all
    rounds: Tensor  # [U] rounds that each user has finished
    skipped: Tensor  # [] rewards and answers that were not finite, and left out

    def __init__(self, catalogue: Catalogue, num_users: int, *, seed: int = 0) -> None:
        super().__init__()
        if num_users < 1:
            raise ValueError(f"num_users must be at least 1, got {num_users}")
        self.catalogue, self.num_users, self.seed = catalogue, num_users, seed
        device = catalogue.arm_features.device
        self.bad_feedback: BadFeedback = "stop"
        self.register_buffer("rounds", torch.zeros(num_users, dtype=torch.int64, device=device))
        self.register_buffer("skipped", torch.zeros((), dtype=torch.int64, device=device))

    @abstractmethod
    def scores(self, context: Context) -> Tensor:
        """[B, A]: how much each candidate should be shown; the largest is chosen. Implement this."""

    @abstractmethod
    def learn(self, context: Context, arm: Tensor, reward: Tensor) -> None:
        """Learn that `arm` [B] (positions) earned `reward` [B]. Implement this."""

    def ask(self, context: Context) -> Question | None:
        """The next question to put to this round's users, or None. A plain bandit asks nothing."""
        return None

    def listen(self, context: Context, question: Question, answer: Tensor) -> None:
        """Learn from the `answer` [Q] to a question of `ask`."""
        raise NotImplementedError(f"{type(self).__name__} asks no questions: no answer to listen to")

    def choose(self, context: Context) -> Tensor:
        """[B]: position of the arm to show among each row's candidates; ties go to the first."""
        self._check(context)
        return context.map(lambda block: self._best(block), self.width(context))

    def update(self, context: Context, arm: Tensor, reward: Tensor) -> None:
        """Learn from the round's rewards, and count the round."""
        self._check(context)
        expect_rows("arm", arm, len(context))
        expect_rows("reward", reward, len(context))
        good = self.finite("reward", reward, context)
        self.learn(context.take(good), rows_of(arm, good), rows_of(reward, good))
        add_at(self.rounds, context.who, 1)

    def width(self, context: Context) -> int:
        """Numbers a row that `scores` works on at once; larger contexts are cut into blocks."""
        return context.arms.shape[1] * self.catalogue.dim

    def predict(self, context: Context) -> Tensor | None:
        """[B, A] expected rewards, if the policy has an opinion (for metrics)."""
        return None

    def coefficients(self) -> Tensor | None:
        """[U, D] the users' estimated preferences theta, if the policy has any (for metrics)."""
        return None

    def term_radii(self, context: Context) -> Tensor:
        """[B, K] how little is known of each key-term, for schedules and rules that ask about that."""
        raise NotImplementedError(f"{type(self).__name__} has no radii of key-terms: a LinearBandit has")

    def diagnostics(self, context: Context) -> dict[str, Tensor]:
        """What else to log: a tag and one number, or many for a histogram."""
        return {}

    def stream(self, purpose: str) -> Stream:
        """Reproducible random numbers; draw with a user's id and its `rounds` as counters."""
        return Stream(self.seed, f"policy/{purpose}", self.first_user)

    def finite(self, kind: str, values: Tensor, context: Context) -> Index:
        """Rows whose reward or answer [B] can be learned from; NaN and infinity are refused or skipped."""
        if all_finite(values):
            return EVERY_ROW
        finite = values.isfinite()
        row = int((~finite).nonzero()[0])
        user = int(context.users[row])
        if self.bad_feedback == "stop":
            raise FeedbackError(
                f"the {kind} of user {self.first_user + user} in its round {int(self.rounds[user]) + 1} is "
                f"{float(values[row])}; it must be finite (`bad_feedback: skip` leaves such ones out)"
            )
        self.skipped += (~finite).sum()
        return finite.nonzero().squeeze(1)

    def _best(self, context: Context) -> Tensor:
        """[B] the first position of each row's highest score."""
        scores = self.scores(context)
        return highest(scores, context.arms.shape, f"{type(self).__name__}.scores")

    def _check(self, context: Context) -> None:
        if context.largest_user >= self.num_users:
            raise ValueError(
                f"Context.users holds {context.largest_user}, but {type(self).__name__} was built for "
                f"num_users={self.num_users}: ids go from 0 to {self.num_users - 1}"
            )
        if context.largest_arm >= self.catalogue.num_arms:
            raise ValueError(
                f"Context.arms holds {context.largest_arm}, but the catalogue's arms go from 0 to "
                f"{self.catalogue.num_arms - 1}"
            )
        if context.has_own_features:
            own, known = context.arm_features, self.catalogue.arm_features
            if own.shape[2] != known.shape[1] or own.dtype != known.dtype:
                raise ValueError(
                    f"Context.arm_features must hold {known.shape[1]} features in {known.dtype}, as the "
                    f"catalogue does, got {own.shape[2]} in {own.dtype}"
                )
