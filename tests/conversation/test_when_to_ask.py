"""Schedules that look at what is known: they ask when the reference does, and what they rest on holds."""

import numpy as np
import pytest
import torch

from conbandit_torch import (
    ArmCon,
    CLiME,
    CLiSK,
    ConLinUCB,
    ConPE,
    ConUCB,
    Curved,
    EigenvalueTest,
    HConLinUCB,
    HConUCB,
    PerturbedTerm,
    RelativeConUCB,
    ShiftedTerms,
    Synthetic,
    WorthAsking,
    play_round,
)
from conbandit_torch.conversation.worth import expected_maximum, uncertainty
from conbandit_torch.environments.answers import BestItem
from tests.conftest import ALGEBRA, small_world, weights
from tests.reference import asking as reference
from tests.reference import linear


def play(policy, environment, rounds):
    """By user: the arms shown, and the key-terms asked in every round."""
    shown, asked = ([[] for _ in range(environment.num_users)] for _ in range(2))
    for _ in range(rounds):
        played = play_round(policy, environment)
        for user, arm in enumerate(played.arm_ids.tolist()):
            shown[user].append(arm)
            asked[user].append([])
        for question, _ in played.dialogue:
            users = torch.arange(environment.num_users)[question.rows].tolist()
            for user, term in zip(users, question.about.of.tolist(), strict=True):
                asked[user][-1].append(term)
    return shown, asked


def reference_play(policy, environment, user, rounds, due):
    """The same of one user by the reference, whose `due(X, t, asked)` says whether to ask once more."""
    shown, asked, number = [], [], 0
    features, theta = environment.catalogue.arm_features.numpy(), environment.theta[user].numpy()
    for t in range(rounds):
        at = torch.tensor([user]), torch.tensor([t])
        arms = environment.pools(*at)[0].numpy()
        X, asked = features[arms], [*asked, []]
        while due(X, t + 1, number):
            k = policy.select(X, arms, None)
            policy.listen(k, policy.X_term[k] @ theta + float(environment.term_noise(*at)))
            asked[-1].append(k)
            number += 1
        choice = policy.choose(X)
        policy.update(X[choice], X[choice] @ theta + float(environment.arm_noise(*at)))
        shown.append(int(arms[choice]))
    return shown, asked


WORTH = {
    "once": WorthAsking(0.4, questions=50, spread=0.8, horizon=25),
    "by and by": WorthAsking(0.3, questions=9, spread=0.8, horizon=25, per_round=0.7),
    "impatient": WorthAsking(0.15, questions=50, spread=0.8, horizon=25, discount=0.8),
}


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("name", WORTH)
def test_worth_asking_asks_when_the_reference_does(name, levels):
    schedule, environment = WORTH[name], small_world(users=4)
    maximum = expected_maximum(9)
    W = weights(environment.catalogue)
    if levels == 1:
        policy = ConLinUCB(environment.catalogue, 4, ridge=0.8, alpha=0.4, schedule=schedule)
    else:
        arguments = {"mix": 0.7, "term_ridge": 0.6, "alpha": 0.3, "term_alpha": 0.2}
        policy = ConUCB(environment.catalogue, 4, **arguments, schedule=schedule)
    shown, asked = play(policy, environment, 20)
    for user in range(4):
        X_all = environment.catalogue.arm_features.numpy()
        if levels == 1:
            other = linear.ConLinUCB(X_all, W, "optimal", ridge=0.8, alpha=0.4)
            other.term_ridge = 0.8
        else:
            other = linear.ConUCB(X_all, W, "optimal", **arguments)
            other.term_ridge = 0.6

        def due(X, t, number, other=other):
            most = 50 if schedule.per_round is None else schedule.per_round * t
            grown = t == 1 or np.floor(8 * np.log2(t)) > np.floor(8 * np.log2(t - 1))
            if number >= np.floor(min(most, schedule.questions)) or not grown:
                return False
            to_come = sum(schedule.discount**later for later in range(25 - (t - 1)))
            return reference.saved(other, X, maximum, schedule.spread, to_come) > schedule.cost

        assert (shown[user], asked[user]) == reference_play(other, environment, user, 20, due)
    counts = [len(terms) for user in asked for terms in user]
    assert 0 < sum(counts) < 4 * min(50, schedule.questions)  # it does stop by itself, or at its patience
    if name == "once":
        assert max(counts) > 1


@pytest.mark.parametrize("every", [None, 3])
def test_clime_asks_when_the_reference_does(every):
    environment = small_world(users=4)
    schedule = EigenvalueTest(alpha=0.5, questions=30, per_check=4, every=every)
    policy = CLiME(environment.catalogue, 4, ridge=0.8, alpha=0.4, schedule=schedule)
    shown, asked = play(policy, environment, 18)
    for user in range(4):
        other = reference.CLiME(
            environment.catalogue.arm_features.numpy(), weights(environment.catalogue), ridge=0.8, alpha=0.4
        )

        def due(X, t, number, other=other):
            checks = [
                s for s in range(1, t + 1) if (s in (1, 2, 4, 8, 16) if every is None else s % every == 0)
            ]
            if t not in checks or number >= min(4 * len(checks), 30):
                return False
            return reference.fails_eigenvalue_test(other, t, 0.5)

        assert (shown[user], asked[user]) == reference_play(other, environment, user, 18, due)
    counts = [len(terms) for user in asked for terms in user]
    assert sum(counts) > 0 and counts.count(0) > len(counts) // 3


@pytest.mark.parametrize("number", [1, 2, 5, 50, 500])
def test_the_expected_maximum_is_that_of_its_density(number):
    """The slack is that of two sums in place of two integrals."""
    assert expected_maximum(number) == pytest.approx(reference.expected_maximum(number), abs=1e-5)


def test_a_round_costs_what_the_derivation_says():
    """r(u) = S m (1 - sqrt(1 - u)): candidates are normal, and preferences are as the ridge says.

    The slack of 10 % is for the first rounds: the correlation differs from user to user, and the mean of a
    root is below the root of a mean.
    """
    users, pool, dim, noise = 4000, 20, 8, 0.5
    generator = torch.Generator().manual_seed(0)
    normal = lambda *size: torch.randn(*size, generator=generator, dtype=torch.float64)  # noqa: E731
    theta = normal(users, dim)
    ridge, spread = noise**2, float(theta.norm(dim=1).mean())
    gram, moment = ridge * torch.eye(dim).double().repeat(users, 1, 1), torch.zeros_like(theta)
    for _ in range(12):
        x = normal(users, pool, dim)
        means = torch.einsum("uad,ud->ua", x, theta)
        estimates = torch.einsum("uad,ud->ua", x, torch.linalg.solve(gram, moment))
        regret = (means.amax(1) - means.gather(1, estimates.argmax(1)[:, None]).squeeze(1)).mean()
        own = x - x.mean(1, keepdim=True)
        left = torch.einsum("uad,ude,uae->u", own, torch.linalg.inv(gram), own)
        u = (ridge * left / own.square().sum((1, 2))).clamp_max(1)
        predicted = (spread * expected_maximum(pool) * (1 - (1 - u).sqrt())).mean()
        assert float(regret) == pytest.approx(float(predicted), rel=0.1)
        seen = x[:, 0]
        gram += seen[:, :, None] * seen[:, None]
        moment += seen * (means[:, 0] + noise * normal(users))[:, None]


def test_the_price_is_what_the_last_question_saves():
    """Where WorthAsking stops, five questions more save about their price each, and five fewer cost more.

    Means over 200 users; the slack is a factor of two, because the derivation approximates.
    """

    def regret(**arguments):
        environment = Synthetic(users=200, arms=500, terms=100, dim=20, pool=20, seed=1)
        policy = ConLinUCB(
            environment.catalogue,
            200,
            ridge=0.1,
            alpha=0.1,
            schedule=WorthAsking(spread=1.05, horizon=150, **arguments),
        )
        total = sum(float(play_round(policy, environment).outcome.regret.mean()) for _ in range(150))
        return total, float(policy.asked.double().mean())

    _, asked = regret(cost=1.0, questions=100)
    number = round(asked)
    assert 4 < number < 40
    fewer, at, more = (regret(cost=0.0, questions=number + change)[0] for change in (-3, 0, 3))
    assert 0.5 < (fewer - at) / 3 < 2.5 and -0.1 < (at - more) / 3 < 2.0
    assert fewer - at > at - more


@pytest.mark.parametrize("cls", [ArmCon, ConUCB, RelativeConUCB, HConUCB, HConLinUCB, CLiSK])
@pytest.mark.parametrize("schedule", [WorthAsking(0.1, questions=6, horizon=20), EigenvalueTest(2.0, 6)])
def test_any_policy_that_asks_can_have_them(cls, schedule):
    environment = small_world(hidden=2)
    policy = cls(environment.catalogue, environment.num_users, schedule=schedule)
    for _ in range(6):
        play_round(policy, environment)
    assert 0 < int(policy.asked.max()) <= 6


def test_uncertainty_is_one_at_first_and_falls():
    environment = small_world()
    for cls in (ConLinUCB, ConUCB):
        policy = cls(environment.catalogue, environment.num_users)
        left = []
        for _ in range(5):
            left.append(uncertainty(policy.asking(environment.observe())).left)
            play_round(policy, environment)
        torch.testing.assert_close(left[0], torch.ones(7).double(), **ALGEBRA)
        assert (left[4] < left[0]).all() and (left[4] > 0).all()


def test_one_candidate_is_worth_no_question():
    environment = small_world(pool=1)
    policy = ConUCB(environment.catalogue, environment.num_users, schedule=WorthAsking(0.0))
    play_round(policy, environment)
    assert not policy.asked.any()


def test_a_vector_can_be_asked_about_only_in_a_linear_world():
    published = {"ask_about": "perturbed", "perturb": PerturbedTerm(0.3, 0.5)}
    for environment in (
        small_world(feedback="logistic"),
        small_world(hidden=2),
        Curved(users=7, arms=60, terms=12, dim=6, pool=9),
    ):
        policy = CLiSK(environment.catalogue, 7, **published)
        with pytest.raises(
            ValueError, match="linear in the features that policies see: ask about the key-term"
        ):
            for _ in range(5):
                play_round(policy, environment)
        policy = CLiSK(environment.catalogue, 7)
        for _ in range(5):
            play_round(policy, environment)
        assert policy.asked.tolist() == [5] * 7
    environment = small_world(answers=BestItem())
    policy = CLiSK(environment.catalogue, 7, **published)
    with pytest.raises(ValueError, match="has no weights over arms"):
        for _ in range(5):
            play_round(policy, environment)


def test_shifts_are_bounded_and_as_wide_as_said():
    """Of 7 users, 12 key-terms and 6 coordinates; the deviation of a truncated normal, slack of 20 %."""
    environment = small_world()
    policy = CLiSK(environment.catalogue, 7)
    asking = policy.asking(environment.observe())
    shifts = PerturbedTerm(0.5, 0.4).shifts(asking, torch.arange(12).expand(7, -1))
    assert shifts.shape == (7, 12, 6) and float(shifts.abs().max()) <= 0.4
    assert float(shifts.std()) == pytest.approx(0.2135, rel=0.2) and abs(float(shifts.mean())) < 0.06
    assert len(shifts.unique()) == shifts.numel()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WorthAsking(-1), "cost must be a number of at least 0, got -1"),
        (lambda: WorthAsking(horizon=0), "horizon must be at least 1, got 0"),
        (lambda: WorthAsking(discount=0), r"discount must be in \(0, 1\], got 0"),
        (lambda: WorthAsking(per_round=-1), "per_round must be a number of at least 0, got -1"),
        (lambda: EigenvalueTest(-1), "alpha must be a number of at least 0, got -1"),
        (lambda: EigenvalueTest(every=0), "every must be at least 1, got 0"),
        (lambda: PerturbedTerm(0), "scale must be above 0 and finite, got 0"),
        (
            lambda: ShiftedTerms(torch.arange(3), torch.zeros(2, 4)),
            r"ShiftedTerms needs by \[3, D\], got \[2, 4\]",
        ),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_phases_explore_at_first_and_then_settle():
    """With little width allowed the widest is shown; with much, the best of those that are left."""
    environment = small_world(noise=0.0)
    shown = {}
    for epsilon in (1e-6, 1e6):
        environment.reset()
        policy = ConPE(environment.catalogue, environment.num_users, alpha=0.3, epsilon=epsilon)
        for _ in range(10):
            context = environment.observe()
            widths = 0.3 * policy.arm_model.norm(slice(None), context.arm_features)
            mean = policy.predict(context)
            kept = mean + widths >= (mean - widths).amax(1, keepdim=True)
            arm = play_round(policy, environment).arm
        shown[epsilon] = widths.gather(1, arm[:, None]).squeeze(1)
        widest = torch.where(kept, widths, -1.0).amax(1)
        assert kept.any(1).all() and not kept.all()
        assert (shown[epsilon] == widest).all() == (epsilon == 1e-6)


def test_phases_need_a_width_to_reach():
    with pytest.raises(ValueError, match="epsilon must be above 0 and finite, got 0"):
        ConPE(small_world().catalogue, 7, epsilon=0)


def test_clisk_refuses_other_things_to_ask_about():
    with pytest.raises(ValueError, match="ask_about must be 'term' or 'perturbed', got 'vectors'"):
        CLiSK(small_world().catalogue, 7, ask_about="vectors")
