"""What the contract's checks are made of: small worlds, recorded decisions, errors that name a promise."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.core.context import Context
from conbandit_torch.environments.base import Environment
from conbandit_torch.environments.synthetic import Synthetic
from conbandit_torch.loop import play_round

ROUNDS = 12  # passes floor(log t) = 1 and 2, so that the usual schedule asks twice
SIZES: dict[str, Any] = {"users": 7, "arms": 60, "terms": 12, "dim": 5, "pool": 9, "max_terms": 3, "seed": 3}

Make = Callable[..., Bandit]
"""A policy's class, or a function (catalogue, num_users, **arguments) that builds one."""

Check = Callable[..., None]
"""check(make, **arguments): returns if the promise is kept."""

Decisions = list[tuple[list[int], list[tuple[list[int], list[list[int]]]], list[int]]]
"""Per round: users, questions (users asked, what they were asked), arms shown."""


class ContractError(AssertionError):
    """A promise that a policy does not keep: which class, which promise, what was expected and what came."""


def decisions(policy: Bandit, environment: Environment, rounds: int = ROUNDS) -> Decisions:
    """What the policy asks and shows, round by round."""
    log = []
    for _ in range(rounds):
        played = play_round(policy, environment)
        users = played.context.users
        asked = [
            (users[question.rows].tolist(), question.about.ids().tolist()) for question, _ in played.dialogue
        ]
        log.append((users.tolist(), asked, played.arm_ids.tolist()))
    return log


class Build:
    """Builds the policy for an environment, and remembers what its class is called."""

    def __init__(self, make: Make, arguments: dict[str, Any]) -> None:
        self._make, self._arguments = make, {"seed": 0} | arguments  # every run passes a seed
        self.name = getattr(make, "__name__", type(make).__name__)

    def __call__(self, environment: Environment, num_users: int | None = None) -> Bandit:
        """A new policy for the environment, for all its users or for fewer."""
        number = environment.num_users if num_users is None else num_users
        policy = self._make(environment.catalogue, number, **self._arguments)
        self.name = type(policy).__name__
        expect(isinstance(policy, Bandit), "a Bandit", self.name)
        return policy


def promised(check: Callable[[Build], None]) -> Check:
    """The check as others call it: whatever goes wrong names the class and the promise."""
    promise = (check.__doc__ or "").partition("\n")[0].rstrip(".")

    @wraps(check)
    def run(make: Make, **arguments: Any) -> None:
        build = Build(make, arguments)
        try:
            with torch.no_grad():
                check(build)
        except BrokenError as broken:
            raise ContractError(f"{build.name} breaks its promise: {promise}; {broken}") from None
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise ContractError(f"{build.name} breaks its promise: {promise}; {what}") from error

    return run


class BrokenError(Exception):
    """What was expected, and what came."""


def expect(kept: bool, expected: str, came: Any) -> None:
    """Refuse what came, unless the promise is kept."""
    if not kept:
        raise BrokenError(f"expected {expected}, got {came}")


def expect_finite(scores: Tensor) -> None:
    """Refuse scores that are infinite or NaN."""
    expect(bool(scores.isfinite().all()), "finite scores", scores[~scores.isfinite()].tolist()[:3])


def expect_equal(log: Decisions, other: Decisions, what: str) -> None:
    """Refuse a log that differs from the other, and name the first difference."""
    for number, (ours, theirs) in enumerate(zip(log, other, strict=True), 1):
        for kind, one, two in zip(("users", "questions", "arms"), ours, theirs, strict=True):
            expect(one == two, f"{what}: {kind} {two} in round {number}", one)


def expect_same(state: dict[str, Tensor], before: dict[str, Tensor], what: str) -> None:
    """Refuse a state that has changed, and name the first buffer that has."""
    for name, value in state.items():
        expect(torch.equal(value, before[name]), what, f"a change of {name}")


def small_world(**changes: Any) -> Synthetic:
    """Few users, so that a check takes no time."""
    return Synthetic(**(SIZES | changes))


class Only(Synthetic):
    """A world that only some users visit."""

    def __init__(self, *users: int) -> None:
        super().__init__(**SIZES)
        self.present = torch.tensor(users)

    def visitors(self) -> Tensor:
        """[B] those users."""
        return self.present


class Checked(Only):
    """A world whose contexts are checked, as those of strangers are."""

    def observe(self) -> Context:
        """The users who are here, in a context that is checked."""
        own = super().observe()
        return Context(own.users, own.arms, rounds=own.rounds, catalogue=self.catalogue)
