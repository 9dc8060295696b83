"""Ridge regressions that forget: observations lose their weight with time, or leave a window."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from conbandit_torch.core.algebra import dot, sqrt_
from conbandit_torch.core.attributes import buffer
from conbandit_torch.core.blocks import Index, rows_of
from conbandit_torch.kernels import reference
from conbandit_torch.models.ridge import RidgeRegression, repeats_apart

_LAST = torch.iinfo(torch.int64).max


class AgingRegression(RidgeRegression):
    """Many ridge regressions that know what time it is: every observation is of one of the user's rounds.

    `tell_time` comes first and `update` then. Of a round that has passed, an observation counts as much as if
    it had come in time, so the order in which observations come does not matter.

    M shrinks as time passes, and its change is of full rank. So inverses, solutions and the bounds on
    eigenvalues are computed anew from the sums, in float64, whenever these have changed.

    Args:
        num_models: U, how many regressions.
        dim: D, length of a feature vector.
        ridge: weight of the penalty `|theta - centre|^2`, above 0; it does not age.
        like: a tensor whose dtype and device the state takes.
    """

    now: Tensor = buffer()  # [U] the latest round that each model was told of
    observed: Tensor = buffer()  # [U] the round that the next observations are of

    def __init__(self, num_models: int, dim: int, ridge: float = 1.0, *, like: Tensor | None = None) -> None:
        super().__init__(num_models, dim, ridge, like=like)
        start = torch.zeros((), dtype=torch.int64, device=self.gram.device)
        self.register_rows("now", start)
        self.register_rows("observed", start.clone())

    def tell_time(self, ids: Index, rounds: Tensor, *, learns: bool = False) -> None:
        """The next observations of the distinct models `ids` [B] are of their `rounds`-th rounds [B].

        Args:
            ids: which models.
            rounds: of the models' users; one that has passed makes nothing younger.
            learns: whether an observation of every model follows at once, which computes inverses anyway.
        """
        who = self._ids(ids)
        before = self.now[who]
        self.now[who] = torch.maximum(before, rounds)
        self.observed[who] = rounds
        grew = (rounds > before) & (self.count[who] > 0)
        aged = self._age(who[grew], (rounds - before)[grew])
        if not learns and len(aged):
            self.refresh(aged)

    @abstractmethod
    def _age(self, who: Tensor, passed: Tensor) -> Tensor:
        """Let `passed` [n] rounds pass for the models [n]; gives those whose sums have changed."""

    def update(self, ids: Index, features: Tensor, targets: Tensor, weight: Tensor | None = None) -> None:
        """One observation each for the models `ids`, of the round that they were told; ids may repeat."""
        self._expect_observations(ids, features, targets, weight)
        self._check_gain(ids, reference.gains(self.state, ids, features, self.weight)[1], features)
        who = self._ids(ids)
        self._add(who, features, targets, torch.ones_like(targets) if weight is None else weight)
        self.count.index_add_(0, who, torch.ones_like(who))
        self.refresh(who.unique())

    @abstractmethod
    def _add(self, who: Tensor, features: Tensor, targets: Tensor, weight: Tensor) -> None:
        """Add observations, with weights of their own [B], to the sums."""


class DiscountedRegression(AgingRegression):
    """Ridge regressions whose observations lose a share of their weight with every round.

    Rule, in the user's round t, with observations of rounds s <= t:
        V = ridge I + weight sum g^(t-s) x x^T,  b = weight sum g^(t-s) y x,  theta = V^-1 (b + ridge centre),
        W = ridge I + weight sum g^(2(t-s)) x x^T.
    The noise of theta has the covariance V^-1 (W - ridge I) V^-1 up to a factor, hence a width of
    `|V^-1 x|_W`; as W <= V it is at most `|x|_{V^-1}`. V is `gram`.

    Args:
        num_models: U, how many regressions.
        dim: D, length of a feature vector.
        ridge: weight of the penalty, above 0; it does not age.
        gamma: g, what a round leaves of an observation's weight, in (0, 1]; 1: nothing ages.
        like: a tensor whose dtype and device the state takes.
    """

    squared: Tensor = buffer()  # [U, D, D] sum g^(2(t-s)) x x^T

    def __init__(
        self,
        num_models: int,
        dim: int,
        ridge: float = 1.0,
        *,
        gamma: float = 0.99,
        like: Tensor | None = None,
    ) -> None:
        if not 0 < gamma <= 1:
            raise ValueError(f"gamma must be in (0, 1], got {gamma}")
        super().__init__(num_models, dim, ridge, like=like)
        self.gamma = gamma
        self.register_rows("squared", self.gram.new_zeros(dim, dim))

    def sibling(self, ridge: float) -> DiscountedRegression:
        """As many regressions of the same kind, with another ridge."""
        return DiscountedRegression(self.num_rows, self.dim, ridge, gamma=self.gamma, like=self.moment)

    def _age(self, who: Tensor, passed: Tensor) -> Tensor:
        left = (self.gamma ** passed.double()).to(self.moment)  # [n]
        prior = self.get_buffer("_initial_gram")
        self.gram[who] = prior + left[:, None, None] * (self.gram[who] - prior)  # the ridge stays
        self.squared[who] *= left.square()[:, None, None]
        self.moment[who] *= left[:, None]
        return who

    def _add(self, who: Tensor, features: Tensor, targets: Tensor, weight: Tensor) -> None:
        late = (self.now - self.observed)[who]
        own = weight * (self.gamma ** late.double()).to(weight)  # [B] what lateness leaves
        outer = features[:, :, None] * features[:, None]  # [B, D, D]
        self.gram.index_add_(0, who, own[:, None, None] * outer, alpha=self.weight)
        self.squared.index_add_(0, who, own.square()[:, None, None] * outer)
        self.moment.index_add_(0, who, (own * targets)[:, None] * features, alpha=self.weight)

    def discounted_norm(self, who: Index, vectors: Tensor) -> Tensor:
        """`|V^-1 v|_W` of n vectors per model: [B, n, D] -> [B, n]."""
        solved = self.solve(who, vectors)  # V^-1 v
        seen = (torch.bmm(solved, self.squared[who]) * solved).sum(2)
        return sqrt_(self.ridge * solved.square().sum(2) + self.weight * seen)


class WindowedRegression(AgingRegression):
    """Ridge regressions that know only the last rounds.

    Rule, in the user's round t, with the observations of rounds s > t - window:
        V = ridge I + weight sum x x^T,  b = weight sum y x,  theta = V^-1 (b + ridge centre).
    The sums are added up anew from the observations in the window whenever these change, so that nothing is
    ever subtracted. A model keeps at most `window` observations: where there are more, as answers beside
    rewards, one of the oldest round leaves, the one that came first.

    Args:
        num_models: U, how many regressions.
        dim: D, length of a feature vector.
        ridge: weight of the penalty, above 0.
        window: rounds after which an observation is forgotten.
        like: a tensor whose dtype and device the state takes.
    """

    seen: Tensor = buffer()  # [U, window, D] features in the window, in no order; 0 where there are none
    said: Tensor = buffer()  # [U, window] their targets
    stamp: Tensor = buffer()  # [U, window] their rounds; -1 where there are none
    number: Tensor = buffer()  # [U, window] how many of the model's observations came before

    def __init__(
        self,
        num_models: int,
        dim: int,
        ridge: float = 1.0,
        *,
        window: int = 100,
        like: Tensor | None = None,
    ) -> None:
        if window < 1:
            raise ValueError(f"window must be at least 1, got {window}")
        super().__init__(num_models, dim, ridge, like=like)
        self.window = window
        self.register_rows("seen", self.moment.new_zeros(window, dim))
        self.register_rows("said", self.moment.new_zeros(window))
        self.register_rows("stamp", torch.full((window,), -1, device=self.moment.device))
        self.register_rows("number", torch.full((window,), -1, device=self.moment.device))

    def sibling(self, ridge: float) -> WindowedRegression:
        """As many regressions of the same kind, with another ridge."""
        return WindowedRegression(self.num_rows, self.dim, ridge, window=self.window, like=self.moment)

    def _age(self, who: Tensor, passed: Tensor) -> Tensor:
        stamp = self.stamp[who]  # [n, window]
        left = (stamp >= 0) & (stamp <= self.now[who, None] - self.window)
        row, place = left.nonzero(as_tuple=True)
        self._put(who[row], place, 0, 0, -1, -1)
        aged = who[left.any(1)]
        self._sum(aged)
        return aged

    def _add(self, who: Tensor, features: Tensor, targets: Tensor, weight: Tensor) -> None:
        root = weight.sqrt()
        features, targets = features * root[:, None], targets * root
        for wave, rows in enumerate(repeats_apart(who)):
            own, x, y = (rows_of(part, rows) for part in (who, features, targets))
            rounds, stamp = self.observed[own], self.stamp[own]
            oldest = stamp.amin(1)  # [n]; -1: there is a free place
            first = self.number[own].where(stamp == oldest[:, None], _LAST)
            fits = (rounds > self.now[own] - self.window) & (rounds >= oldest)
            number = self.count[own] + wave
            self._put(own[fits], first.argmin(1)[fits], x[fits], y[fits], rounds[fits], number[fits])
        self._sum(who.unique())

    def _put(self, who: Tensor, place: Tensor, *values: Tensor | int) -> None:
        """Have these features, targets, rounds and numbers at the places [n] of the models [n]."""
        for part, value in zip((self.seen, self.said, self.stamp, self.number), values, strict=True):
            part[who, place] = torch.as_tensor(value, dtype=part.dtype, device=part.device)

    def _sum(self, who: Tensor) -> None:
        """V and b of the models [n], from the observations in the window."""
        x = self.seen[who].transpose(1, 2)  # [n, D, window]
        self.gram[who] = self.get_buffer("_initial_gram") + self.weight * torch.bmm(x, x.transpose(1, 2))
        self.moment[who] = self.weight * dot(x, self.said[who])
