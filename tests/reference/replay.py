"""The replay protocol, line by line: one user after the other, one event after the other, plain NumPy."""

from __future__ import annotations

import numpy as np
import torch

from conbandit_torch.core.randomness import Stream
from tests.reference.linear import budget


class UserLog:
    """One user's log: what parameters are fitted on, and what is replayed."""

    def __init__(self, prepared, user, fit_share, pool):
        mine = [e for e in range(len(prepared.users)) if int(prepared.users[e]) == user]
        events = [(int(prepared.items[e]), float(prepared.clicks[e])) for e in mine]
        fitted = max(1, int(fit_share * len(events)))
        self.past, self.events = events[:fitted], events[fitted:]
        self.played = sum(len(self.to_come(t)) >= pool for t in range(len(self.events)))

    def to_come(self, t):
        """Distinct items of event t and all later ones, the one that comes last first."""
        return list(dict.fromkeys(item for item, _ in reversed(self.events[t:])))

    def fit(self, X, ridge):
        gram, target = ridge * np.eye(X.shape[1]), np.zeros(X.shape[1])
        for item, click in self.past:
            gram += np.outer(X[item], X[item])
            target += click * X[item]
        return np.linalg.solve(gram, target)

    def candidates(self, seed, number, t, pool):
        """The served item and others still to come, shuffled; `number` is the user's in the environment."""
        served = self.events[t][0]
        others = [item for item in self.to_come(t) if item != served]
        at = torch.tensor([number]), torch.tensor([t])
        draws = Stream(seed, "replay others").uniform(*at, pool - 1)[0].tolist()
        chosen = []
        for step, draw in enumerate(draws):  # Floyd's algorithm
            last = len(others) - (pool - 1) + step
            drawn = int(draw * (last + 1))
            chosen.append(last if drawn in chosen else drawn)
        offered = [served, *(others[position] for position in chosen)]
        order = np.argsort(Stream(seed, "replay order").bits(*at, pool)[0].numpy(), kind="stable")
        return [offered[position] for position in order]


def logs(prepared, pool, fit_share):
    """The logs of the users who have enough items, longest first."""
    every = [UserLog(prepared, user, fit_share, pool) for user in range(len(prepared.user_names))]
    return sorted((log for log in every if log.played), key=lambda log: -log.played)


def play(policy, log, number, X, theta, *, seed, pool, noise, b):
    """(arms chosen at every event, key-terms asked, clicks of the events that counted)."""
    chosen, asked, clicks = [], [], []
    for t, (served, click) in enumerate(log.events[: log.played]):
        arms = log.candidates(seed, number, t, pool)
        at = torch.tensor([number]), torch.tensor([t])
        eps = noise * Stream(seed, "replay term noise").normal(*at, 1).item()
        own_round = len(clicks) + 1
        while b is not None and len(asked) < sum(budget(b, s) for s in range(1, own_round + 1)):
            term = policy.select(X[arms], arms, None)
            policy.listen(term, policy.X_term[term] @ theta + eps)
            asked.append(term)
        arm = arms[policy.choose(X[arms])]
        chosen.append(arm)
        if arm == served:
            policy.update(X[arm], click)
            clicks.append(click)
    return chosen, asked, clicks
