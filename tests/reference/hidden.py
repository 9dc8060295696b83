"""hLinUCB and hConUCB line by line: all users of a round in plain NumPy loops, increments of v summed."""

from __future__ import annotations

import numpy as np

from tests.reference import logistic
from tests.reference.linear import budget


class Hidden:
    """`kind` is "plain" (hLinUCB), "arms" (hArm-Con) or "terms" (hConUCB and variants, by `rule`)."""

    def __init__(self, X, W, V0, users, kind, rule="optimal", ridge=1.0, weight=1.0, alpha=0.5,
                 hidden_alpha=0.1, hidden_ridge=1.0, mix=0.5, term_ridge=1.0, term_alpha=0.25):  # fmt: skip
        self.X, self.W, self.V, self.kind, self.rule = X, W, V0.copy(), kind, rule
        self.play_as = kind
        self.P = W / W.sum(0)
        self.D, self.L = X.shape[1], V0.shape[1]
        dim = self.D + self.L
        self.lam = mix if kind == "terms" else None
        self.ridge, self.weight = (1 - mix, mix) if kind == "terms" else (ridge, weight)
        self.alpha, self.hidden_alpha, self.term_alpha = alpha, hidden_alpha, term_alpha
        self.M = [self.ridge * np.eye(dim) for _ in range(users)]
        self.b = [np.zeros(dim) for _ in range(users)]
        self.M_term = [term_ridge * np.eye(dim) for _ in range(users)]
        self.b_term = [np.zeros(dim) for _ in range(users)]
        self.C = [hidden_ridge * np.eye(self.L) for _ in range(len(X))]
        self.d = [np.zeros(self.L) for _ in range(len(X))]

    def phi(self, arm):
        return np.concatenate((self.X[arm], self.V[arm]))

    def phi_term(self, k):
        return sum(self.P[a, k] * self.phi(a) for a in range(len(self.X)))

    def theta_term(self, u):
        return np.linalg.inv(self.M_term[u]) @ self.b_term[u]

    def theta(self, u):
        target = self.b[u]
        if self.kind == "terms":
            target = target + self.ridge * self.theta_term(u)
        return np.linalg.inv(self.M[u]) @ target

    def term_radius(self, u, arm, M_term):
        y = np.linalg.inv(self.M[u]) @ self.phi(arm)
        return np.sqrt(y @ np.linalg.inv(M_term) @ y)

    def choose(self, u, arms):
        theta, inverse, scores = self.theta(u), np.linalg.inv(self.M[u]), []
        for a in arms:
            x = self.phi(a)
            width = self.alpha * np.sqrt(x @ inverse @ x)
            if self.kind == "terms":
                width = self.lam * width
                width += (1 - self.lam) * self.term_alpha * self.term_radius(u, a, self.M_term[u])
            hidden = theta[self.D :]
            width += self.hidden_alpha * np.sqrt(hidden @ np.linalg.inv(self.C[a]) @ hidden)
            scores.append(x @ theta + width)
        return arms[int(np.argmax(scores))]

    def select(self, u, arms, draw):
        if self.rule == "random":
            return draw()
        return int(np.argmax([getattr(self, self.rule)(u, k, arms) for k in range(self.W.shape[1])]))

    def optimal(self, u, k, arms):
        x, inverse = self.phi_term(k), np.linalg.inv(self.M_term[u])
        X = np.array([self.phi(a) for a in arms])
        return np.sum((X @ np.linalg.inv(self.M[u]) @ inverse @ x) ** 2) / (1 + x @ inverse @ x)

    def max_related_confidence(self, u, k, arms):
        weights = self.W[arms, k]
        values = np.array([self.term_radius(u, a, self.M_term[u]) for a in arms])
        return 0.0 if weights.sum() == 0 else weights @ values / weights.sum()

    def largest_confidence_reduction(self, u, k, arms):
        weights = self.W[arms, k]
        if weights.sum() == 0:
            return 0.0
        x = self.phi_term(k)
        after = self.M_term[u] + np.outer(x, x)
        values = [self.term_radius(u, a, self.M_term[u]) - self.term_radius(u, a, after) for a in arms]
        return weights @ np.array(values) / weights.sum()

    def learn_rewards(self, observations):
        """[(user, arm, reward)]: theta of each user, then v of the arms, increments summed."""
        steps = []
        for u, a, reward in observations:
            x = self.phi(a)
            self.M[u] += self.weight * np.outer(x, x)
            self.b[u] += self.weight * reward * x
            theta = self.theta(u)
            steps.append((a, theta[self.D :], 1.0, reward - self.X[a] @ theta[: self.D]))
        self.step_hidden(steps)

    def learn_answers(self, observations):
        """[(user, key-term, answer)]: theta~ of each user, then v of the key-terms' arms."""
        steps = []
        for u, k, answer in observations:
            x = self.phi_term(k)
            self.M_term[u] += np.outer(x, x)
            self.b_term[u] += answer * x
            steps += self.answer_steps(u, k, answer)
        self.step_hidden(steps)

    def answer_steps(self, u, k, answer):
        theta = self.theta_term(u)
        rho, hidden = answer - self.phi_term(k) @ theta, theta[self.D :]
        arms = np.flatnonzero(self.P[:, k])
        return [(a, hidden, self.P[a, k], rho + self.V[a] @ hidden) for a in arms]

    def step_hidden(self, steps):
        for a, hidden, p, target in steps:
            self.C[a] += p * np.outer(hidden, hidden)
            self.d[a] += p * hidden * target
        for a in {a for a, *_ in steps}:
            self.V[a] = np.linalg.inv(self.C[a]) @ self.d[a]

    def refit(self, rewards, answers, hidden_ridge, term_ridge, sweeps):
        """Everything anew from the log, with current values."""
        for _ in range(sweeps):
            for u in range(len(self.M)):
                self.M[u], self.b[u] = self.ridge * np.eye(self.D + self.L), np.zeros(self.D + self.L)
                self.M_term[u], self.b_term[u] = (
                    term_ridge * np.eye(self.D + self.L),
                    np.zeros(self.D + self.L),
                )
            for u, a, reward in rewards:
                self.M[u] += self.weight * np.outer(self.phi(a), self.phi(a))
                self.b[u] += self.weight * reward * self.phi(a)
            for u, k, answer in answers:
                self.M_term[u] += np.outer(self.phi_term(k), self.phi_term(k))
                self.b_term[u] += answer * self.phi_term(k)
            steps = []
            for u, a, reward in rewards:
                theta = self.theta(u)
                steps.append((a, theta[self.D :], 1.0, reward - self.X[a] @ theta[: self.D]))
            for seen in answers:
                steps += self.answer_steps(*seen)
            for a in range(len(self.X)):
                self.C[a], self.d[a] = hidden_ridge * np.eye(self.L), np.zeros(self.L)
            self.step_hidden(steps)


class OneLevel(Hidden):
    """hConLinUCB: answers enter the regression of the rewards, and theta is in both places."""

    def __init__(self, X, W, V0, users, kind, rule, ridge, alpha, hidden_alpha, hidden_ridge):
        super().__init__(
            X, W, V0, users, "plain", rule, ridge, 1.0, alpha, hidden_alpha, hidden_ridge, term_ridge=ridge
        )
        self.play_as, self.M_term, self.b_term = kind, self.M, self.b  # one and the same

    def theta_term(self, u):
        return self.theta(u)

    def max_confidence_radius(self, u, k, arms):
        x = self.phi_term(k)
        return np.sqrt(x @ np.linalg.inv(self.M[u]) @ x)


class Compared(Hidden):
    """hConUCB that compares two key-terms: an answer is of the difference, winner less loser, with target 1."""

    def __init__(self, *arguments, **named):
        X, W, V0, users, _, _ = arguments
        super().__init__(X, W, V0, users, "terms", **named)
        self.play_as = "pairs"

    def phi_term(self, pair):
        first, second = (Hidden.phi_term(self, k) for k in pair)
        return first - second

    def select(self, u, arms, draw):
        related = [k for k in range(self.W.shape[1]) if self.W[arms, k].any()]
        pairs = [(f, s) for f in related for s in related if f < s]
        return max(pairs, key=lambda pair: self.optimal(u, pair, arms))

    def answer_steps(self, u, pair, answer):
        """Weights of both signs: C_a += S |w| t t^T, d_a += t (w rho + S |w| v^T t), S their sum."""
        theta = self.theta_term(u)
        rho, hidden = answer - self.phi_term(pair) @ theta, theta[self.D :]
        weights = self.P[:, pair[0]] - self.P[:, pair[1]]
        total = np.abs(weights).sum()
        return [
            (a, hidden, total * abs(weights[a]), np.sign(weights[a]) / total * rho + self.V[a] @ hidden)
            for a in np.flatnonzero(weights)
        ]


class Clicks(Hidden):
    """Values are clicks: every step is that of ridge regression on the loss to second order, at its score."""

    def weighed(self, x, theta, value):
        """s and rho."""
        m = logistic.mu(x @ theta)
        s = np.sqrt(max(m * (1 - m), logistic.FLOOR))
        return s, (min(max(value, 0.0), 1.0) - m) / s

    def learn_rewards(self, observations):
        steps = []
        for u, a, reward in observations:
            x, theta = self.phi(a), self.theta(u)
            s, rho = self.weighed(x, theta, reward)
            self.M[u] += self.weight * s**2 * np.outer(x, x)
            self.b[u] += self.weight * s * x * (rho + s * x @ theta)
            steps.append(self.reward_step(u, a, reward))
        self.step_hidden(steps)

    def reward_step(self, u, a, reward):
        s, rho = self.weighed(self.phi(a), self.theta(u), reward)
        hidden = s * self.theta(u)[self.D :]
        return a, hidden, 1.0, rho + self.V[a] @ hidden

    def learn_answers(self, observations):
        steps = []
        for u, k, answer in observations:
            x, theta = self.phi_term(k), self.theta_term(u)
            s, rho = self.weighed(x, theta, answer)
            self.M_term[u] += s**2 * np.outer(x, x)
            self.b_term[u] += s * x * (rho + s * x @ theta)
            steps += self.answer_steps(u, k, answer)
        self.step_hidden(steps)

    def answer_steps(self, u, k, answer):
        s, rho = self.weighed(self.phi_term(k), self.theta_term(u), answer)
        hidden = s * self.theta_term(u)[self.D :]
        arms = np.flatnonzero(self.P[:, k])
        return [(a, hidden, self.P[a, k], rho + self.V[a] @ hidden) for a in arms]

    def refit(self, rewards, answers, hidden_ridge, term_ridge, sweeps):
        for _ in range(sweeps):
            for u in range(len(self.M)):
                shown = [logistic.Arm(self.phi(a), r) for v, a, r in rewards if v == u]
                asked = [logistic.Arm(self.phi_term(k), r) for v, k, r in answers if v == u]
                self.fit(u, shown, asked, term_ridge)
            steps = [self.reward_step(*seen) for seen in rewards]
            steps += [step for seen in answers for step in self.answer_steps(*seen)]
            for a in range(len(self.X)):
                self.C[a], self.d[a] = hidden_ridge * np.eye(self.L), np.zeros(self.L)
            self.step_hidden(steps)

    def fit(self, u, shown, asked, term_ridge):
        zero = np.zeros(self.D + self.L)
        if asked:
            self.M_term[u], self.b_term[u] = logistic.fit(asked, self.theta_term(u), term_ridge, 1.0, zero)
        centre = self.theta_term(u) if self.kind == "terms" else zero
        if shown:
            self.M[u], self.b[u] = logistic.fit(shown, self.theta(u), self.ridge, self.weight, centre)


class OneLevelClicks(Clicks, OneLevel):
    """hConLinUCB for clicks."""

    def fit(self, u, shown, asked, term_ridge):
        if shown + asked:
            zero = np.zeros(self.D + self.L)
            self.M[u], self.b[u] = logistic.fit(shown + asked, self.theta(u), self.ridge, 1.0, zero)


def play(reference, world, visitors, b, refit_every=None, **refit):
    """Rounds with the given visitors: what was shown and asked, round by round."""
    log, rewards, answers = [], [], []
    rounds, asked = np.zeros(world.num_users, dtype=int), np.zeros(world.num_users, dtype=int)
    for number, users in enumerate(visitors, 1):
        pools = {u: world.pool(u, rounds[u]) for u in users}
        asked_now = []
        left = {u: budget(b, rounds[u] + 1) if reference.play_as != "plain" else 0 for u in users}
        while any(left.values()):
            wave = [u for u in users if left[u]]
            if reference.play_as == "arms":
                chosen = [(u, reference.choose(u, pools[u])) for u in wave]
                heard = [(u, a, world.reward(u, rounds[u], a)) for u, a in chosen]
                reference.learn_rewards(heard)
                rewards += heard
            elif reference.play_as == "pairs":
                chosen = [(u, reference.select(u, pools[u], None)) for u in wave]
                heard = [(u, world.compare(u, asked[u], pair), 1.0) for u, pair in chosen]
                reference.learn_answers(heard)
                answers += heard
            else:
                chosen = [
                    (u, reference.select(u, pools[u], lambda u=u: world.random_term(u, asked[u])))
                    for u in wave
                ]
                heard = [(u, k, world.answer(u, rounds[u], k)) for u, k in chosen]
                reference.learn_answers(heard)
                answers += heard
            for u in wave:
                left[u] -= 1
                asked[u] += 1
            asked_now.append(sorted((int(u), tuple(np.atleast_1d(x).tolist())) for u, x in chosen))
        shown = [(u, reference.choose(u, pools[u])) for u in users]
        heard = [(u, a, world.reward(u, rounds[u], a)) for u, a in shown]
        reference.learn_rewards(heard)
        rewards += heard
        for u in users:
            rounds[u] += 1
        if refit_every and number % refit_every == 0:
            reference.refit(rewards, answers, **refit)
        log.append((sorted((int(u), int(a)) for u, a in shown), asked_now))
    return log
