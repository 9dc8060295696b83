"""Schedules, confidence factors, the regret bound."""

import math

import numpy as np
import pytest
import torch

from conbandit_torch import (
    ConUCB,
    Lemma1,
    Lemma3,
    LinearSchedule,
    LogSchedule,
    NoConversation,
    play_round,
    regret_bound,
)
from tests.conftest import ALGEBRA, small_world


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (LogSchedule(5), [0, 0, 5, 5, 5, 5, 5, 10]),
        (LogSchedule(0.5), [0, 0, 0.5, 0.5, 0.5, 0.5, 0.5, 1]),
        (LinearSchedule(2, every=3), [0, 0, 2, 2, 2, 4, 4, 4]),
        (NoConversation(), [0] * 8),
    ],
)
def test_schedules(schedule, expected):
    assert schedule.total(torch.arange(1, 9)).tolist() == expected


@pytest.mark.parametrize("schedule", [LogSchedule(5), LinearSchedule(3, every=7), LogSchedule(0.5)])
def test_a_user_has_been_asked_floor_b_of_t_by_the_end_of_round_t(schedule):
    world = small_world(users_per_round=3)
    policy = ConUCB(world.catalogue, 7, schedule=schedule)
    for _ in range(60):
        play_round(policy, world)
        seen = world.rounds > 0
        allowed = schedule.total(world.rounds[seen]).floor().long()
        assert torch.equal(policy.asked[seen], allowed)
    assert policy.asked.max() > 0


def test_lemma_1_printed_and_corrected():
    world = small_world()
    policy = ConUCB(world.catalogue, 7, mix=0.3)
    for _ in range(20):
        play_round(policy, world)
    M = policy.arm_model.gram.numpy()
    ratio = np.sqrt(np.linalg.det(M) / np.linalg.det(0.7 * np.eye(6)))
    printed = np.sqrt(2 * np.log(ratio / 0.1))
    got = Lemma1(0.1, printed=True)(policy.arm_model, slice(0, 7))
    np.testing.assert_allclose(got, printed, rtol=1e-9)
    np.testing.assert_allclose(
        Lemma1(0.1)(policy.arm_model, slice(0, 7)), printed / math.sqrt(0.3), rtol=1e-9
    )


def test_lemma_3_counts_the_questions_and_knows_only_the_given_bound():
    world = small_world()
    policy = ConUCB(world.catalogue, 7, term_ridge=2.0)
    factor = Lemma3(norm_bound=1.5, sigma=0.1)
    for rounds, b in ((0, 1), (3, 5), (8, 10)):
        while int(world.rounds[0]) < rounds:
            play_round(policy, world)
        expected = math.sqrt(2 * (6 * math.log(6) + math.log(2 * b / 0.1))) + 2 * math.sqrt(2.0) * 1.5
        got = factor(policy.term_model, slice(0, 7))
        torch.testing.assert_close(got, torch.full_like(got, expected), **ALGEBRA)


def test_corrected_lemma_1_covers_and_the_printed_one_does_not():
    """One level of ConUCB's arm regression, lam = .5, theta~ = theta_*: intervals fail at most 5 % of
    the time if corrected, far more often if printed. 2,000 users, 60 rounds, failures over all rounds."""
    users, dim, lam = 2000, 4, 0.5
    world = small_world(users=users, dim=dim, noise=1.0, arms=30, pool=1)
    policy = ConUCB(world.catalogue, users, mix=lam)
    model, failed = policy.arm_model, {True: torch.zeros(users).bool(), False: torch.zeros(users).bool()}
    everyone = slice(0, users)
    for _ in range(60):
        context = world.observe()
        (feedback,) = world.pull(context, torch.zeros(users, dtype=torch.int64)).feedback
        model.update(everyone, context.arm_features[:, 0], feedback.reward)
        error = model.coefficients(everyone, world.theta) - world.theta  # [U, D]
        distance = torch.einsum("ud,ude,ue->u", error, model.gram, error).sqrt()
        for printed, users_failed in failed.items():
            # |theta - theta_*|_M <= lam alpha is what the first width of Eq. 7 claims
            users_failed |= distance > lam * Lemma1(0.05, printed=printed)(model, everyone)
    assert failed[False].double().mean() < 0.05
    assert failed[True].double().mean() > 0.10


def test_theory_values_scale_the_widths_of_the_arm_rule():
    """Eq. 7 with alpha and alpha~ of each user's own state."""
    world = small_world()
    lemma1, lemma3 = Lemma1(0.05), Lemma3(norm_bound=2.0)
    policy = ConUCB(world.catalogue, 7, mix=0.3, alpha=lemma1, term_alpha=lemma3)
    for _ in range(10):
        play_round(policy, world)
    context = world.observe()
    x, inverse, term_inverse = (
        context.arm_features,
        torch.linalg.inv(policy.arm_model.gram),
        torch.linalg.inv(policy.term_model.gram),
    )
    y = x @ inverse
    arm_width = torch.einsum("bad,bad->ba", y, x).sqrt()
    term_width = torch.einsum("bad,bde,bae->ba", y, term_inverse, y).sqrt()
    alpha = lemma1(policy.arm_model, context.who)[:, None]
    term_alpha = lemma3(policy.term_model, context.who)[:, None]
    mean = torch.einsum("bad,bd->ba", x, policy.coefficients())
    expected = mean + 0.3 * alpha * arm_width + 0.7 * term_alpha * term_width
    torch.testing.assert_close(policy.scores(context), expected, **ALGEBRA)


def test_theorem_4_by_hand():
    lam, T, d, b, S, sigma = 0.25, 100, 3, 20, 2.0, 0.1
    growth = 1 + lam * T / (d * (1 - lam))
    inside = (
        math.sqrt(lam) * math.sqrt(d * math.log((1 + lam * T / ((1 - lam) * d)) / sigma))
        + 2 * math.sqrt((1 - lam) / lam) * S
        + (1 - math.sqrt(lam)) * math.sqrt(d * math.log(6) + math.log(2 * b / sigma))
    )
    expected = 2 * inside * math.sqrt(T * d * math.log(growth))
    got = regret_bound(T, d, questions=b, mix=lam, term_ridge=24.0, norm_bound=S, sigma=sigma)
    assert got == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: regret_bound(9, 2, questions=1, mix=0.6, term_ridge=99, norm_bound=1),
            r"mix in \(0, 0.5\]",
        ),
        (
            lambda: regret_bound(9, 2, questions=1, mix=0.25, term_ridge=23, norm_bound=1),
            "term_ridge >= 24",
        ),
        (lambda: Lemma1(1.0), r"sigma must be in \(0, 1\), got 1.0"),
        (lambda: Lemma3(0.0), "norm_bound must be above 0 and finite, got 0.0"),
        (lambda: LogSchedule(-1), "questions must be a number of at least 0, got -1"),
        (lambda: LinearSchedule(1, every=0), "every must be at least 1, got 0"),
    ],
)
def test_values_out_of_range_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
