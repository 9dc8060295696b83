"""A log whose events say what was on offer, what was served, and how likely that was.

Three tables: events, what was served in them, and sets of candidates. Most logs serve one item per event
(Open Bandit, KuaiRand); a list of impressions (MIND) serves several, and then each one's click is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor


@dataclass(frozen=True)
class LoggedEvents:
    """Events in the order of time; E events, S servings, O sets of C candidates in all.

    Attributes:
        users: [E] int64, whose event; positions among the users of the data.
        times: [E] int64, seconds; 0 where the source has none. Each user's must not decrease.
        offers: [E] int64, which set of candidates the event has.
        first: [O + 1] int64, where each set starts in `candidates`; the last number is C.
        candidates: [C] int64, items on offer, set by set; distinct within a set.
        events: [S] int64, in which event an item was served; ascending, at least one per event.
        items: [S] int64, what was served; one of the event's candidates.
        clicks: [S] float64, 1 or 0.
        positions: [S] int64, where on the page, from 0; None where the source does not say.
        propensities: [S] float64, probability with which the log's own policy served that item there; None
            where nobody knows.
        context: [E, F] float64, features of the event (of its user, hour, device); None: there are none.
        context_names: F names of these, for people.
    """

    users: Tensor
    times: Tensor
    offers: Tensor
    first: Tensor
    candidates: Tensor
    events: Tensor
    items: Tensor
    clicks: Tensor
    positions: Tensor | None = None
    propensities: Tensor | None = None
    context: Tensor | None = None
    context_names: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("users", "times", "offers", "first", "candidates", "events", "items", "positions"):
            ids = getattr(self, name)
            if ids is not None and (ids.dtype != torch.int64 or ids.ndim != 1):
                raise ValueError(f"{name} must be int64 with one axis, got {ids.dtype}, {list(ids.shape)}")
        for kind, length, names in (
            ("event", len(self.users), ("times", "offers", "context")),
            ("serving", len(self.events), ("items", "clicks", "positions", "propensities")),
        ):
            for name in names:
                values = getattr(self, name)
                if values is not None and len(values) != length:
                    raise ValueError(f"{name} must have one row per {kind}, {length}, got {len(values)}")
        self._check_offers()
        self._check_servings()
        if self.context is not None and (self.context.ndim != 2 or not self.context.isfinite().all()):
            raise ValueError("context must be [E, F], without NaN or infinity")
        if self.context is not None and len(self.context_names) not in (0, self.context.shape[1]):
            raise ValueError(
                f"context_names must be {self.context.shape[1]}, one per column of context, got "
                f"{len(self.context_names)}"
            )

    def _check_offers(self) -> None:
        if not len(self.users):
            raise ValueError("the log holds no events")
        if len(self.first) < 2 or int(self.first[0]) != 0 or int(self.first[-1]) != len(self.candidates):
            raise ValueError(f"first must go from 0 to the {len(self.candidates)} candidates")
        if int(self.sizes.min()) < 1:
            raise ValueError(f"set {int(self.sizes.argmin())} has no candidates")
        if int(self.candidates.min()) < 0 or int(self.users.min()) < 0:
            raise ValueError("candidates and users must be at least 0")
        if not 0 <= int(self.offers.min()) <= int(self.offers.max()) < len(self.sizes):
            raise ValueError(f"offers must be from 0 to {len(self.sizes) - 1}, the last set of candidates")
        keys = self._keys().sort().values
        if bool((keys[1:] == keys[:-1]).any()):
            again = int(keys[1:][keys[1:] == keys[:-1]][0])
            raise ValueError(f"a set has item {again % self._base} more than once: set {again // self._base}")

    def _check_servings(self) -> None:
        if len(self.events) and bool((self.events[1:] < self.events[:-1]).any()):
            raise ValueError("events must be ascending")
        if not torch.equal(self.events.unique(), torch.arange(len(self.users))):
            raise ValueError(f"events must name each of the {len(self.users)} events at least once")
        pairs = (self.events * self._base + self.items).sort().values
        if bool((pairs[1:] == pairs[:-1]).any()):
            again = int(pairs[1:][pairs[1:] == pairs[:-1]][0])
            raise ValueError(f"event {again // self._base} served item {again % self._base} more than once")
        served = self.offers[self.events] * self._base + self.items
        foreign = ~torch.isin(served, self._keys()) | (self.items < 0) | (self.items >= self._base)
        if bool(foreign.any()):
            row = int(foreign.nonzero()[0])
            raise ValueError(
                f"event {int(self.events[row])} served item {int(self.items[row])}, which is none of its "
                "candidates"
            )
        if not bool(((self.clicks == 0) | (self.clicks == 1)).all()):
            raise ValueError("clicks must be 0 or 1")
        if self.propensities is not None and not bool(
            ((self.propensities > 0) & (self.propensities <= 1)).all()
        ):
            row = int((~((self.propensities > 0) & (self.propensities <= 1))).nonzero()[0])
            raise ValueError(
                f"propensities must be above 0 and at most 1, got {float(self.propensities[row])} at serving "
                f"{row}: what was served had a chance to be served"
            )

    @property
    def _base(self) -> int:
        return int(self.candidates.max()) + 1

    def _keys(self) -> Tensor:
        """[C] a number for every pair of a set and its item."""
        return torch.arange(len(self.sizes)).repeat_interleave(self.sizes) * self._base + self.candidates

    @property
    def sizes(self) -> Tensor:
        """[O] how many candidates each set has."""
        return self.first.diff()

    def tensors(self) -> dict[str, Tensor]:
        """All tensors that there are, by name; for the cache."""
        named = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in named.items() if isinstance(value, Tensor)}


def as_sets(offers: Iterable[Sequence[int]]) -> tuple[Tensor, Tensor, Tensor]:
    """Events' candidates as `offers`, `first` and `candidates`; sets that occur again are kept once.

    Args:
        offers: the candidates of every event, in their order.
    """
    numbers: dict[tuple[int, ...], int] = {}
    which = [numbers.setdefault(tuple(one), len(numbers)) for one in offers]
    sizes = torch.tensor([0, *(len(one) for one in numbers)])
    candidates = torch.tensor([item for one in numbers for item in one], dtype=torch.int64)
    return torch.tensor(which, dtype=torch.int64), sizes.cumsum(0), candidates
