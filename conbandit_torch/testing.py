"""What every policy promises, whoever wrote it: `check_policy(MyBandit)` checks all of it.

Each promise is a function of its own, in `CHECKS`, so that a test can run every check on every policy:

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_contract(check):
        check(MyBandit, alpha=0.5)

The first line of a check's docstring is the promise that its errors name.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.bandits.uniform import Random
from conbandit_torch.core.context import Context
from conbandit_torch.environments.base import Environment
from conbandit_torch.environments.synthetic import Synthetic
from conbandit_torch.loop import play_round

ROUNDS = 12  # passes floor(log t) = 1 and 2, so that the usual schedule asks twice
_SIZES: dict[str, Any] = {"users": 7, "arms": 60, "terms": 12, "dim": 5, "pool": 9, "max_terms": 3, "seed": 3}

Make = Callable[..., Bandit]
"""A policy's class, or a function (catalogue, num_users, **arguments) that builds one."""

Check = Callable[..., None]
"""check(make, **arguments): returns if the promise is kept."""

Decisions = list[tuple[list[int], list[tuple[list[int], list[int]]], list[int]]]
"""A round each: users, questions (users asked, what they were asked), arms shown."""


class ContractError(AssertionError):
    """A promise that a policy does not keep: which class, which promise, what was expected and what came."""


def check_policy(make: Make, **arguments: Any) -> None:
    """Check that a policy keeps every promise.

    Args:
        make: the policy's class, or a function (catalogue, num_users, **arguments) that builds one.
        arguments: arguments of the policy; `seed` is given to every policy.

    Raises:
        ContractError: at the first promise that is broken.
    """
    for check in CHECKS:
        check(make, **arguments)


def decisions(policy: Bandit, environment: Environment, rounds: int = ROUNDS) -> Decisions:
    """What the policy asks and shows, round by round."""
    log = []
    for _ in range(rounds):
        played = play_round(policy, environment)
        users = played.context.users
        asked = [(users[question.rows].tolist(), question.about.tolist()) for question, _ in played.dialogue]
        log.append((users.tolist(), asked, played.arm_ids.tolist()))
    return log


class _Build:
    """Builds the policy for an environment, and remembers what its class is called."""

    def __init__(self, make: Make, arguments: dict[str, Any]) -> None:
        self._make, self._arguments = make, {"seed": 0} | arguments  # every run passes a seed
        self.name = getattr(make, "__name__", type(make).__name__)

    def __call__(self, environment: Environment) -> Bandit:
        policy = self._make(environment.catalogue, environment.num_users, **self._arguments)
        self.name = type(policy).__name__
        _expect(isinstance(policy, Bandit), "a Bandit", self.name)
        return policy


def _promise(check: Callable[[_Build], None]) -> Check:
    """The check as others call it: whatever goes wrong names the class and the promise."""
    promise = (check.__doc__ or "").partition("\n")[0].rstrip(".")

    @wraps(check)
    def run(make: Make, **arguments: Any) -> None:
        build = _Build(make, arguments)
        try:
            with torch.no_grad():
                check(build)
        except _BrokenError as broken:
            raise ContractError(f"{build.name} breaks its promise: {promise}; {broken}") from None
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise ContractError(f"{build.name} breaks its promise: {promise}; {what}") from error

    return run


class _BrokenError(Exception):
    """What was expected, and what came."""


def _expect(kept: bool, expected: str, came: Any) -> None:
    if not kept:
        raise _BrokenError(f"expected {expected}, got {came}")


def _expect_finite(scores: Tensor) -> None:
    _expect(bool(scores.isfinite().all()), "finite scores", scores[~scores.isfinite()].tolist()[:3])


def _expect_equal(log: Decisions, other: Decisions, what: str) -> None:
    for number, (ours, theirs) in enumerate(zip(log, other, strict=True), 1):
        for kind, one, two in zip(("users", "questions", "arms"), ours, theirs, strict=True):
            _expect(one == two, f"{what}: {kind} {two} in round {number}", one)


def _expect_same(state: dict[str, Tensor], before: dict[str, Tensor], what: str) -> None:
    for name, value in state.items():
        _expect(torch.equal(value, before[name]), what, f"a change of {name}")


def _world(**changes: Any) -> Synthetic:
    """Few users; their number, 7, is that of nothing else, so that a buffer of 7 rows has one a user."""
    return Synthetic(**(_SIZES | changes))


class _Only(Synthetic):
    """A world that only some users visit."""

    def __init__(self, *users: int) -> None:
        super().__init__(**_SIZES)
        self.present = torch.tensor(users)

    def visitors(self) -> Tensor:
        """[B] those users."""
        return self.present


@_promise
def check_shapes(build: _Build) -> None:
    """Scores are finite, [B, A], and the first highest is shown; questions are about what there is.

    The user's rounds are counted.
    """
    world = _world()
    policy = build(world)
    for _ in range(ROUNDS):
        context = world.observe()
        while (question := policy.ask(context)) is not None:
            about, kind = question.about, "key-terms" if question.positions is None else "positions"
            limit = world.catalogue.num_terms if question.positions is None else context.arms.shape[1]
            _expect(about.dtype == torch.int64, f"{kind} asked about in int64", about.dtype)
            inside = bool(((about >= 0) & (about < limit)).all())
            _expect(inside, f"{kind} from 0 to {limit - 1}", about.tolist())
            policy.listen(context, question, world.answer(context, question))
        scores = policy.scores(context)
        _expect(scores.shape == context.arms.shape, f"scores {list(context.arms.shape)}", list(scores.shape))
        _expect_finite(scores)
        arm = policy.choose(context)
        best = scores.argmax(1)
        _expect(torch.equal(arm, best), f"choose to give int64 positions {best.tolist()}", arm.tolist())
        policy.update(context, arm, world.pull(context, arm).reward)
    rounds = policy.rounds.tolist()
    _expect(rounds == [ROUNDS] * world.num_users, f"{ROUNDS} rounds counted for every user", rounds)


@_promise
def check_users_do_not_depend_on_the_batch(build: _Build) -> None:
    """A user is asked and shown the same whoever else is in the batch.

    Of policies whose users share no state; others say `users_are_independent = False`.
    """
    world = _world()
    policy = build(world)
    if not policy.users_are_independent:
        return
    together = decisions(policy, world)
    for user in (0, 3, 6):
        alone = _Only(user)
        own: Decisions = [
            (
                [user],
                [([user], [what[asked.index(user)]]) for asked, what in questions if user in asked],
                [arms[user]],
            )
            for _, questions, arms in together
        ]
        what = f"user {user} alone to be treated as in a batch (or users_are_independent = False)"
        _expect_equal(decisions(build(alone), alone), own, what)


@_promise
def check_absent_users_are_untouched(build: _Build) -> None:
    """Buffers with a row a user keep the rows of users who are not there."""
    world = _Only(1, 4)
    policy = build(world)
    fresh = copy.deepcopy(policy.state_dict())
    decisions(policy, world)
    absent = [0, 2, 3, 5, 6]
    for name, value in policy.state_dict().items():
        if value.ndim and len(value) == world.num_users:
            same = torch.equal(value[absent], fresh[name][absent])
            _expect(same, f"{name} of absent users as it was", f"a change in {name}")


@_promise
def check_state_is_saved(build: _Build) -> None:
    """`state_dict` is the whole policy: a fresh one that loads it goes on in the same way.

    State that is no buffer, such as a list or a counter of one's own, is lost by a checkpoint.
    """
    world = _world()
    policy, twin = build(world), build(world)
    decisions(policy, world)
    twin.load_state_dict(policy.state_dict(), strict=True)
    other = copy.deepcopy(world)
    what = "the loaded policy to go on like the saved one (is all state in buffers?)"
    _expect_equal(decisions(twin, other), decisions(policy, world), what)
    for name, value in policy.state_dict().items():
        _expect(torch.equal(value, twin.state_dict()[name]), f"the same {name} afterwards", "another")


@_promise
def check_runs_are_reproducible(build: _Build) -> None:
    """Two runs with one seed are the same: random numbers come from `self.stream`, not from torch."""
    first, second = _world(users_per_round=3), _world(users_per_round=3)
    log = decisions(build(first), first)
    _expect_equal(decisions(build(second), second), log, "the second run to repeat the first")


@_promise
def check_the_world_is_left_alone(build: _Build) -> None:
    """Neither the catalogue nor candidates and noise depend on what the policy does."""
    world, plain = _world(), _world()
    before = copy.deepcopy(dict(world.catalogue.named_buffers()))
    policy, other = build(world), Random(plain.catalogue, plain.num_users)
    for number in range(1, ROUNDS + 1):
        context = play_round(policy, world).context
        same = torch.equal(context.arms, play_round(other, plain).context.arms)
        _expect(same, f"the candidates of round {number} that every policy meets", "others")
        noise = (w.arm_noise(context.users, w.rounds) for w in (world, plain))
        _expect(torch.equal(*noise), f"the noise of round {number} that every policy meets", "another")
    _expect_same(dict(world.catalogue.named_buffers()), before, "the catalogue as it was")


@_promise
def check_features_of_the_context_are_used(build: _Build) -> None:
    """A context with features of its own is scored by them: here, as the catalogue's, which they equal."""
    world = _world()
    policy = build(world)
    decisions(policy, world, 3)
    context = world.observe()
    given = Context(context.users, context.arms, context.arm_features.clone())
    torch.testing.assert_close(policy.scores(given), policy.scores(context), rtol=1e-9, atol=1e-9)


@_promise
def check_rounds_without_feedback_are_survived(build: _Build) -> None:
    """A round in which nobody's reward is seen changes no score."""
    world = _world()
    policy = build(world)
    decisions(policy, world, 3)
    context, nobody = world.observe(), torch.zeros(0, dtype=torch.int64)
    before = policy.scores(context)
    policy.update(context.take(nobody), nobody, before.new_zeros(0))
    _expect(torch.equal(policy.scores(context), before), "the scores as they were", "others")


@_promise
def check_precision_is_followed(build: _Build) -> None:
    """A policy that is moved to float32, as simulations do by default, plays on in float32.

    So tensors must be buffers, and of the dtype of the catalogue's features.
    """
    world = _world()
    policy = build(world)
    world.to(torch.float32)
    policy.to(torch.float32)
    decisions(policy, world)
    for name, value in policy.state_dict().items():
        _expect(value.dtype != torch.float64, f"{name} in float32", value.dtype)
    _expect_finite(policy.scores(world.observe()))


CHECKS: tuple[Check, ...] = (
    check_shapes,
    check_users_do_not_depend_on_the_batch,
    check_absent_users_are_untouched,
    check_state_is_saved,
    check_runs_are_reproducible,
    check_the_world_is_left_alone,
    check_features_of_the_context_are_used,
    check_rounds_without_feedback_are_survived,
    check_precision_is_followed,
)
