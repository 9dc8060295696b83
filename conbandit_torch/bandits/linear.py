"""What every linear policy shares."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.linalg import vecdot

from conbandit_torch.bandits.fits import FittedBandit
from conbandit_torch.core.algebra import dot
from conbandit_torch.core.blocks import EVERY_ROW, Index
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.context import Context
from conbandit_torch.core.processes import Processes
from conbandit_torch.core.questions import About, Arms
from conbandit_torch.kernels import all_threads, kernels_for
from conbandit_torch.models import levels as chain
from conbandit_torch.models.confidence import Alpha, check_alpha
from conbandit_torch.models.history import History, Refit
from conbandit_torch.models.levels import Level
from conbandit_torch.models.links import Identity, Link
from conbandit_torch.models.refits import refit_schedule
from conbandit_torch.models.representation import Representation

SAMPLE = slice(0, 8)  # rows that diagnostics look at: enough for a mean, and cheap beside a round


class LinearBandit(FittedBandit):
    """A ridge regression per user and an optimistic score; with alpha 0, greedy.

    Rule:
        M = ridge I + sum x x^T,  b = sum r x,  theta = M^-1 (b + ridge centre),
        choose argmax x^T theta + extra + width,  width = alpha |x|_{M^-1} with one level.
    All of it follows from the chain of `levels` (see `conbandit_torch.models.levels`), into which a
    conversation inserts one.

    Hooks to override, each of which composes with the conversation mixins:
        levels: the regressions that a score rests on, with the factors of their widths;
        centre: what the last of them is shrunk towards;
        preference: the theta that scores are made of; a policy that samples adds a deviation;
        extra: what else is added to a score, cheap per candidate;
        models_of: which regression each user has;
        learn, learn_answer: what rewards and answers do.
    What the model sees of the arms is the `representation`; how means follow from `x^T theta` is the `link`.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        alpha: factor of the confidence width, a number or a theory value (`Lemma1`).
        ridge: weight of the penalty.
        representation: what the model sees of the arms; None: the catalogue's features.
        link: how means follow from scores.
        root: whether the regressions keep a root of M^-1, for policies that draw from them every round.
        seed: seed of the policy's own random draws, if it makes any.
    """

    optimistic = True  # whether widths are added; not, where `preference` explores
    updates: Tensor  # [] rounds learned from, if there is a log to refit from

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        alpha: Alpha = 0.0,
        ridge: float = 1.0,
        representation: Representation | None = None,
        link: Link = Identity(),
        root: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            ridge=ridge,
            representation=representation,
            link=link,
            root=root,
            seed=seed,
        )
        self.alpha = check_alpha("alpha", alpha)
        if self.representation.refit_every is not None:
            device = catalogue.arm_features.device
            self.register_buffer("updates", torch.zeros((), dtype=torch.int64, device=device))

    @property
    def users_are_independent(self) -> bool:  # type: ignore[override]
        """Whether what one user does never changes another's model: not, if the representation learns."""
        return not self.representation.learns

    @property
    def order_matters(self) -> bool:  # type: ignore[override]
        """Whether the order of rewards does: a step of a link that is not linear depends on those before."""
        return not self.link.is_linear

    def levels(self) -> list[Level]:
        """The chain of regressions that a score rests on, that of the arms first."""
        return [Level("theta", self.arm_model, self.alpha)]

    def preference(self, context: Context) -> Tensor:
        """[B, D] the theta that scores are made of."""
        return self.theta(context.who)

    def extra(self, context: Context, theta: Tensor) -> Tensor | None:
        """[B, A] what else is added to `x^T theta`, given the theta [B, D] it is made of; None: nothing.

        An optimistic policy adds what its representation is unsure of, such as hidden features' widths.
        """
        return self.representation.extra(context, theta) if self.optimistic else None

    def thetas(self, who: Index) -> list[Tensor]:
        """[B, D] the estimates of every level (Eq. 6)."""
        return chain.estimates(self.levels(), self.models_of(who), self._checked_centre(who))

    def theta(self, who: Index) -> Tensor:
        """[B, D] the users' estimated preferences."""
        return self.thetas(who)[0]

    def scores(self, context: Context) -> Tensor:
        """[B, A] `x^T theta`, and what is added to it (Eq. 7)."""
        theta = self.preference(context)  # [B, D]
        x = self.representation.of(context)  # [B, A, D]
        scores = dot(x, theta)
        extra = self.extra(context, theta)
        if extra is not None:
            scores = scores + self._fitting("extra", extra, context.arms.shape)
        width = chain.width(self.levels(), self.models_of(context.who), x) if self.optimistic else None
        return scores if width is None else scores.add_(width)

    def choose(self, context: Context) -> Tensor:
        """[B] the position of each row's highest score, the first of equals."""
        self._check(context)
        position = self._choose_pruned(context)
        return context.map(self._best, self.row_size(context)) if position is None else position

    def _choose_pruned(self, context: Context) -> Tensor | None:
        """[B] what `choose` gives, without the widths that cannot matter; None: all scores are needed.

        They are where a subclass has scores of its own, and where a number is not finite, to tell which.
        """
        kernels = kernels_for(self.arm_model.moment)
        levels = self.levels() if self.optimistic else []
        pool = context.arms.shape[1]
        if type(self).scores is not LinearBandit.scores or not kernels.prunes(pool, len(levels)):
            return None
        widths = chain.widths(levels, self.models_of(context.who))
        if widths is None:
            return None
        theta = self.preference(context)  # [B, D]
        extra = self.extra(context, theta)
        if extra is not None:
            self._fitting("extra", extra, context.arms.shape)
        seen = self.representation
        lengths = None if context.has_own_features else seen.lengths()
        position = kernels.choose(*seen.candidates(context), theta, extra, widths, lengths)
        return None if len(position) and int(position.min()) < 0 else position

    def learn(self, context: Context, arm: Tensor, reward: Tensor) -> None:
        """The users' regressions with the arms shown, then the representation."""
        if self.log is not None and context.has_own_features:
            raise ValueError("a refit needs the catalogue's features: leave refit_every out, or arm_features")
        x = self.shown(context, arm)  # as theta learns from it
        if self.link.is_linear:
            self.arm_model.update(self.models_of(context.who), x, reward)
            if self.log is None and not self.representation.steps_online:
                return
        about = Arms(context.arms.gather(1, arm[:, None]).squeeze(1))
        if not self.link.is_linear:
            reward = reward.clamp(*self.link.range)
            theta = self.theta(context.who)
            self._step(self.arm_model, context, *self.link.single(about, x, theta, reward))
        if self.log is not None:
            self.log.append(context.rows, about, reward)
        if self.representation.steps_online:
            self._teach(about, x, self.theta(context.who), reward)

    def shown(self, context: Context, arm: Tensor) -> Tensor:
        """[B, D] what the model sees of the arms at positions `arm` [B]."""
        table, arms = self.representation.candidates(context)
        return kernels_for(table).picked(table, arms, arm)

    def learn_answer(self, context: Context, about: About, value: Tensor) -> None:
        """Learn that each row of the context answered `value` [B] when asked `about` something."""
        if self.log is not None:
            History.code(about)  # or else an error, before anything is learned
        model = self.levels()[self.answer_level].model
        x = about.features(self.representation)  # [B, D]
        if self.link.is_linear:
            model.update(self.models_of(context.who), x, value)
        else:
            theta, value = self.thetas(context.who)[self.answer_level], value.clamp(*self.link.range)
            world = self.representation, self.catalogue
            self._step(model, context, *self.link.several(about, *world, theta, value))
        if self.log is not None:
            self.answers.append(context.rows, about, value)
        if self.representation.steps_online:
            self._teach(about, x, self.thetas(context.who)[self.answer_level], value)

    def evidence(self, about: About, value: Tensor) -> Tensor:
        """[Q, D] `y x`."""
        return value[:, None] * about.features(self.representation)

    def update(self, context: Context, arm: Tensor, reward: Tensor) -> None:
        """Learn from the round's rewards, and refit when it is time."""
        super().update(context, arm, reward)
        self._fit_when_due(context)
        schedule = refit_schedule(self.representation.refit_every)
        if schedule is None or not self.anybody(len(context) > 0):  # nothing was learned in this round
            return
        self.updates.add_(1)
        if schedule.due(int(self.updates)):
            self.refit()

    def refit(self) -> None:
        """Fit the representation, and every user's regressions, to the whole log."""
        if self.log is None:
            raise ValueError("there is no log to refit from: build the policy with refit_every")
        with all_threads():
            self.representation.refit(Refit(self._observations(), self.rebuild, self.link))

    def rebuild(self) -> None:
        """Every user's regressions anew from the log, with the representation as it is."""
        models = {0: self.arm_model, self.answer_level: self.levels()[self.answer_level].model}
        observations = self._observations()
        if not self.link.is_linear:
            self._fit(torch.arange(self.num_users, device=self.arm_model.moment.device))
            return
        if observations:
            seen = torch.cat([own.users for own in observations]).unique()
            for model in models.values():
                model.reset_rows(self._models(seen))
        for own in observations:
            model = models[0 if own.rewards else self.answer_level]
            model.rebuild(self._models(own.users), *own.about.table(self.representation), own.values)

    def forget(self, who: Tensor) -> None:
        """Let the users `who` [n] be as new; a shared representation forgets them at its next refit."""
        super().forget(who)
        for history in (self.log, self.answers) if self.log is not None else ():
            history.drop(who)

    def share(self, processes: Processes) -> None:
        """Only what the representation learns is shared."""
        if self.representation.learns:
            self.representation.share(processes)

    def anybody(self, here: bool) -> bool:
        """Whether any process says so, of those that share a representation."""
        return self.representation.processes.any(here)

    def row_size(self, context: Context) -> int:
        """Numbers per row that `scores` works on at once."""
        return context.arms.shape[1] * (self.arm_model.dim + self.representation.extra_size)

    def predict(self, context: Context) -> Tensor:
        """[B, A] the means of `x^T theta`."""
        table, arms = self.representation.candidates(context)
        return self.link.mean(kernels_for(table).dots(table, arms, self.theta(context.who), EVERY_ROW))

    def coefficients(self) -> Tensor:
        """[U, D] theta."""
        return self.theta(slice(0, self.num_users))

    def diagnostics(self, context: Context) -> dict[str, Tensor]:
        """Mean arm-level width over the candidates of the first users, and what the representation tells."""
        some = context.take(SAMPLE)
        x = self.representation.of(some)
        own = {"width/arm": self.arm_model.norm(self.models_of(some.who), x).mean()}
        return own | self.link_diagnostics() | self.representation.diagnostics(some, self.theta(some.who))

    def _teach(self, about: About, x: Tensor, theta: Tensor, value: Tensor) -> None:
        """Let the representation take its step after values [B] of vectors x [B, D], predicted by theta."""
        z = vecdot(x, theta)
        if self.link.is_linear:
            self.representation.learn(about, theta, value - z)
        else:
            factor, left = self.link.weigh(about, z, value)
            self.representation.learn(about, factor[:, None] * theta, left)
