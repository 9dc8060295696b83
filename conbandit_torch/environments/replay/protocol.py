"""Replay of a log of clicks: what policies would have earned, without asking anybody again."""

from __future__ import annotations

import logging
from pathlib import Path

import torch
from torch import Tensor

from conbandit_torch.core.blocks import add_at, rows_per_block
from conbandit_torch.core.checks import expect_positions
from conbandit_torch.core.context import Context
from conbandit_torch.core.digests import fingerprint
from conbandit_torch.core.randomness import Stream
from conbandit_torch.core.rounds import Feedback, Logged, Outcome
from conbandit_torch.datasets.base import Prepared, Reader
from conbandit_torch.datasets.key_terms import KeyTerms
from conbandit_torch.environments.answers import AnswerModel, ItemMean
from conbandit_torch.environments.ratings import as_prepared
from conbandit_torch.environments.replay.log import check_fit, fit, past_and_rest, with_enough_items
from conbandit_torch.environments.replay.played import PlayedLog
from conbandit_torch.environments.simulated import AnswerKind
from conbandit_torch.kernels import kernels_for

_log = logging.getLogger(__name__)


class Replay(PlayedLog):
    """The offline protocol of Li et al. (WSDM 2011), as [Zhang20] use it.

    Rule: an event of the log offers the item that was served and `pool - 1` others that this user's later
    events serve, in random order. If the policy picks the served item, it learns the logged click and the
    event counts; if not, the event is as if it had never been. Every round of the environment presents to
    every user who has events left their next one. A user's log ends when fewer than `pool` distinct items are
    still to come. The first `fit_share` of a user's events are not replayed: a ridge regression on them gives
    the parameters that answer questions, about key-terms by Eq. 4 (or 5) and about arms by Eq. 2 (or 5).
    Symbols: theta in Eq. 2, 4, 5 is the one fitted.
    Differs: which events the paper fits on, its ridge, and where its other candidates come from are not
    printed. An item whose last event is over is no candidate here: it could never count.

    What is unbiased: the share of clicks among counted events estimates what the policy would earn if,
    given the candidates and everything the policy has seen, each candidate was as likely as any other to be
    the served one. Then an event counts with probability 1 / `pool` whatever the policy picks.

    - If items were served uniformly at random, that holds for every policy, one that learns included,
      whether an item can be served again (`GeneratedLog`) or only once per user (its `once`). For let a and b
      be two candidates of an event: exchange them in this and all later events, and the log is as likely,
      while every set of items still to come, now and at any earlier event, is the same. So nothing that the
      policy has seen tells which of the two is served.
    - If not, as in ratings or in the log of a recommender, the served items differ from others in ways a
      policy may learn. What still holds is that a policy that picks at random earns the log's click rate,
      because the served item's place is random, and that all policies meet the same events and candidates.

    Side features that sum up the feedback, such as a mean rating, are left out when a reader's data are
    prepared here: they would tell of the clicks that are replayed.

    Users with fewer than `pool` distinct items to replay are left out (`left_out` says how many), because
    filling up with items of other users would give the served one away.

    Users are numbered by the length of their logs, longest first, so that those who are here are a range.

    Args:
        data: a reader of the source, or what `prepare` made of it. Its theta is not used.
        users: so many, those with the most events to replay; None: all.
        dim: D, features to reduce the source's to; None: its own; not used with prepared data.
        ridge: weight of the penalty `|theta|^2` in the fit.
        key_terms: how key-terms are made, such as `Clusters(200)`, for sources with few tags or none; None:
            they are the source's, and items without any are left out.
        pool: candidates of an event, the served item among them.
        fit_share: share of every user's events, the first ones, that parameters are fitted on.
        feedback: of answers: "linear", or "binary" for answers of 0 and 1.
        answers: how people answer questions.
        noise: standard deviation of linear answers' noise.
        hidden: how many of the features, drawn at random, policies do not see, or the names of which;
            answers know them.
        hidden_seed: seed of that draw; None: `seed`, and then every seed hides other features.
        balance_hidden: of many draws, take one whose share of `|x|^2` is close to its share of the features.
        served_at_random: whether it is known that each item was as likely to be served as any other; it
            changes no number, but what reports say of them.
        cache: folder of what was prepared before; None: the usual one (see `prepare`).
        data_seed: seed of what `prepare` draws.
        seed: seed of everything else (candidates, noise).

    Attributes:
        user_names: U names.
        source_users: [U] the users' positions in the prepared data.
        left_out: users with too few distinct items.
    """

    _first: Tensor  # [U] where in the log a user's events start
    _events: Tensor  # [U] how many of them are replayed
    _items: Tensor  # [E] served items, user by user, in the order of time
    _clicks: Tensor  # [E] 1 or 0
    _served: Tensor  # [E] position of the served item among the user's distinct ones
    _own_first: Tensor  # [U] where a user's distinct items start
    _own_items: Tensor  # distinct items, user by user, the one that comes last first
    _left: Tensor  # [E] how many of these are still to come, the event's own included
    source_users: Tensor

    def __init__(
        self,
        data: Reader | Prepared,
        *,
        users: int | None = None,
        dim: int | None = 50,
        ridge: float = 1.0,
        key_terms: KeyTerms | None = None,
        pool: int = 50,
        fit_share: float = 0.3,
        feedback: AnswerKind = "linear",
        answers: AnswerModel = ItemMean(),
        noise: float = 0.1,
        hidden: int | list[str] = 0,
        hidden_seed: int | None = None,
        balance_hidden: bool = False,
        served_at_random: bool = False,
        cache: str | Path | None = None,
        data_seed: int = 0,
        seed: int = 0,
    ) -> None:
        if pool < 2:
            raise ValueError(f"pool must be at least 2, the served item and another, got {pool}")
        check_fit(fit_share, ridge)
        prepared = as_prepared(
            data,
            dim=dim,
            ridge=ridge,
            cache=cache,
            seed=data_seed,
            use_feedback_columns=False,
            key_terms=key_terms,
        )
        past, rest = past_and_rest(prepared, fit_share)
        rest, kept, self.left_out = with_enough_items(rest, pool, users, len(prepared.features))
        theta = fit(prepared.features, past.of(kept), ridge)
        split = seed if hidden_seed is None else hidden_seed
        super().__init__(
            prepared.catalogue(), theta, feedback, answers, noise, hidden, split, balance_hidden, seed
        )
        own = rest.still_to_come(len(prepared.features))
        events = torch.bincount(rest.owner[own.left >= pool], minlength=len(kept))
        for name, value in {
            "_first": rest.first,
            "_events": events,
            "_items": rest.items,
            "_clicks": rest.clicks.to(theta),
            "_served": own.places,
            "_own_first": own.first,
            "_own_items": own.items,
            "_left": own.left,
            "source_users": kept,
        }.items():
            self.register_buffer(name, value, persistent=False)
        self.pool = pool
        self.serving = "uniform" if served_at_random else "unknown"
        self.user_names = [prepared.user_names[user] for user in kept.tolist()]
        self.length: int = int(events[0])
        # [T] how many users have an event left in each round
        self._here = (len(kept) - torch.bincount(events).cumsum(0)[:-1]).tolist()
        self._drawn: tuple[int, Tensor] | None = None  # first round, candidates [rounds, B, A]
        if self.left_out:
            _log.info(
                "%d of %d users are left out: fewer than %d distinct items to replay",
                self.left_out,
                len(prepared.user_names),
                pool,
            )

    def logged(self, rounds: int | None = None) -> Logged:
        """Events, and their clicks, of the first `rounds` rounds; users with short logs are in fewer."""
        events = self._events.clamp_max(self.length if rounds is None else rounds)  # [U]
        start = self._first - (events.cumsum(0) - events)
        number = torch.arange(int(events.sum()), device=events.device)
        clicks = self._clicks[number + start.repeat_interleave(events)]
        return Logged(len(clicks), float(clicks.mean(dtype=torch.float64)), self.serving, self._digest())

    def _digest(self) -> str:
        """Of the whole log, whatever the seed and the precision."""
        names = ("_first", "_events", "_items", "_clicks", "source_users")
        return fingerprint({name: self.get_buffer(name).to(torch.int64) for name in names})

    def reset(self) -> None:
        """Back to the first event of every user."""
        super().reset()
        self._drawn = None  # it may be on another device than the environment is now

    def observe(self) -> Context:
        """The next event of every user who has one; the same until `pull` ends the round."""
        now = int(self.rounds[0])  # user 0's log is the longest, and all who are here have come as far
        if now >= len(self._here):
            raise RuntimeError(f"the log is over after {self.length} rounds; reset() starts it again")
        here = self._here[now]
        if self._drawn is None or not 0 <= now - self._drawn[0] < len(self._drawn[1]):
            self._drawn = now, self._draw_ahead(now)
        start, drawn = self._drawn
        arms = drawn[now - start, :here]
        counted = self.counted[:here].clone()
        return Context.trusted(self._everyone[:here], arms, counted, self.catalogue, slice(0, here))

    def pull(self, context: Context, arm: Tensor) -> Outcome:
        """The logged clicks of the rows whose arm was the served one; every event here is over."""
        expect_positions(arm, len(context), context.arms.shape[1])
        event = self._first[context.who] + self.rounds[context.who]  # [B]
        shown = context.arms.gather(1, arm[:, None]).squeeze(1)
        add_at(self.rounds, context.who, 1)
        # What would have come of another item than the served one, nobody knows: neither reward nor regret.
        rows = (shown == self._items[event]).nonzero().squeeze(1)
        seen = context.take(rows)
        add_at(self.counted, seen.who, 1)
        return Outcome([Feedback(seen, arm[rows], self._clicks[event][rows])], regret=None)

    def pools(self, users: Tensor, rounds: Tensor) -> Tensor:
        """[B, A] candidates of the users' events: distinct, the served one in any place alike."""
        event = self._first[users] + rounds.minimum(self._events[users] - 1)
        served = self._served[event][:, None]
        stream, left = Stream(self.seed, "replay others"), self._left[event] - 1
        others = kernels_for(left).subsets_of(stream, users, rounds, self.pool - 1, left)
        others = others + (others >= served)  # [B, A - 1] positions, leaving out the served one
        positions = torch.cat((served, others), dim=1) + self._own_first[users, None]
        order = Stream(self.seed, "replay order").bits(users, rounds, self.pool).argsort(1)
        arms: Tensor = self._own_items[positions]
        return arms.gather(1, order)

    def _draw_ahead(self, now: int) -> Tensor:
        """[rounds, B, A] candidates of several rounds at once, which takes less time and changes nothing."""
        users = self._everyone[: self._here[now]]
        number = min(64, rows_per_block(8 * self.pool * len(users)))
        rounds = now + torch.arange(number, device=users.device).repeat_interleave(len(users))
        return self.pools(users.repeat(number), rounds).view(number, len(users), self.pool)
