"""Steps and exact fits of the users' regressions, by the link of their means."""

from __future__ import annotations

import math
import time
from functools import partial

import torch
from torch import Tensor

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.core.attributes import submodule
from conbandit_torch.core.blocks import Index
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.checks import expect_tensor
from conbandit_torch.core.context import Context
from conbandit_torch.kernels import all_threads
from conbandit_torch.models import newton
from conbandit_torch.models.history import History, Observations
from conbandit_torch.models.links import Link
from conbandit_torch.models.refits import refit_schedule
from conbandit_torch.models.representation import Observed, Representation
from conbandit_torch.models.ridge import RidgeRegression


class FittedBandit(Bandit):
    """What a linear bandit needs to learn by a link: the log, if there is one, and fits to it.

    With the link `Identity` a regression's own step is exact. With others an observation is a Newton step,
    and now and then (`Link.refit_every`) theta is fitted to the user's whole log.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        ridge: weight of the penalty.
        representation: what the model sees of the arms; None: the catalogue's features.
        link: how means follow from scores.
        root: whether the regressions keep a root of M^-1, for policies that draw from them every round.
        seed: seed of the policy's own random draws, if it makes any.
    """

    representation: Representation = submodule()
    arm_model: RidgeRegression = submodule()
    log: History | None  # of rewards, and
    answers: History  # of answers, if there are refits

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        ridge: float,
        representation: Representation | None,
        link: Link,
        root: bool,
        seed: int,
    ) -> None:
        super().__init__(catalogue, num_users, seed=seed)
        self.representation = Observed() if representation is None else representation
        self.link = check_link(link, self.representation)
        self.link_loss, self.link_seconds = math.nan, 0.0  # of the log per observation, by the last exact fit
        self.representation.attach(catalogue, seed)
        like, dim = catalogue.arm_features, self.representation.dim
        self.arm_model = RidgeRegression(num_users, dim, ridge, root=root, like=like)
        self.log = None
        if self.representation.refit_every is not None or self.link.refit_every is not None:
            self.log = History(like)
            self.answers = History(like)

    def centre(self, who: Index) -> Tensor | None:
        """[B, D] what the last level is shrunk towards; None is 0."""
        return None

    def link_diagnostics(self) -> dict[str, Tensor]:
        """What the link is doing; nothing, if it is linear."""
        own: dict[str, Tensor] = {}
        if not self.link.is_linear:
            length = self.arm_model.solution.norm(dim=1)  # [U]
            own["link/length"] = length.mean()
            own["link/share_at_bound"] = (length > 0.999 * self.link.bound).to(length).mean()
            if not math.isnan(self.link_loss):  # or else there was no fit yet
                own["link/refit_loss"] = torch.tensor(self.link_loss)
                own["link/refit_seconds"] = torch.tensor(self.link_seconds)
        return own

    def _step(self, model: RidgeRegression, context: Context, features: Tensor, target: Tensor) -> None:
        """A Newton step of the users' regressions, within the link's bound."""
        who = self.models_of(context.who)
        model.update(who, features, target)
        newton.limit(self.link, model, who)

    def _fit_when_due(self, context: Context) -> None:
        """Fit exactly, if the link wants that, those users whose own rounds say so."""
        schedule = refit_schedule(self.link.refit_every)
        if schedule is None or not len(context):
            return
        due = [number for number in context.rounds.unique().tolist() if schedule.due(number + 1)]
        if due:
            rows = torch.isin(context.rounds, torch.tensor(due, device=context.rounds.device))
            with all_threads():
                self._fit(context.rows[rows])

    def _fit(self, users: Tensor) -> None:
        """Fit the users' [n] regressions to their log by Newton steps, the last of the chain first."""
        start = time.perf_counter()
        levels, observations = self.levels(), self._observations()
        who, kept = self._models(users).unique(return_inverse=True)
        first = torch.empty_like(who).scatter_(0, kept, torch.arange(len(users), device=users.device))
        owners = users[first]  # [n] a user of every model
        loss, number = 0.0, 0
        for level in sorted({0, self.answer_level}, reverse=True):
            own = [seen for seen in observations if (0 if seen.rewards else self.answer_level) == level]
            if not own:
                continue
            groups = [(self._models(seen.users), seen.about, seen.values) for seen in own]
            thetas = self.thetas(owners)
            inner = levels[level + 1].lifted(thetas[level + 1]) if level + 1 < len(levels) else None
            centre = self._checked_centre(owners) if inner is None else inner
            world, model = (self.representation, self.catalogue), levels[level].model
            lost = newton.fit(self.link, model, groups, *world, who, centre, thetas[level])
            loss, number = loss + float(lost.sum()), number + int(model.count[who].sum())
        self.link_loss, self.link_seconds = loss / max(1, number), time.perf_counter() - start

    def _observations(self) -> list[Observations]:
        """Everything in the log, by kind: rewards first, then answers."""
        if self.log is None:
            return []
        found = []
        for history, level in ((self.log, 0), (self.answers, self.answer_level)):
            for users, about, values in history.entries():
                theta = partial(self._theta_of_level, level)
                found.append(Observations(users, about, values, theta, rewards=history is self.log))
        return found

    def _models(self, users: Tensor) -> Tensor:
        """[n] the regressions that the users have."""
        models = self.models_of(users)
        assert isinstance(models, Tensor)  # ids give ids, for the type checker
        return models

    def _theta_of_level(self, level: int, users: Tensor) -> Tensor:
        return self.thetas(users)[level]

    def _checked_centre(self, who: Index) -> Tensor | None:
        centre = self.centre(who)
        if centre is None:
            return None
        number = len(who) if isinstance(who, Tensor) else len(range(self.num_users)[who])
        return self._fitting("centre", centre, (number, self.levels()[-1].model.dim))

    def _fitting(self, hook: str, given: Tensor, shape: tuple[int, ...]) -> Tensor:
        source = f"{type(self).__name__}.{hook}"
        return expect_tensor(source, given, shape, self.arm_model.moment.dtype)


def check_link(link: Link, representation: Representation) -> Link:
    """The link, if the representation can learn by it."""
    if not isinstance(link, Link):
        raise TypeError(f"link must be a Link, got {link!r}")
    takes = representation.takes_links if representation.learns else "any"
    if link.is_linear or takes == "any" or (takes == "of one score" and link.of_one_score):
        return link
    pair = f"link {link!r} and representation {type(representation).__name__}"
    if takes == "linear":
        raise ValueError(
            f"{pair}: this one learns by squared errors of linear means, which the link's are not; use the "
            "link Identity(), or a representation that trains by the link's loss (Network), or does not "
            "learn (Observed)"
        )
    raise ValueError(
        f"{pair}: hidden features learn from the score of all that was observed at once, but here an answer "
        "is a mean of probabilities, in which every item has a score of its own; use "
        "Logistic(answer='at the mean')"
    )
