"""Simulated environments that are drawn at random, for several rounds ahead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from typing_extensions import Self

from conbandit_torch.core.attributes import buffer
from conbandit_torch.core.blocks import rows_per_block
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.context import Context
from conbandit_torch.core.processes import Processes
from conbandit_torch.core.randomness import Stream
from conbandit_torch.core.rounds import Outcome
from conbandit_torch.environments.answers import AnswerModel, ItemMean
from conbandit_torch.environments.delays import Delay, Late
from conbandit_torch.environments.drift import Drift
from conbandit_torch.environments.simulated import FeedbackKind, Simulated
from conbandit_torch.kernels import kernels_for


class Drawn(Simulated):
    """A simulated environment whose visitors, pools and noise are drawn at random, reproducibly.

    Args:
        catalogue: what policies may know.
        theta: [U, D] the users' true preferences.
        pool: candidates per user and round, drawn without replacement.
        noise: standard deviation of eps and eps~ (linear feedback).
        feedback: "linear", "binary" or "logistic".
        users_per_round: how many users come each round, drawn without replacement; None: all.
        hidden: how many features policies do not see, or the names of which.
        hidden_seed: seed of the draw of those features.
        balance_hidden: whether their share of `|x|^2` is to be close to their share of the features.
        delay: how many rounds after a decision its reward comes; None: in the same round. Regret is known at
            once.
        drift: how the users' preferences change; None: they do not.
        scale: how steep the probabilities of logistic feedback are.
        answers: how people answer.
        seed: seed of visitors, pools, noise, delays and drift.
    """

    step: Tensor = buffer()  # [] rounds of the environment

    def __init__(
        self,
        catalogue: Catalogue,
        theta: Tensor,
        *,
        pool: int,
        noise: float,
        feedback: FeedbackKind,
        users_per_round: int | None,
        hidden: int | Sequence[str],
        hidden_seed: int,
        balance_hidden: bool = False,
        delay: Delay | None = None,
        drift: Drift | None = None,
        scale: float = 1.0,
        answers: AnswerModel = ItemMean(),
        seed: int,
    ) -> None:
        super().__init__(catalogue, theta, feedback, hidden, hidden_seed, balance_hidden, scale, answers)
        if not 1 <= pool <= catalogue.num_arms:
            raise ValueError(f"pool must be from 1 to the {catalogue.num_arms} arms, got {pool}")
        if not 0 <= noise < float("inf"):
            raise ValueError(f"noise must be a number of at least 0, got {noise}")
        if users_per_round is not None and not 1 <= users_per_round <= self.num_users:
            raise ValueError(
                f"users_per_round must be from 1 to the {self.num_users} users, got {users_per_round}"
            )
        self.pool, self.noise, self.users_per_round, self.seed = pool, noise, users_per_round, seed
        self.all_users = self.num_users  # of all processes
        if delay is not None:
            self.late = Late(delay, self.catalogue, pool, seed)
        if drift is not None:
            _check_drift(drift, self.num_users)
        self.drift = drift
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))
        # By purpose: everyone's rounds [U] from which on it was drawn, and the draws [U, ...] of each round.
        self._drawn_ahead: dict[str, tuple[np.ndarray, tuple[Tensor, ...]]] = {}

    def visitors(self) -> Tensor | None:
        """[B] a new draw of users every round; None: everyone."""
        if self.users_per_round is None:
            return None
        stream = Stream(self.seed, "visitors")
        drawn = stream.subsets(self.step[None], 0, self.users_per_round, self.all_users)[0]
        return drawn[(drawn >= self.first_user) & (drawn < self.first_user + self.num_users)]

    def pools(self, users: Tensor, rounds: Tensor) -> Tensor:
        """[B, A] distinct arms."""
        stream, number = Stream(self.seed, "pools"), self.catalogue.num_arms
        kernels = kernels_for(rounds)
        if kernels.draws_subsets(self.pool, number):
            return kernels.subsets(stream, users, rounds, self.pool, number)
        return self._ahead("pools", self._draw_pools, 8 * self.pool, users, rounds)

    def arm_noise(self, users: Tensor, rounds: Tensor) -> Tensor:
        """[B] eps, or a uniform draw."""
        return self._ahead("arm noise", self._draw_noise, 64, users, rounds)

    def term_noise(self, users: Tensor, rounds: Tensor) -> Tensor:
        """[B] eps~, or a uniform draw."""
        return self._ahead("term noise", self._draw_noise, 64, users, rounds)

    def side_noise(self, users: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """[B] each: noise of both sides of a comparison."""
        first, second = (Stream(self.seed, f"{side} noise") for side in ("first", "second"))
        return self._draw_noise(first, users, numbers), self._draw_noise(second, users, numbers)

    def _apply(self, *args: Any, **kwargs: Any) -> Self:
        self._drawn_ahead.clear()  # it was of another precision, or on another device
        super()._apply(*args, **kwargs)  # type: ignore[no-untyped-call]
        return self

    def split(self, processes: Processes) -> None:
        """Keep this process's share of the users."""
        super().split(processes)
        self._drawn_ahead.clear()  # it was of all users

    def reset(self) -> None:
        """Back to the first round."""
        super().reset()
        self.step.zero_()

    def pull(self, context: Context, arm: Tensor) -> Outcome:
        """Rewards and regrets of the round; the next one may have other visitors."""
        outcome = super().pull(context, arm)
        self.step.add_(1)
        return outcome

    def _ahead(
        self,
        purpose: str,
        draw: Callable[[Stream, Tensor, Tensor], Tensor],
        row_size: int,
        users: Tensor,
        rounds: Tensor,
    ) -> Tensor:
        """What `draw` gives for the users' rounds; if all users are here, drawn for several rounds at once.

        A draw depends on its counters alone, so drawing ahead changes nothing but the time it takes. (On a
        GPU looking whether these rounds were drawn would wait for it, and drawing is cheap there.)
        """
        if users is not self._everyone or not rounds.is_cpu:
            return draw(Stream(self.seed, purpose), users, rounds)
        if purpose in self._drawn_ahead:
            start, drawn = self._drawn_ahead[purpose]
            ahead = rounds.numpy() - start
            if 0 <= ahead[0] < len(drawn) and (ahead == ahead[0]).all():
                return drawn[int(ahead[0])]
        number = min(64, rows_per_block(row_size * len(users)))
        every = rounds + torch.arange(number)[:, None]  # [rounds ahead, U]
        drawn_now = draw(Stream(self.seed, purpose), users.repeat(number), every.flatten())
        fresh: tuple[Tensor, ...] = drawn_now.unflatten(0, every.shape).unbind()
        self._drawn_ahead[purpose] = rounds.numpy().copy(), fresh
        return fresh[0]

    def _draw_pools(self, stream: Stream, users: Tensor, rounds: Tensor) -> Tensor:
        return stream.subsets(users, rounds, self.pool, self.catalogue.num_arms).contiguous()

    def _draw_noise(self, stream: Stream, users: Tensor, rounds: Tensor) -> Tensor:
        if self.feedback != "linear":
            return stream.uniform(users, rounds, 1).squeeze(1)
        return (self.noise * stream.normal(users, rounds, 1).squeeze(1)).to(self.theta)


def _check_drift(drift: Drift, num_users: int) -> None:
    if not isinstance(drift, Drift):
        raise TypeError(f"drift must be a Drift, got {drift!r}")
    if num_users < 2:
        raise ValueError(f"drift: users become like others, so there must be at least 2, got {num_users}")
