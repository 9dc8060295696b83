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


# More arms, and more key-terms.

NEW_X = torch.tensor([[3.0, 1.0], [0.0, 4.0]]).double()
NEW_W = torch.tensor([[0.0, 1.0, 1.0], [2.0, 0.0, 0.0]]).double()  # the first brings a third key-term


def buffers(catalogue):
    return dict(catalogue.named_buffers())


@pytest.mark.parametrize("layout", ["dense", "sparse", "numpy"])
def test_an_extended_catalogue_is_the_one_that_has_them_all(layout):
    own = {"dense": NEW_W, "sparse": NEW_W.to_sparse(), "numpy": NEW_W.numpy()}[layout]
    before = Catalogue(X, W, term_names=["rock", "jazz"])
    grown = before.extended(NEW_X, own, arm_names=["a", "b"], term_names=["blues"])
    whole = Catalogue(torch.cat((X, NEW_X)), torch.cat((torch.nn.functional.pad(W, (0, 1)), NEW_W)))
    assert (grown.num_arms, grown.num_terms) == (6, 3)
    assert grown.arm_names == ("arm 0", "arm 1", "arm 2", "arm 3", "a", "b")
    assert grown.term_names == ("rock", "jazz", "blues")
    assert buffers(grown).keys() == buffers(whole).keys()
    for name, value in buffers(whole).items():
        torch.testing.assert_close(buffers(grown)[name], value, **ALGEBRA)
    torch.testing.assert_close(before.term_features, Catalogue(X, W).term_features, rtol=0, atol=0)


def test_new_arms_without_key_terms_leave_those_as_they_are():
    before = Catalogue(X, W)
    grown = before.extended(NEW_X)
    torch.testing.assert_close(grown.term_features, before.term_features, **ALGEBRA)
    assert grown.arm_names[-2:] == ("arm 4", "arm 5") and grown.num_terms == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((NEW_X[:, :1],), r"arm_features must be \[n, 2\], got \[2, 1\]"),
        ((NEW_X[0],), r"arm_features must be \[n, 2\], got \[2\]"),
        ((NEW_X, NEW_W[:1]), r"weights must be \[2, K'\] with K' at least 2, got \[1, 3\]"),
        ((NEW_X, NEW_W[:, :1]), r"weights must be \[2, K'\] with K' at least 2, got \[2, 1\]"),
        ((NEW_X, -NEW_W), "weights must be finite and not negative"),
        ((NEW_X * torch.nan,), "arm_features holds NaN or infinity, in rows 4, 5"),
        (
            (NEW_X, torch.cat((NEW_W, 0 * NEW_W), 1)),
            "every key-term needs an arm, but none has key-terms 3, 4, 5",
        ),
    ],
)
def test_new_arms_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Catalogue(X, W).extended(*arguments)


def test_only_a_catalogue_that_begins_with_another_extends_it():
    before = Catalogue(X, W)
    before.check_extension(before)
    before.check_extension(before.extended(NEW_X, NEW_W))
    for other in (Catalogue(X[:3], W[:3]), Catalogue(X + 1, W), Catalogue(X.flip(0), W.flip(0))):
        with pytest.raises(ValueError, match="does not begin with the arms that the policy knows"):
            before.check_extension(other)
    with pytest.raises(ValueError, match="the catalogue has 1 key-terms, and the policy knows 2"):
        before.check_extension(Catalogue(X, W[:, :1]))
