"""Hidden features of the arms, learned while the bandit plays."""

from __future__ import annotations

import time
from math import isnan

import torch
from torch import Tensor
from torch.linalg import vecdot

from conbandit_torch.core.algebra import dot
from conbandit_torch.core.attributes import buffer, submodule
from conbandit_torch.core.blocks import EVERY_ROW, Index, look_up, rows_per_block
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.context import Context
from conbandit_torch.core.questions import About, Arms
from conbandit_torch.core.randomness import Stream
from conbandit_torch.kernels import kernels_for
from conbandit_torch.models.history import Refit
from conbandit_torch.models.refits import RefitEvery, refit_schedule
from conbandit_torch.models.representation import Representation
from conbandit_torch.models.ridge import RidgeRegression


class Hidden(Representation):
    """Observed features and learned hidden ones: `phi_a = (x_a, v_a)`, v shared by all users.

    Rule: after an observation of weights w over arms, predicted by `sum_a w_a phi_a^T theta` with the error
    rho, for every arm a of it, with S = sum |w|:
        C_a += S |w_a| theta^v theta^v^T,  d_a += theta^v (w_a rho + S |w_a| v_a^T theta^v),
        v_a = C_a^-1 d_a.
    A reward has one arm and w = 1 (Wang, Wu, Wang, CIKM 2016). An answer on key-term k has w = p_{a,k}, which
    sum to 1, and ties v of all its arms; a comparison has weights of both signs. There the step is our
    derivation, no source prints one: by Jensen's inequality `(sum_a w_a y_a)^2 <= S sum_a |w_a| y_a^2`; the
    right side separates over arms, and with y_a so chosen that both are equal at the present v, minimising
    it never increases the squared error. Users of one round act on the same v; their increments are summed.

    With a link that is not linear (ours too), the step is that of the loss to second order at the score z of
    the observation: `s theta^v` takes the place of theta^v, and rho is the link's (`Link.weigh`). Of a click
    r on an arm, with m = mu(z) and c = m (1 - m):
        C_a += c theta^v theta^v^T,  d_a += theta^v (r - m + c v_a^T theta^v).

    Refit (ours): the sums above keep every observation at the v and theta it was made with. So every
    `refit_every` rounds they are built anew from the log, with current values, `refit_sweeps` times over: the
    users' regressions with the present v, then v with the new theta.

    Symbols: C starts at `ridge` I; v at random values of scale `init_scale`.
    Differs: nothing known for rewards without refit.

    Args:
        size: L, number of hidden features.
        alpha: factor of the hidden features' width.
        ridge: weight of the penalty `|v|^2`.
        init_scale: standard deviation of the initial v; small, but above 0.
        refit_every: rounds between refits, a number or a `RefitSchedule`; None: never.
        refit_sweeps: how often theta and v take turns in a refit.
    """

    learns = True
    takes_links = "of one score"
    model: RidgeRegression = submodule()  # C and d of every arm
    table: Tensor = buffer()  # [N, D + L] phi of all arms, so that candidates' are looked up at once

    def __init__(
        self,
        size: int = 5,
        *,
        alpha: float = 0.1,
        ridge: float = 1.0,
        init_scale: float = 0.01,
        refit_every: RefitEvery | None = None,
        refit_sweeps: int = 1,
    ) -> None:
        super().__init__()
        if size < 0:
            raise ValueError(f"hidden_dim must be at least 0, got {size}")
        if size and not 0 < init_scale < float("inf"):
            raise ValueError(
                f"init_scale must be above 0, got {init_scale}: hidden features that start at 0 give theta^v"
                " nothing to learn from, and theta^v = 0 gives them nothing, so that nothing would ever be "
                "learned; 0.01 to 0.1 is usual"
            )
        if not 0 <= alpha < float("inf"):
            raise ValueError(f"hidden_alpha must be a number of at least 0, got {alpha}")
        if refit_sweeps < 1:
            raise ValueError(f"refit_sweeps must be at least 1, got {refit_sweeps}")
        refit_schedule(refit_every)  # or else an error that says what is wrong with it
        self.alpha = alpha
        self.size, self.ridge, self.init_scale = size, ridge, init_scale
        self.refit_every, self.refit_sweeps = refit_every, refit_sweeps
        self.refit_seconds = 0.0  # of the last refit
        self._last_change: Tensor | float = 0.0  # length of that of v, by the last step

    def build(self, seed: int) -> None:
        """C, d and the initial v of every arm."""
        like, number = self.catalogue.arm_features, self.catalogue.num_arms
        self.dim = self.catalogue.dim + self.size
        self.model = RidgeRegression(
            number,
            self.size,
            self.ridge,
            like=like,
            per="arm",
            one="hidden features of arm",
            ridge_name="hidden_ridge",
        )
        self._start = Stream(seed, "hidden features")
        self.register_buffer("table", self._fresh(0), persistent=False)

    @property
    def hidden(self) -> Tensor:
        """[N, L] v: a part of `table`, not a copy."""
        return self.table[:, self.catalogue.dim :]

    def encode(self, x: Tensor, arms: Tensor) -> Tensor:
        """[..., D + L] `phi = (x, v)`."""
        return torch.cat((x, look_up(self.hidden, arms)), dim=-1)

    def arms(self, ids: Index = EVERY_ROW) -> Tensor:
        """[n, D + L] phi."""
        return self.table if ids is EVERY_ROW else self.table[ids]

    def terms(self, ids: Index = EVERY_ROW) -> Tensor:
        """[n, D + L] `phi~`, from the current v."""
        if isinstance(ids, Tensor):  # not from what is kept: sums would differ in their last bits
            some, place = ids.unique(return_inverse=True)  # many users are asked about the same
            hidden = self.catalogue.average(self.hidden, some)[place]
            return torch.cat((self.catalogue.terms(ids), hidden), dim=1)
        if self._terms is None:
            hidden = self.catalogue.average(self.hidden)
            self._terms = torch.cat((self.catalogue.terms(), hidden), dim=1)
        return self._terms[ids]

    def extend(self, catalogue: Catalogue) -> None:
        """New arms have the v that they would have had from the start."""
        known = self.catalogue.num_arms
        super().extend(catalogue)
        self.table = torch.cat((self.table, self._fresh(known)))

    def width(self, context: Context, theta: Tensor, factor: float = 1.0) -> Tensor:
        """[B, A] `factor |theta^v|_{C_a^-1}` of the candidates, from theta [B, D + L]."""
        return kernels_for(theta).hidden_widths(self.model.inverse, context.arms, self._part(theta), factor)

    @property
    def extra_size(self) -> int:  # type: ignore[override]
        """Numbers per candidate that `extra` works on: C^-1."""
        return self.size**2

    def extra(self, context: Context, theta: Tensor) -> Tensor:
        """[B, A] the hidden features' width."""
        return self.width(context, theta, self.alpha)

    def learn(self, about: About, theta: Tensor, residual: Tensor) -> None:
        """The v-step; all processes take that of all observations, in the same order, so v stays equal."""
        ids, direction, residual = self.processes.gather(about.ids(), self._part(theta), residual)
        about = about.of_ids(ids)
        arms, spread = (about.of, None) if isinstance(about, Arms) else self._spread(about)
        self.changed()
        step = kernels_for(self.table).hidden_step
        change = step(self.model.state, self.table, arms, direction, residual, self.ridge, spread)
        if change is not None:
            if isnan(change):
                self.model.refresh(arms.unique())  # an error that says which arm's
            self._last_change = change
            return
        if spread is None:
            arms, spread = self._spread(about)
        self._collect(arms, spread, direction, residual)
        arms = arms.unique()
        before = self.hidden[arms]
        self._solve(arms)
        self._last_change = (self.hidden[arms] - before).norm()

    def refit(self, refit: Refit) -> None:
        """Build theta's and v's regressions anew from the log, in turn."""
        start = time.perf_counter()
        for _ in range(self.refit_sweeps):
            refit.rebuild()
            self._refit_hidden(refit)
        self.refit_seconds = time.perf_counter() - start

    def diagnostics(self, context: Context, theta: Tensor) -> dict[str, Tensor]:
        """What the hidden features are doing."""
        own = {
            "width/hidden": self.width(context, theta).mean(),
            "hidden/last_change": torch.as_tensor(self._last_change, dtype=self.table.dtype),
            "hidden/features": self.hidden,
        }
        if self.refit_every is not None:
            own["hidden/refit_seconds"] = torch.tensor(self.refit_seconds)
        return own

    def _spread(self, about: About) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
        """[E] arms; [E] the thing each belongs to, [E] its weight in it, [Q] what each question is about."""
        distinct, group = _distinct(about)
        owner, arms, weight = distinct.edges(self.catalogue)
        return arms, (owner, weight, group)

    def _collect(
        self, arms: Tensor, spread: tuple[Tensor, Tensor, Tensor], direction: Tensor, residual: Tensor
    ) -> None:
        """Add to C and d what Q observations tell (theta^v [Q, L], rho [Q]).

        Observations of the same thing are summed before they are spread over its arms, so that many answers
        on a popular key-term cost no more than one.
        """
        owner, weight, group = spread
        times = torch.bincount(group)  # [Q'] how often each was observed
        both = torch.cat((direction, residual[:, None]), dim=1)  # [Q, L + 1]
        products = direction[:, :, None] * both[:, None]  # [Q, L, L + 1] theta^v theta^v^T, theta^v rho
        total = products.new_zeros(len(times), *products.shape[1:]).index_add_(0, group, products)
        gram, moment = total[owner].split((self.size, 1), dim=2)  # [E, L, L], [E, L, 1]
        size = weight.abs()  # [E]
        sums = size.new_zeros(len(times)).index_add_(0, owner, size)  # [Q'] S
        gram = gram * (sums[owner] * size)[:, None, None]
        moment = moment.squeeze(2) * weight[:, None] + dot(gram, self.hidden[arms])
        self.model.add(arms, gram, moment, times[owner])

    def _solve(self, arms: Tensor) -> None:
        """v of distinct arms, from C and d."""
        self.model.refresh(arms)
        self.hidden[arms] = self.model.solution[arms]

    def _refit_hidden(self, refit: Refit) -> None:
        """C, d and v of all arms in the log, with the current theta."""
        times = torch.zeros_like(self.model.count)
        for seen in refit.observations:
            times[_distinct(seen.about)[0].edges(self.catalogue).target] = 1
        touched = self.processes.sum(times).nonzero().squeeze(1)  # by anybody's log
        self.model.reset_rows(touched)
        rows = rows_per_block(self.dim + self.size**2)
        for seen in refit.observations:
            table, row = seen.about.table(self)
            users, position = seen.users.unique(return_inverse=True)
            theta = seen.theta(users)  # [n, D + L]
            for start in range(0, len(position), rows):
                block = slice(start, start + rows)
                about, own = seen.about.take(block), theta[position[block]]
                z, values = vecdot(table[row[block]], own), seen.values[block]
                direction, error = self._part(own), values - z
                if not refit.link.is_linear:
                    factor, error = refit.link.weigh(about, z, values)
                    direction = factor[:, None] * direction
                self._collect(*self._spread(about), direction, error)
        self.model.pool(touched, self.processes)
        self._solve(touched)
        self.changed()

    def _fresh(self, first: int) -> Tensor:
        """[n, D + L] phi of the arms from `first` on, before anything is learned of them."""
        arms, like = self.catalogue.all_arms[first:], self.catalogue.arm_features
        start = self.init_scale * self._start.normal(arms, 0, self.size)
        return torch.cat((like[first:], start.to(like)), dim=1)

    def _part(self, theta: Tensor) -> Tensor:
        """theta^v: [n, D + L] -> [n, L]."""
        return theta[:, self.catalogue.dim :]

    def get_extra_state(self) -> Tensor:
        """[N, L] v: what `state_dict` keeps of the table, whose other columns are the catalogue's."""
        return self.hidden.clone()

    def set_extra_state(self, state: Tensor) -> None:
        """Take over what `get_extra_state` gave."""
        if state.shape != self.hidden.shape:
            raise RuntimeError(f"hidden features must be {list(self.hidden.shape)}, got {list(state.shape)}")
        self.changed()
        self.hidden.copy_(state)


def _distinct(about: About) -> tuple[About, Tensor]:
    """Everything asked about once, and [Q] which of it each question is about."""
    ids = about.ids()
    if ids.shape[1] == 1:  # several times as fast
        single, group = ids.squeeze(1).unique(return_inverse=True)
        return about.of_ids(single[:, None]), group
    several, group = ids.unique(dim=0, return_inverse=True)
    return about.of_ids(several), group
