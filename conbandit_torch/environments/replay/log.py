"""A log of clicks, user by user: its first part to fit preferences to, the rest to replay."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from conbandit_torch.datasets.base import Prepared
from conbandit_torch.datasets.preferences import fit_preferences


@dataclass(frozen=True)
class UserLogs:
    """Events user by user, each user's in the order of time.

    Attributes:
        first: [U] where a user's start.
        count: [U] how many they are.
        items: [E] on what.
        clicks: [E] 1 or 0.
    """

    first: Tensor
    count: Tensor
    items: Tensor
    clicks: Tensor

    @property
    def owner(self) -> Tensor:
        """[E] whose event."""
        return torch.arange(len(self.count)).repeat_interleave(self.count)

    def of(self, users: Tensor) -> UserLogs:
        """Those of some users, who are numbered anew in the order given."""
        count = self.count[users]
        first = count.cumsum(0) - count
        own = torch.arange(int(count.sum())) + (self.first[users] - first).repeat_interleave(count)
        return UserLogs(first, count, self.items[own], self.clicks[own])

    def distinct(self, num_items: int) -> Distinct:
        """The users' distinct items."""
        pairs, inverse = (self.owner * num_items + self.items).unique(return_inverse=True)
        count = torch.bincount(pairs // num_items, minlength=len(self.count))
        first = count.cumsum(0) - count
        return Distinct(first, count, pairs % num_items, inverse - first[self.owner])


@dataclass(frozen=True)
class Distinct:
    """Distinct items user by user, in ascending order.

    Attributes:
        first: [U] where a user's start.
        count: [U] how many they are.
        items: the items.
        places: [E] where in the user's list the item of each event is.
    """

    first: Tensor
    count: Tensor
    items: Tensor
    places: Tensor


def past_and_rest(prepared: Prepared, fit_share: float) -> tuple[UserLogs, UserLogs]:
    """The first share of every user's events, at least one, and the rest."""
    if not len(prepared.users):
        raise ValueError("the log holds no events")
    order = prepared.times.argsort(stable=True)
    order = order[prepared.users[order].argsort(stable=True)]  # user by user, in the order of time
    items, clicks = prepared.items[order], prepared.clicks[order]
    count = torch.bincount(prepared.users, minlength=len(prepared.user_names))
    first = count.cumsum(0) - count
    fitted = (count.double() * fit_share).long().clamp_min(1).minimum(count)
    return UserLogs(first, fitted, items, clicks), UserLogs(first + fitted, count - fitted, items, clicks)


def with_enough_items(rest: UserLogs, pool: int, users: int | None, num_items: int) -> tuple[Tensor, int]:
    """Users with at least `pool` distinct items, most events first, and how many others have events."""
    everyone = rest.of(torch.arange(len(rest.count)))
    distinct = everyone.distinct(num_items).count
    enough = (distinct >= pool).nonzero().squeeze(1)
    if not len(enough):
        raise ValueError(
            f"pool is {pool}, but no user has so many distinct items to replay: the most is "
            f"{int(distinct.max())}; lower pool or fit_share, or give a longer log"
        )
    if users is not None and not 1 <= users <= len(enough):
        raise ValueError(
            f"users must be from 1 to the {len(enough)} with at least {pool} distinct items to replay, "
            f"got {users}"
        )
    longest = rest.count[enough].argsort(descending=True, stable=True)
    return enough[longest][:users], len(distinct) - len(enough)


def fit(features: Tensor, past: UserLogs, ridge: float) -> Tensor:
    """[U, D] the preferences that the events in `past` speak of."""
    own = past.of(torch.arange(len(past.count)))
    return fit_preferences(own.owner, own.items, own.clicks.to(features), features, len(own.count), ridge)
