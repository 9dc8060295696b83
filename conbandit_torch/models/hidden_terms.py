"""Hidden features that live on key-terms."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from conbandit_torch.core.blocks import EVERY_ROW, Index, look_up
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.checks import expect_memory
from conbandit_torch.core.context import Context
from conbandit_torch.core.randomness import Stream
from conbandit_torch.kernels import kernels_for
from conbandit_torch.models.history import Refit
from conbandit_torch.models.refits import RefitEvery, RefitSchedule, refit_schedule
from conbandit_torch.models.representation import Representation
from conbandit_torch.models.summary import Summary, Sums

OFTEN_AT_FIRST = RefitSchedule()
TOLERANCE = 1e-6  # of the conjugate gradients' residual, relative to the right side


class HiddenOnTerms(Representation):
    """Observed features and hidden ones that arms share through their key-terms (ours).

    Rule: `phi_a = (x_a, v_a)` with `v_a = sum_k w_{a,k} g_k + u_a`, g_k of key-term k, and a residual u_a of
    the arm. At refits, `sweeps` times over: with every user's theta = (theta^x, theta^v) as it is, g and u
    minimise
        sum (value - x^T theta^x - v^T theta^v)^2 + ridge sum_k |g_k - g_k^0|^2
            + residual_ridge sum_a |u_a|^2
    over everything in the log (x and v of an answer are the means of its key-term's arms), and then every
    user's regressions are rebuilt on the new phi. Between refits v stays as it is. With a link that is not
    linear, the error is the link's loss to second order at the present v (twice the loss, `Link.weigh`).
    A score has the width `alpha |theta^v|_{S_a}`, where S_a = sum_k w_{a,k}^2 C_k^-1 + C_a^-1, and C is the
    majorised matrix of `Hidden`, with key-terms and residuals in the place of arms: an observation with
    weights s over them adds `S s theta^v theta^v^T` to C of each, S being the sum of s.

    Arms with common key-terms resemble each other, so what is learned of one is learned of all; the residual
    keeps what is an arm's own, once it has been seen often enough. An arm without key-terms has a residual
    only. The minimum is found by conjugate gradients on a sum of the log per distinct arm or key-term, whose
    time does not grow with the log.

    Symbols: g^0 is the initial g, of scale `init_scale`; L `size`.
    Differs: no paper has it. [Zhang20] and Wang, Wu, Wang (CIKM 2016) learn v of every arm by itself
    (`Hidden`).

    Args:
        size: L, number of hidden features.
        alpha: factor of the hidden features' width.
        ridge: weight of the penalty on key-terms' features g.
        residual_ridge: weight of the penalty on arms' residuals u.
        init_scale: standard deviation of the initial g; small, but above 0.
        refit_every: rounds between refits, a number or a schedule.
        sweeps: how often v and theta take turns in a refit.
        steps: the most steps of conjugate gradients in a sweep, each from where the last refit has led to.
    """

    learns = True
    takes_links = "of one score"
    table: Tensor  # [N, D + L] phi of all arms
    units: Tensor  # [K + N, L] g, and below it u
    spread: Tensor  # [N, L, L] S_a
    squared_error: Tensor  # [] mean of the log's, after the last refit; recorded until the next

    def __init__(
        self,
        size: int = 5,
        *,
        alpha: float = 0.1,
        ridge: float = 1.0,
        residual_ridge: float = 10.0,
        init_scale: float = 0.1,
        refit_every: RefitEvery = OFTEN_AT_FIRST,
        sweeps: int = 2,
        steps: int = 10,
    ) -> None:
        super().__init__()
        for name, least in {"size": size, "sweeps": sweeps, "steps": steps}.items():
            if least < 1:
                raise ValueError(f"{name} must be at least 1, got {least}")
        above_0 = {"ridge": ridge, "residual_ridge": residual_ridge, "init_scale": init_scale}
        for name, value in above_0.items():
            if not 0 < value < float("inf"):
                raise ValueError(f"{name} must be above 0 and finite, got {value}")
        if not 0 <= alpha < float("inf"):
            raise ValueError(f"alpha must be a number of at least 0, got {alpha}")
        self.size, self.alpha, self.ridge, self.residual_ridge = size, alpha, ridge, residual_ridge
        self.init_scale, self.sweeps, self.steps = init_scale, sweeps, steps
        self.refit_every = refit_schedule(refit_every)
        self.refit_seconds = 0.0  # of the last refit

    def build(self, seed: int) -> None:
        """The initial g of every key-term; no residuals."""
        if self.catalogue.num_terms == 0:
            raise ValueError(
                "HiddenOnTerms learns features of key-terms, but the catalogue has none; Hidden learns them "
                "of arms"
            )
        terms, arms = self.catalogue.num_terms, self.catalogue.num_arms
        what = f"HiddenOnTerms of {terms:,} key-terms and {arms:,} arms with {self.size:,} hidden features"
        expect_memory(what, 8 * (2 * (terms + arms) + arms) * self.size**2)  # C, C^-1 and S, in float64
        self.dim = self.catalogue.dim + self.size
        self._start = Stream(seed, "hidden features of key-terms")
        self.register_buffer("units", self._fresh())
        self.register_buffer("spread", self._spread(self._eye() / self._penalty()[:, None, None]))
        self.register_buffer("squared_error", self.units.new_zeros(()))
        self.register_buffer("table", self._encode_all(), persistent=False)

    @property
    def hidden(self) -> Tensor:
        """[N, L] v: a part of `table`, not a copy."""
        return self.table[:, self.catalogue.dim :]

    @property
    def extra_size(self) -> int:  # type: ignore[override]
        """Numbers per candidate that `extra` works on."""
        return self.size**2

    def encode(self, x: Tensor, arms: Tensor) -> Tensor:
        """[..., D + L] `phi = (x, v)`."""
        return torch.cat((x, look_up(self.hidden, arms)), dim=-1)

    def arms(self, ids: Index = EVERY_ROW) -> Tensor:
        """[n, D + L] phi."""
        return self.table if ids is EVERY_ROW else self.table[ids]

    def extra(self, context: Context, theta: Tensor) -> Tensor | None:
        """[B, A] the hidden features' width."""
        if self.alpha == 0:
            return None
        direction = theta[:, self.catalogue.dim :]
        return kernels_for(theta).hidden_widths(self.spread, context.arms, direction, self.alpha)

    def refit(self, refit: Refit) -> None:
        """v from the log at the users' theta, then theta of all users on the new v, in turn."""
        start = time.perf_counter()
        summary = Summary(refit.observations, self.catalogue, self.processes)
        design = _Design(self._design(summary.weights()))
        for _ in range(self.sweeps):
            present = (
                None if refit.link.is_linear else design.forth @ self.units[design.touched].double()
            )  # [Q, L]
            sums = summary.sums(self.size, refit.link, present)
            self.squared_error.copy_(self._solve(design, sums))
            self._renew()
            refit.rebuild()
        self.refit_seconds = time.perf_counter() - start

    def extend(self, catalogue: Catalogue) -> None:
        """New key-terms have the g that they would have had from the start; new arms have no residual yet."""
        terms, arms = self.catalogue.num_terms, self.catalogue.num_arms
        old, spread = self.units, self.spread
        super().extend(catalogue)
        self.units = self._fresh()
        self.units[:terms], self.units[catalogue.num_terms :][:arms] = old[:terms], old[terms:]
        self.spread = self._spread(self._eye() / self._penalty()[:, None, None])
        self.spread[:arms] = spread
        self._renew()

    def diagnostics(self, context: Context, theta: Tensor) -> dict[str, Tensor]:
        """What the hidden features are doing."""
        terms = self.catalogue.num_terms
        direction = theta[:, self.catalogue.dim :]
        width = kernels_for(theta).hidden_widths(self.spread, context.arms, direction, 1.0)
        return {
            "width/hidden": width.mean(),
            "hidden/features": self.hidden,
            "hidden/term_length": self.units[:terms].norm(dim=1).mean(),
            "hidden/residual_length": self.units[terms:].norm(dim=1).mean(),
            "hidden/squared_error": self.squared_error.clone(),
            "hidden/refit_seconds": torch.tensor(self.refit_seconds),
        }

    def _solve(self, design: _Design, sums: Sums) -> Tensor:
        """Let g and u minimise the penalised error; gives the mean squared error of the log."""
        forth, back, touched = design.forth, design.back, design.touched
        every, start = self._penalty(), self._fresh().double()
        penalty, eye = every[touched, None], self._eye()  # [n, 1] of the units that something was observed of
        grams = (design.majorised @ sums.gram.flatten(1)).view(-1, self.size, self.size)
        majorised = grams + penalty[:, :, None] * eye  # [n, L, L] C: `S |w| H_q` of the things q
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(majorised))

        def product(units: Tensor) -> Tensor:
            seen = torch.bmm(sums.gram, (forth @ units).unsqueeze(2)).squeeze(2)  # [Q, L]
            return back @ seen + penalty * units

        right = back @ sums.moment + penalty * start[touched]
        solved = _conjugate_gradients(product, right, inverse, self.units[touched].double(), self.steps)
        start[touched] = solved  # the others are as they were at first
        self.units.copy_(start)
        whole = eye / every[:, None, None]  # [K + N, L, L] C^-1
        whole[touched] = inverse
        self.spread.copy_(self._spread(whole))
        return sums.error(forth @ solved)

    def _design(self, weights: Tensor) -> Tensor:
        """[Q, K + N] weights over key-terms' features and arms' residuals, from those over arms [Q, N]."""
        return torch.cat((torch.sparse.mm(weights, self._graph()), weights), dim=1).coalesce()

    def _graph(self) -> Tensor:
        """[N, K] sparse, float64: `w_{a,k}`."""
        edges = self.catalogue.terms_of(self.catalogue.all_arms)
        size = (self.catalogue.num_arms, self.catalogue.num_terms)
        places = torch.stack((edges.owner, edges.target))
        return torch.sparse_coo_tensor(places, edges.weight.double(), size, check_invariants=False)

    def _spread(self, inverse: Tensor) -> Tensor:
        """[N, L, L] S_a, from C^-1 [K + N, L, L]."""
        terms = self.catalogue.num_terms
        edges = self.catalogue.terms_of(self.catalogue.all_arms)
        own = edges.weight.to(inverse).square()[:, None, None] * inverse[edges.target]
        return inverse[terms:].index_add(0, edges.owner, own).to(self.catalogue.arm_features)

    def _penalty(self) -> Tensor:
        """[K + N] float64: the ridge of every g and u."""
        like = self.catalogue.arm_features
        sizes = (self.catalogue.num_terms, self.catalogue.num_arms)
        both = zip(sizes, (self.ridge, self.residual_ridge), strict=True)
        return torch.cat([like.new_full((n,), ridge, dtype=torch.float64) for n, ridge in both])

    def _eye(self) -> Tensor:
        return torch.eye(self.size, dtype=torch.float64, device=self.catalogue.arm_features.device)

    def _fresh(self) -> Tensor:
        """[K + N, L] g^0, and residuals of 0."""
        like, terms = self.catalogue.arm_features, self.catalogue.num_terms
        start = self._start.normal(torch.arange(terms, device=like.device), 0, self.size)
        return torch.cat((self.init_scale * start.to(like), like.new_zeros(len(like), self.size)))

    def _encode_all(self) -> Tensor:
        """[N, D + L] phi, from g and u."""
        terms = self.catalogue.num_terms
        edges = self.catalogue.terms_of(self.catalogue.all_arms)
        own = edges.weight[:, None] * self.units[edges.target]
        hidden = self.units[terms:].index_add(0, edges.owner, own)
        return torch.cat((self.catalogue.arm_features, hidden), dim=1)

    def _renew(self) -> None:
        """Let phi follow g and u."""
        self.table = self._encode_all()
        self.changed()

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._renew()


class _Design:
    """Weights of all that was observed over the units, key-terms' features and arms' residuals.

    Args:
        weights: [Q, K + N] sparse.
    """

    def __init__(self, weights: Tensor) -> None:
        thing, unit = weights.indices()
        self.touched, unit = unit.unique(return_inverse=True)  # [n] units that have a weight
        size = weights.values().abs()
        total = size.new_zeros(len(weights)).index_add_(0, thing, size)  # [Q] S

        def table(rows: Tensor, columns: Tensor, values: Tensor, *shape: int) -> Tensor:
            places = torch.stack((rows, columns))
            return torch.sparse_coo_tensor(places, values, shape, check_invariants=False).to_sparse_csr()

        number = len(self.touched)
        self.forth = table(thing, unit, weights.values(), len(weights), number)
        self.back = table(unit, thing, weights.values(), number, len(weights))
        self.majorised = table(unit, thing, total[thing] * size, number, len(weights))  # `S |w|`


def _conjugate_gradients(
    product: Callable[[Tensor], Tensor], right: Tensor, inverse: Tensor, start: Tensor, steps: int
) -> Tensor:
    """The x [n, L] for which `product(x)` is `right`, from `start`, preconditioned by `inverse` [n, L, L]."""
    x = start
    left = right - product(x)  # [n, L] what is left to explain
    direction, old = torch.zeros_like(x), 0.0
    goal = TOLERANCE * float(right.norm())
    for _ in range(steps):
        if float(left.norm()) <= goal:
            break
        scaled = torch.bmm(inverse, left.unsqueeze(2)).squeeze(2)
        new = float((left * scaled).sum())
        direction = scaled + (new / old if old else 0.0) * direction
        image = product(direction)
        length = new / float((direction * image).sum())
        x, left, old = x + length * direction, left - length * image, new
    return x
