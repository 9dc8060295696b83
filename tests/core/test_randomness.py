"""Counter-based streams: reproducible, independent of company, and uniform."""

import itertools
import math

import pytest
import torch
from scipy import stats

from conbandit_torch.core.randomness import Stream
from tests.conftest import EXACT

MANY = torch.arange(200_000)


@pytest.mark.parametrize("method", ["bits", "uniform", "normal"])
def test_a_users_numbers_do_not_depend_on_company(method):
    draw = getattr(Stream(7, "test"), method)
    users, rounds = torch.tensor([4, 0, 9]), torch.tensor([2, 5, 0])
    together = draw(users, rounds, 6)
    for row in range(3):
        torch.testing.assert_close(draw(users[[row]], rounds[[row]], 6)[0], together[row], **EXACT)


@pytest.mark.parametrize(("count", "population"), [(5, 100), (50, 5000), (3, 4), (30, 61), (8, 8), (1, 1)])
def test_subsets_are_distinct_and_do_not_depend_on_company(count, population):
    stream = Stream(1, "pools")
    drawn = stream.subsets(torch.arange(300), 3, count, population)
    assert drawn.shape == (300, count)
    assert drawn.min() >= 0 and drawn.max() < population
    assert all(len(set(row)) == count for row in drawn.tolist())
    torch.testing.assert_close(
        stream.subsets(torch.tensor([17]), 3, count, population)[0], drawn[17], **EXACT
    )


@pytest.mark.parametrize(("count", "population"), [(3, 7), (20, 45), (50, 5000), (4, 2**33)])
def test_subsets_are_the_first_distinct_draws(count, population):
    stream, users = Stream(1, "pools"), torch.arange(200)
    draws = stream.integers(users, 4, 40 * count, population).tolist()
    expected = [list(dict.fromkeys(row))[:count] for row in draws]
    assert stream.subsets(users, 4, count, population).tolist() == expected


def test_subsets_that_run_out_of_draws_draw_on():
    """Forced by too few draws at first: the same subsets come out, whatever the number of draws."""
    stream = Stream(0, "pools")
    users, rounds = torch.arange(500), torch.full((500,), 2)
    enough = stream._distinct(users, rounds, 20, 45, 400)
    torch.testing.assert_close(stream._distinct(users, rounds, 20, 45, 20), enough, **EXACT)


@pytest.mark.parametrize("population", [3, 7, 8, 13, 40])
def test_all_ordered_pairs_of_a_subset_are_equally_likely(population):
    """Chi-square over 200,000 users for every pair of positions; 1e-4 over 5 x 3 seeded tests."""
    drawn = Stream(5, "pairs").subsets(MANY, 9, 3, population)
    distinct = ~torch.eye(population, dtype=torch.bool)
    for i, j in itertools.combinations(range(3), 2):
        counts = torch.bincount(drawn[:, i] * population + drawn[:, j], minlength=population**2)
        seen = counts.view(population, population)[distinct]
        assert stats.chisquare(seen.numpy()).pvalue > 1e-4


def test_uniform_and_normal_have_their_distributions():
    """Kolmogorov-Smirnov on 200,000 seeded values, over users and over rounds; 1e-4 each."""
    stream = Stream(3, "shape")
    for users, rounds in ((MANY, 0), (torch.zeros_like(MANY), MANY)):
        assert stats.kstest(stream.uniform(users, rounds, 1)[:, 0].numpy(), "uniform").pvalue > 1e-4
        assert stats.kstest(stream.normal(users, rounds, 1)[:, 0].numpy(), "norm").pvalue > 1e-4


def test_neighbouring_counters_seeds_and_purposes_are_uncorrelated():
    """|r| of 200,000 independent pairs stays below 5 / sqrt(n)."""
    base = Stream(0, "a").normal(MANY, 0, 2)
    others = [
        base[:, 1],
        Stream(0, "a").normal(MANY + 1, 0, 1)[:, 0],
        Stream(0, "a").normal(MANY, 1, 1)[:, 0],
        Stream(1, "a").normal(MANY, 0, 1)[:, 0],
        Stream(0, "b").normal(MANY, 0, 1)[:, 0],
    ]
    for other in others:
        r = float(torch.corrcoef(torch.stack((base[:, 0], other)))[0, 1])
        assert abs(r) < 5 / math.sqrt(len(MANY))


def test_integers_reach_both_ends():
    drawn = Stream(0, "ends").integers(torch.arange(1000), 0, 1, 7)
    assert sorted(drawn.unique().tolist()) == list(range(7))


def test_too_large_a_subset_is_refused():
    with pytest.raises(ValueError, match="cannot draw 6 distinct members out of 5"):
        Stream(0, "x").subsets(torch.tensor([0]), 0, 6, 5)
