"""What every policy must do, whoever wrote it. `check(make)` runs all of it.

`make(catalogue, num_users, **kwargs)` builds a fresh policy.
"""

from __future__ import annotations

import copy

import pytest
import torch

from conbandit_torch import Context, Random, play_round
from tests.conftest import ALGEBRA, EXACT, small_world

ROUNDS = 25  # passes floor(log t) = 1, 2, 3, so every schedule used here asks


def build(make, environment, **kwargs):
    return make(environment.catalogue, environment.num_users, **kwargs)


def decisions(policy, environment, rounds=ROUNDS):
    """What the policy did: one list of (user, what was asked, arm shown) per round."""
    log = []
    for _ in range(rounds):
        played = play_round(policy, environment)
        asked = [
            (
                played.context.users[q.rows].tolist(),
                (q.terms if q.terms is not None else q.positions).tolist(),
            )
            for q, _ in played.dialogue
        ]
        log.append((played.context.users.tolist(), asked, played.arm_ids.tolist()))
    return log


def check_shapes(make):
    environment = small_world()
    policy = build(make, environment)
    for _ in range(ROUNDS):
        context = environment.observe()
        while (question := policy.ask(context)) is not None:
            asked = question.terms if question.terms is not None else question.positions
            limit = environment.catalogue.num_terms if question.terms is not None else context.arms.shape[1]
            assert asked.dtype == torch.int64 and 0 <= asked.min() and asked.max() < limit
            answer = environment.answer(context, question)
            assert answer.shape == (len(question),)
            policy.listen(context, question, answer)
        scores = policy.scores(context)
        assert scores.shape == context.arms.shape and scores.isfinite().all()
        arm = policy.choose(context)
        assert arm.shape == context.users.shape and arm.dtype == torch.int64
        torch.testing.assert_close(arm, scores.argmax(1), **EXACT)
        outcome = environment.pull(context, arm)
        policy.update(context, arm, outcome.reward)
    assert policy.rounds.tolist() == [ROUNDS] * environment.num_users


def check_batched_equals_looped(make):
    """A user's decisions do not depend on who else is in the batch, where users share no state."""
    if not make.users_are_independent:
        pytest.skip("its users share state: what a batch does is checked against the reference")
    together = small_world()
    policy = build(make, together)
    batched = decisions(policy, together)
    for user in range(together.num_users):
        alone = small_world()
        alone.visitors = lambda user=user: torch.tensor([user])
        single = build(make, alone)
        for (_, asked_batched, arms_batched), (_, asked, arms) in zip(
            batched, decisions(single, alone), strict=True
        ):
            assert arms == [arms_batched[user]]
            assert [terms for _, (terms,) in asked] == [
                t[u.index(user)] for u, t in asked_batched if user in u
            ]


def check_absent_users_are_untouched(make):
    environment = small_world()
    environment.visitors = lambda: torch.tensor([1, 4])
    policy = build(make, environment)
    fresh = copy.deepcopy(policy.state_dict())
    decisions(policy, environment)
    rest = [0, 2, 3, 5, 6]
    changed = False
    for name, value in policy.state_dict().items():
        if value.ndim and len(value) == environment.num_users:
            torch.testing.assert_close(value[rest], fresh[name][rest], **EXACT)
            changed |= not torch.equal(value, fresh[name])
    assert changed


def check_state_dict_round_trip(make):
    environment = small_world()
    policy = build(make, environment)
    decisions(policy, environment)
    twin = build(make, environment)
    twin.load_state_dict(policy.state_dict(), strict=True)
    other = copy.deepcopy(environment)
    assert decisions(policy, environment) == decisions(twin, other)


def check_determinism(make):
    runs = []
    for _ in range(2):
        environment = small_world(users_per_round=3)
        runs.append(decisions(build(make, environment), environment))
    assert runs[0] == runs[1]


def check_same_rounds_for_everyone(make):
    """The policy's questions and choices change neither candidates nor noise."""
    ours, plain = small_world(), small_world()
    policy, other = build(make, ours), build(Random, plain)
    for _ in range(ROUNDS):
        context = play_round(policy, ours).context
        torch.testing.assert_close(context.arms, play_round(other, plain).context.arms, **EXACT)
        noise = ours.arm_noise(context.users, ours.rounds), plain.arm_noise(context.users, plain.rounds)
        torch.testing.assert_close(*noise, **EXACT)


def check_features_of_the_context_are_used(make):
    """A context with features of its own gives what the catalogue's give where they are the same."""
    environment = small_world()
    policy = build(make, environment)
    decisions(policy, environment, 3)
    context = environment.observe()
    given = Context(context.users, context.arms, context.arm_features.clone())
    torch.testing.assert_close(policy.scores(given), policy.scores(context), **ALGEBRA)


def check_truth_is_out_of_reach(make):
    """Nothing that a policy is handed, or keeps, holds the users' true parameters."""
    environment = small_world(hidden=2)
    policy = build(make, environment)
    context = environment.observe()
    truth = {environment.theta.data_ptr(), environment._world.arm_features.data_ptr()}
    seen, todo = set(), [policy, context]
    while todo:
        item = todo.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        assert item is not environment
        if isinstance(item, torch.Tensor):
            assert item.data_ptr() not in truth
        elif isinstance(item, dict):
            todo.extend(item.values())
        elif isinstance(item, list | tuple | set):
            todo.extend(item)
        elif type(item).__module__.startswith(("conbandit_torch", "tests")):
            todo.extend(vars(item).values())


CHECKS = [value for name, value in list(globals().items()) if name.startswith("check_")]
