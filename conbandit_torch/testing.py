"""What every policy promises: `check_policy(MyBandit)` checks all of it.

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
from conbandit_torch.core.questions import Answer
from conbandit_torch.core.rows import row_buffers
from conbandit_torch.environments.base import Environment
from conbandit_torch.environments.delays import GeometricDelay
from conbandit_torch.environments.synthetic import Synthetic
from conbandit_torch.loop import play_round

ROUNDS = 12  # passes floor(log t) = 1 and 2, so that the usual schedule asks twice
_SIZES: dict[str, Any] = {"users": 7, "arms": 60, "terms": 12, "dim": 5, "pool": 9, "max_terms": 3, "seed": 3}

Make = Callable[..., Bandit]
"""A policy's class, or a function (catalogue, num_users, **arguments) that builds one."""

Check = Callable[..., None]
"""check(make, **arguments): returns if the promise is kept."""

Decisions = list[tuple[list[int], list[tuple[list[int], list[list[int]]]], list[int]]]
"""A round each: users, questions (users asked, what they were asked), arms shown."""


class ContractError(AssertionError):
    """A promise that a policy does not keep: which class, which promise, what was expected and what came."""


def check_policy(make: Make, **arguments: Any) -> list[str]:
    """Check that a policy keeps every promise; gives the promises, as they were checked.

    Args:
        make: the policy's class, or a function (catalogue, num_users, **arguments) that builds one.
        arguments: arguments of the policy; `seed` is given to every policy.

    Raises:
        ContractError: at the first promise that is broken.
    """
    for check in CHECKS:
        check(make, **arguments)
    return [(check.__doc__ or "").partition("\n")[0] for check in CHECKS]


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


class _Build:
    """Builds the policy for an environment, and remembers what its class is called."""

    def __init__(self, make: Make, arguments: dict[str, Any]) -> None:
        self._make, self._arguments = make, {"seed": 0} | arguments  # every run passes a seed
        self.name = getattr(make, "__name__", type(make).__name__)

    def __call__(self, environment: Environment, num_users: int | None = None) -> Bandit:
        number = environment.num_users if num_users is None else num_users
        policy = self._make(environment.catalogue, number, **self._arguments)
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
    """Few users, so that a check takes no time."""
    return Synthetic(**(_SIZES | changes))


class _Only(Synthetic):
    """A world that only some users visit."""

    def __init__(self, *users: int) -> None:
        super().__init__(**_SIZES)
        self.present = torch.tensor(users)

    def visitors(self) -> Tensor:
        """[B] those users."""
        return self.present


class _Checked(_Only):
    """A world whose contexts are checked, as those of strangers are."""

    def observe(self) -> Context:
        """The users who are here, in a context that is checked."""
        own = super().observe()
        return Context(own.users, own.arms, rounds=own.rounds, catalogue=self.catalogue)


@_promise
def check_shapes(build: _Build) -> None:
    """Scores are finite, [B, A], and the first highest is shown; questions are about what there is."""
    world = _world()
    policy = build(world)
    for _ in range(ROUNDS):
        context = world.observe()
        while (question := policy.ask(context)) is not None:
            question.check(context, world.catalogue)
            policy.listen(context, question, world.answer(context, question))
        scores = policy.scores(context)
        _expect(scores.shape == context.arms.shape, f"scores {list(context.arms.shape)}", list(scores.shape))
        _expect_finite(scores)
        arm = policy.choose(context)
        best = scores.argmax(1)
        _expect(torch.equal(arm, best), f"choose to give int64 positions {best.tolist()}", arm.tolist())
        for feedback in world.pull(context, arm).feedback:
            policy.update(feedback.context, feedback.arm, feedback.reward)


@_promise
def check_users_do_not_depend_on_the_batch(build: _Build) -> None:
    """A user is asked and shown the same, whichever other users are in the batch.

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
    """Rows of users who are not there are left alone."""
    world = _Only(1, 4)
    policy = build(world)
    fresh = copy.deepcopy(row_buffers(policy, "user"))
    decisions(policy, world)
    absent = [0, 2, 3, 5, 6]
    for name, value in row_buffers(policy, "user").items():
        same = torch.equal(value[absent], fresh[name][absent])
        _expect(same, f"{name} of absent users as it was", f"a change in {name}")


@_promise
def check_state_is_saved(build: _Build) -> None:
    """`state_dict` is the whole policy: a fresh one that loads it goes on in the same way.

    State that is no buffer, such as a list or a plain counter, is lost by a checkpoint.
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
    given = Context(context.users, context.arms, context.arm_features.clone(), rounds=context.rounds.clone())
    torch.testing.assert_close(policy.scores(given), policy.scores(context), rtol=1e-9, atol=1e-9)


@_promise
def check_rounds_without_feedback_are_survived(build: _Build) -> None:
    """A round in which no reward is seen changes no score."""
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


@_promise
def check_decisions_may_stay_open(build: _Build) -> None:
    """A user may have several decisions open: deciding changes nothing, and each has draws of its own."""
    world = _world()
    policy = build(world)
    decisions(policy, world, 3)
    before = copy.deepcopy(policy.state_dict())
    now = world.observe()
    later = Context(now.users, now.arms, rounds=now.rounds + 1, catalogue=world.catalogue)
    first = [policy.choose(context) for context in (now, later, now)]
    _expect(torch.equal(first[0], first[2]), "the same arms for the same context", "others")
    _expect_same(dict(policy.state_dict()), before, "no change of state by a decision")


@_promise
def check_rewards_may_come_late(build: _Build) -> None:
    """Rewards of earlier rounds are learned whenever they come, by the context they were decided in."""
    world = _world(delay=GeometricDelay(3.0, lost=0.2))
    policy = build(world)
    decisions(policy, world, 2 * ROUNDS)
    _expect_finite(policy.scores(world.observe()))


@_promise
def check_the_order_of_rewards_does_not_matter(build: _Build) -> None:
    """Rewards of three open decisions give the same beliefs in any order, to rounding.

    Of policies whose users share no state, and who do not say `order_matters`: in others a step depends on
    those before it. Beliefs are what
    `predict` gives, or else the scores: a sample may differ, while its distribution does not.
    """
    world = _world()
    one, other = build(world), build(world)
    if not one.users_are_independent or one.order_matters:
        return
    context = world.observe()
    three = [
        Context(context.users, context.arms.roll(shift, 1), rounds=shift, catalogue=world.catalogue)
        for shift in range(3)
    ]
    rewards = [torch.full((len(context),), 0.5 + shift, dtype=torch.float64) for shift in range(3)]
    arms = torch.zeros_like(context.users)
    for policy, order in ((one, (0, 1, 2)), (other, (2, 0, 1))):
        for number in order:
            policy.update(three[number], arms, rewards[number])
    beliefs = [policy.predict(context) for policy in (one, other)]
    if beliefs[0] is None or beliefs[1] is None:
        beliefs = [one.scores(context), other.scores(context)]
    torch.testing.assert_close(*beliefs, rtol=1e-9, atol=1e-9)


@_promise
def check_unknown_answers_teach_nothing(build: _Build) -> None:
    """An answer of "don't know" counts as a question, and changes nothing else."""
    world = _world()
    policy = build(world)
    for _ in range(ROUNDS):
        context = world.observe()
        while (question := policy.ask(context)) is not None:
            before = policy.scores(context)
            value = before.new_full((len(question),), torch.nan)
            policy.listen(context, question, Answer(value, torch.zeros(len(question), dtype=torch.bool)))
            _expect(torch.equal(policy.scores(context), before), "the scores as they were", "others")
        world.pull(context, policy.choose(context))


@_promise
def check_new_users_may_come(build: _Build) -> None:
    """A policy that grows decides as one that was built for all users: rows are declared per user.

    A buffer with a row per user is declared with `self.register_rows(name, initial)`.
    """
    world, large = _Only(0, 1, 2), _world()
    small = build(world, 3)
    small.welcome_new_users()
    whole = build(large)
    log = decisions(small, world)
    _expect_equal(log, decisions(whole, _Only(0, 1, 2)), "the same as a policy for all users")
    rest, again = _Checked(5, 2, 6), _Checked(5, 2, 6)
    what = "new users to be treated as by a policy that was built for them"
    _expect_equal(decisions(small, rest), decisions(whole, again), what)


@_promise
def check_users_can_be_forgotten(build: _Build) -> None:
    """A user who is forgotten is as new."""
    world = _world()
    policy = build(world)
    fresh = copy.deepcopy(row_buffers(policy, "user"))
    decisions(policy, world)
    policy.forget(torch.tensor([2, 4]))
    for name, value in row_buffers(policy, "user").items():
        same = torch.equal(value[[2, 4]], fresh[name][[2, 4]])
        _expect(same, f"{name} of forgotten users as at the start", "something else")


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
    check_decisions_may_stay_open,
    check_rewards_may_come_late,
    check_the_order_of_rewards_does_not_matter,
    check_unknown_answers_teach_nothing,
    check_new_users_may_come,
    check_users_can_be_forgotten,
)
