"""A policy, and what the events of people make of it. The same code plays live and from the store."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.core.attributes import buffer
from conbandit_torch.core.blocks import EVERY_ROW
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.context import Context
from conbandit_torch.core.questions import About, Answer, Arms, Comparison, Question, Terms
from conbandit_torch.core.rows import Rows, all_rows
from conbandit_torch.live.additions import unpacked
from conbandit_torch.live.records import Event
from conbandit_torch.live.vocabulary import Vocabulary

NONE = -1  # no question is open


class Book(Rows):
    """What is known of each user beside the policy."""

    rounds: Tensor = buffer()  # [U] how often something was recommended
    question: Tensor = buffer()  # [U] id of the open question, or NONE

    def __init__(self, num_users: int) -> None:
        super().__init__(num_users)
        self.register_rows("rounds", torch.zeros((), dtype=torch.int64))
        self.register_rows("question", torch.full((), NONE, dtype=torch.int64))


class Beliefs:
    """A policy and its book, which change by events alone.

    Args:
        policy: as it is before the first event. Its rows of users that have learned stay theirs: people come
            after them.
        items: names of the arms.
        terms: names of the key-terms.
    """

    def __init__(self, policy: Bandit, items: Sequence[str], terms: Sequence[str]) -> None:
        self._names = items, terms
        self.taken = policy.num_users if has_learned(policy) else 0
        self._pristine = policy
        self.reset()

    def reset(self) -> None:
        """Be as before the first event."""
        self.policy = copy.deepcopy(self._pristine)
        self.book = Book(self.policy.num_users)
        self.rows: dict[int, int] = {}  # of per-user state, by the user's number in the store
        self.vocabulary = Vocabulary(*self._names)
        self._make_room()

    @property
    def catalogue(self) -> Catalogue:
        """Arms and key-terms, as they are now."""
        return self.policy.catalogue

    def admit(self, number: int) -> None:
        """Make room for a person who was not here before."""
        if number not in self.rows:
            self.rows[number] = self.taken + len(self.rows)
            self._make_room()

    def _make_room(self) -> None:
        """The row after the last person's is always there: it tells what is believed of somebody new."""
        needed = self.taken + len(self.rows) + 1
        if needed > self.policy.num_users:
            self.policy.grow(needed)
            self.book.grow_rows(needed)

    def row_of(self, event: Event) -> int:
        """The row of an event's user."""
        return self.rows[event.user]  # type: ignore[index]

    def context(self, events: Sequence[Event]) -> Context:
        """The context that questions were asked in, or decisions made; all have as many candidates."""
        users = torch.tensor([event.user for event in events])
        rounds = torch.tensor([event.round for event in events])
        rows = torch.tensor([self.row_of(event) for event in events])
        arms = torch.stack([self._candidates(event) for event in events])
        return Context.trusted(users + self.taken, arms, rounds, self.catalogue, rows)

    def stranger(self, arm: int) -> Context:
        """Somebody who was never here, and one item."""
        row = self.taken + len(self.rows)
        user, none = torch.tensor([row]), torch.zeros(1, dtype=torch.int64)
        return Context.trusted(user, torch.tensor([[arm]]), none, self.catalogue, user)

    def _candidates(self, event: Event) -> Tensor:
        if event.candidates is None:
            return self.catalogue.all_arms[: event.pool]
        return torch.from_numpy(np.frombuffer(event.candidates, np.int32).astype(np.int64))

    @torch.no_grad()
    def apply(self, batch: Sequence[Event], origins: Sequence[Event]) -> None:
        """Learn a batch: events of one kind, of distinct users, of contexts with as many candidates.

        Args:
            batch: the events.
            origins: the questions that they answer, or the decisions that they reward.
        """
        kind = batch[0].kind
        if kind == "asked":
            self.book.question[self._rows(batch)] = torch.tensor([event.id for event in batch])
        elif kind == "shown":
            self.book.rounds[self._rows([event for event in batch if event.place == 0])] += 1
        elif kind == "answer":
            known = torch.tensor([event.value is not None for event in batch])
            values = [0.0 if event.value is None else event.value for event in batch]
            answer = Answer(torch.tensor(values, dtype=torch.float64).to(self.catalogue.arm_features), known)
            self.policy.listen(self.context(origins), Question(EVERY_ROW, about_of(origins)), answer)
            self.book.question[self._rows(batch)] = NONE
        elif kind == "reward":
            context = self.context(origins)
            shown = torch.tensor([[origin.first] for origin in origins])
            position = (context.arms == shown).int().argmax(1)
            rewards = torch.tensor([event.value for event in batch], dtype=torch.float64)
            self.policy.update(context, position, rewards.to(self.catalogue.arm_features))
        elif kind == "items":
            self.add(batch[0].body or b"")
        elif kind != "forgotten":
            raise ValueError(f"there is no kind of event {kind!r}")

    def add(self, body: bytes) -> None:
        """Go on with more items, as an event's body says."""
        new = unpacked(body)
        self.policy.extend(new.extended(self.catalogue))
        self.vocabulary.items.add(new.items)
        self.vocabulary.terms.add(new.terms)

    def _rows(self, events: Sequence[Event]) -> Tensor:
        return torch.tensor([self.row_of(event) for event in events], dtype=torch.int64)

    def forget(self, number: int) -> None:
        """Let a person be as new; of policies whose users share nothing."""
        row = torch.tensor([self.rows[number]])
        self.policy.forget(row)
        self.book.reset_rows(row)

    def state(self) -> dict[str, Tensor]:
        """All of it."""
        numbers = torch.tensor(list(self.rows), dtype=torch.int64)
        policy = {f"policy.{name}": value for name, value in self.policy.state_dict().items()}
        return {**policy, **{f"book.{name}": value for name, value in self.book.state_dict().items()}} | {
            "numbers": numbers
        }

    def load(self, state: dict[str, Tensor]) -> None:
        """Be what `state` gave."""
        for number in state["numbers"].tolist():
            self.admit(number)
        for name, module in (("policy.", self.policy), ("book.", self.book)):
            module.load_state_dict(
                {key.removeprefix(name): one for key, one in state.items() if key.startswith(name)}
            )


def about_of(questions: Sequence[Event]) -> About:
    """What questions of one kind are about."""
    first = torch.tensor([question.first for question in questions])
    side = Terms if questions[0].what in ("term", "terms") else Arms
    if questions[0].what in ("term", "item"):
        return side(first)
    return Comparison(side(first), side(torch.tensor([question.second for question in questions])))


def what_of(about: About) -> str:
    """How events call what questions are about."""
    sides = about.sides()
    name = "term" if isinstance(sides[0], Terms) else "item"
    return name if len(sides) == 1 else f"{name}s"


def has_learned(policy: Bandit) -> bool:
    """Whether some row per user is not as that of a new user."""
    return any(
        not torch.equal(rows, initial.expand_as(rows))
        for part in all_rows(policy, "user")
        for rows, initial in (
            (part.get_buffer(n), part.get_buffer(f"_initial_{n}")) for n in part.row_buffers()
        )
    )
