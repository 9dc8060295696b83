"""Which features are hidden: drawn, fixed over seeds, in balance, or named."""

import numpy as np
import pytest
import torch

from conbandit_torch import Catalogue, GeneratedLog, Ratings, Replay, Synthetic
from conbandit_torch.core.randomness import Stream
from conbandit_torch.environments.hiding import hidden_columns
from conbandit_torch.environments.replay.generated import generate_log

SMALL = {"users": 5, "arms": 60, "terms": 10, "dim": 8}


def kinds():
    log = generate_log(5, 60, 10, 8, 40, 3, 0.1, seed=1)
    return {
        "Synthetic": lambda **how: Synthetic(**SMALL, pool=5, **how),
        "GeneratedLog": lambda **how: GeneratedLog(**SMALL, events=40, pool=5, **how),
        "Ratings": lambda **how: Ratings(log, pool=5, **how),
        "Replay": lambda **how: Replay(log, pool=5, **how),
    }


def uneven(dim=20):
    """A catalogue whose first column has most of |x|^2, as principal components do."""
    rng = np.random.default_rng(0)
    return Catalogue(torch.from_numpy(rng.normal(size=(300, dim)) * np.geomspace(5, 0.5, dim)))


@pytest.mark.parametrize("kind", ["Synthetic", "GeneratedLog", "Ratings", "Replay"])
def test_a_fixed_split_is_the_same_for_every_seed_and_a_drawn_one_is_not(kind):
    make = kinds()[kind]
    fixed = [make(hidden=3, hidden_seed=7, seed=seed).hidden_features.names for seed in range(6)]
    drawn = [make(hidden=3, seed=seed).hidden_features.names for seed in range(6)]
    assert all(names == fixed[0] for names in fixed)
    assert len({tuple(names) for names in drawn}) > 1


@pytest.mark.parametrize("kind", ["Synthetic", "GeneratedLog", "Ratings", "Replay"])
def test_named_features_are_those_that_policies_do_not_see(kind):
    whole = kinds()[kind](hidden=0)
    world = kinds()[kind](hidden=["feature 6", "feature 1"])
    seen = [0, 2, 3, 4, 5, 7]
    assert torch.equal(world.catalogue.arm_features, whole.catalogue.arm_features[:, seen])
    assert world.hidden == 2 and world.hidden_features.names == ["feature 1", "feature 6"]
    assert world.catalogue.feature_names == tuple(f"feature {column}" for column in seen)
    X = whole.catalogue.arm_features.numpy()
    assert world.hidden_features.share == pytest.approx((X[:, [1, 6]] ** 2).sum() / (X**2).sum(), rel=1e-12)
    assert whole.hidden_features is None


def test_the_default_draw_is_what_it_was():
    """The first H of a random order, by a formula written out."""
    catalogue = uneven()
    for seed in range(5):
        order = Stream(seed, "split").bits(torch.zeros(1, dtype=torch.int64), 0, 20)[0].argsort()
        assert hidden_columns(catalogue, 5, seed, balanced=False).tolist() == sorted(order[:5].tolist())


def test_a_balanced_split_hides_as_much_of_x_as_of_the_features():
    catalogue = uneven()
    X = catalogue.arm_features.numpy()
    squares = (X**2).sum(0) / (X**2).sum()
    off = {balanced: [] for balanced in (False, True)}
    splits = set()
    for seed in range(20):
        for balanced in off:
            columns = hidden_columns(catalogue, 5, seed, balanced=balanced).tolist()
            assert len(set(columns)) == 5
            off[balanced].append(abs(squares[columns].sum() - 5 / 20))
        splits.add(tuple(columns))
    assert max(off[True]) < 0.02 < 0.1 < max(off[False])
    assert len(splits) > 10  # seeds still differ


@pytest.mark.parametrize(
    ("hidden", "message"),
    [
        (["featur 1"], r"no feature 'featur 1' \(did you mean 'feature 1'\?\)"),
        (["feature 1", "feature 1"], "must name distinct features"),
        ([f"feature {column}" for column in range(8)], "fewer than the 8"),
        (8, "hidden must be from 0 to 7"),
        (-1, "hidden must be from 0 to 7"),
    ],
)
def test_what_cannot_be_hidden_is_refused(hidden, message):
    with pytest.raises(ValueError, match=message):
        Synthetic(**SMALL, pool=5, hidden=hidden)
