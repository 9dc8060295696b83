"""Bandits that notice when a user has changed, and start anew with that user."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.linalg import vecdot

from conbandit_torch.bandits.linear import LinearBandit
from conbandit_torch.bandits.linucb import LinUCB
from conbandit_torch.core.attributes import buffer
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.context import Context
from conbandit_torch.core.questions import Arms
from conbandit_torch.models import levels as chain
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.links import Identity, Link
from conbandit_torch.models.representation import Representation


class RestartMixin(LinearBandit):
    """Forgets a user whose rewards no longer fit what was learned of them, and starts anew (ours).

    It stands left of any linear policy. One that converses then asks again, by its schedule, as if the user
    were new:

        class AskAgain(RestartMixin, ConUCB): ...

    Rule: a reward r of x counts if q < 1/weight, with q = sum_i |v_i|^2_{G_i^-1}. Its error, before it is
    learned, is
        e = (r - x^T theta) / sqrt(1/weight + q).
    Of the n errors that counted since the user's last start, s^2 = sum e^2 / n. With t(e; m, c) the density
    of a Student-t distribution with n degrees of freedom around m with scale c, two sums are kept:
        L = max(0, L) + log t(e; 0, k s) - log t(e; 0, s)        errors are larger,
        D = max(0, D) + log t(e; -d s, s) - log t(e; 0, s)       the user is disappointed.
    If (exp L + exp D) / 2 > patience, all that is known of the user is forgotten; r is learned after that.

    Derivation: seen as a Bayesian regression with unknown noise, the chain of levels says that e is Student-t
    around 0; v_i is how the score moves with theta_i (see `models.levels`). What a policy shows to a user who
    has changed is not what this user likes, so errors are larger, or lower, or both. L and D are Page's sums
    (CUSUM) of the log likelihood ratios of these. While nothing has changed and the prediction is right, the
    ratios have mean 1 given the past, so that a user has at least `patience` rounds between false alarms on
    average (Lorden 1971; Shiryaev and Roberts). No noise level has to be given. Where a prediction is less
    certain than the noise, it hangs on the ridge, which is seldom that of the prior: so it does not count.
    Symbols: k `growth`, d `shift`; weight, v_i and G_i are those of the policy's levels.
    Differs: no paper has it. Where a link is not linear, x and r are those of the regression that its step
    makes.

    Rewards that come late and were decided before the last start are left out: they may be those of the user
    as before.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        patience: rounds of a user between false alarms, at least, on average.
        growth: k, how many times as large the errors of a changed user are taken to be.
        shift: d, by how many standard deviations they are taken to be lower.
        base: arguments of the policy to its right.
    """

    stands_over_any_base = True
    order_matters = True  # an alarm depends on the order of surprises
    start: Tensor = buffer()  # [U] the round from which on the user is learned
    restarts: Tensor = buffer()  # [U] how often the user was forgotten
    larger: Tensor = buffer()  # [U] L
    lower: Tensor = buffer()  # [U] D
    errors: Tensor = buffer()  # [U] sum e^2
    tested: Tensor = buffer()  # [U] n

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__bases__:
            if not issubclass(base, LinearBandit):
                raise TypeError(
                    f"class {cls.__name__}: RestartMixin needs a LinearBandit, and {base.__name__} is none"
                )

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        patience: float = 10_000.0,
        growth: float = 3.0,
        shift: float = 1.0,
        **base: Any,
    ) -> None:
        if not 1 < patience < math.inf:
            raise ValueError(f"patience must be above 1 and finite, got {patience}")
        if not 1 < growth < math.inf:
            raise ValueError(f"growth must be above 1 and finite, got {growth}")
        if not 0 < shift < math.inf:
            raise ValueError(f"shift must be above 0 and finite, got {shift}")
        super().__init__(catalogue, num_users, **base)
        self.patience, self.growth, self.shift = patience, growth, shift
        whole = torch.zeros((), dtype=torch.int64, device=catalogue.arm_features.device)
        for name in ("start", "restarts", "tested"):
            self.register_rows(name, whole.clone())
        for name in ("larger", "lower", "errors"):
            self.register_rows(name, catalogue.arm_features.new_zeros(()))

    def began(self, context: Context) -> Tensor:
        """[B] the round from which on each user is learned."""
        return self.start[context.who]

    def learn(self, context: Context, arm: Tensor, reward: Tensor) -> None:
        """Forget users whose rewards are too surprising, then learn the rewards."""
        fresh = context.rounds >= self.began(context)
        if not bool(fresh.all()):
            rows = fresh.nonzero().squeeze(1)
            context, arm, reward = context.take(rows), arm[rows], reward[rows]
        changed = self._test(context, arm, reward).nonzero().squeeze(1)
        if len(changed):
            users = context.take(changed).rows
            times = self.restarts[users] + 1
            self.forget(users)
            self.start[users], self.restarts[users] = context.rounds[changed], times
        super().learn(context, arm, reward)

    def _test(self, context: Context, arm: Tensor, reward: Tensor) -> Tensor:
        """[B] whether each user has changed; takes the rewards into account."""
        who, theta = context.rows, self.theta(context.who)
        about = Arms(context.arms.gather(1, arm[:, None]).squeeze(1))
        reward = reward.clamp(*self.link.range)
        x, target = self.link.single(about, self.shown(context, arm), theta, reward)
        levels = self.levels()
        noise = 1 / levels[0].model.weight
        q = chain.variance(levels, self.models_of(context.who), x[:, None]).squeeze(1)  # [B]
        error = (target - vecdot(x, theta)) / (noise + q).sqrt()
        counts = q < noise
        n, total = self.tested[who], self.errors[who]  # [B] each

        def added(old: Tensor, other: Tensor, cost: float) -> Tensor:
            """A sum with its next log ratio, if errors were `other` under the alternative."""
            least = torch.finfo(total.dtype).tiny  # where there is no noise at all
            plain, spread = (
                total + one.square() for one in (error, other)
            )  # 1 + e^2 / (n s^2), but for n s^2
            ratio = (n + 1) / 2 * (plain.clamp_min(least) / spread.clamp_min(least)).log() - cost
            return torch.where(counts & (n > 0), old.clamp_min(0) + ratio, old)

        scale = (total / n.clamp_min(1)).sqrt()  # s
        larger = added(self.larger[who], error / self.growth, math.log(self.growth))
        lower = added(self.lower[who], error + self.shift * scale, 0.0)
        self.larger[who], self.lower[who] = larger, lower
        self.errors[who] = total + torch.where(counts, error.square(), 0)
        self.tested[who] = n + counts.long()
        return torch.logaddexp(larger, lower) > math.log(2 * self.patience)

    def diagnostics(self, context: Context) -> dict[str, Tensor]:
        """What the policy tells, and how often users were forgotten, on average."""
        return super().diagnostics(context) | {"restarts/mean": self.restarts.double().mean()}


class RestartingLinUCB(RestartMixin, LinUCB):
    """LinUCB that forgets a user who has changed, and starts anew (ours).

    Rule: as `LinUCB`; a user whose rewards are too surprising is forgotten, by the test of `RestartMixin`.
    Symbols: k `growth`, d `shift`.
    Differs: no paper has this test.

    Args:
        catalogue: arms; key-terms are not used.
        num_users: U.
        patience: rounds of a user between false alarms, at least, on average.
        growth: k, how many times as large the errors of a changed user are taken to be.
        shift: d, by how many standard deviations they are taken to be lower.
        alpha: factor of the confidence width, a number or a theory value.
        ridge: weight of the penalty `|theta|^2`.
        representation: what the model sees of the arms; None: the catalogue's features.
        link: how means follow from scores: `Identity()`, or `Logistic()` for clicks.
        seed: not used; every policy takes one.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        patience: float = 10_000.0,
        growth: float = 3.0,
        shift: float = 1.0,
        alpha: Alpha = 0.5,
        ridge: float = 1.0,
        representation: Representation | None = None,
        link: Link = Identity(),
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            patience=patience,
            growth=growth,
            shift=shift,
            alpha=alpha,
            ridge=ridge,
            representation=representation,
            link=link,
            seed=seed,
        )
