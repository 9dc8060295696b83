"""Why an item has its score, and what is believed of a person's taste."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.core.algebra import dot
from conbandit_torch.core.context import Context
from conbandit_torch.core.questions import Arms
from conbandit_torch.live.beliefs import Beliefs, about_of
from conbandit_torch.live.input import alike
from conbandit_torch.live.records import Belief, Event, Explanation, Reason
from conbandit_torch.models import levels as chain


def explanation_of(
    beliefs: Beliefs, user: str, context: Context, pairs: Sequence[tuple[Event, Event]]
) -> Explanation:
    """Why a context's one candidate has its score, with all reasons, the largest first.

    Rule: with the chain of levels, an observation (x_i, y_i) that enters level n adds
        weight_n v_n^T G_n^-1 x_i y_i
    to `x^T theta`, where v_n is the candidate's `reach` of that level. With the features that the
    observations were learned with, and nothing known before, these are all of it.

    Args:
        beliefs: what was learned.
        user: the person's name.
        context: the person, and one candidate.
        pairs: the person's answers and rewards, each with its question or decision.
    """
    policy, vocabulary = beliefs.policy, beliefs.vocabulary
    predicted = policy.predict(context)
    levels, seen = policy.levels(), policy.representation
    item = vocabulary.items.all[int(context.arms)]
    estimate = None if predicted is None else float(predicted)
    if not levels or seen is None:
        return Explanation(user, item, estimate, None, (), None)
    who, x = policy.models_of(context.who), seen.of(context)  # [1, 1, D]
    reasons: list[Reason] = []
    for places in alike([(event.kind, origin.what) for event, origin in pairs]):
        own = [pairs[place] for place in places]
        for (event, origin), effect in zip(own, _effects(policy, context, x, own), strict=True):
            kind = "reward" if event.kind == "reward" else vocabulary.asked(user, origin).kind
            reasons.append(Reason(kind, vocabulary.names(origin), event.value or 0.0, effect))
    width = chain.width(levels, who, x)
    score = float(dot(x, policy.thetas(context.who)[0]))
    return Explanation(
        user,
        item,
        estimate,
        None if width is None else float(width),
        tuple(sorted(reasons, key=lambda reason: -abs(reason.effect))),
        score - sum(reason.effect for reason in reasons),
    )


def _effects(
    policy: Bandit, context: Context, x: Tensor, pairs: Sequence[tuple[Event, Event]]
) -> list[float]:
    """What answers of one kind, or rewards, add to the score of x [1, 1, D]."""
    levels, seen, who = policy.levels(), policy.representation, policy.models_of(context.who)
    assert seen is not None  # where there are levels, for the type checker
    rewards = pairs[0][0].kind == "reward"
    number = 0 if rewards else policy.answer_level
    model = levels[number].model
    solved = model.solve(who, chain.reach(levels, who, x, number))[0, 0]  # [D] G_n^-1 v_n
    values = torch.tensor([event.value for event, _ in pairs], dtype=torch.float64).to(x)
    if rewards:
        shown = Arms(torch.tensor([origin.first for _, origin in pairs]))
        evidence = values[:, None] * shown.features(seen)  # [n, D] y x
    else:
        evidence = policy.evidence(about_of([origin for _, origin in pairs]), values)
    effects: list[float] = (model.weight * (evidence @ solved)).tolist()
    return effects


def beliefs_of(policy: Bandit, context: Context, nobody: Context, names: Sequence[str]) -> list[Belief]:
    """What is believed of each key-term, the most liked first; empty, if the policy is not linear.

    Args:
        policy: who believes it.
        context: the person.
        nobody: somebody of whom nothing is known.
        names: of the key-terms.
    """
    levels, seen = policy.levels(), policy.representation
    if not levels or seen is None or not names:
        return []
    terms = seen.terms()  # [K, D]
    estimate = terms @ policy.thetas(context.who)[0][0]  # [K]
    plain = [replace(level, factor=1.0) for level in levels]
    width, at_first = (
        chain.width(plain, policy.models_of(one.who), terms[None])[0]  # type: ignore[index]
        for one in (context, nobody)
    )  # [K] each
    sure = (1 - width / at_first.clamp_min(torch.finfo(width.dtype).tiny)).clamp(0, 1)
    order = estimate.argsort(descending=True, stable=True).tolist()
    columns = (estimate.tolist(), width.tolist(), sure.tolist())
    return [Belief(names[k], *(column[k] for column in columns)) for k in order]
