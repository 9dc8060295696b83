"""Why an item has its score, and what is believed of a person's taste."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.core.algebra import dot
from conbandit_torch.core.context import Context
from conbandit_torch.core.questions import About, Arms
from conbandit_torch.live.records import Belief
from conbandit_torch.models import levels as chain


def estimate_and_width(policy: Bandit, context: Context) -> tuple[float | None, float | None]:
    """The expected reward of a context's one candidate, and the width that its score has."""
    predicted = policy.predict(context)
    levels, seen = policy.levels(), policy.representation
    width = None
    if levels and seen is not None:
        width = chain.width(levels, policy.models_of(context.who), seen.of(context))
    return (
        None if predicted is None else float(predicted),
        None if width is None else float(width),
    )


def effects(
    policy: Bandit, context: Context, observations: Sequence[tuple[About, Tensor, bool]]
) -> tuple[list[list[float]], float]:
    """What observations of a person add to `x^T theta` of a context's one candidate; and what is left.

    Rule: with the chain of levels, an observation (x_i, y_i) that enters level n adds
        weight_n v_n^T G_n^-1 x_i y_i,
    where v_n is the candidate's `reach` of the level. That is exact for observations with the features that
    they were learned with.

    Args:
        policy: who learned them.
        context: one user, one candidate.
        observations: what each group is of, its values [n], and whether they are rewards.
    """
    levels, seen = policy.levels(), policy.representation
    if not levels or seen is None:
        return [[0.0] * len(values) for _, values, _ in observations], 0.0
    who = policy.models_of(context.who)
    x = seen.of(context)  # [1, 1, D]
    found = []
    for about, values, are_rewards in observations:
        number = 0 if are_rewards else policy.answer_level
        model = levels[number].model
        v = model.solve(who, chain.reach(levels, who, x, number))[0, 0]  # [D] G^-1 v
        found.append((model.weight * values * (about.features(seen) @ v)).tolist())
    score = float(dot(x, policy.thetas(context.who)[0]))
    return found, score - sum(map(sum, found))


def beliefs_of(policy: Bandit, context: Context, names: Sequence[str]) -> list[Belief]:
    """What is believed of each key-term, the most liked first."""
    levels, seen = policy.levels(), policy.representation
    if not levels or seen is None or not names:
        return []
    who, terms = policy.models_of(context.who), seen.terms()  # [K, D]
    estimate = terms @ policy.thetas(context.who)[0][0]  # [K]
    link = getattr(policy, "link", None)
    if link is not None:
        estimate = link.mean(estimate)
    model = levels[policy.answer_level].model
    projected = terms[None]
    for level in levels[1 : policy.answer_level + 1]:
        projected = level.projected(projected)
    width = model.norm(who, projected)[0]  # [K]
    at_first = projected[0].norm(dim=1) / model.ridge**0.5
    sure = (1 - width / at_first.clamp_min(torch.finfo(width.dtype).tiny)).clamp(0, 1)
    order = estimate.argsort(descending=True, stable=True).tolist()
    columns = (estimate.tolist(), width.tolist(), sure.tolist())
    return [Belief(names[k], *(column[k] for column in columns)) for k in order]


__all__ = ["Arms", "beliefs_of", "effects", "estimate_and_width"]
