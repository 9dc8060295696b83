"""Off-policy estimates against a known truth, against formulas written out, and against another library."""

from pathlib import Path

import numpy as np
import pytest

from conbandit_torch.results.off_policy import (
    LoggedDecisions,
    advise,
    doubly_robust,
    ips,
    off_policy,
    self_normalised,
)

ARMS = 6


def generated(events, *, uniform, seed=0, users=400):
    """A log, the judged policy's probabilities [n, A], the model's guesses [n, A], and the true value."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, users, events)
    mean = rng.uniform(0.05, 0.6, (users, ARMS))[user]  # [n, A] true rewards
    skew = np.ones(ARMS) if uniform else np.geomspace(1, 8, ARMS)
    served_with = rng.permuted(np.broadcast_to(skew / skew.sum(), (events, ARMS)), axis=1)
    arm = (served_with.cumsum(1) < rng.random((events, 1))).sum(1).clip(max=ARMS - 1)
    reward = (rng.random(events) < mean[np.arange(events), arm]).astype(float)
    pi = np.exp(3 * mean)
    pi /= pi.sum(1, keepdims=True)
    guess = (mean + 0.1).clip(0, 1)  # a biased model
    rows = np.arange(events)
    log = LoggedDecisions(
        reward,
        served_with[rows, arm],
        pi[rows, arm],
        user,
        guess[rows, arm],
        (pi * guess).sum(1),
    )
    return log, arm, pi, guess, float((pi * mean).sum(1).mean())


@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("estimator", [ips, self_normalised, doubly_robust])
def test_estimates_are_within_three_standard_errors_of_the_truth(estimator, uniform):
    log, *_, truth = generated(100_000, uniform=uniform)
    found = estimator(log)
    assert abs(found.value - truth) < 3 * found.error and found.error < 0.015 * truth


@pytest.mark.parametrize("estimator", [ips, self_normalised, doubly_robust])
def test_intervals_cover_the_truth_about_as_often_as_they_say(estimator):
    """200 logs: 95 % of them, with four standard deviations of the binomial count as slack."""
    covered = 0
    for seed in range(200):
        log, *_, truth = generated(1500, uniform=False, seed=seed)
        found = estimator(log)
        covered += abs(found.value - truth) < found.half
    assert 190 - 4 * np.sqrt(200 * 0.95 * 0.05) < covered < 200


def test_errors_are_over_users_not_over_events():
    """Every event four times, as one user's: four times the events tell nothing new."""
    log, *_ = generated(500, uniform=True)
    alone = np.arange(500)
    once = ips(LoggedDecisions(log.reward, log.propensity, log.propensity, alone))
    four = (np.tile(log.reward, 4), np.tile(log.propensity, 4), np.tile(log.propensity, 4))
    copied, as_if_independent = ips(LoggedDecisions(*four, np.tile(alone, 4))), ips(LoggedDecisions(*four))
    assert copied.error == pytest.approx(once.error, rel=1e-12)
    assert as_if_independent.error == pytest.approx(once.error / 2, rel=1e-2)


def test_self_normalised_of_a_policy_that_does_not_draw_is_replay_on_a_uniform_log():
    log, arm, pi, _, _ = generated(3000, uniform=True)
    agrees = arm == pi.argmax(1)
    found = self_normalised(LoggedDecisions(log.reward, log.propensity, agrees.astype(float)))
    assert found.value == pytest.approx(log.reward[agrees].mean(), rel=1e-12)


def test_what_does_not_differ_between_users_has_no_interval():
    """Without a click, or with one user alone whose events count, an interval of length 0 would be a claim."""
    user, half = np.repeat(np.arange(10), 5), np.full(50, 0.5)
    nothing = LoggedDecisions(np.zeros(50), half, np.ones(50), user)
    clicks = np.tile([1.0, 1, 0, 0, 0], 10)
    alone = LoggedDecisions(clicks, half, (user == 3).astype(float), user)
    for estimate, value in ((self_normalised(nothing), 0), (ips(nothing), 0), (self_normalised(alone), 0.4)):
        assert estimate.value == pytest.approx(value) and np.isnan(estimate.half) and "±" not in str(estimate)
    assert ips(alone).half > 0


def test_the_advice_names_what_is_wrong_with_a_log():
    uniform, skewed = generated(5000, uniform=True)[0], generated(5000, uniform=False)[0]
    assert "uniformly at random" in advise(uniform)[0] and len(advise(uniform)) == 1
    assert "replay is biased" in advise(skewed)[0]
    assert "Nobody knows" in advise(skewed, propensities_are_known=False)[0]
    small = LoggedDecisions(np.ones(30), np.full(30, 0.5), np.full(30, 0.5))
    assert "effective sample is 30 of 30" in advise(small)[1]
    nothing = LoggedDecisions(np.ones(30), np.full(30, 0.5), np.zeros(30))
    assert "says nothing of it" in advise(nothing)[1]
    wrong = LoggedDecisions(uniform.reward, uniform.propensity / 2, uniform.probability)
    mean = f"weights' mean is {2 * uniform.weight.mean():.2f}, where right propensities give 1"
    assert mean in advise(wrong)[1]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("propensity", np.array([0.5, 0.0]), "got 0.0 at event 1"),
        ("probability", np.array([0.5, 1.5]), "must be from 0 to 1"),
        ("reward", np.array([1.0, np.nan]), "reward holds NaN"),
        ("user", np.array([0, np.nan]), "user holds NaN"),
        ("user", np.array([1]), r"user must be \[n\] like reward"),
    ],
)
def test_logs_that_cannot_be_are_refused(name, value, message):
    good = {"reward": np.ones(2), "propensity": np.full(2, 0.5), "probability": np.full(2, 0.5)}
    with pytest.raises(ValueError, match=message):
        LoggedDecisions(**good | {name: value})


@pytest.mark.filterwarnings("ignore")
def test_estimates_equal_those_of_an_independent_library():
    ope = pytest.importorskip("obp.ope")
    log, arm, pi, guess, _ = generated(4000, uniform=False)
    given = {
        "reward": log.reward,
        "action": arm,
        "pscore": log.propensity,
        "action_dist": pi[:, :, None],
        "position": np.zeros(4000, int),
    }
    theirs = ope.InverseProbabilityWeighting().estimate_policy_value(**given)
    assert ips(log).value == pytest.approx(theirs, rel=1e-12)
    theirs = ope.SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**given)
    assert self_normalised(log).value == pytest.approx(theirs, rel=1e-12)
    theirs = ope.DoublyRobust().estimate_policy_value(
        **given, estimated_rewards_by_reg_model=guess[:, :, None]
    )
    assert doubly_robust(log).value == pytest.approx(theirs, rel=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("behaviour", ["random", "bts"])
def test_estimates_on_open_bandits_sample_equal_those_of_an_independent_library(behaviour):
    """What Open Bandit's Bernoulli Thompson sampling would earn, from its sample of either log."""
    obp = pytest.importorskip("obp")
    pandas = pytest.importorskip("pandas")
    from obp import ope
    from obp.policy import BernoulliTS

    path = Path(obp.__file__).parent / "dataset" / "obd" / behaviour / "all" / "all.csv"
    table = pandas.read_csv(path)
    number = len(table)
    reward, arm = table["click"].to_numpy(float), table["item_id"].to_numpy()
    position = table["position"].to_numpy() - 1
    propensity = table["propensity_score"].to_numpy()
    judged = BernoulliTS(n_actions=80, len_list=3, is_zozotown_prior=True, campaign="all", random_state=0)
    # [n, 80 items, 3 positions]; of few draws, because here any probabilities do
    pi = judged.compute_batch_action_dist(n_sim=200, n_rounds=number)
    guess = np.random.default_rng(0).uniform(0, 0.01, (number, 80, 3))
    rows = np.arange(number)
    log = LoggedDecisions(
        reward,
        propensity,
        pi[rows, arm, position],
        predicted=guess[rows, arm, position],
        predicted_of_policy=(pi * guess)[rows, :, position].sum(1),
    )
    given = {
        "reward": reward,
        "action": arm,
        "pscore": propensity,
        "action_dist": pi,
        "position": position,
    }
    found = {one.name: one.value for one in off_policy(log).estimates}
    theirs = {
        "IPS": ope.InverseProbabilityWeighting(),
        "self-normalised IPS": ope.SelfNormalizedInverseProbabilityWeighting(),
    }
    for name, estimator in theirs.items():
        assert found[name] == pytest.approx(estimator.estimate_policy_value(**given), rel=1e-12), name
    robust = ope.DoublyRobust().estimate_policy_value(**given, estimated_rewards_by_reg_model=guess)
    assert found["doubly robust"] == pytest.approx(robust, rel=1e-12)
    advice = off_policy(log).advice
    assert ("uniformly" if behaviour == "random" else "some more often") in advice[0]
    assert "too few to tell" in advice[1]  # of 10,000 events fewer than 100 were clicked
