"""The hidden-feature family as plain NumPy loops, on BanditLib's pattern: inverses by `np.linalg.inv`."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.conversing_loops import OneLevel, TwoLevels
from experiments.loops import Array, Graph, InvertedRidge, Linear


class HiddenLinear(Linear):
    """hLinUCB: LinUCB on phi = (x, v), with v learned.

    Args:
        graph: arms and key-terms.
        users: U.
        hidden: [N, L] initial hidden features.
        hidden_alpha: factor of the hidden features' width.
        hidden_ridge: weight of the penalty `|v|^2`.
        base: the arguments of what it is mixed with.
    """

    regression = InvertedRidge

    def __init__(
        self,
        graph: Graph,
        users: int,
        *,
        hidden: Array,
        hidden_alpha: float = 0.1,
        hidden_ridge: float = 1.0,
        **base: Any,
    ) -> None:
        # The vectors (x, v) of the arms lie ready, as BanditLib keeps them.
        self.phi = np.concatenate((graph.X, hidden), axis=1)
        self.hidden_alpha, self.observed = hidden_alpha, graph.X.shape[1]
        self.hidden_level = [InvertedRidge(hidden.shape[1], hidden_ridge) for _ in graph.X]
        super().__init__(graph, users, **base)

    @property
    def dim(self) -> int:
        """Length of phi."""
        return self.phi.shape[1]

    def features(self, arm: int) -> Array:
        """phi of an arm."""
        return self.phi[arm]

    def term_features(self, term: int) -> Array:
        """phi~ of a key-term, from the current v."""
        return self.graph.shares[term] @ self.phi[self.graph.members[term]]

    def choose(self, user: int, arms: list[int]) -> int:
        """The arm to show."""
        theta, inverse, best, highest = self.theta[user], self.arm_level[user].inverse, arms[0], -np.inf
        hidden_theta, middle = theta[self.observed :], self.middle(user)
        for arm in arms:
            x = self.phi[arm]
            score = x @ theta + self.arm_alpha * np.sqrt(x @ inverse @ x)
            if middle is not None:
                score += self.centre_alpha * np.sqrt(x @ middle @ x)
            score += self.hidden_alpha * np.sqrt(hidden_theta @ self.hidden_level[arm].inverse @ hidden_theta)
            if score > highest:
                best, highest = arm, score
        return best

    @property
    def arm_alpha(self) -> float:
        """Factor of the arm level's width."""
        return self.alpha

    centre_alpha = 0.0

    def middle(self, user: int) -> Array | None:
        """`M^-1 M~^-1 M^-1`, where there are two levels."""
        return None

    def learn(self, user: int, arm: int, reward: float) -> None:
        """theta, then v of the arm."""
        super().learn(user, arm, reward)
        theta = self.theta[user]
        rest = reward - self.graph.X[arm] @ theta[: self.observed]
        self.learn_hidden(arm, 1.0, theta[self.observed :], rest)

    def learn_hidden(self, arm: int, share: float, direction: Array, target: float) -> None:
        """v of an arm."""
        level = self.hidden_level[arm]
        level.weight = share
        level.learn(direction, target)
        self.phi[arm, self.observed :] = level.inverse @ level.b


class HiddenAskingArms(HiddenLinear):
    """hArm-Con."""

    asks = "arms"


class HiddenOneLevel(HiddenLinear, OneLevel):
    """hConLinUCB."""

    def listen(self, user: int, term: int, answer: float) -> None:
        """theta of the level that answers enter, then v of the key-term's arms."""
        x = self.term_features(term)
        super().listen(user, term, answer)
        theta = self.answer_theta(user)
        rho, direction = answer - x @ theta, theta[self.observed :].copy()
        for arm, share in zip(self.graph.members[term], self.graph.shares[term], strict=True):
            target = rho + self.phi[arm, self.observed :] @ direction
            self.learn_hidden(arm, share, direction, target)


class HiddenTwoLevels(HiddenOneLevel, TwoLevels):
    """hConUCB and its variants."""

    @property
    def arm_alpha(self) -> float:
        """Factor of the arm level's width."""
        return self.mix * self.alpha

    @property
    def centre_alpha(self) -> float:
        """Factor of the key-term level's width."""
        return (1 - self.mix) * self.term_alpha

    def middle(self, user: int) -> Array:
        """`M^-1 M~^-1 M^-1`."""
        inverse = self.arm_level[user].inverse
        return inverse @ self.term_level[user].inverse @ inverse
