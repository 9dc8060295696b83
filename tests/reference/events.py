"""Replay of a log with its own candidates, line by line: one user, one event after the other, plain NumPy."""

from __future__ import annotations

import numpy as np
import torch

from conbandit_torch.core.randomness import Stream


def own_events(log, user, position=None):
    """A user's events in the order of time: candidates, context, and (item, click, propensity) of servings."""
    found = []
    for event in range(len(log.users)):
        if int(log.users[event]) != user:
            continue
        offer = int(log.offers[event])
        candidates = log.candidates[int(log.first[offer]) : int(log.first[offer + 1])].tolist()
        served = {
            int(log.items[s]): (float(log.clicks[s]), float(log.propensities[s]))
            for s in range(len(log.events))
            if int(log.events[s]) == event and (position is None or int(log.positions[s]) == position)
        }
        if served:
            found.append((int(log.times[event]), event, candidates, served))
    return sorted(found)


def standardised(context, played):
    """Context features with mean 0 and deviation 1 over the events that are played."""
    rows = np.array([context[event] for event in played])
    return (context - rows.mean(0)) / rows.std(0)


def features_of(x, context):
    """x (x) (1, c)."""
    return np.concatenate([x, *(c * x for c in context)])


def fit(events, X, context, ridge):
    """A ridge regression on the servings of some events."""
    dim = len(X[0]) * (1 + len(context[0]))
    gram, target = ridge * np.eye(dim), np.zeros(dim)
    for _, event, _, served in events:
        for item, (click, _) in served.items():
            x = features_of(X[item], context[event])
            gram += np.outer(x, x)
            target += click * x
    return np.linalg.solve(gram, target)


def play(policy, events, number, X, context, theta, seed):
    """(arms chosen, clicks that counted, and the user's sums) of a user who is `number` in the environment."""
    chosen, clicks = [], []
    sums = dict.fromkeys(("events", "counted", "clicks", "weight", "square", "earned", "robust"), 0.0)
    for t, (_, event, candidates, served) in enumerate(events):
        at = torch.tensor([number]), torch.tensor([t])
        order = np.argsort(Stream(seed, "replay order").bits(*at, len(candidates))[0].numpy(), kind="stable")
        arms = [candidates[place] for place in order]
        rows = [features_of(X[arm], context[event]) for arm in arms]
        pick = policy.choose(np.array(rows))
        arm, x = arms[pick], rows[pick]
        chosen.append(arm)
        guess = min(max(float(x @ theta), 0.0), 1.0)
        sums["events"] += 1
        sums["robust"] += guess
        if arm in served:
            click, propensity = served[arm]
            policy.update(x, click)
            clicks.append(click)
            sums["counted"] += 1
            sums["clicks"] += click
            sums["weight"] += 1 / propensity
            sums["square"] += 1 / propensity**2
            sums["earned"] += click / propensity
            sums["robust"] += (click - guess) / propensity
    return chosen, clicks, sums
