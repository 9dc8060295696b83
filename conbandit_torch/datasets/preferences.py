"""Every user's preferences, fitted to the user's events."""

from __future__ import annotations

import torch
from torch import Tensor

from conbandit_torch.core.blocks import rows_per_block
from conbandit_torch.models.ridge import RidgeRegression


def fit_preferences(
    users: Tensor, items: Tensor, clicks: Tensor, features: Tensor, num_users: int, ridge: float
) -> Tensor:
    """[U, D] one ridge regression per user, of clicks on the items' features.

    Args:
        users: [E] whose event it is.
        items: [E] rows of `features`.
        clicks: [E] what came of it.
        features: [N, D] of the items.
        num_users: U; a user without events has preferences of 0.
        ridge: weight of the penalty `|theta|^2`.
    """
    dim = features.shape[1]
    order = users.argsort(stable=True)
    counts = torch.bincount(users, minlength=num_users)
    theta = features.new_empty(num_users, dim)
    start = 0
    # Some users at a time: a model has two D x D matrices.
    for block in torch.arange(num_users).split(rows_per_block(2 * dim * dim)):
        events = order[start : start + int(counts[block].sum())]
        start += len(events)
        model = RidgeRegression(len(block), dim, ridge, like=features)
        model.rebuild(users[events] - block[0], features, items[events], clicks[events])
        theta[block] = model.coefficients()
    return theta
