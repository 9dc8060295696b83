"""What simulated environments share: users with true preferences."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

import torch
from torch import Tensor

from conbandit_torch.core.algebra import dot
from conbandit_torch.core.blocks import Index, add_at, look_up
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.checks import expect_rows
from conbandit_torch.core.context import Context
from conbandit_torch.core.processes import Processes
from conbandit_torch.core.questions import Question
from conbandit_torch.core.randomness import Stream
from conbandit_torch.core.rounds import Outcome
from conbandit_torch.environments.base import Environment

Feedback = Literal["linear", "binary"]


class Simulated(Environment):
    """Users with true preferences theta, who answer and reward by them.

    Linear feedback: `r = x^T theta + eps` (Eq. 2) and `r~_k = sum_a p_{a,k} x_a^T theta + eps~` (Eq. 4),
    one eps and one eps~ per user and round, shared by all arms and all key-terms of that round.
    Binary feedback (Eq. 5): 1 with probability `x^T theta` clipped to [0, 1], per arm; key-terms the
    mean of their arms' probabilities; one uniform draw per user and round for arms, one for key-terms.

    A subclass says who comes (`visitors`), which arms they may be shown (`pools`) and how noisy they are
    (`arm_noise`, `term_noise`), each as a function of users and of the users' own rounds.

    With `hidden` features, that many of the columns, drawn at random, are kept from the policies: they
    see a catalogue of the others, while rewards and answers come from all of them.

    Args:
        catalogue: arms and key-terms, with all features.
        theta: [U, D] the users' true preferences.
        feedback: "linear" or "binary".
        hidden: how many features policies do not see.
        split_seed: seed of the draw of those features.
    """

    theta: Tensor  # [U, D]
    rounds: Tensor  # [U] rounds that each user has finished
    _everyone: Tensor  # [U] all ids

    def __init__(
        self,
        catalogue: Catalogue,
        theta: Tensor,
        feedback: Feedback = "linear",
        hidden: int = 0,
        split_seed: int = 0,
    ) -> None:
        super().__init__()
        if feedback not in ("linear", "binary"):
            raise ValueError(f"feedback must be 'linear' or 'binary', got {feedback!r}")
        if not 0 <= hidden < catalogue.dim:
            raise ValueError(
                f"hidden must be from 0 to {catalogue.dim - 1}, below the number of features, got {hidden}"
            )
        self.num_users, self.feedback, self.hidden = len(theta), feedback, hidden
        self._world = catalogue
        self.catalogue = catalogue
        if hidden:
            order = Stream(split_seed, "split").bits(torch.zeros(1, dtype=torch.int64), 0, catalogue.dim)[0]
            self.catalogue = catalogue.restricted_to(order.argsort()[hidden:].sort().values)
        self.register_buffer("theta", theta, persistent=False)
        self.register_buffer("rounds", torch.zeros(len(theta), dtype=torch.int64))
        everyone = torch.arange(len(theta))
        self.register_buffer("_everyone", everyone, persistent=False)

    @abstractmethod
    def pools(self, users: Tensor, rounds: Tensor) -> Tensor:
        """[B, A] candidate arms of the users' `rounds`-th rounds, counted from 0."""

    @abstractmethod
    def arm_noise(self, users: Tensor, rounds: Tensor) -> Tensor:
        """[B] eps (linear) or the uniform draw (binary) of the users' rounds, for arms."""

    @abstractmethod
    def term_noise(self, users: Tensor, rounds: Tensor) -> Tensor:
        """[B] eps~ (linear) or the uniform draw (binary) of the users' rounds, for key-terms."""

    def visitors(self) -> Tensor | None:
        """[B] who is here this round; None: everyone."""
        return None

    def split(self, processes: Processes) -> None:
        """Keep this process's share of the users."""
        if self.num_users < processes.size:
            raise ValueError(f"{self.num_users} users cannot be split over {processes.size} processes")
        own = processes.share_of(self.num_users)
        self.processes, self.first_user, self.num_users = processes, own.start, own.stop - own.start
        self.theta, self.rounds = self.theta[own].clone(), self.rounds[own].clone()
        self._everyone = self._everyone[: self.num_users]

    def reset(self) -> None:
        """Back to the first round of every user."""
        self.rounds.zero_()

    def observe(self) -> Context:
        """Who is here and which arms they may be shown; the same until `pull` ends the round."""
        users = self.visitors()
        if users is None:
            arms = self.pools(self._everyone, self.rounds)
            return Context.trusted(self._everyone, arms, self.catalogue, slice(0, self.num_users))
        return Context.trusted(users, self.pools(users, self.rounds[users]), self.catalogue)

    def answer(self, context: Context, question: Question) -> Tensor:
        """[Q] answers, with this round's noise."""
        asked = context.take(question.rows)
        expect_rows("question", question.about, len(asked))
        rounds = self.rounds[asked.who]
        if question.positions is not None:
            mean = self.arm_mean(asked.pick(question.positions)).squeeze(1)
            return self._respond(mean, self.arm_noise(asked.users, rounds))
        assert question.terms is not None  # a Question's promise, for the type checker
        mean = self._term_mean(asked.who, question.terms)
        return self._respond(mean, self.term_noise(asked.users, rounds))

    def pull(self, context: Context, arm: Tensor) -> Outcome:
        """Rewards with this round's noise, regrets without; every user's round ends."""
        expect_rows("arm", arm, len(context))
        means = self.arm_mean(context)  # [B, A]
        mean = means.gather(1, arm[:, None]).squeeze(1)
        noise = self.arm_noise(context.users, self.rounds[context.who])
        add_at(self.rounds, context.who, 1)
        return Outcome(self._respond(mean, noise), regret=means.amax(1) - mean)  # Eq. 1

    def expected(self, context: Context) -> Tensor | None:
        """[B, A] what rewards are drawn around."""
        return self.arm_mean(context)

    def arm_mean(self, context: Context) -> Tensor:
        """[B, A] `x^T theta` (Eq. 2), clipped to [0, 1] if feedback is binary (Eq. 5)."""

        def block_mean(block: Context) -> Tensor:
            if not self.hidden:
                return dot(block.arm_features, self.theta[block.who])
            if block.has_own_features:
                raise ValueError("with hidden features, a context's features are the catalogue's")
            return dot(look_up(self._world.arm_features, block.arms), self.theta[block.who])

        width = context.arms.shape[1] * self.theta.shape[1]
        return self._clip(context.map(block_mean, width))

    def preferences(self) -> Tensor | None:
        """[U, D] theta, unless some features are hidden: those a policy may learn in any rotation."""
        return None if self.hidden else self.theta

    def _term_mean(self, who: Index, terms: Tensor) -> Tensor:
        """[Q] `sum_a p_{a,k} E[r_a]` (Eq. 4), over all arms of the key-term."""
        theta = self.theta[who]
        if self.feedback == "linear":  # the average of linear means is linear in the average
            return (self._world.term_features[terms] * theta).sum(1)
        edges = self._world.arms_of(terms)
        means = (self._world.arm_features[edges.target] * theta[edges.owner]).sum(1)  # [E]
        total = theta.new_zeros(len(terms))
        return total.index_add_(0, edges.owner, edges.weight * self._clip(means))

    def _clip(self, mean: Tensor) -> Tensor:
        return mean.clamp(0, 1) if self.feedback == "binary" else mean

    def _respond(self, mean: Tensor, noise: Tensor) -> Tensor:
        if self.feedback == "binary":
            return (noise < mean).to(mean)
        return mean + noise.to(mean)
