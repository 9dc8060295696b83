"""The promises, a check each; the first line of a check's docstring is the promise that its errors name."""

from __future__ import annotations

import copy

import torch

from conbandit_torch.bandits.uniform import Random
from conbandit_torch.core.context import Context
from conbandit_torch.core.questions import Answer
from conbandit_torch.core.rows import row_buffers
from conbandit_torch.environments.delays import GeometricDelay
from conbandit_torch.loop import play_round
from conbandit_torch.testing.harness import (
    ROUNDS,
    Build,
    Check,
    Checked,
    Decisions,
    Only,
    decisions,
    expect,
    expect_equal,
    expect_finite,
    expect_same,
    promised,
    small_world,
)


@promised
def check_shapes(build: Build) -> None:
    """Scores are finite, [B, A], and the first highest is shown; questions are about what there is."""
    world = small_world()
    policy = build(world)
    for _ in range(ROUNDS):
        context = world.observe()
        while (question := policy.ask(context)) is not None:
            question.check(context, world.catalogue)
            policy.listen(context, question, world.answer(context, question))
        scores = policy.scores(context)
        expect(scores.shape == context.arms.shape, f"scores {list(context.arms.shape)}", list(scores.shape))
        expect_finite(scores)
        arm = policy.choose(context)
        best = scores.argmax(1)
        expect(torch.equal(arm, best), f"choose to give int64 positions {best.tolist()}", arm.tolist())
        for feedback in world.pull(context, arm).feedback:
            policy.update(feedback.context, feedback.arm, feedback.reward)


@promised
def check_users_do_not_depend_on_the_batch(build: Build) -> None:
    """A user is asked and shown the same, whichever other users are in the batch.

    Of policies whose users share no state; others say `users_are_independent = False`.
    """
    world = small_world()
    policy = build(world)
    if not policy.users_are_independent:
        return
    together = decisions(policy, world)
    for user in (0, 3, 6):
        alone = Only(user)
        own: Decisions = [
            (
                [user],
                [([user], [what[asked.index(user)]]) for asked, what in questions if user in asked],
                [arms[user]],
            )
            for _, questions, arms in together
        ]
        what = f"user {user} alone to be treated as in a batch (or users_are_independent = False)"
        expect_equal(decisions(build(alone), alone), own, what)


@promised
def check_absent_users_are_untouched(build: Build) -> None:
    """Rows of users who are not there are left alone."""
    world = Only(1, 4)
    policy = build(world)
    fresh = copy.deepcopy(row_buffers(policy, "user"))
    decisions(policy, world)
    absent = [0, 2, 3, 5, 6]
    for name, value in row_buffers(policy, "user").items():
        same = torch.equal(value[absent], fresh[name][absent])
        expect(same, f"{name} of absent users as it was", f"a change in {name}")


@promised
def check_state_is_saved(build: Build) -> None:
    """`state_dict` is the whole policy: a fresh one that loads it goes on in the same way.

    State that is no buffer, such as a list or a plain counter, is lost by a checkpoint.
    """
    world = small_world()
    policy, twin = build(world), build(world)
    decisions(policy, world)
    twin.load_state_dict(policy.state_dict(), strict=True)
    other = copy.deepcopy(world)
    what = "the loaded policy to go on like the saved one (is all state in buffers?)"
    expect_equal(decisions(twin, other), decisions(policy, world), what)
    for name, value in policy.state_dict().items():
        expect(torch.equal(value, twin.state_dict()[name]), f"the same {name} afterwards", "another")


@promised
def check_runs_are_reproducible(build: Build) -> None:
    """Two runs with one seed are the same: random numbers come from `self.stream`, not from torch."""
    first, second = small_world(users_per_round=3), small_world(users_per_round=3)
    log = decisions(build(first), first)
    expect_equal(decisions(build(second), second), log, "the second run to repeat the first")


@promised
def check_the_world_is_left_alone(build: Build) -> None:
    """Neither the catalogue nor candidates and noise depend on what the policy does."""
    world, plain = small_world(), small_world()
    before = copy.deepcopy(dict(world.catalogue.named_buffers()))
    policy, other = build(world), Random(plain.catalogue, plain.num_users)
    for number in range(1, ROUNDS + 1):
        context = play_round(policy, world).context
        same = torch.equal(context.arms, play_round(other, plain).context.arms)
        expect(same, f"the candidates of round {number} that every policy meets", "others")
        noise = (w.arm_noise(context.users, w.rounds) for w in (world, plain))
        expect(torch.equal(*noise), f"the noise of round {number} that every policy meets", "another")
    expect_same(dict(world.catalogue.named_buffers()), before, "the catalogue as it was")


@promised
def check_features_of_the_context_are_used(build: Build) -> None:
    """A context with features of its own is scored by them: here, as the catalogue's, which they equal."""
    world = small_world()
    policy = build(world)
    decisions(policy, world, 3)
    context = world.observe()
    given = Context(context.users, context.arms, context.arm_features.clone(), rounds=context.rounds.clone())
    torch.testing.assert_close(policy.scores(given), policy.scores(context), rtol=1e-9, atol=1e-9)


@promised
def check_rounds_without_feedback_are_survived(build: Build) -> None:
    """A round in which no reward is seen changes no score."""
    world = small_world()
    policy = build(world)
    decisions(policy, world, 3)
    context, nobody = world.observe(), torch.zeros(0, dtype=torch.int64)
    before = policy.scores(context)
    policy.update(context.take(nobody), nobody, before.new_zeros(0))
    expect(torch.equal(policy.scores(context), before), "the scores as they were", "others")


@promised
def check_precision_is_followed(build: Build) -> None:
    """A policy that is moved to float32, as simulations do by default, plays on in float32.

    So tensors must be buffers, and of the dtype of the catalogue's features.
    """
    world = small_world()
    policy = build(world)
    world.to(torch.float32)
    policy.to(torch.float32)
    decisions(policy, world)
    for name, value in policy.state_dict().items():
        expect(value.dtype != torch.float64, f"{name} in float32", value.dtype)
    expect_finite(policy.scores(world.observe()))


@promised
def check_decisions_may_stay_open(build: Build) -> None:
    """A user may have several decisions open: deciding changes nothing, and each has draws of its own."""
    world = small_world()
    policy = build(world)
    decisions(policy, world, 3)
    before = copy.deepcopy(policy.state_dict())
    now = world.observe()
    later = Context(now.users, now.arms, rounds=now.rounds + 1, catalogue=world.catalogue)
    first = [policy.choose(context) for context in (now, later, now)]
    expect(torch.equal(first[0], first[2]), "the same arms for the same context", "others")
    expect_same(dict(policy.state_dict()), before, "no change of state by a decision")


@promised
def check_rewards_may_come_late(build: Build) -> None:
    """Rewards of earlier rounds are learned whenever they come, by the context they were decided in."""
    world = small_world(delay=GeometricDelay(3.0, lost=0.2))
    policy = build(world)
    decisions(policy, world, 2 * ROUNDS)
    expect_finite(policy.scores(world.observe()))


@promised
def check_the_order_of_rewards_does_not_matter(build: Build) -> None:
    """Rewards of three open decisions give the same beliefs in any order, to rounding.

    Of policies whose users share no state, and who do not say `order_matters`: in others a step depends on
    those before it. Beliefs are what
    `predict` gives, or else the scores: a sample may differ, while its distribution does not.
    """
    world = small_world()
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


@promised
def check_unknown_answers_teach_nothing(build: Build) -> None:
    """An answer of "don't know" counts as a question, and changes nothing else."""
    world = small_world()
    policy = build(world)
    for _ in range(ROUNDS):
        context = world.observe()
        while (question := policy.ask(context)) is not None:
            before = policy.scores(context)
            value = before.new_full((len(question),), torch.nan)
            policy.listen(context, question, Answer(value, torch.zeros(len(question), dtype=torch.bool)))
            expect(torch.equal(policy.scores(context), before), "the scores as they were", "others")
        world.pull(context, policy.choose(context))


@promised
def check_new_users_may_come(build: Build) -> None:
    """A policy that grows decides as one that was built for all users: rows are declared per user.

    A buffer with a row per user is declared with `self.register_rows(name, initial)`.
    """
    world, large = Only(0, 1, 2), small_world()
    small = build(world, 3)
    small.welcome_new_users()
    whole = build(large)
    log = decisions(small, world)
    expect_equal(log, decisions(whole, Only(0, 1, 2)), "the same as a policy for all users")
    rest, again = Checked(5, 2, 6), Checked(5, 2, 6)
    what = "new users to be treated as by a policy that was built for them"
    expect_equal(decisions(small, rest), decisions(whole, again), what)


@promised
def check_users_can_be_forgotten(build: Build) -> None:
    """A user who is forgotten is as new."""
    world = small_world()
    policy = build(world)
    fresh = copy.deepcopy(row_buffers(policy, "user"))
    decisions(policy, world)
    policy.forget(torch.tensor([2, 4]))
    for name, value in row_buffers(policy, "user").items():
        same = torch.equal(value[[2, 4]], fresh[name][[2, 4]])
        expect(same, f"{name} of forgotten users as at the start", "something else")


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
