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

    def still_to_come(self, num_items: int) -> StillToCome:
        """The users' distinct items, and how many of them each event and those after it have."""
        owner = self.owner
        pairs, event = (owner * num_items + self.items).sort(stable=True)  # a user's events of an item: a run
        ends = pairs.diff(append=pairs.new_full((1,), -1)) != 0  # [E] the last one of its run
        last = event[ends]  # [P] the last events of every user's items
        final = torch.zeros(len(event), dtype=torch.int64)
        final[last] = 1  # the item does not come any more
        upto = final.cumsum(0)  # [E] last events so far, of all users
        before = torch.cat((upto.new_zeros(1), upto))[self.first]  # [U] of the users before
        count = torch.cat((upto.new_zeros(1), upto))[self.first + self.count] - before  # [U] distinct items
        left = (count + before)[owner] - upto + final
        # What comes last is first, and has one item left, its own.
        run = ends.cumsum(0) - ends.long()
        places = torch.empty_like(event)
        places[event] = left[last][run] - 1
        first = count.cumsum(0) - count
        items = torch.empty(len(last), dtype=torch.int64)
        items[first[owner[last]] + left[last] - 1] = self.items[last]
        return StillToCome(first, items, places, left)


@dataclass(frozen=True)
class StillToCome:
    """Distinct items user by user, the one whose last event is latest first.

    In this order the items that a user's event and all later ones have are the first ones of the user's list.

    Attributes:
        first: [U] where a user's start.
        items: the items.
        places: [E] where in the user's list the item of each event is.
        left: [E] how many of the user's list the event and later ones have.
    """

    first: Tensor
    items: Tensor
    places: Tensor
    left: Tensor


def check_fit(fit_share: float, ridge: float) -> None:
    """Refuse what nothing can be fitted with."""
    if not 0 < fit_share < 1:
        raise ValueError(f"fit_share must lie between 0 and 1, got {fit_share}")
    if not 0 < ridge < float("inf"):
        raise ValueError(f"ridge must be a number above 0, got {ridge}")


def past_and_rest(prepared: Prepared, fit_share: float) -> tuple[UserLogs, UserLogs]:
    """The first share of every user's events, at least one, and the rest."""
    if not len(prepared.users):
        raise ValueError("the log holds no events")
    order = torch.arange(len(prepared.users))
    if bool((prepared.times.diff() < 0).any()):
        order = prepared.times.argsort(stable=True)
    order = order[prepared.users[order].argsort(stable=True)]  # user by user, in the order of time
    items, clicks = prepared.items[order], prepared.clicks[order]
    count = torch.bincount(prepared.users, minlength=len(prepared.user_names))
    first = count.cumsum(0) - count
    fitted = (count.double() * fit_share).long().clamp_min(1).minimum(count)
    return UserLogs(first, fitted, items, clicks), UserLogs(first + fitted, count - fitted, items, clicks)


def with_enough_items(
    rest: UserLogs, pool: int, users: int | None, num_items: int
) -> tuple[UserLogs, Tensor, int]:
    """The events that have at least `pool` distinct items before them, their own included.

    Returns:
        These events, user by user, longest log first; [U] whose they are; and how many users have none.
    """
    everyone = rest.of(torch.arange(len(rest.count)))
    left = everyone.still_to_come(num_items).left
    played = torch.bincount(everyone.owner[left >= pool], minlength=len(rest.count))  # the first ones of each
    enough = played.nonzero().squeeze(1)
    if not len(enough):
        most = int(left.max()) if len(left) else 0
        raise ValueError(
            f"pool is {pool}, but no user has so many distinct items to replay: the most is "
            f"{most}; lower pool or fit_share, or give a longer log"
        )
    if users is not None and not 1 <= users <= len(enough):
        raise ValueError(
            f"users must be from 1 to the {len(enough)} with at least {pool} distinct items to replay, "
            f"got {users}"
        )
    kept = enough[played[enough].argsort(descending=True, stable=True)][:users]
    return rest.of(kept), kept, len(played) - len(enough)


def fit(features: Tensor, past: UserLogs, ridge: float) -> Tensor:
    """[U, D] the preferences that the events in `past` speak of."""
    own = past.of(torch.arange(len(past.count)))
    return fit_preferences(own.owner, own.items, own.clicks.to(features), features, len(own.count), ridge)
