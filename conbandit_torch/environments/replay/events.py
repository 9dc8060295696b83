"""Replay of a log whose events say what was on offer: their own candidates, context and propensities."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from conbandit_torch.core.blocks import add_at, look_up
from conbandit_torch.core.checks import expect_rows
from conbandit_torch.core.context import Context
from conbandit_torch.core.digests import fingerprint
from conbandit_torch.core.randomness import Stream
from conbandit_torch.core.rounds import Feedback, Logged, Outcome, Weighted
from conbandit_torch.datasets.base import Prepared, Reader
from conbandit_torch.datasets.events import LoggedEvents
from conbandit_torch.datasets.key_terms import KeyTerms
from conbandit_torch.environments.answers import AnswerModel, ItemMean
from conbandit_torch.environments.ratings import as_prepared
from conbandit_torch.environments.replay.event_log import (
    at_position,
    fit_events,
    in_mean_context,
    order_by,
    past_events,
    standardised,
    with_context,
)
from conbandit_torch.environments.replay.log import check_fit
from conbandit_torch.environments.replay.played import PlayedLog
from conbandit_torch.environments.simulated import AnswerKind


class ReplayEvents(PlayedLog):
    """The offline protocol of Li et al. (WSDM 2011) on a log that knows its candidates.

    Rule: an event offers its own candidates, in random order. If the policy picks one that was served, it
    learns the logged click and the event counts; if not, the event is as if it had never been. (Where all
    candidates were served, as in a list of impressions, every event counts.) The first `fit_share` of a
    user's events, at least one, are not replayed: a ridge regression on them gives the parameters that answer
    questions, and that the doubly robust estimate takes for its model.
    With context features c of an event, an arm's features in it are x (x) (1, c), that is x itself and x
    times every c, standardised by the log's mean and deviation; key-terms are asked about in the mean
    context.
    Symbols: as in `Replay`.
    Differs: ours. A round presents to some users their next event, to all whose number of candidates is the
    same; a log whose events have equally many presents one to every user who has one left.

    What is unbiased depends on how items were served. Uniformly: the share of clicks among counted events,
    as in `Replay`. With other propensities that are known: not that share, but the off-policy estimates that
    `conbandit report` shows beside it. A policy that learns is judged as it was while it played this log.

    Args:
        data: a reader of the source, or what `prepare` made of it, with `events`.
        users: so many, those with the most events to replay; None: all.
        dim: D, features to reduce the source's to; None: its own; not used with prepared data.
        ridge: weight of the penalty `|theta|^2` in the fit.
        key_terms: how key-terms are made, such as `Clusters(200)`, for sources with few tags or none; None:
            they are the source's, and items without any are left out.
        position: play only what was served at this position of the page, from 0; None: at any.
        use_context: whether the events' context features are used.
        fit_share: share of every user's events, the first ones, that parameters are fitted on.
        feedback: of answers: "linear", or "binary" for answers of 0 and 1.
        answers: how people answer questions.
        noise: standard deviation of linear answers' noise.
        hidden: how many of the features, drawn at random, policies do not see, or the names of which;
            answers know them. Not together with context features.
        hidden_seed: seed of that draw; None: `seed`, and then every seed hides other features.
        balance_hidden: of many draws, take one whose share of `|x|^2` is close to its share of the features.
        cache: folder of what was prepared before; None: the usual one (see `prepare`).
        data_seed: seed of what `prepare` draws.
        seed: seed of everything else (the candidates' order, noise).

    Attributes:
        user_names: U names.
        source_users: [U] the users' positions in the prepared data.
        left_out: users with too few events.
    """

    step: Tensor  # [] rounds of the environment
    source_users: Tensor
    _users: Tensor  # [E] whose event, round by round
    _numbers: Tensor  # [E] which of the user's replayed events it is, from 0
    _offers: Tensor  # [E] its set of candidates
    _context: Tensor  # [E, F] standardised
    _first: Tensor  # [O + 1] where each set starts
    _on_offer: Tensor  # [C] items, set by set
    _served_first: Tensor  # [E + 1] where an event's servings start
    _items: Tensor  # [S] what was served
    _clicks: Tensor  # [S]
    _propensities: Tensor  # [S]; empty where they are not known

    def __init__(
        self,
        data: Reader | Prepared,
        *,
        users: int | None = None,
        dim: int | None = 50,
        ridge: float = 1.0,
        key_terms: KeyTerms | None = None,
        position: int | None = None,
        use_context: bool = True,
        fit_share: float = 0.3,
        feedback: AnswerKind = "linear",
        answers: AnswerModel = ItemMean(),
        noise: float = 0.1,
        hidden: int | list[str] = 0,
        hidden_seed: int | None = None,
        balance_hidden: bool = False,
        cache: str | Path | None = None,
        data_seed: int = 0,
        seed: int = 0,
    ) -> None:
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
        log = prepared.events
        if log is None:
            raise ValueError("the data do not say what was on offer in each event: play them with Replay")
        log = at_position(log, position)
        if log.context is None or not use_context:
            context = prepared.features.new_zeros(len(log.users), 0)
        else:
            context = standardised(log.context.to(prepared.features))
        if hidden and context.shape[1]:
            raise ValueError("features cannot be hidden where events have a context: use_context=False")
        number, past, kept = past_events(log, len(prepared.user_names), fit_share, users)
        place = torch.full((len(prepared.user_names),), -1)  # where each user stands here; -1: left out
        place[kept] = torch.arange(len(kept))
        owner = place[log.users]  # [E]
        theta = fit_events(log, owner, past & (owner >= 0), prepared.features, context, len(kept), ridge)
        split = seed if hidden_seed is None else hidden_seed
        catalogue = in_mean_context(prepared.catalogue(), context.shape[1])
        super().__init__(catalogue, theta, feedback, answers, noise, hidden, split, balance_hidden, seed)
        played = ((owner >= 0) & ~past).nonzero().squeeze(1)
        sizes = log.sizes[log.offers]
        played = played[order_by(sizes[played], number[played])]  # round by round
        self._register(log, played, owner[played], number[played], context[played])
        rounds = torch.stack((number[played], sizes[played])).unique_consecutive(dim=1, return_counts=True)[1]
        self._starts = [0, *rounds.cumsum(0).tolist()]  # where each round's events start
        self.length: int = len(rounds)
        self.register_buffer("source_users", kept, persistent=False)
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))
        self.left_out = len(prepared.user_names) - len(kept)
        self.user_names = [prepared.user_names[user] for user in kept.tolist()]

    def _register(
        self, log: LoggedEvents, played: Tensor, users: Tensor, numbers: Tensor, context: Tensor
    ) -> None:
        count = torch.bincount(log.events, minlength=len(log.users))  # [E] servings
        first = count.cumsum(0) - count
        served_first = torch.cat((torch.zeros(1, dtype=torch.int64), count[played].cumsum(0)))
        shift = (first[played] - served_first[:-1]).repeat_interleave(count[played])
        servings = torch.arange(int(served_first[-1])) + shift
        known = log.propensities is not None
        propensities = log.propensities[servings] if log.propensities is not None else torch.zeros(0)
        for name, value in {
            "_users": users,
            "_numbers": numbers,
            "_offers": log.offers[played],
            "_context": context,
            "_first": log.first,
            "_on_offer": log.candidates,
            "_served_first": served_first,
            "_items": log.items[servings],
            "_clicks": log.clicks[servings].to(context),
            "_propensities": propensities.to(context),
        }.items():
            self.register_buffer(name, value, persistent=False)
        if known:  # uniform: each candidate as likely as the others, or all of them served
            sizes = log.sizes[log.offers[played]].repeat_interleave(count[played])
            even = count[played].repeat_interleave(count[played]) / sizes
            uniform = bool((propensities - even).abs().max() <= 1e-6)
            self.serving = "uniform" if uniform else "skewed"

    def logged(self, rounds: int | None = None) -> Logged:
        """Events, and their clicks per serving, of the first `rounds` rounds."""
        stop = self._starts[self.length if rounds is None else min(rounds, self.length)]
        count = self._served_first.diff()[:stop]
        owner = torch.arange(stop, device=count.device).repeat_interleave(count)
        clicks = self._clicks[: int(self._served_first[stop])].double()
        rates = clicks.new_zeros(stop).index_add_(0, owner, clicks) / count  # [E] clicks per served item
        names = ("_users", "_numbers", "_offers", "_items", "_clicks", "source_users")
        digest = fingerprint({name: self.get_buffer(name).to(torch.int64) for name in names})
        return Logged(stop, float(rates.mean()), self.serving, digest)

    def reset(self) -> None:
        """Back to the first event of every user."""
        super().reset()
        self.step.zero_()

    def observe(self) -> Context:
        """The next event of some users; the same until `pull` ends the round."""
        rows = self._rows()
        users, numbers, offers = self._users[rows], self._numbers[rows], self._offers[rows]
        arms = self._offered(users, numbers, offers)
        rounds = self.counted[users]
        if not self._context.shape[1]:
            return Context.trusted(users, arms, rounds, self.catalogue)
        features = look_up(self._plain, arms)  # [B, A, D]
        context = self._context[rows][:, None].expand(-1, arms.shape[1], -1)
        return Context(users, arms, with_context(features, context), rounds=rounds)

    def pools(self, users: Tensor, rounds: Tensor) -> Tensor:
        """[B, A] candidates of this round's events, of which `users` must be."""
        rows = self._rows()
        here = (self._users[rows] == users[:, None]).int().argmax(1)
        return self._offered(users, rounds, self._offers[rows][here])

    def pull(self, context: Context, arm: Tensor) -> Outcome:
        """The logged clicks of the rows whose arm was served; every event here is over."""
        expect_rows("arm", arm, len(context))
        rows = self._rows()
        shown = context.arms.gather(1, arm[:, None]).squeeze(1)
        bounds = self._served_first[rows.start : rows.stop + 1]
        owner = torch.arange(len(context), device=arm.device).repeat_interleave(bounds.diff())
        servings = slice(int(bounds[0]), int(bounds[-1]))
        match = (self._items[servings] == shown[owner]).nonzero().squeeze(1)  # at most one per row
        seen = context.take(owner[match])
        weighted = None
        if len(self._propensities):
            guess = self.arm_mean(context.pick(arm)).squeeze(1).clamp(0, 1)
            weighted = Weighted(owner[match], 1 / self._propensities[servings][match], guess)
        add_at(self.rounds, context.who, 1)
        add_at(self.counted, seen.who, 1)
        self.step.add_(1)
        feedback = Feedback(seen, arm[owner[match]], self._clicks[servings][match])
        return Outcome([feedback], regret=None, weighted=weighted)

    def _rows(self) -> slice:
        """This round's events."""
        now = int(self.step)
        if now >= self.length:
            raise RuntimeError(f"the log is over after {self.length} rounds; reset() starts it again")
        return slice(self._starts[now], self._starts[now + 1])

    @property
    def _plain(self) -> Tensor:
        """[N, D] items' features, without context."""
        return self._world.arm_features[:, : self._world.dim // (1 + self._context.shape[1])]

    def _offered(self, users: Tensor, numbers: Tensor, offers: Tensor) -> Tensor:
        """[B, A] the sets' items, in random order."""
        first = self._first[offers]  # [B]
        size = int(self._first[offers[0] + 1] - first[0])
        order = Stream(self.seed, "replay order").bits(users, numbers, size).argsort(1)
        arms: Tensor = self._on_offer[first[:, None] + order]
        return arms
