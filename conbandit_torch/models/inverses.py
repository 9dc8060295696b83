"""The matrices M of many models beside their inverses, and what keeps the two exact."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from conbandit_torch.core.algebra import dot, largest_eigenvalue
from conbandit_torch.core.attributes import buffer
from conbandit_torch.core.blocks import Index, rows_per_block
from conbandit_torch.core.rows import Rows


class NumericsError(ArithmeticError):
    """Numbers got out of hand: a matrix is no longer positive definite, or features are too large."""


class Inverses(Rows):
    """M and M^-1 of many models, with what follows from them; `RidgeRegression` teaches them.

    Rank-one steps keep an inverse, and their rounding errors add up. So the inverse of a model is computed
    anew after every `refresh_every` observations, and a matrix that is not positive definite is an error.
    """

    dim: int
    ridge: float
    refresh_every: int
    one: str  # what one of the models belongs to, for errors
    ridge_name: str  # what the user calls the ridge, for errors
    gram: Tensor = buffer()  # [U, D, D] M
    inverse: Tensor = buffer()  # [U, D, D] M^-1
    moment: Tensor = buffer()  # [U, D] b
    solution: Tensor = buffer()  # [U, D] M^-1 b
    root: Tensor | None = buffer()  # [U, D, D] W with W W^T = M^-1, if asked for
    log_det: Tensor = buffer()  # [U] log(det M / det(ridge I))
    count: Tensor = buffer()  # [U] observations so far
    top: Tensor = buffer()  # [U] at least the largest eigenvalue of M^-1; not saved, for it follows from M^-1

    def reset_rows(self, rows: Index) -> None:
        """Forget everything that the models have seen."""
        super().reset_rows(rows)
        self._calls_until_due = 0  # no model can be due for a refresh before that many updates

    def grow_rows(self, number: int) -> None:
        """Have `number` models, the new ones at the end."""
        super().grow_rows(number)
        self._calls_until_due = 0

    def refresh(self, who: Tensor) -> None:
        """Exact inverses, and solutions, of the models `who` [n], from M and b."""
        for block in who.split(max(1024, rows_per_block(self.dim**2))):
            self._refresh(block)

    def _refresh(self, who: Tensor) -> None:
        factor = self._factor(self.gram, who)
        inverse = torch.cholesky_inverse(factor)  # [n, D, D] float64
        self.inverse[who] = inverse.to(self.inverse)
        self.top[who] = largest_eigenvalue(self.inverse[who])
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
                f"the matrix M of {self.one} {model} is not positive definite any more in "
                f"{self.gram.dtype}, after {int(self.count[model])} observations with {self.ridge_name} "
                f"{self.ridge}: raise it, scale the features down, or use precision 64-true"
            )
        return factor

    def _reconcile(self, who: Tensor) -> None:
        """Make M and its inverse agree again: each corrects the other where it is known better.

        M is summed in the state's precision, and sums of thousands of like terms lose what is small beside
        them, the ridge above all; a user who is shown the same few arms for ever makes such sums. Where that
        error could exceed a part in 100,000 of M's smallest eigenvalue, the inverse, which the rank-one steps
        keep to about `eps` per step, is the one to believe.
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

    def _check_gain(self, who: Index, gain: Tensor, features: Tensor) -> None:
        """Gains are at least 1 where M is positive definite, and finite where numbers are not too large."""
        wrong = (~((gain >= 0.5) & gain.isfinite())).nonzero().flatten()
        if len(wrong):
            row = int(wrong[0])
            raise NumericsError(
                f"{self.one} {int(self._ids(who)[row])}: an observation with features of length "
                f"{float(features[row].double().norm()):.3g} would change det M by a factor of "
                f"{float(gain[row]):.3g}: numbers are too large for {gain.dtype}, or M is not positive "
                "definite any more; scale the features, raise the ridge, or use precision 64-true"
            )

    def _expect_models(self, who: Index) -> None:
        """Refuse models that are not there: torch would take -1 for the last, compiled loops any memory."""
        if isinstance(who, slice):
            least, most = who.start or 0, (who.stop or 1) - 1
        elif who.device.type != "cpu" or not len(who):  # on a GPU looking would wait for the device
            return
        else:
            least, most = map(int, who.aminmax())
        if least < 0 or most >= self.num_rows:
            wrong = least if least < 0 else most
            raise ValueError(f"ids must be models from 0 to {self.num_rows - 1}, got {wrong}")

    def _ids(self, who: Index) -> Tensor:
        """[B] the models' ids."""
        if isinstance(who, Tensor):
            return who
        return torch.arange(len(self.count), device=self.count.device)[who]

    def _number(self, who: Index) -> int:
        """How many models these are."""
        return who.shape[0] if isinstance(who, Tensor) else len(range(self.num_rows)[who])

    def _is_everyone(self, who: Index) -> bool:
        return isinstance(who, slice) and who.indices(self.num_rows) == (0, self.num_rows, 1)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._calls_until_due = 0  # other counts came in: look at them
        blocks = self.inverse.split(rows_per_block(self.dim**2))
        self.top = torch.cat([largest_eigenvalue(block) for block in blocks])
