"""Bandits for users who change, line by line: one user, plain NumPy, sums over everything that was seen.

`clock()` gives the user's round that is being played, from 0.
"""

from __future__ import annotations

import numpy as np

from tests.reference import linear


class DiscountedLinUCB(linear.LinUCB):
    """By the recursions of D-LinUCB: a reward in every round."""

    def __init__(self, dim, gamma, ridge, alpha):
        self.gamma, self.ridge, self.alpha = gamma, ridge, alpha
        self.V, self.W, self.b = ridge * np.eye(dim), ridge * np.eye(dim), np.zeros(dim)

    @property
    def theta(self):
        return np.linalg.inv(self.V) @ self.b

    def choose(self, X):
        scores = []
        for x in X:
            y = np.linalg.inv(self.V) @ x
            scores.append(x @ self.theta + self.alpha * np.sqrt(y @ self.W @ y))
        return int(np.argmax(scores))

    def update(self, x, reward):
        g, eye = self.gamma, np.eye(len(x))
        self.V = g * self.V + np.outer(x, x) + (1 - g) * self.ridge * eye
        self.W = g**2 * self.W + np.outer(x, x) + (1 - g**2) * self.ridge * eye
        self.b = g * self.b + reward * x


class Windowed:
    """Observations (round, x, y), of which those of the last rounds count, and no more than `window`."""

    def __init__(self, window):
        self.window, self.kept = window, []

    def add(self, t, x, y):
        if len(self.kept) == self.window:  # of the oldest round the first leaves
            oldest = min(s for s, _, _ in self.kept)
            del self.kept[[s for s, _, _ in self.kept].index(oldest)]
        self.kept.append((t, x, y))

    def weights(self, t):
        self.kept = [one for one in self.kept if one[0] > t - self.window]
        return [(1.0, x, y) for _, x, y in self.kept]


class Discounted:
    def __init__(self, gamma):
        self.gamma, self.kept = gamma, []

    def add(self, t, x, y):
        self.kept.append((t, x, y))

    def weights(self, t):
        return [(self.gamma ** (t - s), x, y) for s, x, y in self.kept]


def sums(observations, t, power=1):
    """Sums of g x x^T and g y x, in round t."""
    found = [(w**power, x, y) for w, x, y in observations.weights(t)]
    return sum(w * np.outer(x, x) for w, x, _ in found), sum(w * y * x for w, x, y in found)


class WindowedLinUCB(linear.LinUCB):
    def __init__(self, dim, clock, window, ridge, alpha):
        super().__init__(dim, ridge, alpha)
        self.clock, self.prior, self.rewards = clock, self.A, Windowed(window)

    def update(self, x, reward):
        self.rewards.add(self.clock(), x, reward)
        gram, moment = sums(self.rewards, self.clock())
        self.A, self.b = self.prior + gram, moment


class AgingConUCB(linear.ConUCB):
    """Two levels, with `kind` of observations on both; all of it is as of the last round that taught anything."""

    def __init__(self, X_all, W, clock, kind, arguments, **levels):
        super().__init__(X_all, W, "optimal", **levels)
        self.clock, self.priors = clock, (self.M, self.M_term)
        self.rewards, self.answers = kind(**arguments), kind(**arguments)
        self.W_arm = self.M

    def _sum_up(self):
        t = self.clock()
        gram, moment = sums(self.rewards, t)
        squared, _ = sums(self.rewards, t, power=2)
        self.M, self.b = self.priors[0] + self.lam * gram, self.lam * moment + np.zeros(len(self.b))
        self.W_arm = self.priors[0] + self.lam * squared
        gram, moment = sums(self.answers, t)
        self.M_term, self.b_term = self.priors[1] + gram, moment + np.zeros(len(self.b))

    def choose(self, X):
        scores = []
        for x in X:
            y = np.linalg.inv(self.M) @ x
            arm = self.lam * self.alpha * np.sqrt(y @ self.W_arm @ y)
            if isinstance(self.rewards, Windowed):
                arm = self.lam * self.alpha * np.sqrt(x @ y)
            term = (1 - self.lam) * self.term_alpha * self.term_radius(x, self.M_term)
            scores.append(x @ self.theta + arm + term)
        return int(np.argmax(scores))

    def update(self, x, reward):
        self.rewards.add(self.clock(), x, reward)
        self._sum_up()

    def listen(self, k, answer):
        self.answers.add(self.clock(), self.X_term[k], answer)
        self._sum_up()


class AgingConLinUCB(linear.ConLinUCB):
    """One level."""

    def __init__(self, X_all, W, clock, kind, arguments, **level):
        super().__init__(X_all, W, "optimal", **level)
        self.clock, self.prior, self.seen, self.W_arm = clock, self.M, kind(**arguments), self.M

    def choose(self, X):
        scores = []
        for x in X:
            y = np.linalg.inv(self.M) @ x
            square = x @ y if isinstance(self.seen, Windowed) else y @ self.W_arm @ y
            scores.append(x @ self.theta + self.alpha * np.sqrt(square))
        return int(np.argmax(scores))

    def update(self, x, reward):
        self.seen.add(self.clock(), x, reward)
        gram, moment = sums(self.seen, self.clock())
        self.M, self.b = self.prior + gram, moment
        self.W_arm = self.prior + sums(self.seen, self.clock(), power=2)[0]
