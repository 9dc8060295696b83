"""The LinUCB family as the paper has it, line by line: one user, plain NumPy, loops, no cleverness."""

from __future__ import annotations

import numpy as np


class LinUCB:
    def __init__(self, dim, ridge=1.0, alpha=0.5):
        self.A, self.b, self.alpha = ridge * np.eye(dim), np.zeros(dim), alpha

    @property
    def theta(self):
        return np.linalg.inv(self.A) @ self.b

    def choose(self, X):
        inverse, theta = np.linalg.inv(self.A), self.theta
        scores = []
        for x in X:
            scores.append(x @ theta + self.alpha * np.sqrt(x @ inverse @ x))
        return int(np.argmax(scores))

    def update(self, x, reward):
        self.A += np.outer(x, x)
        self.b += reward * x


class ConUCB:
    """Two levels; `rule` names the way key-terms are selected."""

    def __init__(self, X_all, W, rule="optimal", mix=0.5, term_ridge=1.0, alpha=0.25, term_alpha=0.25):
        dim = X_all.shape[1]
        self.lam, self.alpha, self.term_alpha, self.rule, self.W = mix, alpha, term_alpha, rule, W
        self.M, self.b = (1 - mix) * np.eye(dim), np.zeros(dim)
        self.M_term, self.b_term = term_ridge * np.eye(dim), np.zeros(dim)
        self.X_term = np.array([(W[:, k] / W[:, k].sum()) @ X_all for k in range(W.shape[1])])

    @property
    def theta_term(self):
        return np.linalg.inv(self.M_term) @ self.b_term

    @property
    def theta(self):
        return np.linalg.inv(self.M) @ (self.b + (1 - self.lam) * self.theta_term)

    def term_radius(self, x, M_term):
        y = np.linalg.inv(self.M) @ x
        return np.sqrt(y @ np.linalg.inv(M_term) @ y)

    def choose(self, X):
        theta, inverse = self.theta, np.linalg.inv(self.M)
        scores = []
        for x in X:
            arm_radius = self.lam * self.alpha * np.sqrt(x @ inverse @ x)
            term_radius = (1 - self.lam) * self.term_alpha * self.term_radius(x, self.M_term)
            scores.append(x @ theta + arm_radius + term_radius)
        return int(np.argmax(scores))

    def update(self, x, reward):
        self.M += self.lam * np.outer(x, x)
        self.b += self.lam * reward * x

    def select(self, X, arms, draw):
        if self.rule == "random":
            return draw()
        scores = [getattr(self, self.rule)(k, X, arms) for k in range(len(self.X_term))]
        return int(np.argmax(scores))

    def optimal(self, k, X, arms):
        x, inverse = self.X_term[k], np.linalg.inv(self.M_term)
        return np.sum((X @ np.linalg.inv(self.M) @ inverse @ x) ** 2) / (1 + x @ inverse @ x)

    def max_related_confidence(self, k, X, arms):
        return self._weighted(k, arms, [self.term_alpha * self.term_radius(x, self.M_term) for x in X])

    def largest_confidence_reduction(self, k, X, arms):
        if self.W[arms, k].sum() == 0:
            return 0.0
        after = self.M_term + np.outer(self.X_term[k], self.X_term[k])
        reductions = [self.term_radius(x, self.M_term) - self.term_radius(x, after) for x in X]
        return self._weighted(k, arms, reductions)

    def _weighted(self, k, arms, values):
        weights = self.W[arms, k]
        return 0.0 if weights.sum() == 0 else weights @ np.array(values) / weights.sum()

    def listen(self, k, answer):
        self.M_term += np.outer(self.X_term[k], self.X_term[k])
        self.b_term += answer * self.X_term[k]


class ConLinUCB:
    """One level: answers enter the regression that rewards enter."""

    def __init__(self, X_all, W, rule="optimal", ridge=1.0, alpha=0.5, term_alpha=0.25):
        dim = X_all.shape[1]
        self.alpha, self.rule, self.term_alpha = alpha, rule, term_alpha
        self.M, self.b = ridge * np.eye(dim), np.zeros(dim)
        self.X_term = np.array([(W[:, k] / W[:, k].sum()) @ X_all for k in range(W.shape[1])])

    @property
    def theta(self):
        return np.linalg.inv(self.M) @ self.b

    def choose(self, X):
        inverse, theta = np.linalg.inv(self.M), self.theta
        return int(np.argmax([x @ theta + self.alpha * np.sqrt(x @ inverse @ x) for x in X]))

    def update(self, x, reward):
        self.M += np.outer(x, x)
        self.b += reward * x

    def select(self, X, arms, draw):
        if self.rule == "random":
            return draw()
        scores = [getattr(self, self.rule)(self.X_term[k], X) for k in range(len(self.X_term))]
        return int(np.argmax(scores))

    def optimal(self, x, X):
        inverse = np.linalg.inv(self.M)
        return np.sum((X @ inverse @ x) ** 2) / (1 + x @ inverse @ x)

    def max_confidence_radius(self, x, X):
        return np.sqrt(x @ np.linalg.inv(self.M) @ x)

    def upper_confidence(self, x, X):
        return x @ self.theta + self.term_alpha * np.sqrt(x @ np.linalg.inv(self.M) @ x)

    def listen(self, k, answer):
        self.update(self.X_term[k], answer)


class RelativeConUCB(ConUCB):
    """Compares the two key-terms of the round's candidates whose difference says most, and learns it."""

    def select(self, X, arms, draw):
        related = [k for k in range(len(self.X_term)) if self.W[arms, k].any()]
        pairs = [(f, s) for f in related for s in related if f < s]
        return max(pairs, key=lambda pair: self._says(X, self.X_term[pair[0]] - self.X_term[pair[1]]))

    def _says(self, X, z):
        inverse = np.linalg.inv(self.M_term)
        return np.sum((X @ np.linalg.inv(self.M) @ inverse @ z) ** 2) / (1 + z @ inverse @ z)

    def compare(self, pair, first_wins):
        first, second = (self.X_term[k] for k in pair)
        z = first - second if first_wins else second - first
        self.M_term += np.outer(z, z)
        self.b_term += z


class GraphConUCB(ConUCB):
    """An answer is one about every similar key-term too, with the similarity as its weight."""

    def __init__(self, X_all, W, **arguments):
        super().__init__(X_all, W, **arguments)
        number = len(self.X_term)
        together = [
            {other for other in range(number) if (W[:, k] * W[:, other]).any()} for k in range(number)
        ]
        self.S = np.eye(number)
        for k in range(number):
            for other in together[k] - {k}:
                x, y = self.X_term[k], self.X_term[other]
                cosine = x @ y / np.sqrt(x @ x) / np.sqrt(y @ y)
                shared = 1 / (len(together[k]) + len(together[other]) - 1)
                self.S[k, other] = 0.5 * shared + 0.5 * (0 if cosine < 0.001 else cosine)

    def listen(self, k, answer):
        for other, x in enumerate(self.X_term):
            self.M_term += self.S[k, other] * np.outer(x, x)
            self.b_term += self.S[k, other] * answer * x


def budget(b, t):
    """Questions of user-round t (from 1)."""
    return int(np.floor(b(t))) - (int(np.floor(b(t - 1))) if t > 1 else 0)


def play(kind, policy, world, rounds, b):
    """One user's rounds: (arms shown, things asked, theta after each round)."""
    shown, asked, thetas = [], [], []
    for t in range(1, rounds + 1):
        arms, arm_noise, term_noise = world.round(t - 1)
        X = world.X[arms]
        due = policy.due(b, t) if hasattr(policy, "due") else budget(b, t)
        for _ in range(due if kind != "plain" else 0):
            if kind == "arms":
                choice = policy.choose(X)
                policy.update(X[choice], X[choice] @ world.theta + arm_noise)
                asked.append(arms[choice])
            elif kind == "pairs":
                pair = policy.select(X, arms, None)
                values = np.array([policy.X_term[k] @ world.theta for k in pair]) + world.side_noise(
                    len(asked)
                )
                policy.compare(pair, values[0] > values[1])
                asked.append(pair)
            else:
                k = policy.select(X, arms, lambda: world.random_term(len(asked)))
                policy.listen(k, policy.X_term[k] @ world.theta + term_noise)
                asked.append(k)
        choice = policy.choose(X)
        policy.update(X[choice], X[choice] @ world.theta + arm_noise)
        shown.append(arms[choice])
        thetas.append(policy.theta)
    return shown, asked, np.array(thetas)
