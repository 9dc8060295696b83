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


def shrunk(F, x, weight=1.0):
    """A root of (M + weight x x^T)^-1, where F is one of M^-1 (Potter 1963)."""
    u = F.T @ x
    gain = 1 + weight * (u @ u)
    return F - weight / (gain + np.sqrt(gain)) * np.outer(F @ u, u)


def sample(mean, scale, M, F, z):
    """N(mean, scale^2 M^-1) from a standard normal z: F F^T = M^-1."""
    np.testing.assert_allclose(F @ F.T, np.linalg.inv(M), rtol=1e-9, atol=1e-9)
    return mean + scale * F @ z


class LinThompson(linear.LinUCB):
    def __init__(self, dim, draw, scale, ridge=1.0):
        super().__init__(dim, ridge)
        self.draw, self.scale, self.F = draw, scale, np.eye(dim) / np.sqrt(ridge)

    def choose(self, X):
        theta = sample(self.theta, self.scale, self.A, self.F, self.draw("normal", "theta", len(self.b)))
        return int(np.argmax([x @ theta for x in X]))

    def update(self, x, reward):
        super().update(x, reward)
        self.F = shrunk(self.F, x)


class ConThompson(linear.ConUCB):
    def __init__(self, X_all, W, draw, mix, term_ridge, scale, term_scale):
        super().__init__(X_all, W, mix=mix, term_ridge=term_ridge)
        self.draw, self.scale, self.term_scale = draw, scale, term_scale
        self.F = np.eye(len(self.b)) / np.sqrt(1 - mix)
        self.F_term = np.eye(len(self.b)) / np.sqrt(term_ridge)

    def choose(self, X):
        dim = len(self.b)
        term_z, z = self.draw("normal", "term theta", dim), self.draw("normal", "theta", dim)
        theta_term = sample(self.theta_term, self.term_scale, self.M_term, self.F_term, term_z)
        mean = np.linalg.inv(self.M) @ (self.b + (1 - self.lam) * theta_term)
        theta = sample(mean, self.scale, self.M, self.F, z)
        return int(np.argmax([x @ theta for x in X]))

    def update(self, x, reward):
        super().update(x, reward)
        self.F = shrunk(self.F, x, self.lam)

    def listen(self, k, answer):
        super().listen(k, answer)
        self.F_term = shrunk(self.F_term, self.X_term[k])


class Coarse:
    """The coarse level of CoFineUCB."""

    def __init__(self, P, ridge, alpha):
        self.P, self.alpha = P, alpha
        self.M, self.b = ridge * np.eye(P.shape[1]), np.zeros(P.shape[1])

    @property
    def centre(self):
        return self.P @ np.linalg.inv(self.M) @ self.b

    def width(self, v):
        """v [D] is how the score moves with the centre."""
        y = self.P.T @ v
        return self.alpha * np.sqrt(y @ np.linalg.inv(self.M) @ y)

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
            coarse = self.coarse.width(self.ridge * np.linalg.inv(self.A) @ x)
            scores.append(x @ self.theta + fine + coarse)
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
            v = self.term_ridge * (1 - self.lam) * np.linalg.inv(self.M_term) @ np.linalg.inv(self.M) @ x
            coarse = self.coarse.width(v)
            scores.append(x @ self.theta + fine + term + coarse)
        return int(np.argmax(scores))

    def update(self, x, reward):
        super().update(x, reward)
        self.coarse.update(x, reward)
