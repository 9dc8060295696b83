"""Many independent ridge regressions at once: M, its inverse, and what follows from them."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.linalg import vecdot

from conbandit_torch.core.algebra import dot, runs_of_like_size, shrink_root_, sqrt_
from conbandit_torch.core.blocks import EVERY_ROW, Index, rows_of


class NumericsError(ArithmeticError):
    """Numbers got out of hand: a matrix is no longer positive definite, or features are too large."""


def ridge_prior(name: str, ridge: float, dim: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """`ridge I` and its inverse [D, D], with dtype and device of `like`; errors call the ridge `name`."""
    if not (ridge > 0 and math.isfinite(ridge)):
        raise ValueError(f"{name} must be above 0 and finite, got {ridge}")
    eye = torch.eye(dim, dtype=like.dtype, device=like.device)
    prior, inverse = ridge * eye, eye / (ridge * eye.new_ones(()))
    if not (prior.isfinite().all() and inverse.isfinite().all()):
        raise ValueError(f"{name} is {ridge}: that, or its inverse, is too large for {like.dtype}")
    return prior, inverse


class RidgeRegression(nn.Module):
    """Many ridge regressions, one per user, as one batch.

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
        root: whether to keep a root of M^-1 as well, so that drawing from N(0, M^-1) takes time D^2, not D^3.
        like: a tensor whose dtype and device the state takes.
    """

    gram: Tensor  # [U, D, D] M
    inverse: Tensor  # [U, D, D] M^-1
    moment: Tensor  # [U, D] b
    solution: Tensor  # [U, D] M^-1 b
    root: Tensor | None  # [U, D, D] W with W W^T = M^-1, if asked for
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
        root: bool = False,
        like: Tensor | None = None,
    ) -> None:
        super().__init__()
        for name, size in {"num_models": num_models, "dim": dim, "refresh_every": refresh_every}.items():
            if size < 1:
                raise ValueError(f"{name} must be at least 1, got {size}")
        if not (weight > 0 and math.isfinite(weight)):
            raise ValueError(f"weight must be above 0 and finite, got {weight}")
        self.dim, self.ridge, self.weight, self.refresh_every = dim, ridge, weight, refresh_every
        like = torch.empty(0) if like is None else like
        gram, inverse = ridge_prior("ridge", ridge, dim, like)
        self.register_buffer("gram", gram.repeat(num_models, 1, 1))
        self.register_buffer("inverse", inverse.repeat(num_models, 1, 1))
        self.register_buffer("root", inverse.sqrt().repeat(num_models, 1, 1) if root else None)
        self.register_buffer("moment", like.new_zeros(num_models, dim))
        self.register_buffer("solution", like.new_zeros(num_models, dim))
        self.register_buffer("log_det", like.new_zeros(num_models))
        self.register_buffer("count", torch.zeros_like(self.log_det, dtype=torch.int64))
        self._calls_until_due = 0  # no model can be due for a refresh before that many updates

    def coefficients(self, who: Index = EVERY_ROW, centre: Tensor | None = None) -> Tensor:
        """theta [B, D], shrunk towards `centre` [B, D] (None: 0)."""
        solution = self.solution[who]
        if centre is None:
            return solution
        rows = torch.baddbmm(solution[:, None], centre[:, None], self.inverse[who], alpha=self.ridge)
        return rows.squeeze(1)

    def solve(self, who: Index, vectors: Tensor) -> Tensor:
        """`M^-1 v` for n vectors a model: [B, n, D] -> [B, n, D]."""
        # M^-1 is symmetric; rows times matrix is several times as fast as matrix times columns.
        return torch.bmm(vectors, self.inverse[who])

    def norm(self, who: Index, vectors: Tensor) -> Tensor:
        """`|v|_{M^-1}` of n vectors a model: [B, n, D] -> [B, n]."""
        return sqrt_(self.solve(who, vectors).mul_(vectors).sum(-1))

    def deviation(self, who: Index, normal: Tensor) -> Tensor:
        """A draw of N(0, M^-1) a model, from standard normal numbers: [B, D] -> [B, D]."""
        # M^-1 = W W^T is the covariance of W z.
        root = self._factor(self.inverse, who) if self.root is None else self.root[who]
        return dot(root, normal.to(root)).to(self.moment)

    def update(self, who: Index, features: Tensor, targets: Tensor) -> None:
        """One observation (features [B, D], targets [B]) for each of the distinct models `who`."""
        if features.shape[1:] != (self.dim,):
            raise ValueError(f"features must be [B, {self.dim}], got {list(features.shape)}")
        everyone = self._is_everyone(who)
        if everyone:
            who = EVERY_ROW
        inverse = rows_of(self.inverse, who)  # [B, D, D] a view of the state if `who` is a slice
        direction, gain = self._direction(inverse, features)
        doubtful = self._doubtful(gain)
        if doubtful is not None:
            self.refresh(self._ids(who)[doubtful])  # mends rounding errors; what is left is an error
            inverse = rows_of(self.inverse, who)
            direction, gain = self._direction(inverse, features)
            self._check_gain(who, gain, features)
        solution = rows_of(self.solution, who)
        surprise = (targets - vecdot(features, solution)).div_(gain)  # [B]
        step = direction * gain.rsqrt().mul_(math.sqrt(self.weight)).unsqueeze_(1)  # [B, D]
        inverse.addcmul_(step.unsqueeze(2), step.unsqueeze(1), value=-1)  # Sherman-Morrison
        solution.addcmul_(direction, surprise.unsqueeze_(1), value=self.weight)
        gram, moment = rows_of(self.gram, who), rows_of(self.moment, who)
        gram.addcmul_(features.unsqueeze(2), features.unsqueeze(1), value=self.weight)
        moment.addcmul_(features, targets.unsqueeze(1), value=self.weight)
        log_det = rows_of(self.log_det, who).add_(gain.log_())
        count = rows_of(self.count, who).add_(1)
        if not isinstance(who, slice):  # a slice's are views of the state, and already there
            self.inverse[who], self.solution[who], self.gram[who] = inverse, solution, gram
            self.moment[who], self.log_det[who], self.count[who] = moment, log_det, count
        if self.root is not None:
            root = shrink_root_(rows_of(self.root, who), features, self.weight)
            if not isinstance(who, slice):
                self.root[who] = root
        if doubtful is not None:
            self.refresh(self._ids(who)[doubtful])
        self._refresh_when_due(who, everyone)

    def rebuild(self, ids: Tensor, table: Tensor, rows: Tensor, targets: Tensor) -> None:
        """Add a whole history: observation e is of model ids[e], with features table[rows[e]] [E].

        One matrix product a model, so that a long history is fast; inverses are computed anew.
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
            self.gram[models[part]] += self.weight * torch.bmm(x.transpose(1, 2), x)
            self.moment[models[part]] += self.weight * dot(x.transpose(1, 2), targets[entry])
        self.count[models] += counts
        self._calls_until_due = 0
        self.refresh(models)

    def reset(self, who: Tensor) -> None:
        """Forget everything that the models `who` [n] have seen."""
        self.gram[who], self.inverse[who] = ridge_prior("ridge", self.ridge, self.dim, self.gram)
        if self.root is not None:
            self.root[who] = self.inverse[who].sqrt()  # of a diagonal matrix
        for state in (self.moment, self.solution, self.log_det, self.count):
            state[who] = 0

    def refresh(self, who: Tensor) -> None:
        """Exact inverses, and solutions, of the models `who` [n], from M and b."""
        for block in who.split(1024):
            self._refresh(block)

    def _refresh(self, who: Tensor) -> None:
        factor = self._factor(self.gram, who)
        inverse = torch.cholesky_inverse(factor)  # [n, D, D] float64
        self.inverse[who] = inverse.to(self.inverse)
        self.solution[who] = dot(inverse, self.moment[who].double()).to(self.solution)
        if self.root is not None:  # M = L L^T has the inverse L^-T L^-1
            eye = torch.eye(self.dim, dtype=factor.dtype, device=factor.device)
            self.root[who] = torch.linalg.solve_triangular(factor.mT, eye, upper=True).to(self.root)
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
            factor = self._factor(self.inverse, block)
            self.gram[block] = torch.cholesky_inverse(factor).to(self.gram)
            if self.root is not None:  # upper triangular, and so the same that `refresh` gives
                flipped = torch.linalg.cholesky(self.inverse[block].double().flip(1, 2))
                self.root[block] = flipped.flip(1, 2).to(self.root)

    def _direction(self, inverse: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """`M^-1 x` [B, D] and `det M_new / det M` [B]."""
        direction = torch.bmm(features.unsqueeze(1), inverse).squeeze_(1)
        return direction, vecdot(features, direction).mul_(self.weight).add_(1)

    def _doubtful(self, gain: Tensor) -> Tensor | None:
        """[B] where a rank-one step would lose too many digits of the inverse; None: nowhere.

        The step subtracts two numbers that agree to a part of 1 / gain. On a GPU looking would wait for
        the device, so there only the periodic refresh does.
        """
        if gain.device.type != "cpu" or not gain.numel():
            return None
        most = 1e-4 / torch.finfo(gain.dtype).eps
        smallest, largest = gain.aminmax()  # NaN if any is
        if float(smallest) >= 0.5 and float(largest) < most:
            return None
        return ~((gain >= 0.5) & (gain < most))

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

    def _is_everyone(self, who: Index) -> bool:
        number = self.count.shape[0]
        return isinstance(who, slice) and who.indices(number) == (0, number, 1)

    def _refresh_when_due(self, who: Index, everyone: bool) -> None:
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
