"""Bandits for clicks, line by line: one user, plain NumPy, loops, no cleverness."""

from __future__ import annotations

import numpy as np

from tests.reference import linear, others

FLOOR = 0.01


def mu(z):
    return 1 / (1 + np.exp(-z))


class Arm:
    """A reward: one vector."""

    def __init__(self, x, value):
        self.x, self.value = x, min(max(value, 0.0), 1.0)

    def mean(self, theta):
        return mu(self.x @ theta)

    def row(self, theta):
        """What it is to a ridge regression: features and target."""
        z = self.x @ theta
        v = max(mu(z) * (1 - mu(z)), FLOOR)
        return np.sqrt(v) * self.x, np.sqrt(v) * z + (self.value - mu(z)) / np.sqrt(v)


class Items:
    """An answer: the mean of its items' probabilities."""

    def __init__(self, X, p, value):
        self.X, self.p, self.value = X[p > 0], p[p > 0], min(max(value, 0.0), 1.0)

    def mean(self, theta):
        return self.p @ mu(self.X @ theta)

    def row(self, theta):
        each = mu(self.X @ theta)
        m, g = self.p @ each, (self.p * each * (1 - each)) @ self.X
        v = max(m * (1 - m), FLOOR)
        return g / np.sqrt(v), (self.value - m + g @ theta) / np.sqrt(v)


def loss(log, theta, ridge, weight, centre):
    total = 0.0
    for seen in log:
        m = seen.mean(theta)
        total -= seen.value * np.log(m) + (1 - seen.value) * np.log(1 - m)
    return weight * total + ridge / 2 * np.sum((theta - centre) ** 2)


def sums(log, theta, ridge, weight):
    M, b = ridge * np.eye(len(theta)), np.zeros(len(theta))
    for seen in log:
        x, y = seen.row(theta)
        M, b = M + weight * np.outer(x, x), b + weight * y * x
    return M, b


def fit(log, theta, ridge, weight, centre, steps=3):
    """M and b after Newton steps, each halved while it makes things worse."""
    for _ in range(steps):
        M, b = sums(log, theta, ridge, weight)
        step = np.linalg.inv(M) @ (b + ridge * centre) - theta
        goal, size = loss(log, theta, ridge, weight, centre), 1.0
        while loss(log, theta + size * step, ridge, weight, centre) > goal * (1 + 1e-6) and size > 2**-8:
            size /= 2
        theta = theta + size * step
        b = M @ theta - ridge * centre
    return M, b


def due(t, every=10, growth=0.2):
    """Whether a fit ends the user's round t, from 1."""

    def total(t):
        even = t / every
        return int(even) if growth * even <= 1 else int((1 + np.log(growth * even)) / growth)

    return total(t) > total(t - 1)


class LogisticUCB(linear.LinUCB):
    def __init__(self, dim, ridge, alpha):
        super().__init__(dim, ridge, alpha)
        self.ridge, self.log, self.t = ridge, [], 0

    def update(self, x, reward):
        seen = Arm(x, reward)
        features, target = seen.row(self.theta)
        super().update(features, target)
        self.log.append(seen)
        self.t += 1
        if due(self.t):
            self.A, self.b = fit(self.log, self.theta, self.ridge, 1.0, 0 * x)
            self.fitted()

    def fitted(self):
        pass


class LogisticThompson(LogisticUCB):
    def __init__(self, dim, draw, scale, ridge):
        super().__init__(dim, ridge, 0.0)
        self.draw, self.scale, self.F = draw, scale, np.eye(dim) / np.sqrt(ridge)

    choose = others.LinThompson.choose

    def update(self, x, reward):
        self.F = others.shrunk(self.F, Arm(x, reward).row(self.theta)[0])
        super().update(x, reward)

    def fitted(self):
        self.F = np.linalg.inv(np.linalg.cholesky(self.A)).T


class ConLogisticUCB(linear.ConUCB):
    def __init__(self, X_all, W, **arguments):
        super().__init__(X_all, W, **arguments)
        self.X_all, self.log, self.answers, self.t = X_all, [], [], 0
        self.term_ridge = self.M_term[0, 0]

    def update(self, x, reward):
        seen = Arm(x, reward)
        features, target = seen.row(self.theta)
        linear.ConUCB.update(self, features, target)
        self.log.append(seen)
        self.t += 1
        if due(self.t):
            zero = 0 * x
            if self.answers:
                both = fit(self.answers, self.theta_term, self.term_ridge, 1.0, zero)
                self.M_term, self.b_term = both
            lam = self.lam
            self.M, self.b = fit(self.log, self.theta, 1 - lam, lam, self.theta_term)
            self.fitted()

    def listen(self, k, answer):
        seen = Items(self.X_all, self.W[:, k] / self.W[:, k].sum(), answer)
        x, y = seen.row(self.theta_term)
        self.M_term, self.b_term = self.M_term + np.outer(x, x), self.b_term + y * x
        self.answers.append(seen)

    def fitted(self):
        pass


class RelativeConLogisticUCB(ConLogisticUCB):
    """A comparison is a click on the difference: the winner less the loser, with target 1."""

    select, _says = linear.RelativeConUCB.select, linear.RelativeConUCB._says

    def compare(self, pair, first_wins):
        winner, loser = (self.X_term[k] for k in (pair if first_wins else pair[::-1]))
        seen = Arm(winner - loser, 1.0)
        x, y = seen.row(self.theta_term)
        self.M_term, self.b_term = self.M_term + np.outer(x, x), self.b_term + y * x
        self.answers.append(seen)


class ConLogisticThompson(ConLogisticUCB):
    def __init__(self, X_all, W, draw, scale, term_scale, **arguments):
        super().__init__(X_all, W, **arguments)
        self.draw, self.scale, self.term_scale = draw, scale, term_scale
        self.F = np.eye(len(self.b)) / np.sqrt(1 - self.lam)
        self.F_term = np.eye(len(self.b)) / np.sqrt(self.term_ridge)

    choose = others.ConThompson.choose

    def update(self, x, reward):
        self.F = others.shrunk(self.F, Arm(x, reward).row(self.theta)[0], self.lam)
        super().update(x, reward)

    def listen(self, k, answer):
        seen = Items(self.X_all, self.W[:, k] / self.W[:, k].sum(), answer)
        self.F_term = others.shrunk(self.F_term, seen.row(self.theta_term)[0])
        super().listen(k, answer)

    def fitted(self):
        self.F = np.linalg.inv(np.linalg.cholesky(self.M)).T
        if self.answers:
            self.F_term = np.linalg.inv(np.linalg.cholesky(self.M_term)).T
