"""Arithmetic with many small matrices: fast ways against plain ones."""

import pytest
import torch

from conbandit_torch.core.algebra import quadratic
from conbandit_torch.core.randomness import Stream
from tests.conftest import ALGEBRA


@pytest.mark.parametrize("number", [0, 1, 3, 4, 20])  # few matrices and many are worked on in two ways
def test_quadratic_forms_of_few_and_of_many_matrices(number):
    matrices = Stream(0, "matrices").normal(torch.arange(number), 0, 36).view(number, 6, 6)
    matrices = matrices + matrices.mT
    vectors = Stream(0, "vectors").normal(torch.arange(11), 0, 6)
    plain = torch.einsum("kd,bde,ke->bk", vectors, matrices, vectors)
    found = quadratic(matrices, vectors)
    assert found.shape == (number, 11)
    torch.testing.assert_close(found, plain, **ALGEBRA)
    assert torch.equal(vectors, Stream(0, "vectors").normal(torch.arange(11), 0, 6))  # left as they were
