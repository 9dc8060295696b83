"""Any policy, for people: names in place of ids, and a memory that survives."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
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
from conbandit_torch.live.beliefs import NONE, Beliefs, what_of
from conbandit_torch.live.explaining import beliefs_of, explanation_of
from conbandit_torch.live.identity import identity_of
from conbandit_torch.live.input import alike, expect_distinct, expect_lengths, id_of, in_range, named, waves
from conbandit_torch.live.ledger import Ledger
from conbandit_torch.live.records import Asked, Event, Explanation, Happened, Profile, Shown
from conbandit_torch.live.store import Store


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
        if policy.catalogue.arm_features.device.type != "cpu":
            raise ValueError("a Recommender's policy must be on the CPU: one person at a time is little work")
        self.range = range
        names = (
            named("items", items, policy.catalogue.arm_names),
            named("terms", terms, policy.catalogue.term_names),
        )
        alone = alone or not policy.users_are_independent
        self._ledger = Ledger(
            Beliefs(policy, *names),
            lambda: Store(store, name, alone),
            identity_of(policy, *names),
            snapshot_every,
        )

    @property
    def policy(self) -> Bandit:
        """The policy that learns from the people."""
        return self._ledger.beliefs.policy

    @property
    def items(self) -> tuple[str, ...]:
        """Names of all items."""
        return tuple(self._ledger.beliefs.vocabulary.items.all)

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of all key-terms."""
        return tuple(self._ledger.beliefs.vocabulary.terms.all)

    @property
    def users(self) -> tuple[str, ...]:
        """Names of the people whom this process has."""
        with self._ledger.looking():
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
        with self._ledger.changing() as beliefs:
            made = self._beginnings("asked", users, candidates)
            open_ = beliefs.book.question[[beliefs.row_of(event) for event in made]].tolist()
            events: list[Event | None] = [None] * len(made)
            for one, again in self._ledger.origins([one for one in open_ if one != NONE])[0].items():
                events[open_.index(one)] = again
            new = [place for place, one in enumerate(open_) if one == NONE]
            for places in alike([made[place].pool for place in new]):
                own = [new[place] for place in places]
                question = beliefs.policy.ask(beliefs.context([made[place] for place in own]))
                if question is None:
                    continue
                rows = question.rows
                asked = own[rows] if isinstance(rows, slice) else [own[row] for row in rows.tolist()]
                what = what_of(question.about)
                batch = [
                    made[place]._replace(what=what, first=ids[0], second=ids[1] if len(ids) > 1 else None)
                    for place, ids in zip(asked, question.about.ids().tolist(), strict=True)
                ]
                for place, event in zip(asked, self._ledger.record(batch), strict=True):
                    events[place] = event
            pairs = zip(users, events, strict=True)
            return [None if event is None else beliefs.vocabulary.asked(user, event) for user, event in pairs]

    def answer_many(
        self, users: Sequence[str], questions: Sequence[Asked | int], values: Sequence[float | None]
    ) -> None:
        """Learn answers, as `answer` does. Those of one kind and of distinct users are one step."""
        expect_lengths(users=users, questions=questions, values=values)
        ids = [id_of(one, "question") for one in questions]
        given = [None if value is None else in_range("an answer", value, self.range) for value in values]
        self._settle("answer", ids, given, users)

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
        with self._ledger.changing() as beliefs:
            made = self._beginnings("shown", users, candidates, k)
            found: list[list[Shown]] = [[] for _ in users]
            for places in alike([event.pool for event in made]):
                own = [made[place] for place in places]
                slates = self._best(beliefs.context(own), k).tolist()  # [B][k]
                batch = [
                    event._replace(first=item, place=place)
                    for event, slate in zip(own, slates, strict=True)
                    for place, item in enumerate(slate)
                ]
                for number, event in enumerate(self._ledger.record(batch)):
                    place = places[number // k]
                    found[place].append(beliefs.vocabulary.shown(users[place], event))
        return found

    def feedback_many(
        self,
        decisions: Sequence[Shown | int],
        rewards: Sequence[float],
        *,
        users: Sequence[str] | None = None,
    ) -> None:
        """Learn rewards, as `feedback` does. Those of distinct users are one step of the policy."""
        expect_lengths(decisions=decisions, rewards=rewards)
        ids = [id_of(one, "decision") for one in decisions]
        self._settle("reward", ids, [in_range("a reward", one, self.range) for one in rewards], users)

    # What is believed, and what has happened

    @torch.no_grad()
    def explain(self, user: str, item: str, most: int = 5) -> Explanation:
        """Why an item has its score for a person; nothing is written.

        Args:
            user: who; somebody new is as everybody is at first.
            item: its name.
            most: how many reasons to give.
        """
        with self._ledger.looking() as beliefs:
            arm = beliefs.vocabulary.items.id_of(item)
            pairs = list(self._ledger.history(user))
            found = explanation_of(beliefs, user, self._at(user, arm), pairs)
            return found.only(most)

    @torch.no_grad()
    def profile(self, user: str) -> Profile:
        """What is believed of a person's taste; nothing is written."""
        with self._ledger.looking() as beliefs:
            who, nobody = self._at(user, 0), beliefs.stranger(0)
            found = beliefs_of(beliefs.policy, who, nobody, beliefs.vocabulary.terms.all)
            middle = sum(belief.estimate for belief in found) / max(1, len(found))
            return Profile(user, tuple(found), middle)

    def events(self, after: int = -1) -> Iterator[Happened]:
        """What was asked, answered, shown and rewarded, in order, of those who were not forgotten.

        Args:
            after: id of an event; only later ones are given.
        """
        with self._ledger.looking() as beliefs:
            store, vocabulary = self._ledger.store, beliefs.vocabulary
            store.flush()
        names = dict(store.names())
        for batch in store.batches(after):
            for event, origin in batch:
                name = None if event.user is None else names.get(event.user)
                if name is not None:
                    yield vocabulary.happened(name, event, origin)

    def history(self, user: str) -> list[Happened]:
        """All that happened to a person, in order."""
        with self._ledger.looking() as beliefs:
            if not self._ledger.knows(user):
                return []
            batches = self._ledger.store.batches(users=self._ledger.admit([user]))
            return [beliefs.vocabulary.happened(user, *pair) for batch in batches for pair in batch]

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
        with self._ledger.changing() as beliefs:
            if self._ledger.store.shared:
                raise ValueError(
                    "processes that share a store cannot add items, for the others would not know them: "
                    "open it with alone=True"
                )
            beliefs.vocabulary.items.check_new(names)
            beliefs.vocabulary.terms.check_new(terms)
            body = packed(names, terms, torch.as_tensor(features), weights)
            unpacked(body).extended(beliefs.catalogue)  # or else an error, before anything is written
            self._ledger.record([Event(-1, -1, "items", None, time.time(), body=body)])

    def forget(self, user: str) -> None:
        """Delete a person's events and name; the state is then that of the events that remain.

        Raises:
            ValueError: nobody of this name was here.
        """
        with self._ledger.changing():
            if not self._ledger.knows(user):
                raise ValueError(f"there is no user {user!r} to forget")
            self._ledger.forget(user)

    def state(self) -> dict[str, Tensor]:
        """All that was learned from the people whom this process has."""
        with self._ledger.looking() as beliefs:
            return beliefs.state()

    def rebuild(self) -> None:
        """Build the state anew from all events, without the last snapshot; it is the same afterwards."""
        with self._ledger.looking():
            self._ledger.rebuild()

    def snapshot(self) -> None:
        """Keep the state now, so that opening the store is quick."""
        with self._ledger.looking():
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

    # How it is done

    def _beginnings(
        self,
        kind: str,
        users: Sequence[str],
        candidates: Sequence[Sequence[str] | None] | None,
        k: int = 1,
    ) -> list[Event]:
        """Events without what the policy says: who, at which of their rounds, with which candidates."""
        expect_distinct(users)
        if candidates is not None:
            expect_lengths(users=users, candidates=candidates)
        beliefs = self._ledger.beliefs
        pools = [beliefs.vocabulary.pool(own) for own in candidates or [None] * len(users)]
        for user, (_, number) in zip(users, pools, strict=True):
            if not 1 <= k <= number:
                raise ValueError(f"k must be from 1 to the {number} candidates of {user!r}, got {k}")
        numbers, now = self._ledger.admit(users), time.time()
        rounds = beliefs.book.rounds[[beliefs.rows[number] for number in numbers]].tolist()
        return [
            Event(-1, -1, kind, number, now, round=played, candidates=pool[0], pool=pool[1])
            for number, played, pool in zip(numbers, rounds, pools, strict=True)
        ]

    def _best(self, context: Context, k: int) -> Tensor:
        """[B, k] ids of the items to show."""
        if k == 1:
            position = self.policy.choose(context)[:, None]
        else:
            scores = context.map(self.policy.scores, self.policy.row_size(context))
            position = scores.argsort(dim=1, descending=True, stable=True)[:, :k]
        return context.arms.gather(1, position)

    def _settle(
        self, kind: str, ids: list[int], values: Sequence[float | None], users: Sequence[str] | None
    ) -> None:
        """Learn answers to questions, or rewards of decisions."""
        with self._ledger.changing():
            origins = self._ledger.expect_open(ids, kind, users)
            now = time.time()
            replies = [
                Event(-1, -1, kind, origin.user, now, about=origin.id, value=value)
                for origin, value in zip(origins, values, strict=True)
            ]
            for places in alike([(origin.what, origin.pool) for origin in origins]):
                for wave in waves(places, [origin.user for origin in origins]):
                    self._ledger.record([replies[i] for i in wave], [origins[i] for i in wave])

    def _at(self, user: str, arm: int) -> Context:
        """A person and one item, for a look that writes nothing."""
        beliefs = self._ledger.beliefs
        if not self._ledger.knows(user):
            return beliefs.stranger(arm)
        (number,) = self._ledger.admit([user])
        played = int(beliefs.book.rounds[beliefs.rows[number]])
        one = np.array([arm], np.int32).tobytes()
        return beliefs.context([Event(-1, -1, "", number, 0.0, round=played, candidates=one, pool=1)])
