"""What simulated environments share: users with true preferences."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from conbandit_torch.core.attributes import buffer, submodule
from conbandit_torch.core.blocks import EVERY_ROW, Index, add_at, as_table, rows_per_block
from conbandit_torch.core.catalogue import Catalogue, Edges
from conbandit_torch.core.checks import expect_positions, expect_rows, expect_tensor
from conbandit_torch.core.context import Context
from conbandit_torch.core.processes import Processes
from conbandit_torch.core.questions import About, Answer, Arms, Question, ShiftedTerms, Sides
from conbandit_torch.core.randomness import Stream
from conbandit_torch.core.rounds import Feedback, Outcome
from conbandit_torch.environments.answers import AnswerModel, Asked, ItemMean, compared
from conbandit_torch.environments.base import Environment
from conbandit_torch.environments.delays import Late
from conbandit_torch.environments.drift import Drift
from conbandit_torch.environments.hiding import describe_hidden, hidden_columns
from conbandit_torch.kernels import kernels_for

FeedbackKind = Literal["linear", "binary", "logistic"]
AnswerKind = Literal["linear", "binary"]  # of answers alone, where rewards come from a log


class Simulated(Environment):
    """Users with true preferences theta, who answer and reward by them.

    Linear feedback: `r = x^T theta + eps` (Eq. 2) and `r~_k = sum_a p_{a,k} x_a^T theta + eps~` (Eq. 4),
    one eps and one eps~ per user and round, shared by all arms and all key-terms of that round.
    Binary feedback (Eq. 5): 1 with probability `x^T theta` clipped to [0, 1], per arm; key-terms the
    mean of their arms' probabilities; one uniform draw per user and round for arms, one for key-terms.
    Logistic feedback: as binary, with the probability `mu(scale x^T theta)`, mu(z) = 1 / (1 + exp(-z)).
    Comparisons: the thing whose answer is larger is named; with logistic feedback the first one is, with
    probability `mu(scale z^T theta)`, z being the difference of both.

    How people make an answer of what they feel is a part, `answers`; by default it is as above.

    A subclass says who comes (`visitors`), which arms they may be shown (`pools`) and how noisy they are
    (`arm_noise`, `term_noise`), each as a function of users and of the users' own rounds.

    With `hidden` features, that many of the columns, drawn at random, or those named, are kept from the
    policies: they see a catalogue of the others, while rewards and answers come from all of them.

    Args:
        catalogue: arms and key-terms, with all features.
        theta: [U, D] the users' true preferences.
        feedback: "linear", "binary" or "logistic".
        hidden: how many features policies do not see, or the names of which.
        hidden_seed: seed of the draw of those features.
        balance_hidden: whether their share of `|x|^2` is to be close to their share of the features.
        scale: how steep the probabilities of logistic feedback are.
        answers: how people answer.

    Attributes:
        hidden: how many features policies do not see.
        seed: of what is drawn as the rounds go on.
    """

    theta: Tensor = buffer()  # [U, D]; where users change, of all processes' users before any change
    rounds: Tensor = buffer()  # [U] rounds that each user has finished
    answered: Tensor = buffer()  # [U] questions that each user was asked
    _everyone: Tensor = buffer()  # [U] all ids
    _world: Catalogue = submodule()  # with the features that policies do not see
    seed: int = 0

    def __init__(
        self,
        catalogue: Catalogue,
        theta: Tensor,
        feedback: FeedbackKind = "linear",
        hidden: int | Sequence[str] = 0,
        hidden_seed: int = 0,
        balance_hidden: bool = False,
        scale: float = 1.0,
        answers: AnswerModel = ItemMean(),
    ) -> None:
        super().__init__()
        if feedback not in ("linear", "binary", "logistic"):
            raise ValueError(f"feedback must be 'linear', 'binary' or 'logistic', got {feedback!r}")
        if not 0 < scale < float("inf"):
            raise ValueError(f"scale must be above 0 and finite, got {scale}")
        if scale != 1 and feedback != "logistic":
            raise ValueError(f"scale is of logistic feedback, and feedback is {feedback!r}: leave scale out")
        if not isinstance(answers, AnswerModel):
            raise TypeError(f"answers must be an AnswerModel, got {answers!r}")
        columns = hidden_columns(catalogue, hidden, hidden_seed, balance_hidden)
        self.num_users, self.feedback, self.hidden = len(theta), feedback, len(columns)
        self.scale, self.answers = scale, answers
        self.hidden_features = describe_hidden(catalogue, columns)
        self._world = catalogue
        self.catalogue = catalogue
        if len(columns):
            seen = torch.ones(catalogue.dim, dtype=torch.bool)
            seen[columns] = False
            self.catalogue = catalogue.restricted_to(seen.nonzero().squeeze(1))
        self.register_buffer("theta", theta, persistent=False)
        self.register_buffer("rounds", torch.zeros(len(theta), dtype=torch.int64))
        self.register_buffer("answered", torch.zeros_like(self.rounds))
        self.late: Late | None = None  # rewards under way, if they come late
        self.drift: Drift | None = None  # how theta changes, if it does
        everyone = torch.arange(len(theta))
        self.register_buffer("_everyone", everyone, persistent=False)

    @abstractmethod
    def pools(self, users: Tensor, rounds: Tensor) -> Tensor:
        """[B, A] candidate arms of the users' `rounds`-th rounds, counted from 0."""

    @abstractmethod
    def arm_noise(self, users: Tensor, rounds: Tensor) -> Tensor:
        """[B] eps (linear) or the uniform draw (binary) of the users' rounds, for arms."""

    @abstractmethod
    def term_noise(self, users: Tensor, rounds: Tensor) -> Tensor:
        """[B] eps~ (linear) or the uniform draw (binary) of the users' rounds, for key-terms."""

    def visitors(self) -> Tensor | None:
        """[B] who is here this round; None: everyone."""
        return None

    def side_noise(self, users: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """[B] each: noise of the first and of the second side in the users' `numbers`-th question, from 0."""
        raise NotImplementedError(f"{type(self).__name__} has no noise for comparisons")

    def split(self, processes: Processes) -> None:
        """Keep this process's share of the users."""
        if self.num_users < processes.size:
            raise ValueError(f"{self.num_users} users cannot be split over {processes.size} processes")
        own = processes.share_of(self.num_users)
        self.processes, self.first_user, self.num_users = processes, own.start, own.stop - own.start
        names = ("rounds", "answered", "_everyone")
        for name in names if self.drift is not None else ("theta", *names):
            setattr(self, name, self.get_buffer(name)[own].clone())

    def reset(self) -> None:
        """Back to the first round of every user."""
        self.rounds.zero_()
        self.answered.zero_()
        if self.late is not None:
            self.late.reset()

    def observe(self) -> Context:
        """Who is here and which arms they may be shown; the same until `pull` ends the round."""
        users = self.visitors()
        if users is None:
            arms = self.pools(self._everyone, self.rounds)
            everyone = slice(0, self.num_users)
            return Context.trusted(self._everyone, arms, self.rounds.clone(), self.catalogue, everyone)
        who = users - self.first_user if self.first_user else users
        rounds = self.rounds[who]
        return Context.trusted(users, self.pools(users, rounds), rounds, self.catalogue, who)

    def clock(self, context: Context) -> Tensor:
        """[B] which of the users' rounds noise is drawn for."""
        return context.rounds

    def theta_of(self, context: Context) -> Tensor:
        """[B, D] the true preferences of the context's users, in the rounds that it is of."""
        if self.drift is None:
            return self.theta[context.who]
        return self._drifted(self.drift, context.users, context.rounds)

    def _drifted(self, drift: Drift, users: Tensor, rounds: Tensor) -> Tensor:
        theta = drift.theta(self.theta, users, rounds, Stream(self.seed, "drift"))
        source = f"{type(drift).__name__}.theta"
        return expect_tensor(source, theta, (len(users), self.theta.shape[1]), self.theta.dtype)

    def _thetas(self, context: Context) -> tuple[Tensor, Index]:
        """`theta_of` as kernels take it: a table, and which of its rows."""
        return (self.theta, context.who) if self.drift is None else (self.theta_of(context), EVERY_ROW)

    def answer(self, context: Context, question: Question) -> Answer:
        """What people say, with this round's noise; a comparison has noise of its own on both sides."""
        asked = question.check(context, self._world)
        sides = question.about.sides()
        if len(sides) == 2:
            noises = self.side_noise(asked.users, self.answered[asked.who])
            if self.feedback == "logistic" and self.answers == ItemMean() and not asked.has_own_features:
                answer = Answer(self._respond(self._chance(asked, question.about), noises[0]))
            else:
                first, second = (self._said(asked, *both) for both in zip(sides, noises, strict=True))
                answer = compared(first, second)
        else:
            noise = self.arm_noise if isinstance(sides[0], Arms) else self.term_noise
            answer = self._said(asked, sides[0], noise(asked.users, self.clock(asked)))
        add_at(self.answered, asked.who, 1)
        return answer

    def _chance(self, asked: Context, about: About) -> Tensor:
        """[Q] the probability that the first of two things is named: mu of the difference (ConDuel)."""
        difference = about.features(self._world)  # [Q, D]
        return self._means((difference * self.theta_of(asked)).sum(1))

    def _said(self, asked: Context, side: Sides, noise: Tensor) -> Answer:
        """What the users say about one side of their questions."""
        return self.answers(
            Asked(
                users=asked.users,
                numbers=self.answered[asked.who],
                binary=self.feedback != "linear",
                mean=lambda: self.mean(asked, side),
                items=lambda: self.item_means(asked, side),
                respond=lambda felt: self._respond(felt, noise),
                stream=lambda what: Stream(self.seed, f"answers {what}"),
            )
        )

    def pull(self, context: Context, arm: Tensor) -> Outcome:
        """Rewards with this round's noise, regrets without; every user's round ends."""
        expect_rows("arm", arm, len(context))
        mean, regret = self._mean_and_regret(context, arm)
        reward = self._respond(mean, self.arm_noise(context.users, self.clock(context)))
        add_at(self.rounds, context.who, 1)
        return Outcome(self.feedback_of(context, arm, reward), regret)

    def _mean_and_regret(self, context: Context, arm: Tensor) -> tuple[Tensor, Tensor]:
        """[B] each: what rewards are drawn around, and what is lost against the best candidate (Eq. 1)."""
        own = type(self).arm_mean is not Simulated.arm_mean
        if own or self.feedback == "logistic":  # a world with means of its own
            expect_positions(arm, *context.arms.shape)
            means = self.arm_mean(context)  # [B, A]
            mean = means.gather(1, arm[:, None]).squeeze(1)
            return mean, means.amax(1) - mean
        clip, candidates = self.feedback == "binary", self._candidates(context)
        fused: tuple[Tensor, Tensor] = kernels_for(self.theta).pulled(
            *candidates, *self._thetas(context), arm, clip=clip
        )
        return fused

    def feedback_of(self, context: Context, arm: Tensor, reward: Tensor) -> list[Feedback]:
        """What comes in now: the rewards of this round, or earlier ones where rewards are late."""
        if self.late is None:
            return [Feedback(context, arm, reward)]
        return self.late.send(context, arm, reward, self.processes)

    def expected(self, context: Context) -> Tensor | None:
        """[B, A] what rewards are drawn around."""
        return self.arm_mean(context)

    def arm_mean(self, context: Context) -> Tensor:
        """[B, A] `x^T theta` (Eq. 2), or the probabilities that follow from it (Eq. 5)."""
        dots = kernels_for(self.theta).dots(*self._candidates(context), *self._thetas(context))
        return self._means(dots)

    def _candidates(self, context: Context) -> tuple[Tensor, Tensor]:
        """[n, D] and [B, A]: a table of all features, and which of its rows the candidates are."""
        if not context.has_own_features:
            return self._world.arm_features, context.arms
        if self._world is not self.catalogue:
            raise ValueError("where policies do not see all features, a context's are the catalogue's")
        return as_table(context.arm_features)

    def preferences(self) -> Tensor | None:
        """[U, D] theta, times scale, unless some features are hidden, to be learned in any rotation.

        Of users who change, that of the last round which each of them has finished.
        """
        if self.hidden:
            return None
        if self.drift is None:
            return self.theta * self.scale
        last = (self.rounds - 1).clamp_min(0)
        return self._drifted(self.drift, self._everyone, last) * self.scale

    def mean(self, context: Context, about: About) -> Tensor:
        """[Q] `sum_a w_a E[r_a]` of what each row is asked about (Eq. 4)."""
        if context.has_own_features and isinstance(about, Arms):  # this round's own
            return self.arm_mean(context.showing(about.of)).squeeze(1)
        if isinstance(about, ShiftedTerms) and not (
            self.feedback == "linear" and self._world is self.catalogue
        ):
            raise ValueError(
                "a question about a vector near a key-term needs expected rewards that are linear in the "
                "features that policies see: ask about the key-term itself"
            )
        theta = self.theta_of(context)
        if self.feedback == "linear":  # the average of linear means is linear in the average
            return (about.features(self._world) * theta).sum(1)
        edges, means = self.item_means(context, about)
        return theta.new_zeros(len(about)).index_add_(0, edges.owner, edges.weight * means)

    def item_means(self, context: Context, about: About) -> tuple[Edges, Tensor]:
        """The arms of what each row is asked about, and [E] `E[r_a]` of each."""
        edges = about.edges(self._world)
        if context.has_own_features and isinstance(about, Arms):
            return edges, self.mean(context, about)
        theta, features = self.theta_of(context), self._world.arm_features
        runs = rows_per_block(features.shape[1])
        dots = [
            (features[target] * theta[owner]).sum(1)
            for owner, target in zip(edges.owner.split(runs), edges.target.split(runs), strict=True)
        ]
        return edges, self._means(torch.cat(dots))

    def _means(self, dots: Tensor) -> Tensor:
        """Expected rewards of arms, from `x^T theta`."""
        if self.feedback == "logistic":
            return torch.sigmoid(self.scale * dots)
        return dots.clamp(0, 1) if self.feedback == "binary" else dots

    def _respond(self, mean: Tensor, noise: Tensor) -> Tensor:
        if self.feedback != "linear":
            return (noise < mean).to(mean)
        return mean + noise.to(mean)
