"""A policy that forgets a user who has changed, line by line: one user, plain NumPy.

`make()` gives the reference of a policy that has seen nothing; `variance(reference, x)` is the sum of
`|v_i|^2` over its levels; `clock()` gives the user's round that is being played, from 0.
"""

from __future__ import annotations

import numpy as np
import scipy.stats


def of_one_level(reference, x):
    M = reference.A if hasattr(reference, "A") else reference.M
    return x @ np.linalg.inv(M) @ x


def of_two_levels(reference, x):
    y = (1 - reference.lam) * np.linalg.inv(reference.M) @ x
    return x @ np.linalg.inv(reference.M) @ x + y @ np.linalg.inv(reference.M_term) @ y


class Restarting:
    def __init__(self, make, variance, weight, clock, patience, growth, shift):
        self.make, self.variance, self.weight, self.clock = make, variance, weight, clock
        self.patience, self.growth, self.shift, self.restarts = patience, growth, shift, 0
        self._begin(0)

    def _begin(self, round_number):
        self.inner, self.start, self.asked = self.make(), round_number, 0
        self.larger, self.lower, self.errors = 0.0, 0.0, []

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def due(self, b, t):
        """Questions of user-round t (from 1), of which the last start was the first."""
        return int(np.floor(b(t - self.start))) - self.asked

    def listen(self, k, answer):
        self.inner.listen(k, answer)
        self.asked += 1

    def update(self, x, reward):
        q = self.variance(self.inner, x)
        error = (reward - x @ self.inner.theta) / np.sqrt(1 / self.weight + q)
        if q < 1 / self.weight:
            if self.errors:
                n, s = len(self.errors), np.sqrt(np.mean(np.square(self.errors)))
                t = lambda mean, scale: scipy.stats.t.logpdf(error, n, mean, scale)  # noqa: E731
                self.larger = max(0.0, self.larger) + t(0, self.growth * s) - t(0, s)
                self.lower = max(0.0, self.lower) + t(-self.shift * s, s) - t(0, s)
            self.errors.append(error)
        if (np.exp(self.larger) + np.exp(self.lower)) / 2 > self.patience:
            self._begin(self.clock())
            self.restarts += 1
        self.inner.update(x, reward)
