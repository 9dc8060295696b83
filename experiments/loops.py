"""Plain NumPy loops over users, arms and key-terms: what the benchmark compares with.

They do what released code of this field does, no less and no more. Inverses are kept, not computed for every
arm: by rank-one steps in the LinUCB family, as in the released ConUCB, and by `np.linalg.inv` after every
observation in the hidden-feature family, as in BanditLib's hLinUCB. What does not depend on the arm or the
key-term is computed before the loop over them. A test holds their decisions against the package's policies.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Graph:
    """Arms, key-terms and the edges between them.

    Args:
        X: [N, D] features of the arms.
        edges: arm, key-term, weight of every edge.
        terms: K.
    """

    def __init__(self, X: Array, edges: list[tuple[int, int, float]], terms: int) -> None:
        self.X = X
        self.arms_of: list[list[tuple[int, float]]] = [[] for _ in range(terms)]
        for arm, term, weight in edges:
            self.arms_of[term].append((arm, weight))
        self.members = [np.array([arm for arm, _ in arms]) for arms in self.arms_of]
        weights = [np.array([weight for _, weight in arms]) for arms in self.arms_of]
        self.shares = [w / w.sum() for w in weights]
        self.X_term = [p @ X[arms] for p, arms in zip(self.shares, self.members, strict=True)]


class Ridge:
    """One ridge regression: M, its inverse by rank-one steps, b."""

    def __init__(self, dim: int, ridge: float, weight: float = 1.0) -> None:
        self.ridge, self.weight = ridge, weight
        self.M, self.inverse, self.b = ridge * np.eye(dim), np.eye(dim) / ridge, np.zeros(dim)

    def learn(self, x: Array, y: float) -> None:
        """One observation."""
        self.M += self.weight * np.outer(x, x)
        self.b += self.weight * y * x
        step = self.inverse @ x
        self.inverse -= np.outer(step, step) * (self.weight / (1 + self.weight * (x @ step)))


class InvertedRidge(Ridge):
    """A ridge regression whose matrix is inverted after every observation."""

    def learn(self, x: Array, y: float) -> None:
        """One observation."""
        self.M += self.weight * np.outer(x, x)
        self.b += self.weight * y * x
        self.inverse = np.linalg.inv(self.M)


class Linear:
    """LinUCB; with alpha 0, greedy."""

    asks = ""
    regression = Ridge

    def __init__(
        self, graph: Graph, users: int, *, alpha: float = 0.5, ridge: float = 1.0, weight: float = 1.0
    ) -> None:
        self.graph, self.alpha = graph, alpha
        self.arm_level = [self.regression(self.dim, ridge, weight) for _ in range(users)]
        self.theta = [np.zeros(self.dim) for _ in range(users)]

    @property
    def dim(self) -> int:
        """Length of the vectors that the regressions see."""
        return self.graph.X.shape[1]

    def features(self, arm: int) -> Array:
        """What the regression sees of an arm."""
        return self.graph.X[arm]

    def term_features(self, term: int) -> Array:
        """What the regression sees of a key-term."""
        return self.graph.X_term[term]

    def choose(self, user: int, arms: list[int]) -> int:
        """The arm to show."""
        theta, inverse, best, highest = self.theta[user], self.arm_level[user].inverse, arms[0], -np.inf
        for arm in arms:
            x = self.features(arm)
            score = x @ theta + self.alpha * np.sqrt(x @ inverse @ x)
            if score > highest:
                best, highest = arm, score
        return best

    def learn(self, user: int, arm: int, reward: float) -> None:
        """A reward."""
        self.arm_level[user].learn(self.features(arm), reward)
        self.solve(user)

    def solve(self, user: int) -> None:
        """The user's preferences from the regressions."""
        self.theta[user] = self.arm_level[user].inverse @ self.arm_level[user].b

    def select(self, user: int, arms: list[int]) -> int:
        """The key-term to ask about."""
        raise NotImplementedError

    def listen(self, user: int, term: int, answer: float) -> None:
        """An answer about a key-term."""
        raise NotImplementedError


class AskingArms(Linear):
    """Arm-Con."""

    asks = "arms"


class EpsilonGreedy(Linear):
    """A random arm now and then."""

    def __init__(self, graph: Graph, users: int, *, epsilon: float = 0.1, ridge: float = 1.0) -> None:
        super().__init__(graph, users, alpha=0.0, ridge=ridge)
        self.epsilon, self.generator = epsilon, np.random.default_rng(0)

    def choose(self, user: int, arms: list[int]) -> int:
        """The arm to show."""
        if self.generator.random() < self.epsilon:
            return arms[self.generator.integers(len(arms))]
        return max(arms, key=lambda arm: self.features(arm) @ self.theta[user])


class Thompson(Linear):
    """Linear Thompson sampling."""

    def __init__(self, graph: Graph, users: int, *, scale: float = 0.1, ridge: float = 1.0) -> None:
        super().__init__(graph, users, ridge=ridge)
        self.scale, self.generator = scale, np.random.default_rng(0)

    def choose(self, user: int, arms: list[int]) -> int:
        """The arm to show."""
        sample = self.theta[user] + self.scale * deviation(self.arm_level[user], self.generator)
        return max(arms, key=lambda arm: self.features(arm) @ sample)


class CoFine(Linear):
    """CoFineUCB, with the projection P [D, m]."""

    def __init__(
        self, graph: Graph, users: int, *, projection: Array, alpha: float = 0.5, coarse_alpha: float = 0.5
    ) -> None:
        super().__init__(graph, users, alpha=alpha)
        self.P, self.coarse_alpha = projection, coarse_alpha
        self.coarse = [Ridge(projection.shape[1], 1.0) for _ in range(users)]

    def choose(self, user: int, arms: list[int]) -> int:
        """The arm to show."""
        theta, inverse, best, highest = self.theta[user], self.arm_level[user].inverse, arms[0], -np.inf
        back = inverse @ self.P
        middle = back @ self.coarse[user].inverse @ back.T
        for arm in arms:
            x = self.features(arm)
            score = x @ theta + self.alpha * np.sqrt(x @ inverse @ x)
            score += self.coarse_alpha * self.arm_level[user].ridge * np.sqrt(x @ middle @ x)
            if score > highest:
                best, highest = arm, score
        return best

    def learn(self, user: int, arm: int, reward: float) -> None:
        """A reward."""
        self.coarse[user].learn(self.P.T @ self.features(arm), reward)
        super().learn(user, arm, reward)

    def solve(self, user: int) -> None:
        """The user's preferences from the regressions."""
        level, coarse = self.arm_level[user], self.coarse[user]
        self.theta[user] = level.inverse @ (level.b + level.ridge * (self.P @ (coarse.inverse @ coarse.b)))


def deviation(level: Ridge, generator: np.random.Generator) -> Array:
    """A draw of N(0, M^-1)."""
    return np.linalg.cholesky(level.inverse) @ generator.standard_normal(len(level.b))


class World(Graph):
    """The users' side: true features and preferences, pools and noise.

    Args:
        X: [N, D] true features of the arms.
        edges: arm, key-term, weight of every edge.
        terms: K.
        theta: [U, D] the users' preferences.
        pool: candidates per round.
        noise: standard deviation of rewards' and answers' noise.
    """

    def __init__(
        self,
        X: Array,
        edges: list[tuple[int, int, float]],
        terms: int,
        theta: Array,
        pool: int,
        noise: float = 0.1,
    ) -> None:
        super().__init__(X, edges, terms)
        self.theta, self.size, self.noise = theta, pool, noise
        self.generator = np.random.default_rng(0)

    def pool(self, user: int, t: int) -> list[int]:
        """Candidates of the user's t-th round, from 0."""
        drawn: list[int] = self.generator.choice(len(self.X), self.size, replace=False).tolist()
        return drawn

    def noises(self, user: int, t: int) -> tuple[float, float]:
        """eps and eps~ of the user's t-th round."""
        arm, term = self.noise * self.generator.standard_normal(2)
        return arm, term


def play(policy: Linear, world: World, users: int, rounds: int, b: Callable[[int], int]) -> list[list[int]]:
    """All users' rounds; what each was asked and shown, in order."""
    log: list[list[int]] = [[] for _ in range(users)]
    regret = np.zeros(users)
    for t in range(rounds):
        for user in range(users):
            theta, arms = world.theta[user], world.pool(user, t)
            noise, term_noise = world.noises(user, t)
            best = -np.inf
            for arm in arms:
                best = max(best, world.X[arm] @ theta)
            for _ in range(b(t + 1) - b(t) if policy.asks else 0):
                if policy.asks == "arms":
                    asked = policy.choose(user, arms)
                    policy.learn(user, asked, world.X[asked] @ theta + noise)
                else:
                    asked = policy.select(user, arms)
                    policy.listen(user, asked, world.X_term[asked] @ theta + term_noise)
                log[user].append(asked)
            shown = policy.choose(user, arms)
            reward = world.X[shown] @ theta
            policy.learn(user, shown, reward + noise)
            regret[user] += best - reward
            log[user].append(shown)
    return log
