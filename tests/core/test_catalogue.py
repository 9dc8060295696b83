"""The graph between arms and key-terms."""

import numpy as np
import pytest
import torch

from conbandit_torch import Catalogue, ConUCB, LinUCB
from tests.conftest import ALGEBRA

X = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 2.0], [5.0, 5.0]]).double()
W = torch.tensor([[1.0, 0.0], [1.0, 3.0], [0.0, 2.0], [0.0, 0.0]]).double()


def test_term_features_are_weighted_by_shares():
    """w is scaled to [[1, 0], [.25, .75], [0, 1], [0, 0]], p follows column by column."""
    expected = torch.stack((X[0] * 0.8 + X[1] * 0.2, X[1] * 0.75 / 1.75 + X[2] / 1.75))
    for weights in (W, W.numpy(), W.to_sparse()):
        catalogue = Catalogue(X, weights)
        torch.testing.assert_close(catalogue.term_features, expected, **ALGEBRA)
        torch.testing.assert_close(catalogue.average(X), expected, **ALGEBRA)


def test_edges_of_arms_and_terms():
    catalogue = Catalogue(X, W)
    terms = catalogue.terms_of(torch.tensor([3, 1, 0, 1]))
    assert terms.owner.tolist() == [1, 1, 2, 3, 3]
    assert terms.target.tolist() == [0, 1, 0, 0, 1]
    assert terms.weight.tolist() == [0.25, 0.75, 1.0, 0.25, 0.75]
    arms = catalogue.arms_of(torch.tensor([1, 0]))
    assert arms.owner.tolist() == [0, 0, 1, 1]
    assert arms.target.tolist() == [1, 2, 0, 1]
    torch.testing.assert_close(
        arms.weight, torch.tensor([3 / 7, 4 / 7, 0.8, 0.2], dtype=torch.float64), **ALGEBRA
    )


def test_no_key_terms_is_legal_for_a_plain_bandit_only():
    catalogue = Catalogue(X)
    assert catalogue.num_terms == 0 and catalogue.term_features.shape == (0, 2)
    LinUCB(catalogue, 1)
    with pytest.raises(ValueError, match="ConUCB asks about key-terms, but the catalogue has none"):
        ConUCB(catalogue, 1)


def test_it_moves_with_to_and_stays_out_of_the_state():
    policy = LinUCB(Catalogue(X, W), 2)
    assert not any("features" in name for name in policy.state_dict())
    assert policy.to(torch.float32).catalogue.term_features.dtype == torch.float32


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X[0],), r"arm_features must be \[N, D\], got shape \[2\]"),
        ((X.long(),), "arm_features must be floating point, got torch.int64"),
        ((torch.where(X == 5, torch.nan, X),), "arm_features holds NaN or infinity, in rows 3"),
        ((X, W[0]), r"weights must be \[N, K\], got shape \[2\]"),
        ((X, W[:3]), "N = 4 arms as in arm_features, got 3 rows"),
        ((X, -W), r"weights must be finite and not negative; weights\[0, 0\] is -1.0"),
        ((X, W * torch.inf), "weights must be finite"),
        ((X, torch.cat((W, 0 * W), 1)), "every key-term needs an arm, but none has key-terms 2, 3"),
        ((np.ones((2, 2)), np.ones((2, 2)) * np.nan), "weights must be finite"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Catalogue(*arguments)


def test_names_must_fit():
    assert Catalogue(X, W, term_names=["rock", "jazz"]).term_names == ("rock", "jazz")
    assert Catalogue(X, W).arm_names[2] == "arm 2"
    with pytest.raises(ValueError, match="term_names must hold 2 names, got 1"):
        Catalogue(X, W, term_names=["rock"])


def test_a_numpy_array_is_copied():
    features = X.numpy().copy()
    catalogue = Catalogue(features, W)
    features[:] = 0
    torch.testing.assert_close(catalogue.arm_features, X, **ALGEBRA)
