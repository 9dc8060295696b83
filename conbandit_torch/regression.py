"""Many independent ridge regressions at once. All inverse algebra of the package lives here."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from conbandit_torch.algebra import dot
from conbandit_torch.records import EVERY_ROW, Index, rows_per_block
from conbandit_torch.sharding import Processes


class NumericsError(ArithmeticError):
    """Numbers got out of hand: a matrix is no longer positive definite, or features are too large."""


class RidgeRegression(nn.Module):
    """Many ridge regressions, one per user (or per arm), as one batch.

    Rule:
        M = ridge I + weight sum x x^T,  b = weight sum y x,
        theta = M^-1 (b + ridge centre).

    The inverse is kept by the Sherman-Morrison formula, one rank-one step an observation, and `M^-1 b` by
    the step that belongs to it, which corrects it by the error of its own prediction; solving for it would
    cost float32 all digits once a user has seen the same few arms thousands of times. Rounding errors of
    those steps add up, so after every `refresh_every` observations of a model its inverse is computed anew
    from M, in float64, and likewise after an observation that would cost too many digits (far larger than
    the ridge). This depends on the model's own data alone, hence not on who else is in the batch. A matrix
    that is not positive definite any more is an error.

    Args:
        num_models: U, how many regressions.
        dim: D, length of a feature vector.
        ridge: weight of the penalty `|theta - centre|^2`, above 0.
        weight: weight of every observation, above 0.
        refresh_every: observations of a model between exact inverses.
        like: a tensor whose dtype and device the state takes.
    """

    gram: Tensor  # [U, D, D] M
    inverse: Tensor  # [U, D, D] M^-1
    moment: Tensor  # [U, D] b
    solution: Tensor  # [U, D] M^-1 b
    log_det: Tensor  # [U] log(det M / det(ridge I))
    count: Tensor  # [U] observations so far

    def __init__(
        self,
        num_models: int,
        dim: int,
        ridge: float = 1.0,
        weight: float = 1.0,
        *,
        refresh_every: int = 500,
        like: Tensor | None = None,
    ) -> None:
        super().__init__()
        least = {"num_models": (num_models, 1), "dim": (dim, 0), "refresh_every": (refresh_every, 1)}
        for name, (size, smallest) in least.items():  # dim 0: no hidden features, say
            if size < smallest:
                raise ValueError(f"{name} must be at least {smallest}, got {size}")
        for name, value in {"ridge": ridge, "weight": weight}.items():
            if not (value > 0 and math.isfinite(value)):
                raise ValueError(f"{name} must be above 0 and finite, got {value}")
        self.ridge, self.weight, self.refresh_every = ridge, weight, refresh_every
        like = torch.empty(0) if like is None else like
        eye = torch.eye(dim, dtype=like.dtype, device=like.device)
        if not ((ridge * eye).isfinite().all() and (eye / (ridge * eye.new_ones(()))).isfinite().all()):
            raise ValueError(f"ridge is {ridge}: that, or its inverse, is too large for {like.dtype}")
        self.register_buffer("gram", (ridge * eye).repeat(num_models, 1, 1))
        self.register_buffer("inverse", (eye / ridge).repeat(num_models, 1, 1))
        self.register_buffer("moment", like.new_zeros(num_models, dim))
        self.register_buffer("solution", like.new_zeros(num_models, dim))
        self.register_buffer("log_det", like.new_zeros(num_models))
        self.register_buffer("count", torch.zeros_like(self.log_det, dtype=torch.int64))
        self._calls_until_due = 0  # no model can be due for a refresh before that many updates

    @property
    def dim(self) -> int:
        """`D`, the length of a feature vector."""
        return self.moment.shape[1]

    def coefficients(self, who: Index = EVERY_ROW, centre: Tensor | None = None) -> Tensor:
        """theta [B, D], shrunk towards `centre` [B, D] (None: 0)."""
        solution = self.solution[who]
        if centre is None:
            return solution
        return solution + self.solve(who, self.ridge * centre[:, None]).squeeze(1)

    def solve(self, who: Index, vectors: Tensor) -> Tensor:
        """`M^-1 v` for n vectors a model: [B, n, D] -> [B, n, D]."""
        # M^-1 is symmetric; rows times matrix is several times as fast as matrix times columns.
        return torch.bmm(vectors, self.inverse[who])

    def deviation(self, who: Index, normal: Tensor) -> Tensor:
        """A draw of N(0, M^-1) a model, from standard normal numbers: [B, D] -> [B, D]."""
        # M^-1 = L L^T is the covariance of L z. (M, a long sum, resolves the ridge less well in float32.)
        factor = self._factor(self.inverse, who)
        return torch.bmm(factor, normal.to(factor)[..., None]).squeeze(2).to(self.moment)

    def update(self, who: Index, features: Tensor, targets: Tensor) -> None:
        """One observation (features [B, D], targets [B]) for each of the distinct models `who`."""
        if features.shape[1:] != (self.dim,):
            raise ValueError(f"features must be [B, {self.dim}], got {list(features.shape)}")
        inverse = self.inverse[who]  # [B, D, D] a view of the state if `who` is a slice
        direction, gain = self._direction(inverse, features)
        doubtful = self._doubtful(gain)
        if doubtful is not None:
            self.refresh(self._ids(who)[doubtful])  # mends rounding errors; what is left is an error
            inverse = self.inverse[who]
            direction, gain = self._direction(inverse, features)
            self._check_gain(who, gain, features)
        solution = self.solution[who]
        surprise = targets - (features * solution).sum(1)  # [B]
        self.solution[who] += (self.weight * surprise / gain)[:, None] * direction
        step = direction * (self.weight / gain).sqrt()[:, None]
        inverse.addcmul_(step[:, :, None], step[:, None, :], value=-1)  # Sherman-Morrison
        _store(self.inverse, who, inverse)
        gram = self.gram[who]
        gram.addcmul_(features[:, :, None], features[:, None, :], value=self.weight)
        _store(self.gram, who, gram)
        self.moment[who] += self.weight * targets[:, None] * features
        self.log_det[who] += gain.log()
        self.count[who] += 1
        if doubtful is not None:
            self.refresh(self._ids(who)[doubtful])
        self._refresh_when_due(who)

    def add(self, ids: Tensor, gram: Tensor, moment: Tensor) -> None:
        """Add to M and b of models that may repeat: ids [E], gram [E, D, D], moment [E, D].

        Inverses are left as they were: `refresh` those of the ids when all is in.
        """
        self.gram.index_add_(0, ids, gram, alpha=self.weight)
        self.moment.index_add_(0, ids, moment, alpha=self.weight)
        self.count.index_add_(0, ids, torch.ones_like(ids))
        self._calls_until_due = 0

    def rebuild(self, ids: Tensor, table: Tensor, rows: Tensor, targets: Tensor) -> None:
        """Add a whole history: observation e is of model ids[e], with features table[rows[e]] [E].

        One matrix product a model, so that a long history is fast; inverses are computed anew.
        """
        order = ids.argsort(stable=True)
        models, counts = ids[order].unique_consecutive(return_counts=True)
        starts = counts.cumsum(0) - counts
        # Models of like count side by side, so that padding to the longest wastes little.
        for part in _runs_of_like_size(counts, self.dim):
            own = counts[part]
            column = torch.arange(int(own.max()), device=ids.device)
            inside = column < own[:, None]  # [m, T]
            entry = order[torch.where(inside, starts[part][:, None] + column, 0)]  # [m, T]
            x = table[rows[entry]] * inside[..., None]  # [m, T, D]
            self.gram[models[part]] += self.weight * torch.bmm(x.transpose(1, 2), x)
            self.moment[models[part]] += self.weight * dot(x.transpose(1, 2), targets[entry])
        self.count[models] += counts
        self._calls_until_due = 0
        self.refresh(models)

    def pool(self, who: Tensor, processes: Processes) -> None:
        """Sum M and b of the models `who` [n] over processes, each of which has seen a part.

        Inverses are left as they were: `refresh` them.
        """
        if processes.size == 1:
            return
        prior = self.ridge * torch.eye(self.dim, dtype=self.gram.dtype, device=self.gram.device)
        self.gram[who] = prior + processes.sum(self.gram[who] - prior)
        for state in (self.moment, self.count):
            state[who] = processes.sum(state[who])

    def reset(self, who: Tensor) -> None:
        """Forget everything that the models `who` [n] have seen."""
        eye = torch.eye(self.dim, dtype=self.gram.dtype, device=self.gram.device)
        self.gram[who], self.inverse[who] = self.ridge * eye, eye / self.ridge
        for state in (self.moment, self.solution, self.log_det, self.count):
            state[who] = 0

    def refresh(self, who: Tensor) -> None:
        """Exact inverses, and solutions, of the models `who` [n], from M and b."""
        for block in who.split(1024):
            self._refresh(block)

    def _refresh(self, who: Tensor) -> None:
        factor = self._factor(self.gram, who)
        self.inverse[who] = torch.cholesky_inverse(factor).to(self.inverse)
        moment = self.moment[who].double()[..., None]  # [n, D, 1]
        self.solution[who] = torch.cholesky_solve(moment, factor).squeeze(2).to(self.solution)
        log_det = 2 * factor.diagonal(dim1=1, dim2=2).log().sum(1) - self.dim * math.log(self.ridge)
        self.log_det[who] = log_det.to(self.log_det)

    def _factor(self, matrices: Tensor, who: Index) -> Tensor:
        """Cholesky factors of the models `who`, in float64."""
        factor: Tensor
        factor, failed = torch.linalg.cholesky_ex(matrices[who].double())
        if bool(failed.any()):
            model = int(self._ids(who)[failed.nonzero()[0]])
            raise NumericsError(
                f"the matrix M of model {model} is not positive definite any more in {self.gram.dtype}, "
                f"after {int(self.count[model])} observations with ridge {self.ridge}: raise the ridge, "
                "scale the features down, or use precision 64-true"
            )
        return factor

    def _reconcile(self, who: Tensor) -> None:
        """Make M and its inverse agree again: each corrects the other where it is known better.

        M is summed in the state's precision, and sums of thousands of like terms lose what is small beside
        them, the ridge above all; a user who is shown the same few arms for ever makes such sums. Where that
        error could exceed a part in 100,000 of M's smallest eigenvalue, the inverse, which the rank-one steps
        keep to about `eps` a step, is the one to believe.
        """
        diagonals = (m.diagonal(dim1=1, dim2=2)[who].amax(1) for m in (self.gram, self.inverse))
        error = torch.finfo(self.gram.dtype).eps * math.prod(diagonals) * self.count[who].sqrt()
        self.refresh(who[error <= 1e-5])
        for block in who[error > 1e-5].split(1024):
            self.gram[block] = torch.cholesky_inverse(self._factor(self.inverse, block)).to(self.gram)

    def _direction(self, inverse: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """`M^-1 x` [B, D] and `det M_new / det M` [B]."""
        direction = torch.bmm(features[:, None], inverse).squeeze(1)
        return direction, 1 + self.weight * (features * direction).sum(1)

    def _doubtful(self, gain: Tensor) -> Tensor | None:
        """[B] where a rank-one step would lose too many digits of the inverse; None: nowhere.

        The step subtracts two numbers that agree to a part of 1 / gain. On a GPU looking would wait for
        the device, so there only the periodic refresh does.
        """
        if gain.device.type != "cpu":
            return None
        fine = (gain >= 0.5) & (gain < 1e-4 / torch.finfo(gain.dtype).eps)  # false for NaN
        return None if bool(fine.all()) else ~fine

    def _check_gain(self, who: Index, gain: Tensor, features: Tensor) -> None:
        """Gains are at least 1 where M is positive definite, and finite where numbers are not too large."""
        wrong = (~((gain >= 0.5) & gain.isfinite())).nonzero().flatten()
        if len(wrong):
            row = int(wrong[0])
            raise NumericsError(
                f"model {int(self._ids(who)[row])}: an observation with features of length "
                f"{float(features[row].double().norm()):.3g} would change det M by a factor of "
                f"{float(gain[row]):.3g}: numbers are too large for {gain.dtype}, or M is not positive "
                "definite any more; scale the features, raise the ridge, or use precision 64-true"
            )

    def _ids(self, who: Index) -> Tensor:
        """[B] the models' ids."""
        if isinstance(who, Tensor):
            return who
        return torch.arange(len(self.count), device=self.count.device)[who]

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._calls_until_due = 0  # other counts came in: look at them

    def _refresh_when_due(self, who: Index) -> None:
        everyone = isinstance(who, slice) and len(self.count[who]) == len(self.count)
        self._calls_until_due -= 1
        if everyone and self._calls_until_due > 0:
            return  # looking at the counts would wait for the device
        ids = self._ids(who)
        due = ids[self.count[ids] % self.refresh_every == 0]
        if len(due):
            self._reconcile(due)
        self._calls_until_due = 0
        if everyone:  # all counts are seen: look again only when one can have come due
            self._calls_until_due = int(self.refresh_every - (self.count % self.refresh_every).max())


def _runs_of_like_size(counts: Tensor, width: int) -> Iterator[Tensor]:
    """Positions of `counts`, largest first, in runs that stay small when padded to their largest."""
    order = counts.argsort(descending=True)
    sizes = counts[order].tolist()
    start = 0
    while start < len(sizes):
        rows = rows_per_block(sizes[start] * width)
        yield order[start : start + rows]
        start += rows


def _store(state: Tensor, who: Index, value: Tensor) -> None:
    """Write `value` back; a slice's `value` is a view of the state, and already there."""
    if not isinstance(who, slice):
        state[who] = value
