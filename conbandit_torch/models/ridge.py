"""Many independent ridge regressions at once: M, its inverse, and what follows from them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from conbandit_torch.core.algebra import dot, largest_eigenvalue, runs_of_like_size, weighted_norm_
from conbandit_torch.core.blocks import EVERY_ROW, Index, rows_of
from conbandit_torch.core.checks import expect_memory
from conbandit_torch.core.processes import Processes
from conbandit_torch.core.rows import Per
from conbandit_torch.kernels import Regressions, kernels_for, reference
from conbandit_torch.models.inverses import Inverses


def ridge_prior(name: str, ridge: float, dim: int, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`ridge I`, its inverse and the root of that [D, D], like `like`; errors call the ridge `name`.

    They are rounded once: the same, whether a policy is built in float32 or converted to it.
    """
    if not (ridge > 0 and math.isfinite(ridge)):
        raise ValueError(f"{name} must be above 0 and finite, got {ridge}")
    eye = torch.eye(dim, dtype=torch.float64, device=like.device)
    prior, inverse, root = (part.to(like.dtype) for part in (ridge * eye, eye / ridge, (eye / ridge).sqrt()))
    if not (prior.isfinite().all() and inverse.isfinite().all()):
        raise ValueError(f"{name} is {ridge}: that, or its inverse, is too large for {like.dtype}")
    return prior, inverse, root


class RidgeRegression(Inverses):
    """Many ridge regressions, one per user (or per arm), as one batch.

    Rule:
        M = ridge I + weight sum x x^T,  b = weight sum y x,
        theta = M^-1 (b + ridge centre).

    The inverse is kept by the Sherman-Morrison formula, one rank-one step per observation, and `M^-1 b` by
    the step that belongs to it, which corrects it by the error of its own prediction; solving for it would
    cost float32 all digits once a user has seen the same few arms thousands of times. Rounding errors of
    those steps add up, so after every `refresh_every` observations of a model its inverse is computed anew
    from M, in float64, and likewise after an observation that would cost too many digits (far larger than
    the ridge). This depends on the model's own data alone, hence not on who else is in the batch. A matrix
    that is not positive definite any more is an error.

    Args:
        num_models: U, how many regressions.
        dim: D, length of a feature vector; may be 0.
        ridge: weight of the penalty `|theta - centre|^2`, above 0.
        weight: weight of every observation, above 0.
        refresh_every: observations of a model between exact inverses.
        root: whether to keep a root of M^-1 as well, so that drawing from N(0, M^-1) takes time D^2, not D^3.
        like: a tensor whose dtype and device the state takes.
        per: what a model belongs to, "user" or "arm".
        one: what one of the models belongs to, for errors: a model, an arm.
        ridge_name: what the user calls the ridge, for errors.
    """

    def __init__(
        self,
        num_models: int,
        dim: int,
        ridge: float = 1.0,
        weight: float = 1.0,
        *,
        refresh_every: int = 500,
        root: bool = False,
        like: Tensor | None = None,
        per: Per = "user",
        one: str = "model",
        ridge_name: str = "ridge",
    ) -> None:
        for name, size, least in (
            ("num_models", num_models, 1),
            ("dim", dim, 0),
            ("refresh_every", refresh_every, 1),
        ):
            if size < least:
                raise ValueError(f"{name} must be at least {least}, got {size}")
        super().__init__(num_models)
        self.dim, self.refresh_every, self.per = dim, refresh_every, per
        self.one, self.ridge_name = one, ridge_name
        like = torch.empty(0) if like is None else like
        matrices = 3 if root else 2
        what = f"the state of {num_models:,} {per}s with {dim:,} features"
        expect_memory(what, num_models * matrices * dim**2 * like.itemsize)
        gram, inverse, of_inverse = ridge_prior(ridge_name, ridge, dim, like)
        self.register_rows("gram", gram)
        self.register_rows("inverse", inverse)
        if root:
            self.register_rows("root", of_inverse)
        else:
            self.register_buffer("root", None)
        self.register_rows("moment", like.new_zeros(dim))
        self.register_rows("solution", like.new_zeros(dim))
        self.register_rows("log_det", like.new_zeros(()))
        self.register_rows("count", torch.zeros((), dtype=torch.int64, device=like.device))
        self.register_rows("top", like.new_zeros(()), persistent=False)
        self.set_prior(ridge, weight)

    def set_prior(self, ridge: float, weight: float = 1.0) -> None:
        """Take another ridge and another weight of observations, before the first of them.

        So a conversation can weigh the regression of a base that knows nothing of it.
        """
        if not (weight > 0 and math.isfinite(weight)):
            raise ValueError(f"weight must be above 0 and finite, got {weight}")
        if bool(self.count.any()):
            raise ValueError("set_prior comes before the first observation")
        gram, inverse, root = ridge_prior(self.ridge_name, ridge, self.dim, self.gram)
        self.ridge, self.weight = ridge, weight
        self.set_initial("gram", gram)
        self.set_initial("inverse", inverse)
        self.set_initial("top", largest_eigenvalue(inverse[None])[0])
        if self.root is not None:
            self.set_initial("root", root)
        self.reset_rows(EVERY_ROW)

    def sibling(self, ridge: float) -> RidgeRegression:
        """As many regressions of the same kind, with another ridge, for a further level of a chain."""
        root = self.root is not None  # a policy that samples one level samples them all
        return RidgeRegression(self.num_rows, self.dim, ridge, root=root, like=self.moment)

    def coefficients(self, who: Index = EVERY_ROW, centre: Tensor | None = None) -> Tensor:
        """theta [B, D], shrunk towards `centre` [B, D] (None: 0)."""
        self._expect_models(who)
        if centre is None:
            return self.solution if self._is_everyone(who) else self.solution[who]
        number = self._number(who)
        if centre.shape != (number, self.dim):  # compiled loops would read beyond it
            raise ValueError(f"centre must be {[number, self.dim]}, got {list(centre.shape)}")
        kernels = kernels_for(centre)
        return kernels.products(self.inverse, who, centre, scale=self.ridge, plus=self.solution)

    def solve(self, who: Index, vectors: Tensor) -> Tensor:
        """`M^-1 v` for n vectors per model: [B, n, D] -> [B, n, D]."""
        # M^-1 is symmetric; rows times matrix is several times as fast as matrix times columns.
        return torch.bmm(vectors, self.inverse[who])

    def norm(self, who: Index, vectors: Tensor) -> Tensor:
        """`|v|_{M^-1}` of n vectors per model: [B, n, D] -> [B, n]."""
        return weighted_norm_(vectors, self.solve(who, vectors))

    def deviation(self, who: Index, normal: Tensor, scale: float = 1.0) -> Tensor:
        """A draw of N(0, scale^2 M^-1) per model, from standard normal numbers: [B, D] -> [B, D]."""
        self._expect_models(who)
        # M^-1 = W W^T is the covariance of W z.
        if self.root is None:
            return scale * dot(self._factor(self.inverse, who), normal.double()).to(self.moment)
        return kernels_for(self.root).products(self.root, who, normal.to(self.root), scale=scale)

    def update(self, ids: Index, features: Tensor, targets: Tensor, weight: Tensor | None = None) -> None:
        """One observation (features [B, D], targets [B]) each for the models `ids` [B].

        Args:
            ids: which models; one that stands there several times has several observations, in that order.
            features: [B, D] x.
            targets: [B] y.
            weight: [B] the observations' own weights, beside that of the regression; None: 1.
        """
        self._expect_observations(ids, features, targets, weight)
        if weight is not None:
            root = weight.sqrt()
            features, targets = features * root[:, None], targets * root
        waves = repeats_apart(ids)
        if len(waves) > max(self.dim, 1):  # one exact inverse takes about as long as that many steps
            assert isinstance(ids, Tensor)  # a slice has no repeats, for the type checker
            often = torch.bincount(ids, minlength=self.num_rows)[ids] > max(self.dim, 1)  # [B]
            own, x = ids[often], features[often]
            outer = x[:, :, None] * x[:, None]  # [n, D, D]
            self._check_gain(own, outer.diagonal(dim1=1, dim2=2).sum(1) + 1, x)  # or else too large
            self.add(own, outer, x * targets[often, None])
            self.refresh(own.unique())
            self.update(ids[~often], features[~often], targets[~often])
            return
        if len(waves) > 1:  # refuse all or nothing: what comes first makes later gains smaller, never larger
            self._check_gain(ids, reference.gains(self.state, ids, features, self.weight)[1], features)
        for rows in waves:
            who = ids if rows is EVERY_ROW else rows_of(ids, rows)  # type: ignore[arg-type]
            self._step(who, rows_of(features, rows), rows_of(targets, rows))

    def _expect_observations(
        self, ids: Index, features: Tensor, targets: Tensor, weight: Tensor | None
    ) -> None:
        """Refuse observations that are not of the models, or of another shape."""
        number = len(ids) if isinstance(ids, Tensor) else len(range(len(self.count))[ids])
        self._expect_models(ids)
        for name, given, shape in (
            ("features", features, (number, self.dim)),
            ("targets", targets, (number,)),
            ("weight", weight, (number,)),
        ):
            if given is not None and given.shape != shape:
                raise ValueError(f"{name} must be {list(shape)}, got {list(given.shape)}")
        if weight is not None and bool((~((weight >= 0) & weight.isfinite())).any()):
            raise ValueError("weight must hold finite numbers of at least 0")

    @property
    def state(self) -> Regressions:
        """What kernels work on."""
        return Regressions(
            *(self.gram, self.inverse, self.moment, self.solution, self.log_det, self.count, self.top),
            root=self.root,
        )

    def _step(self, who: Index, features: Tensor, targets: Tensor) -> None:
        """One observation each for distinct models."""
        everyone = self._is_everyone(who)
        if everyone:
            who = EVERY_ROW
        doubtful = kernels_for(self.gram).rank_one(self.state, who, features, targets, self.weight)
        if doubtful is not None:
            self._careful_step(self._ids(who)[doubtful], features[doubtful], targets[doubtful])
        self._refresh_when_due(who, everyone)

    def _careful_step(self, ids: Tensor, features: Tensor, targets: Tensor) -> None:
        """A step that would lose too many digits, with exact inverses before and after."""
        self.refresh(ids)  # mends rounding errors; what is left is an error
        direction, gain = reference.gains(self.state, ids, features, self.weight)
        self._check_gain(ids, gain, features)
        reference.step(self.state, ids, features, targets, self.weight, direction, gain)
        self.refresh(ids)

    def rebuild(self, ids: Tensor, table: Tensor, rows: Tensor, targets: Tensor) -> None:
        """Add a whole history: observation e is of model ids[e], with features table[rows[e]] [E].

        One matrix product per model, so that a long history is fast; inverses are computed anew.
        """
        order = ids.argsort(stable=True)
        models, counts = ids[order].unique_consecutive(return_counts=True)
        starts = counts.cumsum(0) - counts
        # Models of like count side by side, so that padding to the longest wastes little.
        for part in runs_of_like_size(counts, self.dim):
            own = counts[part]
            column = torch.arange(int(own.max()), device=ids.device)
            inside = column < own[:, None]  # [m, T]
            entry = order[torch.where(inside, starts[part][:, None] + column, 0)]  # [m, T]
            x = table[rows[entry]] * inside[..., None]  # [m, T, D]
            sums = torch.bmm(x.transpose(1, 2), x), dot(x.transpose(1, 2), targets[entry])
            self.add(models[part], *sums, own)
        self.refresh(models)

    def add(self, ids: Tensor, gram: Tensor, moment: Tensor, count: Tensor | None = None) -> None:
        """Add sums of observations to models that may repeat; `refresh` when all is in.

        Args:
            ids: [E] which models.
            gram: [E, D, D] sums of x x^T.
            moment: [E, D] sums of y x.
            count: [E] of how many observations; None: of one each.
        """
        self.gram.index_add_(0, ids, gram, alpha=self.weight)
        self.moment.index_add_(0, ids, moment, alpha=self.weight)
        self.count.index_add_(0, ids, torch.ones_like(ids) if count is None else count)
        self._calls_until_due = 0

    def pool(self, ids: Tensor, processes: Processes) -> None:
        """Sum the models [n] over processes, each of which has seen a part. `refresh` then."""
        if processes.size > 1:
            prior = self.get_buffer("_initial_gram")
            self.gram[ids] = prior + processes.sum(self.gram[ids] - prior)
            self.moment[ids] = processes.sum(self.moment[ids])
            self.count[ids] = processes.sum(self.count[ids])


def repeats_apart(ids: Index) -> list[Index]:
    """Rows of `ids` in runs without repeats: every id's first, then every id's second, and so on."""
    if isinstance(ids, slice) or len(ids) < 2:
        return [EVERY_ROW]
    order = ids.argsort(stable=True)
    ordered = ids[order]
    again = ordered[1:] == ordered[:-1]
    if not bool(again.any()):
        return [EVERY_ROW]
    place = torch.arange(len(ids), device=ids.device)
    start = torch.cat((place.new_zeros(1), place[1:].where(~again, 0))).cummax(0).values
    rank = torch.empty_like(place).scatter_(0, order, place - start)  # [B] how often the id came before
    return [(rank == number).nonzero().squeeze(1) for number in range(int(rank.max()) + 1)]
