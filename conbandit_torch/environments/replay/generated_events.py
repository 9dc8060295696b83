"""A log with its own candidates and known propensities, whose truth is known too."""

from __future__ import annotations

import torch
from torch import Tensor

from conbandit_torch.core.algebra import dot
from conbandit_torch.core.blocks import look_up
from conbandit_torch.core.checks import expect_memory
from conbandit_torch.core.context import Context
from conbandit_torch.core.randomness import Stream
from conbandit_torch.datasets.base import Prepared
from conbandit_torch.datasets.events import LoggedEvents
from conbandit_torch.environments.answers import AnswerModel, ItemMean
from conbandit_torch.environments.replay.events import ReplayEvents
from conbandit_torch.environments.replay.generated import generate_log
from conbandit_torch.environments.simulated import AnswerKind


class GeneratedEvents(ReplayEvents):
    """Replay of clicks in the `Synthetic` world, of a log whose own policy had preferences.

    Rule: every event offers `pool` arms drawn at random. The log's policy shows arm a with probability
    proportional to `exp(skew x_a^T m)`, where m is the direction of the users' mean preference; it is clicked
    with probability `x^T theta` clipped to [0, 1] (Eq. 5), where x and theta are those of `Synthetic`, of
    length 1.
    Symbols: as in `Synthetic`.
    Differs: ours; to check off-policy estimates against.

    Args:
        users: U.
        arms: N.
        terms: K.
        dim: D.
        events: events of every user's log, of which `fit_share` are not replayed.
        pool: candidates of an event.
        skew: how strongly the log's policy prefers what users like on average; 0: served uniformly.
        max_terms: most key-terms an arm can have.
        spread: standard deviation of an arm around its key-terms.
        ridge: weight of the penalty `|theta|^2` in the fit.
        fit_share: share of every user's events, the first ones, that parameters are fitted on.
        feedback: of answers: "linear", or "binary" for answers of 0 and 1.
        answers: how people answer questions.
        noise: standard deviation of linear answers' noise.
        data_seed: seed of the world and of the log; None: `seed`.
        seed: seed of everything else (the candidates' order, noise).

    Attributes:
        truth: [U, D] the users' true preferences.
    """

    truth: Tensor  # [U, D]

    def __init__(
        self,
        users: int = 100,
        arms: int = 1000,
        terms: int = 100,
        dim: int = 20,
        *,
        events: int = 3000,
        pool: int = 20,
        skew: float = 0.0,
        max_terms: int = 5,
        spread: float = 0.1,
        ridge: float = 1.0,
        fit_share: float = 0.3,
        feedback: AnswerKind = "linear",
        answers: AnswerModel = ItemMean(),
        noise: float = 0.1,
        data_seed: int | None = None,
        seed: int = 0,
    ) -> None:
        if events < 2:
            raise ValueError(f"events must be at least 2, one to fit on and one to replay, got {events}")
        if not 2 <= pool <= arms:
            raise ValueError(f"pool must be from 2 to the {arms} arms, got {pool}")
        expect_memory(f"a log of {events:,} events of {users:,} users", 8 * users * events * pool * 3)
        data_seed = seed if data_seed is None else data_seed
        world = generate_log(users, arms, terms, dim, 1, max_terms, spread, data_seed)
        log = with_offers(world, events, pool, skew, data_seed)
        super().__init__(
            log, ridge=ridge, fit_share=fit_share, feedback=feedback, answers=answers, noise=noise, seed=seed
        )
        self.register_buffer("truth", log.theta[self.source_users], persistent=False)

    def expected(self, context: Context) -> Tensor:
        """[B, A] true probabilities of a click."""

        def block_mean(block: Context) -> Tensor:
            return dot(look_up(self._world.arm_features, block.arms), self.truth[block.who])

        return context.map(block_mean, context.arms.shape[1] * self.truth.shape[1]).clamp(0, 1)


def with_offers(world: Prepared, events: int, pool: int, skew: float, seed: int) -> Prepared:
    """The world's users and items, with a log of their own candidates and known propensities."""
    users, arms = len(world.user_names), len(world.features)
    everyone = torch.arange(users).repeat(events)  # [E], all users' first events first
    number = torch.arange(events).repeat_interleave(users)
    offered = Stream(seed, "offered items").subsets(everyone, number, pool, arms)  # [E, A]
    liked = world.features @ torch.nn.functional.normalize(world.theta.mean(0), dim=0)  # [N]
    chance = (skew * liked[offered]).softmax(1)  # [E, A]
    draw = Stream(seed, "served items").uniform(everyone, number, 1)
    place = (chance.cumsum(1) < draw).sum(1, keepdim=True).clamp_max(pool - 1)  # [E, 1]
    served = offered.gather(1, place).squeeze(1)
    likes = (world.features[served] * world.theta[everyone]).sum(1)
    clicks = (Stream(seed, "served clicks").uniform(everyone, number, 1).squeeze(1) < likes).double()
    log = LoggedEvents(
        users=everyone,
        times=number,
        offers=torch.arange(len(everyone)),
        first=torch.arange(len(everyone) + 1) * pool,
        candidates=offered.flatten(),
        events=torch.arange(len(everyone)),
        items=served,
        clicks=clicks,
        propensities=chance.gather(1, place).squeeze(1),
    )
    return Prepared(**vars(world) | {"events": log})
