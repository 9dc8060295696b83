"""Exact fits of regressions whose means are not linear: Newton steps on the whole log."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from conbandit_torch.core.algebra import dot
from conbandit_torch.core.blocks import BLOCK_ELEMENTS, Index
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.questions import About, Features
from conbandit_torch.models.links import Link
from conbandit_torch.models.ridge import RidgeRegression

SLACK = 1e-6  # of a loss, by which rounding may make it look worse
HALVINGS = 8  # of a step that made things worse; then the user's theta stays as it was

Group = tuple[Tensor, About, Tensor]
"""Observations of one kind: [E] which model each is of, what it was about, and [E] the values."""


def fit(
    link: Link,
    model: RidgeRegression,
    groups: Sequence[Group],
    source: Features,
    catalogue: Catalogue,
    who: Tensor,
    centre: Tensor | None,
    theta: Tensor,
) -> Tensor:
    """Let models minimise `weight sum loss + ridge / 2 |theta - centre|^2` over all their observations.

    Args:
        link: means, losses, and what an observation is to a ridge regression.
        model: of which some are fitted; what they have seen before is forgotten.
        groups: their observations; those of other models are not looked at.
        source: vectors of arms and key-terms.
        catalogue: which arms key-terms have.
        who: [n] distinct models to fit.
        centre: [n, D] that they are shrunk towards; None: 0.
        theta: [n, D] to start from.

    Returns:
        [n] the models' losses, without the penalty.
    """
    place = torch.full((model.num_rows,), -1, device=who.device)
    place[who] = torch.arange(len(who), device=who.device)
    entries = sum(len(ids) for ids, _, _ in groups)
    runs = max(1, min(len(who), 4 * BLOCK_ELEMENTS * len(who) // max(1, entries * model.dim)))
    lost = [
        _fit_run(
            link,
            model,
            [_of(group, place, start, start + runs) for group in groups],
            (source, catalogue),
            who[start : start + runs],
            None if centre is None else centre[start : start + runs],
            theta[start : start + runs],
        )
        for start in range(0, len(who), runs)
    ]
    return torch.cat(lost) if lost else theta.new_zeros(0)


def _of(group: Group, place: Tensor, start: int, stop: int) -> Group:
    """The observations of the models at places `start` to `stop`, by their places in that run."""
    ids, about, values = group
    at = place[ids]
    rows: Tensor = ((at >= start) & (at < stop)).nonzero().squeeze(1)
    if len(rows) == len(ids):
        return at - start, about, values
    return at[rows] - start, about.take(rows), values[rows]


def _fit_run(
    link: Link,
    model: RidgeRegression,
    groups: list[Group],
    world: tuple[Features, Catalogue],
    who: Tensor,
    centre: Tensor | None,
    theta: Tensor,
) -> Tensor:
    ids = torch.cat([own for own, _, _ in groups])  # [E]
    every = torch.arange(len(ids), device=ids.device)

    def losses(at: Tensor) -> tuple[Tensor, Tensor]:
        """[n] each: the loss at theta [n, D], and the penalised one."""
        total = at.new_zeros(len(who), dtype=torch.float64)
        for own, about, values in groups:
            mean = link.means(about, *world, at[own])
            total.index_add_(0, own, link.loss(mean, values).double())
        away = at if centre is None else at - centre
        return total, model.weight * total + 0.5 * model.ridge * away.double().square().sum(1)

    loss, goal = losses(theta)
    for _ in range(link.refit_steps):
        rows = [link.several(about, *world, theta[own], values) for own, about, values in groups]
        model.reset_rows(who)
        model.rebuild(who[ids], torch.cat([x for x, _ in rows]), every, torch.cat([y for _, y in rows]))
        limit(link, model, who)
        step = model.coefficients(who, centre) - theta  # [n, D]
        size = theta.new_ones(len(who))
        for _ in range(HALVINGS):
            found, tried = losses(theta + size[:, None] * step)
            worse = tried > goal + SLACK * goal.abs()
            if not bool(worse.any()):
                break
            size = torch.where(worse, size / 2, size)
        else:
            size = torch.where(worse, 0.0, size)
            found, tried = losses(theta + size[:, None] * step)
        theta, loss, goal = theta + size[:, None] * step, found, tried
        shortened = (size < 1).nonzero().squeeze(1)
        if len(shortened):
            learned = model.solution[who[shortened]] - (1 - size[shortened, None]) * step[shortened]
            place_at(model, who[shortened], learned)
    return loss


def limit(link: Link, model: RidgeRegression, who: Index) -> None:
    """Keep what the models have learned of theta within the link's bound."""
    bound = link.bound
    learned = model.solution[who]
    length = learned.norm(dim=1)
    long = (length > bound).nonzero().squeeze(1)
    if not len(long):
        return
    ids = torch.arange(model.num_rows, device=long.device)[who][long]
    place_at(model, ids, learned[long] * (bound / length[long, None]))


def place_at(model: RidgeRegression, ids: Tensor, learned: Tensor) -> None:
    """Let the solutions `M^-1 b` of the models be `learned` [n, D], with M as it is."""
    model.solution[ids] = learned
    model.moment[ids] = dot(model.gram[ids], learned)
