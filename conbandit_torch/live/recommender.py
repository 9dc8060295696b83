"""Any policy, for people: names in place of ids, and a memory that survives."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, overload

import numpy as np
import torch
from torch import Tensor
from typing_extensions import Self

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.core.context import Context
from conbandit_torch.live.additions import packed, unpacked
from conbandit_torch.live.beliefs import NONE, Beliefs, about_of, what_of
from conbandit_torch.live.explaining import beliefs_of, effects, estimate_and_width
from conbandit_torch.live.history import Happened, happened
from conbandit_torch.live.identity import identity_of
from conbandit_torch.live.ledger import Ledger
from conbandit_torch.live.names import Names
from conbandit_torch.live.records import Asked, Event, Explanation, Kind, Profile, Reason, Shown
from conbandit_torch.live.store import Store

Pool = tuple[bytes | None, int]  # ids of candidates, or None for all; and how many they are
_KINDS: dict[str, Kind] = {"term": "term", "item": "item", "terms": "comparison", "items": "comparison"}


class Recommender:
    """Any policy, for people: it asks them, recommends to them, and learns from what they say.

    Users are any text, and appear on first sight. Rewards come late, in any order, or never. Every call
    returns when what it did is on the disk: after a crash nothing that was acknowledged is missing, and the
    state is the one that follows from the events. Calls may come from several threads.

        with Recommender(policy, items, terms, store="people.db") as recommender:
            while (question := recommender.ask("ann")) is not None:
                recommender.answer("ann", question, 1.0)
            shown = recommender.recommend("ann")
            recommender.feedback(shown, 1.0)

    The policy that is given stays as it is; `policy` is the one that learns.

    Args:
        policy: who decides, as it is before the first event; it grows with the people.
        items: names of the arms; None: those of the catalogue.
        terms: names of the key-terms; None: those of the catalogue.
        store: path of an SQLite file, a SQLAlchemy URL of PostgreSQL, or None: in memory.
        name: what the tables' names in the database begin with, so that several recommenders can share one.
        range: the least and the largest reward, and likewise answer.
        snapshot_every: events between two snapshots of the state, by which opening is quick.
        alone: whether this process must have all users of the store. A policy whose users share something
            always has; SQLite stores have one process anyway.
    """

    def __init__(
        self,
        policy: Bandit,
        items: Sequence[str] | None = None,
        terms: Sequence[str] | None = None,
        *,
        store: str | Path | None = None,
        name: str = "conbandit",
        range: tuple[float, float] = (0.0, 1.0),
        snapshot_every: int = 10_000,
        alone: bool = False,
    ) -> None:
        if snapshot_every < 1:
            raise ValueError(f"snapshot_every must be at least 1, got {snapshot_every}")
        if not (len(range) == 2 and -math.inf < range[0] < range[1] < math.inf):
            raise ValueError(f"range must be two finite numbers, the smaller first, got {range}")
        self.range = range
        self._given = (
            _named("items", items, policy.catalogue.arm_names),
            _named("terms", terms, policy.catalogue.term_names),
        )
        alone = alone or not policy.users_are_independent
        self._ledger = Ledger(
            Beliefs(policy, self._start_names),
            lambda: Store(store, name, alone),
            identity_of(policy, *self._given),
            self._add,
            snapshot_every,
        )

    def _start_names(self) -> None:
        items, terms = self._given
        self._items, self._terms = Names("item", items), Names("key-term", terms)

    @property
    def policy(self) -> Bandit:
        """The policy that learns from the people."""
        return self._ledger.beliefs.policy

    @property
    def items(self) -> tuple[str, ...]:
        """Names of all items."""
        return tuple(self._items.all)

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of all key-terms."""
        return tuple(self._terms.all)

    @property
    def users(self) -> tuple[str, ...]:
        """Names of the people whom this process has."""
        with self._ledger.changing():
            return tuple(self._ledger.numbers)

    # The four verbs, for one person

    def ask(self, user: str, candidates: Sequence[str] | None = None) -> Asked | None:
        """The next question to a person, or None. One that is not answered yet is asked again.

        Args:
            user: who.
            candidates: what could be recommended next, by which some policies choose their questions; None:
                all items.
        """
        return self.ask_many([user], None if candidates is None else [candidates])[0]

    def answer(self, user: str, question: Asked | int, value: float | None) -> None:
        """Learn a person's answer: how much they like it, or 1 for the first of two and 0 for the second.

        Args:
            user: who.
            question: what `ask` gave, or its id.
            value: None: they do not know. It counts as a question and teaches nothing.
        """
        self.answer_many([user], [question], [value])

    @overload
    def recommend(self, user: str, candidates: Sequence[str] | None = None, k: Literal[1] = 1) -> Shown: ...

    @overload
    def recommend(
        self, user: str, candidates: Sequence[str] | None = None, k: int = 1
    ) -> Shown | list[Shown]: ...

    def recommend(
        self, user: str, candidates: Sequence[str] | None = None, k: int = 1
    ) -> Shown | list[Shown]:
        """The best item for a person; with k above 1 a list of the k best.

        Args:
            user: who.
            candidates: names of the items that may be shown; None: all.
            k: how many.
        """
        (slate,) = self.recommend_many([user], None if candidates is None else [candidates], k)
        return slate if k > 1 else slate[0]

    def feedback(self, decision: Shown | int, reward: float, *, user: str | None = None) -> None:
        """Learn the reward of a decision.

        Args:
            decision: what `recommend` gave, or its id.
            reward: what it earned.
            user: who gives it, if a decision of somebody else is to be refused.
        """
        self.feedback_many([decision], [reward], users=None if user is None else [user])

    # The same for many people, as one operation

    @torch.no_grad()
    def ask_many(
        self, users: Sequence[str], candidates: Sequence[Sequence[str] | None] | None = None
    ) -> list[Asked | None]:
        """What `ask` gives, for distinct people.

        Args:
            users: who.
            candidates: what could be recommended to each; None: all items.
        """
        with self._ledger.changing():
            _expect_distinct(users)
            pools = self._pools(users, candidates)
            numbers = self._ledger.admit(users)
            found: list[Asked | None] = [None] * len(users)
            rows = [self._ledger.beliefs.rows[number] for number in numbers]
            open_ = self._ledger.beliefs.book.question[rows].tolist()
            again = {one: place for place, one in enumerate(open_) if one != NONE}
            for one, event in self._ledger.origins(list(again))[0].items():
                found[again[one]] = self._asked(users[again[one]], event)
            ticket = 0
            for places in _alike([pools[place] for place in range(len(users))], skip=set(again.values())):
                made = self._contexts(numbers, pools, places)
                question = self._ledger.beliefs.policy.ask(self._ledger.beliefs.context(made))
                if question is None:
                    continue
                asked = _rows_of(question.rows, len(places))
                what, ids = what_of(question.about), question.about.ids().tolist()
                batch = self._batch(
                    [
                        made[row]._replace(
                            kind="asked", what=what, first=own[0], second=own[1] if len(own) > 1 else None
                        )
                        for row, own in zip(asked, ids, strict=True)
                    ]
                )
                for row, event in zip(asked, batch, strict=True):
                    found[places[row]] = self._asked(users[places[row]], event)
                ticket = self._ledger.record(batch)
        self._ledger.wait(ticket)
        return found

    def answer_many(
        self, users: Sequence[str], questions: Sequence[Asked | int], values: Sequence[float | None]
    ) -> None:
        """Learn answers, as `answer` does. Those of one kind are one step of the policy."""
        with self._ledger.changing():
            _expect_lengths(users=users, questions=questions, values=values)
            ids = [_id_of(one, "question") for one in questions]
            given = [None if value is None else self._in_range("an answer", value) for value in values]
            origins = self._expect_open(ids, "asked", users)
            ticket = 0
            for places in _alike([(event.what, event.pool) for event in origins]):
                for wave in _waves(places, [event.user for event in origins]):
                    batch = self._batch([self._reply("answer", origins[i], given[i]) for i in wave])
                    ticket = self._ledger.record(batch, [origins[i] for i in wave])
        self._ledger.wait(ticket)

    @torch.no_grad()
    def recommend_many(
        self,
        users: Sequence[str],
        candidates: Sequence[Sequence[str] | None] | None = None,
        k: int = 1,
    ) -> list[list[Shown]]:
        """A list of the k best items for each of distinct people.

        Args:
            users: who.
            candidates: names of the items that may be shown to each; None: all.
            k: how many to show to each.
        """
        with self._ledger.changing():
            _expect_distinct(users)
            pools = self._pools(users, candidates)
            for user, pool in zip(users, pools, strict=True):
                if not 1 <= k <= pool[1]:
                    raise ValueError(f"k must be from 1 to the {pool[1]} candidates of {user!r}, got {k}")
            numbers = self._ledger.admit(users)
            found: list[list[Shown]] = [[] for _ in users]
            ticket = 0
            for places in _alike([pool[1] for pool in pools]):
                made = self._contexts(numbers, pools, places)
                context = self._ledger.beliefs.context(made)
                items = self._best(context, k).tolist()  # [B][k]
                batch = self._batch(
                    [
                        event._replace(kind="shown", first=item, place=place)
                        for event, slate in zip(made, items, strict=True)
                        for place, item in enumerate(slate)
                    ]
                )
                for number, event in enumerate(batch):
                    user = users[places[number // k]]
                    found[places[number // k]].append(self._shown(user, event))
                ticket = self._ledger.record(batch)
        self._ledger.wait(ticket)
        return found

    def feedback_many(
        self,
        decisions: Sequence[Shown | int],
        rewards: Sequence[float],
        *,
        users: Sequence[str] | None = None,
    ) -> None:
        """Learn rewards, as `feedback` does. Those of distinct users are one step of the policy."""
        with self._ledger.changing():
            _expect_lengths(decisions=decisions, rewards=rewards)
            ids = [_id_of(one, "decision") for one in decisions]
            given = [self._in_range("a reward", reward) for reward in rewards]
            origins = self._expect_open(ids, "shown", users)
            ticket = 0
            for places in _alike([event.pool for event in origins]):
                for wave in _waves(places, [event.user for event in origins]):
                    batch = self._batch([self._reply("reward", origins[i], given[i]) for i in wave])
                    ticket = self._ledger.record(batch, [origins[i] for i in wave])
        self._ledger.wait(ticket)

    # What is believed

    @torch.no_grad()
    def explain(self, user: str, item: str, most: int = 5) -> Explanation:
        """Why an item has its score for a person; nothing is written.

        Args:
            user: who.
            item: its name.
            most: how many reasons to give.
        """
        with self._ledger.changing():
            arm = self._items.id_of(item)
            context = self._looking(user, arm)
            estimate, width = estimate_and_width(self.policy, context)
            reasons, rest = self._reasons(user, context)
            reasons.sort(key=lambda reason: -abs(reason.effect))
            return Explanation(user, item, estimate, width, tuple(reasons[:most]), rest)

    @torch.no_grad()
    def profile(self, user: str) -> Profile:
        """What is believed of a person's taste; nothing is written."""
        with self._ledger.changing():
            found = beliefs_of(self.policy, self._looking(user, 0), self._terms.all)
            middle = sum(belief.estimate for belief in found) / max(1, len(found))
            return Profile(user, tuple(found), middle)

    def history(self, user: str) -> list[Happened]:
        """All that happened to a person, in order; nothing is written."""
        with self._ledger.changing():
            if not self._ledger.knows(user):
                return []
            batches = self._ledger.store.batches(users=self._ledger.admit([user]))
            names = self._items.all, self._terms.all
            return [happened(event, origin, *names) for batch in batches for event, origin in batch]

    # What changes besides

    def add_items(
        self,
        names: Sequence[str],
        features: Tensor | np.ndarray,
        weights: Tensor | np.ndarray | None = None,
        *,
        terms: Sequence[str] = (),
    ) -> None:
        """Add items to the catalogue, and new key-terms with them.

        Args:
            names: of the new items, n of them.
            features: [n, D] the new items'.
            weights: [n, K + m] the new items' key-terms, those known first; None: they have none.
            terms: m names of new key-terms; each needs one of the new items at least.
        """
        with self._ledger.changing():
            if self._ledger.store.shared:
                raise ValueError(
                    "processes that share a store cannot add items, for the others would not know them: "
                    "open it with alone=True"
                )
            self._items.check_new(names)
            self._terms.check_new(terms)
            body = packed(names, terms, torch.as_tensor(features), weights)
            unpacked(body).extended(self.policy.catalogue)  # or else an error, before anything is written
            event = Event(self._ledger.next_id(), 0, "items", None, time.time(), body=body)
            ticket = self._ledger.record_addition(event._replace(batch=event.id))
        self._ledger.wait(ticket)

    def forget(self, user: str) -> None:
        """Delete a person's events and name; the state is then that of the events that remain.

        Raises:
            ValueError: nobody of this name was here.
        """
        with self._ledger.changing():
            if not self._ledger.knows(user):
                raise ValueError(f"there is no user {user!r} to forget")
            self._ledger.forget(user)

    def snapshot(self) -> None:
        """Keep the state now, so that opening the store is quick."""
        with self._ledger.changing():
            self._ledger.snapshot()

    def close(self) -> None:
        """Keep a snapshot, and let others have the store."""
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Names to events, and back

    def _add(self, body: bytes) -> None:
        """Extend the catalogue as an event says."""
        new = unpacked(body)
        self.policy.extend(new.extended(self.policy.catalogue))
        self._items.add(new.items)
        self._terms.add(new.terms)

    def _pools(self, users: Sequence[str], candidates: Sequence[Sequence[str] | None] | None) -> list[Pool]:
        for user in users:
            if not isinstance(user, str) or not user:
                raise ValueError(f"a user must be a text, got {user!r}")
        every: Pool = (None, len(self._items))
        if candidates is None:
            return [every] * len(users)
        _expect_lengths(users=users, candidates=candidates)
        return [every if own is None else self._pool(own) for own in candidates]

    def _pool(self, candidates: Sequence[str]) -> Pool:
        if isinstance(candidates, str) or not len(candidates):
            raise ValueError(f"candidates must be a list of names of items, got {candidates!r}")
        ids = self._items.ids_of(candidates)
        return np.array(ids, np.int32).tobytes(), len(ids)

    def _contexts(self, numbers: list[int], pools: list[Pool], places: list[int]) -> list[Event]:
        """The beginnings of events: who, at which of their rounds, with which candidates."""
        beliefs, now = self._ledger.beliefs, time.time()
        own = [numbers[place] for place in places]
        rounds = beliefs.book.rounds[[beliefs.rows[number] for number in own]].tolist()
        return [
            Event(-1, -1, "", number, now, round=played, candidates=pools[place][0], pool=pools[place][1])
            for number, played, place in zip(own, rounds, places, strict=True)
        ]

    def _batch(self, events: Sequence[Event]) -> list[Event]:
        """Events with their ids."""
        ids = [self._ledger.next_id() for _ in events]
        return [event._replace(id=one, batch=ids[0]) for one, event in zip(ids, events, strict=True)]

    def _best(self, context: Context, k: int) -> Tensor:
        """[B, k] ids of the items to show."""
        if k == 1:
            position = self.policy.choose(context)[:, None]
        else:
            scores = context.map(self.policy.scores, self.policy.row_size(context))
            position = scores.argsort(dim=1, descending=True, stable=True)[:, :k]
        return context.arms.gather(1, position)

    def _reply(self, kind: str, origin: Event, value: float | None) -> Event:
        return Event(-1, -1, kind, origin.user, time.time(), about=origin.id, value=value)

    def _asked(self, user: str, event: Event) -> Asked:
        assert event.what is not None  # of a question, for the type checker
        names = self._terms if event.what.startswith("term") else self._items
        about = [one for one in (event.first, event.second) if one is not None]
        return Asked(event.id, user, _KINDS[event.what], tuple(names.all[one] for one in about))

    def _shown(self, user: str, event: Event) -> Shown:
        assert event.first is not None and event.place is not None and event.round is not None  # likewise
        return Shown(event.id, user, self._items.all[event.first], event.place, event.round)

    def _expect_open(self, ids: list[int], kind: str, users: Sequence[str] | None) -> list[Event]:
        """The questions or decisions, if each is open and its user's."""
        noun, done = ("question", "answer") if kind == "asked" else ("decision", "reward")
        if users is not None:
            _expect_lengths(users=users, **{f"{noun}s": ids})
        if len(set(ids)) != len(ids):
            again = next(one for one in ids if ids.count(one) > 1)
            raise ValueError(f"{noun} {again} is given twice: it can have one {done}")
        found, settled = self._ledger.origins(ids)
        for place, one in enumerate(ids):
            event = found.get(one)
            if event is None or event.kind != kind:
                raise ValueError(f"{noun} {one} was never {'asked' if kind == 'asked' else 'made'}")
            assert event.user is not None  # of a question or a decision, for the type checker
            if users is not None and self._ledger.name_of(event.user) != users[place]:
                raise ValueError(f"{noun} {one} is not one of user {users[place]!r}")
            if one in settled:
                raise ValueError(f"{noun} {one} has had its {done} already")
            self._ledger.name_of(event.user)
        return [found[one] for one in ids]

    def _in_range(self, what: str, value: float) -> float:
        least, most = self.range
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise ValueError(f"{what} must be a number from {least} to {most}, got {value!r}") from None
        if not least <= number <= most:
            raise ValueError(f"{what} must be from {least} to {most}, got {value!r}")
        return number

    def _looking(self, user: str, arm: int) -> Context:
        """A person and one item, for a look that writes nothing; somebody new is as everybody is at first."""
        beliefs, ledger = self._ledger.beliefs, self._ledger
        if not ledger.knows(user):
            return beliefs.stranger(arm)
        (number,) = ledger.admit([user])
        played = int(beliefs.book.rounds[beliefs.rows[number]])
        one = np.array([arm], np.int32).tobytes()
        return beliefs.context([Event(-1, -1, "", number, 0.0, round=played, candidates=one, pool=1)])

    def _reasons(self, user: str, context: Context) -> tuple[list[Reason], float]:
        ledger = self._ledger
        groups: list[list[tuple[Event, Event]]] = []
        if ledger.knows(user):
            pairs = [
                (event, origin)
                for batch in ledger.store.batches(users=ledger.admit([user]))
                for event, origin in batch
                if origin is not None and event.value is not None
            ]
            kinds = [(event.kind, origin.what) for event, origin in pairs]
            groups = [[pairs[place] for place in places] for places in _alike(kinds)]
        like = self.policy.catalogue.arm_features
        observations = []
        for group in groups:
            values = torch.tensor([event.value for event, _ in group], dtype=torch.float64).to(like)
            rewards = group[0][0].kind == "reward"
            origins = [origin._replace(what="item") if rewards else origin for _, origin in group]
            observations.append((about_of(origins), values, rewards))
        found, rest = effects(self.policy, context, observations)
        reasons = []
        for group, own in zip(groups, found, strict=True):
            for (event, origin), effect in zip(group, own, strict=True):
                assert event.value is not None  # as above, for the type checker
                if event.kind == "reward":
                    shown = self._shown(user, origin)
                    reasons.append(Reason("reward", (shown.item,), event.value, effect))
                else:
                    asked = self._asked(user, origin)
                    reasons.append(Reason(asked.kind, asked.names, event.value, effect))
        return reasons, rest


def _named(argument: str, names: Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    if names is None:
        return tuple(known)
    if len(names) != len(known):
        raise ValueError(f"{argument} must be {len(known)} names, as the catalogue has, got {len(names)}")
    return tuple(names)


def _id_of(given: Asked | Shown | int, noun: str) -> int:
    found = given if isinstance(given, int) else getattr(given, "id", None)
    if not isinstance(found, int) or isinstance(found, bool):
        raise ValueError(f"a {noun} is given as it was got, or by its id, got {given!r}")
    return found


def _expect_distinct(users: Sequence[str]) -> None:
    if isinstance(users, str) or len(set(users)) != len(users):
        raise ValueError(f"users must be distinct, got {users!r}: call once per round of a user")


def _expect_lengths(**columns: Sequence[object]) -> None:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            "as many are needed of each, got " + ", ".join(f"{n} {k}" for k, n in lengths.items())
        )


def _alike(keys: Sequence[Hashable], skip: set[int] = frozenset()) -> list[list[int]]:  # type: ignore[assignment]
    """Places by their key, in the order of the keys' first."""
    groups: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        if place not in skip:
            groups.setdefault(key, []).append(place)
    return list(groups.values())


def _waves(places: list[int], users: Sequence[int | None]) -> list[list[int]]:
    """The places in runs without a user twice: everybody's first, then everybody's second, and so on."""
    waves: list[list[int]] = []
    seen: dict[int | None, int] = {}
    for place in places:
        number = seen[users[place]] = seen.get(users[place], -1) + 1
        if number == len(waves):
            waves.append([])
        waves[number].append(place)
    return waves


def _rows_of(rows: Tensor | slice, number: int) -> list[int]:
    return list(range(number)[rows]) if isinstance(rows, slice) else rows.tolist()
