"""Errors over users: against loops, against a bootstrap, and how often intervals hold the truth."""

import numpy as np
import pytest
from scipy import stats

from conbandit_torch import GeneratedLog, LinUCB, Simulation
from conbandit_torch.results.off_policy import off_policy_of_replay
from conbandit_torch.results.over_users import Ratio
from conbandit_torch.results.read import intervals
from conbandit_torch.running.user_sums import UserSums, read_user_sums, write_user_sums


def made_up(seeds=3, users=40):
    """Clicks and counts [S, U]; users differ, the more so the more they count."""
    rng = np.random.default_rng(0)
    counted = rng.integers(0, 30, users) + rng.integers(0, 4, (seeds, users))
    rate = rng.beta(2, 4, users)
    return rng.binomial(counted, rate).astype(float), counted.astype(float)


def slow(clicks, counted, same_users):
    """The delta method in loops: value and standard error."""
    seeds, users = clicks.shape
    rates = [clicks[s].sum() / counted[s].sum() for s in range(seeds)]
    variance = 0.0
    for user in range(users):
        moved = [
            (clicks[s, user] - rates[s] * counted[s, user]) / counted[s].sum() / seeds for s in range(seeds)
        ]
        variance += sum(moved) ** 2 if same_users else sum(one**2 for one in moved)
    return sum(rates) / seeds, np.sqrt(variance * users / (users - 1))


@pytest.mark.parametrize("same_users", [True, False])
def test_a_ratio_equals_the_delta_method_in_loops(same_users):
    clicks, counted = made_up()
    found, (value, error) = (
        Ratio.of(clicks, counted, same_users=same_users),
        slow(clicks, counted, same_users),
    )
    assert found.value == pytest.approx(value, rel=1e-12) and found.error == pytest.approx(error, rel=1e-12)
    freedom = 39 if same_users else 3 * 39
    assert found.half == pytest.approx(stats.t.ppf(0.975, freedom) * error, rel=1e-9)


def test_the_delta_method_agrees_with_a_bootstrap_of_users():
    """2,000 draws: the spread's own error is 1.6 %, and the two differ in second order; slack 15 %."""
    clicks, counted = made_up(users=200)
    rng = np.random.default_rng(1)
    drawn = []
    for _ in range(2000):
        users = rng.integers(0, 200, 200)
        drawn.append((clicks[:, users].sum(1) / counted[:, users].sum(1)).mean())
    assert Ratio.of(clicks, counted).error == pytest.approx(np.std(drawn), rel=0.15)


def test_a_difference_is_paired_user_by_user():
    clicks, counted = made_up()
    one, other = Ratio.of(clicks, counted), Ratio.of(0.9 * clicks, counted)
    difference = one - other
    assert difference.value == pytest.approx(0.1 * one.value, rel=1e-12)
    assert difference.error == pytest.approx(0.1 * one.error, rel=1e-9)
    t = difference.value / difference.error
    assert difference.p == pytest.approx(2 * stats.t.sf(t, 39), rel=1e-9)
    assert np.isnan((one - one).p)


def test_one_user_has_no_error():
    assert np.isnan(Ratio.of(np.array([[3.0]]), np.array([[9.0]])).half)


def test_sums_per_user_are_read_as_they_were_written(tmp_path):
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 9, 6).astype(float) for _ in range(3)] + [rng.normal(size=6) for _ in range(4)]
    write_user_sums(tmp_path / "users.csv", UserSums(*columns))
    found = read_user_sums(tmp_path / "users.csv")
    for name, column in zip(vars(found), columns, strict=True):
        np.testing.assert_array_equal(getattr(found, name), column)


def test_estimates_of_a_replay_are_ratios_of_its_sums():
    rng = np.random.default_rng(2)
    sums = [
        UserSums(*(rng.uniform(1, 9, 30) for _ in range(7))),
        UserSums(*(rng.uniform(1, 9, 30) for _ in range(7))),
    ]
    found = {one.name: one for one in off_policy_of_replay(sums, "skewed", same_users=True).estimates}
    for name, (above, below) in {
        "replay": ("clicks", "counted"),
        "IPS": ("earned", "events"),
        "self-normalised IPS": ("earned", "weight"),
        "doubly robust": ("robust", "events"),
    }.items():
        table = (np.stack([getattr(one, column) for one in sums]) for column in (above, below))
        value, error = slow(*table, same_users=True)
        assert found[name].value == pytest.approx(value) and found[name].error == pytest.approx(error)


@pytest.mark.slow
def test_intervals_over_users_hold_the_truth_and_those_over_seeds_do_not():
    """200 logs of 60 users each, of one world of 12,000 whose rate is the truth, replayed with three seeds.

    Slack: four standard deviations of a binomial count with 95 %, 12. Users learn from their own events
    alone, so a group of them is a log by itself.
    """
    clicks, counted = [], []
    for seed in range(3):
        world = GeneratedLog(
            users=12_000, arms=60, terms=10, dim=5, events=60, pool=6, data_seed=0, seed=seed
        )
        simulation = Simulation(
            LinUCB(world.catalogue, world.num_users), world, rounds=world.length, log_every=world.length
        )
        simulation.run()
        sums = simulation.metrics.user_sums()
        order = np.random.default_rng(0).permutation(12_000)  # they are numbered by length
        clicks.append(sums.clicks[order])
        counted.append(sums.counted[order])
    above, below = np.stack(clicks), np.stack(counted)  # [S, U]
    truth = (above.sum(1) / below.sum(1)).mean()
    over_users = over_seeds = 0
    for group in np.split(np.arange(12_000), 200):
        found = Ratio.of(above[:, group], below[:, group])
        over_users += abs(found.value - truth) < found.half
        mean, half = intervals(above[:, group].sum(1) / below[:, group].sum(1))
        over_seeds += abs(mean - truth) < half
    assert abs(over_users - 190) <= 12
    assert over_seeds < over_users - 12
