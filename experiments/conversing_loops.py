"""The conversational policies as plain NumPy loops, on the pattern of the released ConUCB."""

from __future__ import annotations

import numpy as np

from experiments.loops import Array, Graph, Linear, Ridge, deviation


class OneLevel(Linear):
    """ConLinUCB; `rule` names the way key-terms are selected, `among` those of a random draw."""

    asks = "terms"

    def __init__(
        self,
        graph: Graph,
        users: int,
        *,
        rule: str = "optimal",
        among: list[int] | None = None,
        term_alpha: float = 0.25,
        **base: float,
    ) -> None:
        super().__init__(graph, users, **base)
        self.term_alpha, self.generator = term_alpha, np.random.default_rng(0)
        self.select = {
            "optimal": self.optimal,
            "random": self.random,
            "max_related_confidence": self.max_related_confidence,
            "largest_confidence_reduction": self.largest_confidence_reduction,
            "max_confidence_radius": self.max_confidence_radius,
            "upper_confidence": self.upper_confidence,
        }[rule]
        self.terms = list(range(len(graph.X_term)))
        self.among = self.terms if among is None else among

    def answer_level(self, user: int) -> Ridge:
        """The regression that answers enter."""
        return self.arm_level[user]

    def answer_theta(self, user: int) -> Array:
        """The preferences of that level."""
        return self.theta[user]

    def projection(self, user: int) -> Array | None:
        """What takes x_a to p_a; None: p_a is x_a."""
        return None

    def listen(self, user: int, term: int, answer: float) -> None:
        """An answer about a key-term."""
        self.answer_level(user).learn(self.term_features(term), answer)
        self.solve(user)

    def random(self, user: int, arms: list[int]) -> int:
        """Any key-term."""
        return self.among[self.generator.integers(len(self.among))]

    def optimal(self, user: int, arms: list[int]) -> int:
        """Eq. 8."""
        inverse = self.answer_level(user).inverse
        gain = self.vectors(user, arms) @ inverse  # [A, D]

        def score(term: int) -> float:
            x = self.term_features(term)
            change = gain @ x
            return float(change @ change / (1 + x @ inverse @ x))

        return max(self.terms, key=score)

    def max_confidence_radius(self, user: int, arms: list[int]) -> int:
        """The key-term that is known least."""
        inverse = self.answer_level(user).inverse
        return max(self.terms, key=lambda k: self.term_features(k) @ inverse @ self.term_features(k))

    def upper_confidence(self, user: int, arms: list[int]) -> int:
        """The key-term that the user may like best."""
        inverse, theta = self.answer_level(user).inverse, self.answer_theta(user)

        def score(term: int) -> float:
            x = self.term_features(term)
            return float(x @ theta + self.term_alpha * np.sqrt(x @ inverse @ x))

        return max(self.terms, key=score)

    def max_related_confidence(self, user: int, arms: list[int]) -> int:
        """The key-term whose candidates are least certain."""
        inverse = self.answer_level(user).inverse
        vectors = self.vectors(user, arms)
        radius = {arm: np.sqrt(p @ inverse @ p) for arm, p in zip(arms, vectors, strict=True)}
        return max(self.terms, key=lambda term: self.mean_of_candidates(term, radius))

    def largest_confidence_reduction(self, user: int, arms: list[int]) -> int:
        """The key-term that most shortens its own candidates' intervals."""
        inverse = self.answer_level(user).inverse
        vectors = dict(zip(arms, self.vectors(user, arms), strict=True))
        before = {arm: np.sqrt(p @ inverse @ p) for arm, p in vectors.items()}

        def score(term: int) -> float:
            own = [arm for arm, _ in self.graph.arms_of[term] if arm in vectors]
            if not own:
                return 0.0
            x = self.term_features(term)
            step = inverse @ x
            after = inverse - np.outer(step, step) / (1 + x @ step)
            reduction = {a: before[a] - np.sqrt(vectors[a] @ after @ vectors[a]) for a in own}
            return self.mean_of_candidates(term, reduction)

        return max(self.terms, key=score)

    def vectors(self, user: int, arms: list[int]) -> Array:
        """[A, D] p_a of the candidates."""
        X, projection = np.array([self.features(arm) for arm in arms]), self.projection(user)
        return X if projection is None else X @ projection

    def mean_of_candidates(self, term: int, values: dict[int, float]) -> float:
        """Weighted mean over the key-term's arms that have a value; 0 if none has."""
        total = weight_sum = 0.0
        for arm, weight in self.graph.arms_of[term]:
            if arm in values:
                total += weight * values[arm]
                weight_sum += weight
        return total / weight_sum if weight_sum else 0.0


class TwoLevels(OneLevel):
    """ConUCB and its variants."""

    def __init__(
        self,
        graph: Graph,
        users: int,
        *,
        mix: float = 0.5,
        term_ridge: float = 1.0,
        alpha: float = 0.25,
        rule: str = "optimal",
        **own: float,
    ) -> None:
        self.mix = mix
        super().__init__(graph, users, rule=rule, alpha=alpha, ridge=1 - mix, weight=mix, **own)
        self.term_level = [self.regression(self.dim, term_ridge) for _ in range(users)]
        self.term_theta = [np.zeros(self.dim) for _ in range(users)]

    def answer_level(self, user: int) -> Ridge:
        """The key-term level."""
        return self.term_level[user]

    def answer_theta(self, user: int) -> Array:
        """theta~."""
        return self.term_theta[user]

    def projection(self, user: int) -> Array:
        """`M^-1`."""
        return self.arm_level[user].inverse

    def choose(self, user: int, arms: list[int]) -> int:
        """Eq. 7."""
        theta, inverse, best, highest = self.theta[user], self.arm_level[user].inverse, arms[0], -np.inf
        middle = inverse @ self.term_level[user].inverse @ inverse
        for arm in arms:
            x = self.features(arm)
            score = x @ theta + self.mix * self.alpha * np.sqrt(x @ inverse @ x)
            score += (1 - self.mix) * self.term_alpha * np.sqrt(x @ middle @ x)
            if score > highest:
                best, highest = arm, score
        return best

    def listen(self, user: int, term: int, answer: float) -> None:
        """An answer about a key-term."""
        level = self.term_level[user]
        level.learn(self.term_features(term), answer)
        self.term_theta[user] = level.inverse @ level.b
        self.solve(user)

    def solve(self, user: int) -> None:
        """Eq. 6."""
        level = self.arm_level[user]
        self.theta[user] = level.inverse @ (level.b + (1 - self.mix) * self.term_theta[user])


class TwoLevelThompson(TwoLevels):
    """Thompson sampling at both levels."""

    scale = 0.1

    def choose(self, user: int, arms: list[int]) -> int:
        """The arm to show."""
        level, term_level = self.arm_level[user], self.term_level[user]
        centre = self.term_theta[user] + self.scale * deviation(term_level, self.generator)
        mean = level.inverse @ (level.b + (1 - self.mix) * centre)
        sample = mean + self.scale * deviation(level, self.generator)
        return max(arms, key=lambda arm: self.features(arm) @ sample)
