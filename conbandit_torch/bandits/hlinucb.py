"""hLinUCB: a bandit that learns hidden features of the arms while it plays."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.linalg import vecdot

from conbandit_torch.bandits.candidates import Candidates
from conbandit_torch.bandits.linear import SAMPLE, LinearBandit
from conbandit_torch.core.algebra import dot, sqrt_
from conbandit_torch.core.blocks import EVERY_ROW, Index, look_up, rows_per_block
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.context import Context
from conbandit_torch.core.randomness import Stream
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.hidden_regression import HiddenRegression
from conbandit_torch.models.history import History

Collect = Callable[[Tensor, Tensor, Tensor], Tensor]  # items, theta^v and residuals to arms


class HLinUCB(LinearBandit):
    """LinUCB on observed and learned hidden features of the arms (Wang, Wu, Wang, CIKM 2016).

    Rule, with phi_a = (x_a, v_a) and theta_u = (theta^x, theta^v), after user u saw arm a and gave r:
        A_u += phi phi^T,  b_u += r phi,  theta_u = A_u^-1 b_u;   then, with the new theta_u,
        C_a += theta^v theta^v^T,  d_a += theta^v (r - x^T theta^x),  v_a = C_a^-1 d_a;
        choose argmax phi^T theta + alpha |phi|_{A_u^-1} + hidden_alpha |theta^v|_{C_a^-1}   (on Eq. 9).
    Answers on key-terms, where a conversation brings them (our derivation; no source prints one): an answer
    r~ on key-term k is predicted by phi~_k = sum_a p_{a,k} phi_a and so ties v of all its arms. As the
    shares p sum to 1, `(sum_a p_a y_a)^2 <= sum_a p_a y_a^2`, with y_a = rho + (v_a - v'_a)^T theta^v for new
    v' and rho = r~ - phi~^T theta. The right side separates over arms and equals the left at v' = v, so
    minimising it never increases the squared error. It gives, for every arm a of k, with theta of the
    level that answers enter:
        C_a += p theta^v theta^v^T,  d_a += p theta^v (rho + v_a^T theta^v),  v_a = C_a^-1 d_a.
    A reward is the same with one arm and p = 1. Users of one round act on the same v; their increments
    are summed.

    History refit (ours): the sums above keep every observation at the v and theta it was made with. So
    every `refit_every` rounds they are built anew from a log of all observations, with current values,
    `refit_sweeps` times over, in time linear in the log (and the number of arms). The log's memory is linear
    in the observations (`History`).

    Symbols: C starts at `hidden_ridge` I, A at `ridge` I; v at random values of scale `init_scale`.
    Differs: nothing known without answers and refit.

    Args:
        catalogue: arms, with their observed features.
        num_users: U.
        hidden_dim: L, number of hidden features; 0 gives LinUCB.
        alpha: factor of the arm-level width, a number or a theory value.
        hidden_alpha: factor of the hidden features' width.
        ridge: weight of the penalty `|theta|^2`.
        hidden_ridge: weight of the penalty `|v|^2`.
        weight: weight of every observation in theta's regression.
        init_scale: standard deviation of the initial hidden features; small, but above 0.
        refit_every: rounds between refits; None: never.
        refit_sweeps: how often theta and v take turns in a refit.
        seed: seed of the initial hidden features.
    """

    users_are_independent = False
    table: Tensor  # [N, D + L] phi of all arms, so that candidates' are looked up at once
    updates: Tensor  # [] rounds learned from

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        hidden_dim: int = 5,
        alpha: Alpha = 0.5,
        hidden_alpha: float = 0.1,
        ridge: float = 1.0,
        hidden_ridge: float = 1.0,
        weight: float = 1.0,
        init_scale: float = 0.01,
        refit_every: int | None = None,
        refit_sweeps: int = 1,
        seed: int = 0,
    ) -> None:
        if hidden_dim < 0:
            raise ValueError(f"hidden_dim must be at least 0, got {hidden_dim}")
        if not 0 <= hidden_alpha < float("inf"):
            raise ValueError(f"hidden_alpha must be a number of at least 0, got {hidden_alpha}")
        if hidden_dim and not 0 < init_scale < float("inf"):
            raise ValueError(
                f"init_scale must be above 0, got {init_scale}: hidden features that start at 0 give theta^v"
                " nothing to learn from, and theta^v = 0 gives them nothing, so that nothing would ever be "
                "learned; 0.01 to 0.1 is usual"
            )
        for name, value in {"refit_every": refit_every, "refit_sweeps": refit_sweeps}.items():
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        dim = catalogue.dim + hidden_dim
        super().__init__(catalogue, num_users, alpha=alpha, ridge=ridge, weight=weight, dim=dim, seed=seed)
        like = catalogue.arm_features
        self.hidden_alpha, self.refit_every, self.refit_sweeps = hidden_alpha, refit_every, refit_sweeps
        self.hidden_model = HiddenRegression(catalogue.num_arms, hidden_dim, hidden_ridge, like)  # C, d
        arms = torch.arange(catalogue.num_arms, device=like.device)
        start = init_scale * Stream(seed, "hidden features").normal(arms, 0, hidden_dim)
        self.register_buffer("table", torch.cat((like, start.to(like)), dim=1), persistent=False)
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64, device=like.device))
        self.rewards = History(like) if refit_every else None
        self.answers = History(like) if refit_every else None
        self.refit_seconds = 0.0  # of the last refit
        self._last_change = like.new_zeros(0, hidden_dim)  # [n, L] of v, by the last step

    @property
    def hidden(self) -> Tensor:
        """[N, L] v: a part of `table`, not a copy."""
        return self.table[:, self.catalogue.dim :]

    def features(self, context: Context) -> Tensor:
        """[B, A, D + L] `phi = (x, v)`."""
        if context.has_own_features:
            return torch.cat((context.arm_features, look_up(self.hidden, context.arms)), dim=2)
        return look_up(self.table, context.arms)

    def term_features(self, terms: Index = EVERY_ROW) -> Tensor:
        """[n, D + L] `phi~`, from the current v."""
        some = terms if isinstance(terms, Tensor) else None
        hidden = self.catalogue.average(self.hidden, some)
        observed = self.catalogue.term_features[terms]
        return torch.cat((observed, hidden if some is not None else hidden[terms]), dim=1)

    def bonus(self, candidates: Candidates) -> Tensor:
        """[B, A] the arm-level width, and that of the hidden features."""
        width = self._hidden_width(candidates.context, candidates.theta)
        return torch.add(super().bonus(candidates), width, alpha=self.hidden_alpha)

    def learn(self, context: Context, arm: Tensor, reward: Tensor) -> None:
        """theta of the users, then v of the arms shown."""
        if self.rewards is not None and context.has_own_features:
            raise ValueError("a refit needs the catalogue's features: leave refit_every out, or arm_features")
        shown = context.pick(arm)
        phi = self.checked_features(shown).squeeze(1)  # [B, D + L], with the v that theta learns from
        self.arm_model.update(context.who, phi, reward)
        theta = self.theta(context.who)
        arms = shown.arms.squeeze(1)
        self._learn_hidden(self._collect_arms, arms, theta, reward - vecdot(phi, theta))
        if self.rewards is not None:
            self.rewards.append(context.users, arms, reward)

    def learn_terms(self, context: Context, terms: Tensor, answer: Tensor) -> None:
        """theta of the level that answers enter, then v of the key-terms' arms."""
        phi = self.checked_term_features(terms)
        self.answer_model.update(context.who, phi, answer)
        theta = self.answer_theta(context.who)
        self._learn_hidden(self._collect_terms, terms, theta, answer - vecdot(phi, theta))
        if self.answers is not None:
            self.answers.append(context.users, terms, answer)

    def update(self, context: Context, arm: Tensor, reward: Tensor) -> None:
        """Learn from the round's rewards, and refit when it is time."""
        super().update(context, arm, reward)
        if not self.processes.any(len(context) > 0):  # nothing was learned in this round
            return
        self.updates.add_(1)
        if self.refit_every is not None and int(self.updates) % self.refit_every == 0:
            self.refit()

    def refit(self) -> None:
        """Build theta's and v's regressions anew from the log, `refit_sweeps` times in turn."""
        if self.rewards is None or self.answers is None:
            raise ValueError("there is no log to refit from: build the policy with refit_every")
        start = time.perf_counter()
        for _ in range(self.refit_sweeps):
            self._refit_users(self.rewards, self.answers)
            self._refit_hidden(self.rewards, self.answers)
        self.refit_seconds = time.perf_counter() - start

    def width(self, context: Context) -> int:
        """Numbers a row that `scores` works on at once: features, and C^-1 of every candidate."""
        return super().width(context) + context.arms.shape[1] * self.hidden.shape[1] ** 2

    def diagnostics(self, context: Context) -> dict[str, Tensor]:
        """The base's, and what the hidden features are doing."""
        some = context.take(SAMPLE)
        own = {
            "width/hidden": self._hidden_width(some, self.theta(some.who)).mean(),
            "hidden/last_change": self._last_change.norm(),
            "hidden/features": self.hidden,
        }
        if self.refit_every is not None:
            own["hidden/refit_seconds"] = torch.tensor(self.refit_seconds)
        return super().diagnostics(context) | own

    def _hidden_width(self, context: Context, theta: Tensor) -> Tensor:
        """[B, A] `|theta^v|_{C_a^-1}`, from theta [B, D + L]."""
        own = self._hidden_part(theta)  # [B, L]
        outer = (own[:, :, None] * own[:, None, :]).flatten(1)  # [B, L L]
        inverse = look_up(self.hidden_model.inverse.flatten(1), context.arms)  # [B, A, L L]
        return sqrt_(dot(inverse, outer))

    def _learn_hidden(self, collect: Collect, items: Tensor, theta: Tensor, residual: Tensor) -> None:
        """The v-step of observations of arms or key-terms, all from v as it is now.

        All processes take the step of all observations, in the same order: so v stays equal bit for bit.
        """
        items, direction, residual = self.processes.gather(items, self._hidden_part(theta), residual)
        arms = collect(items, direction, residual)
        new = self.hidden_model.solve(arms)
        self._last_change = new - self.hidden[arms]
        self.hidden[arms] = new

    def _collect_arms(self, arms: Tensor, direction: Tensor, residual: Tensor) -> Tensor:
        """Add to C and d what rewards of `arms` [Q] tell (theta^v [Q, L], residual [Q]); gives each once."""
        target = residual + vecdot(direction, self.hidden[arms])
        self.hidden_model.add(arms, self.hidden_model.products(direction, target))
        touched: Tensor = arms.unique()
        return touched

    def _collect_terms(self, terms: Tensor, direction: Tensor, residual: Tensor) -> Tensor:
        """The same of answers on `terms` [Q]; gives each of their arms once.

        Summed over a key-term's answers before it is spread over its arms, so that many answers on a popular
        key-term cost no more than one:
            C_a += p sum theta^v theta^v^T,  d_a += p (sum theta^v rho + (sum theta^v theta^v^T) v_a).
        """
        distinct, group = terms.unique(return_inverse=True)
        edges = self.catalogue.arms_of(distinct)
        products = self.hidden_model.products(direction, residual)  # [Q, L, L + 1]
        total = products.new_zeros(len(distinct), *products.shape[1:]).index_add_(0, group, products)
        own = edges.weight[:, None, None] * total[edges.owner]  # [E, L, L + 1]
        gram, moment = own[:, :, :-1], own[:, :, -1]
        moment += dot(gram, self.hidden[edges.target])
        self.hidden_model.add(edges.target, own)
        touched: Tensor = edges.target.unique()
        return touched

    def _refit_users(self, rewards: History, answers: History) -> None:
        """M, b (and the answers' regression) of all users in the log, with the current v."""
        users, arms, values = rewards.entries()
        asked, terms, told = answers.entries()
        seen = torch.cat((users, asked)).unique()
        self.arm_model.reset(seen)
        if self.answer_model is not self.arm_model:
            self.answer_model.reset(seen)
        self.arm_model.rebuild(users, self.table, arms, values)
        self.answer_model.rebuild(asked, self.term_features(), terms, told)

    def _refit_hidden(self, rewards: History, answers: History) -> None:
        """C, d and v of all arms in the log, with the current theta."""
        arms, terms = rewards.entries()[1], answers.entries()[1]
        times = torch.zeros(self.catalogue.num_arms, dtype=torch.int64, device=arms.device)
        times[torch.cat((arms, self.catalogue.arms_of(terms.unique()).target))] = 1
        touched = self.processes.sum(times).nonzero().squeeze(1)  # by anybody's log
        self.hidden_model.reset(touched)
        size = rows_per_block(self.arm_model.dim + self.hidden.shape[1] ** 2)
        for history, table, theta_of, collect in (
            (rewards, self.table, self.theta, self._collect_arms),
            (answers, self.term_features(), self.answer_theta, self._collect_terms),
        ):
            users, items_logged, values_logged = history.entries()
            seen, position = users.unique(return_inverse=True)
            theta = theta_of(seen)  # [S, D + L]
            parts = (entries.split(size) for entries in (position, items_logged, values_logged))
            for who, items, values in zip(*parts, strict=True):
                own = theta[who]  # [n, D + L]
                collect(items, self._hidden_part(own), values - vecdot(table[items], own))
        self.hidden_model.pool(touched, self.processes)
        self.hidden[touched] = self.hidden_model.solve(touched)

    def _hidden_part(self, theta: Tensor) -> Tensor:
        """theta^v: [n, D + L] -> [n, L]."""
        return theta[:, self.catalogue.dim :]

    def get_extra_state(self) -> Tensor:
        """[N, L] v: what `state_dict` keeps of the table, whose other columns are the catalogue's."""
        return self.hidden.clone()

    def set_extra_state(self, state: Tensor) -> None:
        """Take over what `get_extra_state` gave."""
        if state.shape != self.hidden.shape:
            raise RuntimeError(f"hidden features must be {list(self.hidden.shape)}, got {list(state.shape)}")
        self.hidden.copy_(state)
