"""When to ask and what to ask, line by line: one user, plain NumPy, matrices inverted anew every time."""

from __future__ import annotations

import numpy as np
from scipy import integrate, stats

from tests.reference import linear


class CLiSK(linear.ConLinUCB):
    """Key-terms are shifted, `shift(question, k)`, before the best is chosen; as published it is learned so."""

    def __init__(self, X_all, W, shift, about, **arguments):
        super().__init__(X_all, W, **arguments)
        self.terms, self.shift, self.about, self.number = self.X_term.copy(), shift, about, 0

    def select(self, X, arms, draw):
        shifted = np.array([x + self.shift(self.number, k) for k, x in enumerate(self.terms)])
        k = int(np.argmax([x @ self.theta for x in shifted]))
        self.X_term = self.terms.copy()
        if self.about == "perturbed":
            self.X_term[k] = shifted[k]  # the answer is about it, and it is learned
        self.number += 1
        return k


class CLiME(linear.ConLinUCB):
    """Asks what points most into the directions explored least."""

    def select(self, X, arms, draw):
        values, vectors = np.linalg.eigh(self.M)
        weakest = [v for value, v in zip(values, vectors.T, strict=True) if value < values[0] + 1e-9]
        return int(np.argmax([sum((x @ v) ** 2 for v in weakest) for x in self.X_term]))


class ConPE(CLiME):
    """Shows the widest of the candidates that can still be best, until a phase's width is reached."""

    def __init__(self, X_all, W, epsilon, **arguments):
        super().__init__(X_all, W, **arguments)
        self.epsilon, self.t = epsilon, 0

    def choose(self, X):
        self.t += 1
        phase = len([s for s in range(1, self.t + 1) if s & (s - 1) == 0])  # powers of two so far
        inverse, theta = np.linalg.inv(self.M), self.theta
        widths = [self.alpha * np.sqrt(x @ inverse @ x) for x in X]
        lower = max(x @ theta - w for x, w in zip(X, widths, strict=True))
        kept = [a for a, x in enumerate(X) if x @ theta + widths[a] >= lower]
        if any(widths[a] > self.epsilon / np.sqrt(2) ** phase for a in kept):
            return max(kept, key=lambda a: widths[a])
        return max(kept, key=lambda a: X[a] @ theta)


def fails_eigenvalue_test(policy, t, alpha):
    return np.linalg.eigvalsh(policy.M).min() < alpha * t


def expected_maximum(number):
    """Of so many standard normal numbers: the integral of x times the maximum's density."""

    def weighted(x):
        return x * number * stats.norm.cdf(x) ** (number - 1) * stats.norm.pdf(x)

    return integrate.quad(weighted, -12, 12)[0]


def saved(policy, X, maximum, spread, rounds):
    """The regret that the best answer saves over so many rounds, of a policy with one level or two."""
    if hasattr(policy, "M_term"):
        G, lam = policy.M_term, policy.lam
        P = np.array([(1 - lam) * np.linalg.inv(policy.M) @ x for x in X])
    else:
        G, lam, P = policy.M, 1.0, X
    ridge = policy.term_ridge

    def left(P, G):
        return sum((p - P.mean(0)) @ np.linalg.inv(G) @ (p - P.mean(0)) for p in P)

    u = min(1.0, ridge * left(P, G) / sum((x - X.mean(0)) @ (x - X.mean(0)) for x in X))
    s = max(1 - left(P, G + np.outer(x, x)) / left(P, G) for x in policy.X_term)
    M = policy.M
    h = np.mean([1 - left(X, M + lam * np.outer(x, x)) / left(X, M) for x in X])

    def regret(u):
        return spread * maximum * (1 - np.sqrt(1 - u))

    return s / h * (regret(u) - regret(u / (1 + h * rounds)))
