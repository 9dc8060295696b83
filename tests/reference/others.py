"""Random and greedy bandits, Thompson sampling and CoFineUCB, line by line: one user, plain NumPy, no cleverness.

`draw(kind, purpose, count)` gives the policy's own random numbers of the round that is being played.
"""

from __future__ import annotations

import numpy as np

from tests.reference import linear


class Random(linear.LinUCB):
    def __init__(self, dim, draw):
        super().__init__(dim)
        self.draw = draw

    def choose(self, X):
        return int(np.argmax(self.draw("uniform", "arm", len(X))))


class Greedy(linear.LinUCB):
    def __init__(self, dim, draw, ridge=1.0):
        super().__init__(dim, ridge, alpha=0.0)
        self.draw = draw


class EpsilonGreedy(Greedy):
    def __init__(self, dim, draw, epsilon, ridge=1.0):
        super().__init__(dim, draw, ridge)
        self.epsilon = epsilon

    def choose(self, X):
        if self.draw("uniform", "explore", 1)[0] < self.epsilon:
            return int(np.argmax(self.draw("uniform", "arm", len(X))))
        return super().choose(X)


def sample(mean, scale, M, z):
    """N(mean, scale^2 M^-1) from a standard normal z: F F^T = M^-1."""
    F = np.linalg.cholesky(np.linalg.inv(M))
    return mean + scale * F @ z


class LinThompson(linear.LinUCB):
    def __init__(self, dim, draw, scale, ridge=1.0):
        super().__init__(dim, ridge)
        self.draw, self.scale = draw, scale

    def choose(self, X):
        theta = sample(self.theta, self.scale, self.A, self.draw("normal", "theta", len(self.b)))
        return int(np.argmax([x @ theta for x in X]))


class ConThompson(linear.ConUCB):
    def __init__(self, X_all, W, draw, mix, term_ridge, scale, term_scale):
        super().__init__(X_all, W, mix=mix, term_ridge=term_ridge)
        self.draw, self.scale, self.term_scale = draw, scale, term_scale

    def choose(self, X):
        dim = len(self.b)
        term_z, z = self.draw("normal", "term theta", dim), self.draw("normal", "theta", dim)
        theta_term = sample(self.theta_term, self.term_scale, self.M_term, term_z)
        mean = np.linalg.inv(self.M) @ (self.b + (1 - self.lam) * theta_term)
        theta = sample(mean, self.scale, self.M, z)
        return int(np.argmax([x @ theta for x in X]))


class Coarse:
    """The coarse level of CoFineUCB."""

    def __init__(self, P, ridge, alpha):
        self.P, self.alpha = P, alpha
        self.M, self.b = ridge * np.eye(P.shape[1]), np.zeros(P.shape[1])

    @property
    def centre(self):
        return self.P @ np.linalg.inv(self.M) @ self.b

    def width(self, x, M, ridge):
        y = self.P.T @ np.linalg.inv(M) @ x
        return self.alpha * ridge * np.sqrt(y @ np.linalg.inv(self.M) @ y)

    def update(self, x, reward):
        self.M += np.outer(self.P.T @ x, self.P.T @ x)
        self.b += reward * self.P.T @ x


class CoFineUCB(linear.LinUCB):
    def __init__(self, dim, coarse, ridge, alpha):
        super().__init__(dim, ridge, alpha)
        self.coarse, self.ridge = coarse, ridge

    @property
    def theta(self):
        return np.linalg.inv(self.A) @ (self.b + self.ridge * self.coarse.centre)

    def choose(self, X):
        scores = []
        for x in X:
            fine = self.alpha * np.sqrt(x @ np.linalg.inv(self.A) @ x)
            scores.append(x @ self.theta + fine + self.coarse.width(x, self.A, self.ridge))
        return int(np.argmax(scores))

    def update(self, x, reward):
        super().update(x, reward)
        self.coarse.update(x, reward)


class ConCoFineUCB(linear.ConUCB):
    def __init__(self, X_all, W, coarse, mix, term_ridge, alpha, term_alpha):
        super().__init__(X_all, W, "optimal", mix, term_ridge, alpha, term_alpha)
        self.coarse, self.term_ridge = coarse, term_ridge

    @property
    def theta_term(self):
        return np.linalg.inv(self.M_term) @ (self.b_term + self.term_ridge * self.coarse.centre)

    def choose(self, X):
        scores = []
        for x in X:
            fine = self.lam * self.alpha * np.sqrt(x @ np.linalg.inv(self.M) @ x)
            term = (1 - self.lam) * self.term_alpha * self.term_radius(x, self.M_term)
            coarse = self.coarse.width(x, self.M, 1 - self.lam)
            scores.append(x @ self.theta + fine + term + coarse)
        return int(np.argmax(scores))

    def update(self, x, reward):
        super().update(x, reward)
        self.coarse.update(x, reward)
