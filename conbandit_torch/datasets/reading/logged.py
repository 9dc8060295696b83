"""A log's events as they are read, before thresholds, and what is left of them afterwards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from conbandit_torch.datasets.events import LoggedEvents


@dataclass(frozen=True)
class ReadLog:
    """E events with S servings in all, in the order of reading; ids are positions in the source.

    Attributes:
        users: [E] whose event.
        times: [E] seconds.
        lengths: [E] servings of each event, at least one.
        items: [S] what was served, event by event; -1: none of the items.
        clicks: [S] 1 or 0.
        on_offer: items that every event offers; None: an event offers what it served.
        positions: [S] from 0, or None.
        propensities: [S], or None.
        context: [E, F], or None.
        context_names: F names.
    """

    users: np.ndarray
    times: np.ndarray
    lengths: np.ndarray
    items: np.ndarray
    clicks: np.ndarray
    on_offer: np.ndarray | None = None
    positions: np.ndarray | None = None
    propensities: np.ndarray | None = None
    context: np.ndarray | None = None
    context_names: tuple[str, ...] = ()

    def renumbered(self, new_user: np.ndarray, new_item: np.ndarray) -> LoggedEvents | None:
        """The log in the order of time, of users and items that are kept; None if nothing is.

        Args:
            new_user: [U] new position of every user; -1: not kept.
            new_item: [N] the same of items.
        """
        order = np.argsort(self.times, kind="stable")  # [E] events by time
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        place = np.repeat(place, self.lengths)  # [S] its event's place
        items = np.where(self.items >= 0, new_item[self.items], -1)
        kept = (items >= 0) & (np.repeat(new_user[self.users], self.lengths) >= 0)
        servings = np.flatnonzero(kept)
        servings = servings[np.argsort(place[servings], kind="stable")]
        # An item that an event names twice was served once, and clicked if it was clicked there at all.
        pairs = place[servings] * len(new_item) + items[servings]
        _, first, which = np.unique(pairs, return_index=True, return_inverse=True)
        clicked = np.zeros(len(first))
        np.maximum.at(clicked, which, self.clicks[servings])
        in_order = np.argsort(first)
        servings, clicked = servings[first[in_order]], clicked[in_order]
        if not len(servings):
            return None
        places, number = np.unique(place[servings], return_inverse=True)
        events = order[places]  # [E'] rows of this log
        if self.on_offer is None:
            offers, candidates = np.arange(len(events)), items[servings]
            sizes = np.bincount(number)
        else:
            offers, candidates = np.zeros(len(events), np.int64), new_item[self.on_offer]
            candidates = candidates[candidates >= 0]
            sizes = np.array([len(candidates)])
        return LoggedEvents(
            users=_whole(new_user[self.users[events]]),
            times=_whole(self.times[events]),
            offers=_whole(offers),
            first=_whole(np.concatenate(([0], np.cumsum(sizes)))),
            candidates=_whole(candidates),
            events=_whole(number),
            items=_whole(items[servings]),
            clicks=torch.from_numpy(clicked),
            positions=None if self.positions is None else _whole(self.positions[servings]),
            propensities=None if self.propensities is None else torch.from_numpy(self.propensities[servings]),
            context=None if self.context is None else torch.from_numpy(self.context[events]),
            context_names=self.context_names,
        )


def _whole(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, np.int64))
