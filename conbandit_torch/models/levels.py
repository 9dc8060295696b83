"""A score rests on a chain of levels: ridge regressions, each shrunk towards the estimate of the next.

    theta_i = G_i^-1 (b_i + ridge_i P_{i+1} theta_{i+1})                      estimates, Eq. 6
    v_0 = x,  v_{i+1} = ridge_i P_{i+1}^T G_i^-1 v_i                          reach
    width = sum_i weight_i factor_i |v_i|_{G_i^-1}                            width, Eq. 7
    delta_i = factor_i G_i^-1/2 z_i + ridge_i G_i^-1 P_{i+1} delta_{i+1}      deviation
    variance = sum_i |v_i|^2_{G_i^-1}                                         variance, of a Bayesian score

Level 0 is that of the arms. `v_i` is how the score `x^T theta_0` moves with `theta_i`: its length in G_i^-1
is the score's uncertainty that level i brings in. LinUCB has one level; ConUCB has two, with lam = weight_0,
1-lam = ridge_0, M = G_0 and M~ = G_1, so that `width` is

    lam alpha |x|_{M^-1} + (1-lam) alpha~ |M^-1 x|_{M~^-1}.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor
from torch.linalg import vecdot

from conbandit_torch.core.algebra import weighted_norm, weighted_norm_
from conbandit_torch.core.blocks import Index
from conbandit_torch.kernels import Chain
from conbandit_torch.models.confidence import Alpha, Confidence
from conbandit_torch.models.ridge import RidgeRegression


@dataclass(frozen=True)
class Level:
    """One regression of the chain.

    Attributes:
        name: of its random stream.
        model: G, b, ridge and weight, one regression per user.
        factor: of its width, or of a sample's standard deviation: a number or a theory value.
        basis: [D, m] P: the level before is shrunk towards P theta; None: the identity.
    """

    name: str
    model: RidgeRegression
    factor: Alpha = 0.0
    basis: Tensor | None = None

    def scaled(self, who: Index, values: Tensor) -> Tensor:
        """`factor` times values [B, n] of the users `who`."""
        if isinstance(self.factor, Confidence):
            return self.factor(self.model, who)[:, None] * values
        return self.factor * values

    def lifted(self, theta: Tensor) -> Tensor:
        """`P theta`: [B, m] -> [B, D]."""
        return theta if self.basis is None else theta @ self.basis.T

    def projected(self, vectors: Tensor) -> Tensor:
        """`P^T v`: [B, n, D] -> [B, n, m]."""
        return vectors if self.basis is None else vectors @ self.basis


def estimates(levels: Sequence[Level], who: Index, centre: Tensor | None = None) -> list[Tensor]:
    """theta_i [B, D_i] of every level; the last is shrunk towards `centre` (None: 0)."""
    thetas: list[Tensor] = []
    for level in reversed(levels):
        thetas.append(level.model.coefficients(who, centre))  # Eq. 6
        centre = level.lifted(thetas[-1])
    return thetas[::-1]


def reach(levels: Sequence[Level], who: Index, x: Tensor, to: int) -> Tensor:
    """[B, n, D_to] v of level `to`, from vectors x [B, n, D]."""
    for level, inner in pairwise(levels[: to + 1]):
        x = inner.projected(level.model.solve(who, x)) * level.model.ridge
    return x


def width(levels: Sequence[Level], who: Index, x: Tensor) -> Tensor | None:
    """[B, n] how uncertain the score of x [B, n, D] is, in all levels; None: no level has a factor."""
    used = [number for number, level in enumerate(levels) if level.factor != 0]
    if not used:
        return None
    total, v, scale = None, x, 1.0  # v_i is scale times v: it takes one pass less over [B, n, D]
    for number, level in enumerate(levels[: used[-1] + 1]):
        v = level.projected(v)
        solved = level.model.solve(who, v)
        if level.factor != 0:
            # The last level's product is needed no more, and gives its room to what is summed up.
            norm = weighted_norm_(v, solved) if number == used[-1] else weighted_norm(v, solved)
            own = level.scaled(who, norm.mul_(scale * level.model.weight))  # Eq. 7
            total = own if total is None else total.add_(own)
        v, scale = solved, scale * level.model.ridge
    return total


def variance(levels: Sequence[Level], who: Index, x: Tensor) -> Tensor:
    """[B, n] `sum_i |v_i|^2_{G_i^-1}`: the variance of the score of x [B, n, D], in units of the noise's."""
    total = x.new_zeros(x.shape[:2])
    for level in levels:
        v = level.projected(x)
        solved = level.model.solve(who, v)
        total += vecdot(v, solved)
        x = solved * level.model.ridge
    return total


def widths(levels: Sequence[Level], who: Index) -> Chain | None:
    """The chain as kernels take it, which leave out what cannot matter.

    It is empty, if no level has a factor. A factor below 0 is beyond them, and gives None.
    """
    own = list(levels)
    while own and own[-1].factor == 0:
        own.pop()
    factors, scale = [], 1.0
    for level in own:
        model, factor = level.model, level.factor
        if not _at_least_0(factor):
            return None
        factors.append(scale * model.weight * (factor(model, who) if callable(factor) else factor))
        scale *= model.ridge
    inverses, tops = (
        zip(*[(level.model.inverse, level.model.top) for level in own], strict=True) if own else ((), ())
    )
    return Chain(who, inverses, tops, tuple(factors), tuple([level.basis for level in own[1:]]))


def _at_least_0(factor: Alpha) -> bool:
    return isinstance(factor, Confidence) or factor >= 0


def deviation(levels: Sequence[Level], who: Index, normals: Sequence[Tensor]) -> Tensor:
    """[B, D] a draw of `theta_0` less its estimate, from standard normal numbers [B, D_i] per level."""
    delta: Tensor | None = None
    for level, normal in zip(reversed(levels), reversed(normals), strict=True):
        if isinstance(level.factor, Confidence):
            own = level.scaled(who, level.model.deviation(who, normal))
        else:
            own = level.model.deviation(who, normal, level.factor)
        if delta is not None:
            own = own + level.model.ridge * level.model.solve(who, delta[:, None]).squeeze(1)
        delta = level.lifted(own)
    assert delta is not None  # there is always a level, for the type checker
    return delta
