"""A log whose truth is known, to check replay against and to compare policies on."""

from __future__ import annotations

import torch
from torch import Tensor

from conbandit_torch.core.algebra import dot
from conbandit_torch.core.blocks import look_up, rows_per_block
from conbandit_torch.core.checks import expect_memory
from conbandit_torch.core.context import Context
from conbandit_torch.core.randomness import Stream
from conbandit_torch.datasets.base import Prepared
from conbandit_torch.environments.answers import AnswerModel, ItemMean
from conbandit_torch.environments.replay.protocol import Replay
from conbandit_torch.environments.simulated import AnswerKind
from conbandit_torch.environments.synthetic import Synthetic


class GeneratedLog(Replay):
    """Replay of clicks on items that were served uniformly at random in the `Synthetic` world.

    Rule: every event serves one of all arms, each as likely, or with `once` one of those that the user has
    not been served yet, as in ratings; it is clicked with probability `x^T theta`
    clipped to [0, 1] (Eq. 5), where x and theta are those of `Synthetic`, of length 1.
    Symbols: as in `Synthetic`.
    Differs: ours; it stands in for a log that is not public.

    Args:
        users: U.
        arms: N.
        terms: K.
        dim: D.
        events: events of every user's log, of which `fit_share` are not replayed.
        max_terms: most key-terms an arm can have.
        spread: standard deviation of an arm around its key-terms.
        ridge: weight of the penalty `|theta|^2` in the fit.
        pool: candidates of an event, the served item among them.
        fit_share: share of every user's events, the first ones, that parameters are fitted on.
        feedback: of answers: "linear", or "binary" for answers of 0 and 1.
        answers: how people answer questions.
        noise: standard deviation of linear answers' noise.
        hidden: how many of the features, drawn at random, policies do not see, or the names of which;
            answers know them.
        hidden_seed: seed of that draw; None: `seed`, and then every seed hides other features.
        balance_hidden: of many draws, take one whose share of `|x|^2` is close to its share of the features.
        once: whether an item is served to a user at most once.
        data_seed: seed of the world and of the log; None: `seed`.
        seed: seed of everything else (candidates, noise).

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
        max_terms: int = 5,
        spread: float = 0.1,
        ridge: float = 1.0,
        pool: int = 50,
        fit_share: float = 0.3,
        feedback: AnswerKind = "linear",
        answers: AnswerModel = ItemMean(),
        noise: float = 0.1,
        hidden: int | list[str] = 0,
        hidden_seed: int | None = None,
        balance_hidden: bool = False,
        once: bool = False,
        data_seed: int | None = None,
        seed: int = 0,
    ) -> None:
        if events < 1:
            raise ValueError(f"events must be at least 1, got {events}")
        # What is sure to be needed, in numbers of 8 bytes: the log's columns, by time and by user.
        expect_memory(f"a log of {events:,} events of {users:,} users", 8 * users * events * 8)
        data_seed = seed if data_seed is None else data_seed
        if once and events > arms:
            raise ValueError(
                f"events must be at most the {arms} arms where each is served once, got {events}"
            )
        log = generate_log(users, arms, terms, dim, events, max_terms, spread, data_seed, once=once)
        super().__init__(
            log,
            ridge=ridge,
            pool=pool,
            fit_share=fit_share,
            feedback=feedback,
            answers=answers,
            noise=noise,
            hidden=hidden,
            hidden_seed=hidden_seed,
            balance_hidden=balance_hidden,
            served_at_random=True,
            seed=seed,
        )
        self.register_buffer("truth", log.theta[self.source_users], persistent=False)

    def expected(self, context: Context) -> Tensor:
        """[B, A] true probabilities of a click."""

        def block_mean(block: Context) -> Tensor:
            return dot(look_up(self._world.arm_features, block.arms), self.truth[block.who])

        return context.map(block_mean, context.arms.shape[1] * self.truth.shape[1]).clamp(0, 1)


def generate_log(
    users: int,
    arms: int,
    terms: int,
    dim: int,
    events: int,
    max_terms: int,
    spread: float,
    seed: int,
    *,
    once: bool = False,
) -> Prepared:
    """A log of the synthetic world, with its true theta."""
    world = Synthetic(
        users, arms, terms, dim, pool=1, max_terms=max_terms, spread=spread, normalise=True, seed=seed
    )
    features, ids = world.catalogue.arm_features, torch.arange(users)
    stream = Stream(seed, "log items")
    draw = stream.subsets if once else stream.integers
    items = draw(ids, 0, events, arms)  # [U, n]
    chance = Stream(seed, "log clicks").uniform(ids, 0, events)
    clicks = torch.empty_like(chance)
    for block in ids.split(rows_per_block(events * dim)):
        own = slice(int(block[0]), int(block[-1]) + 1)
        clicks[own] = (chance[own] < dot(look_up(features, items[own]), world.theta[own])).double()
    edges = world.catalogue.terms_of(torch.arange(arms))
    return Prepared(
        features=features,
        item_terms=torch.stack((edges.owner, edges.target)),
        theta=world.theta,
        users=ids.repeat(events),
        items=items.T.flatten(),
        clicks=clicks.T.flatten(),
        times=torch.arange(events).repeat_interleave(users),
        user_names=[f"user {user}" for user in range(users)],
        item_names=list(world.catalogue.arm_names),
        term_names=list(world.catalogue.term_names),
    )
