"""A log with its own candidates, made ready to be played: positions, past and rest, context, the fit."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.datasets.events import LoggedEvents
from conbandit_torch.datasets.preferences import fit_preferences


def at_position(log: LoggedEvents, position: int | None) -> LoggedEvents:
    """The events that served something at the position, and what they served there."""
    if position is None:
        return log
    if log.positions is None:
        raise ValueError(f"position is {position}, but the data do not say where items were served")
    own = log.positions == position
    if not bool(own.any()):
        known = ", ".join(map(str, log.positions.unique().tolist()))
        raise ValueError(f"position is {position}, but the log has {known}")
    events, number = log.events[own].unique(return_inverse=True)
    return replace(
        log,
        users=log.users[events],
        times=log.times[events],
        offers=log.offers[events],
        events=number,
        items=log.items[own],
        clicks=log.clicks[own],
        positions=log.positions[own],
        propensities=None if log.propensities is None else log.propensities[own],
        context=None if log.context is None else log.context[events],
    )


def past_events(
    log: LoggedEvents, num_users: int, fit_share: float, users: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    """[E] which of the user's replayed events each is, [E] whether it is fitted on, and [U] who is kept."""
    order = order_by(log.times, log.users)  # user by user, in the order of time
    count = torch.bincount(log.users, minlength=num_users)
    first = count.cumsum(0) - count
    number = torch.empty_like(order)
    number[order] = torch.arange(len(order)) - first[log.users[order]]
    fitted = (count.double() * fit_share).long().clamp_min(1).minimum(count)
    rest = count - fitted
    enough = (rest > 0).nonzero().squeeze(1)
    if not len(enough):
        raise ValueError("no user has an event to replay: each has only one, which parameters are fitted on")
    if users is not None and not 1 <= users <= len(enough):
        raise ValueError(f"users must be from 1 to the {len(enough)} with events to replay, got {users}")
    kept = enough[rest[enough].argsort(descending=True, stable=True)][:users]
    return number - fitted[log.users], number < fitted[log.users], kept


def fit_events(
    log: LoggedEvents,
    owner: Tensor,
    past: Tensor,
    features: Tensor,
    context: Tensor,
    num_users: int,
    ridge: float,
) -> Tensor:
    """[U, D (1 + F)] the preferences that what was served in past events speaks of."""
    own = past[log.events].nonzero().squeeze(1)  # servings
    rows = with_context(features[log.items[own]], context[log.events[own]])
    users, clicks = owner[log.events[own]], log.clicks[own].to(rows)
    return fit_preferences(users, torch.arange(len(own)), clicks, rows, num_users, ridge)


def order_by(minor: Tensor, major: Tensor) -> Tensor:
    """The order by `major`, then `minor`, then place."""
    order = minor.argsort(stable=True)
    return order[major[order].argsort(stable=True)]


def standardised(context: Tensor) -> Tensor:
    """Columns with mean 0 and deviation 1; one that never changes is 0."""
    centred = context - context.mean(0)
    return centred / centred.square().mean(0).sqrt().clamp_min(1e-12)


def with_context(features: Tensor, context: Tensor) -> Tensor:
    """[..., D (1 + F)] x (x) (1, c): features x [..., D], and x times every c [..., F]."""
    crossed = context[..., :, None] * features[..., None, :]  # [..., F, D]
    return torch.cat((features, crossed.flatten(-2)), dim=-1)


def in_mean_context(catalogue: Catalogue, columns: int) -> Catalogue:
    """The catalogue with features for `columns` context features, all of them at their mean, 0."""
    if not columns:
        return catalogue
    features = catalogue.arm_features
    edges = catalogue.terms_of(catalogue.all_arms)
    size = (catalogue.num_arms, catalogue.num_terms)
    graph = torch.sparse_coo_tensor(
        torch.stack((edges.owner, edges.target)), edges.weight, size, check_invariants=False
    )
    return Catalogue(
        torch.cat((features, features.new_zeros(len(features), columns * features.shape[1])), dim=1),
        graph,
        arm_names=catalogue.arm_names,
        term_names=catalogue.term_names,
    )
