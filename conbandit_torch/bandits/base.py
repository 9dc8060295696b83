"""What every policy is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from conbandit_torch.bandits.pretrained import Pretrained
from conbandit_torch.core.arguments import name_misspelt_arguments
from conbandit_torch.core.attributes import submodule
from conbandit_torch.core.blocks import Index
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.checks import expect_rows, highest
from conbandit_torch.core.context import Context
from conbandit_torch.core.parts import short_repr
from conbandit_torch.core.processes import Processes
from conbandit_torch.core.questions import About, Answer, Question
from conbandit_torch.core.randomness import Stream
from conbandit_torch.core.rows import Rows, all_rows
from conbandit_torch.models.levels import Level
from conbandit_torch.models.representation import Representation


class Bandit(Rows, Pretrained, ABC):
    """A policy for many users at once. Four verbs: ask, listen, choose, update.

    To write one, implement `scores` and `learn`; leave the verbs alone. All state is buffers, so that
    `state_dict` is the whole policy; those with a row per user are declared with
    `self.register_rows(name, initial)`; `buffer[context.who]` are the rows of a context's users, and
    `buffer[context.rows, arm]` changes one number in each.

    Args:
        catalogue: arms and key-terms; its dtype and device are those of the policy's state.
        num_users: U.
        seed: seed of the policy's own random draws, if it makes any.
    """

    catalogue: Catalogue = submodule()
    users_are_independent = True  # what one user does never changes another's model
    order_matters = False  # whether the order in which rewards come changes what is learned from them
    answer_level = 0  # the level that answers enter
    stands_over_any_base = False  # a mixin that asks nothing, to the left of any policy, says True itself

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name_misspelt_arguments(cls)

    def __init__(self, catalogue: Catalogue, num_users: int, *, seed: int = 0) -> None:
        if num_users < 1:
            raise ValueError(f"num_users must be at least 1, got {num_users}")
        super().__init__(num_users)
        self.catalogue, self.seed = catalogue, seed
        self.representation: Representation | None = None  # what a linear model sees of the arms
        self._welcomes_new_users = False

    __repr__ = short_repr

    @property
    def num_users(self) -> int:
        """U."""
        return self.num_rows

    @property
    def draws(self) -> bool:
        """Whether decisions depend on `seed`. A policy whose decisions never do says False."""
        return True

    @abstractmethod
    def scores(self, context: Context) -> Tensor:
        """[B, A]: how much each candidate should be shown; the largest is chosen. Implement this."""

    @abstractmethod
    def learn(self, context: Context, arm: Tensor, reward: Tensor) -> None:
        """Learn that `arm` [B] (positions) earned `reward` [B]. Implement this."""

    def learn_answer(self, context: Context, about: About, value: Tensor) -> None:
        """Learn that each row of the context answered `value` [B] when asked `about` something."""
        raise NotImplementedError(f"{type(self).__name__} learns no answers")

    def evidence(self, about: About, value: Tensor) -> Tensor:
        """[Q, D] what answers `value` [Q] add to `sum y x` of the level that they enter; explains scores."""
        raise NotImplementedError(f"{type(self).__name__} learns no answers")

    def ask(self, context: Context) -> Question | None:
        """The next question to put to this round's users, or None. A plain bandit asks nothing."""
        return None

    def listen(self, context: Context, question: Question, answer: Answer) -> None:
        """Learn from the answer to a question of `ask`."""
        raise NotImplementedError(f"{type(self).__name__} asks no questions: no answer to listen to")

    def choose(self, context: Context) -> Tensor:
        """[B]: position of the arm to show among each row's candidates; ties go to the first."""
        self._check(context)
        return context.map(self._best, self.row_size(context))

    def update(self, context: Context, arm: Tensor, reward: Tensor) -> None:
        """Learn from rewards of one round of their users, this one or an earlier one."""
        self._check(context)
        expect_rows("arm", arm, len(context))
        expect_rows("reward", reward, len(context))
        self.learn(context, arm, reward)

    def levels(self) -> list[Level]:
        """The regressions that a linear score rests on; a bandit that is not linear has none."""
        return []

    def thetas(self, who: Index) -> list[Tensor]:
        """[B, D] the estimates of every level."""
        return []

    def models_of(self, who: Index) -> Index:
        """Which regression each of the users `who` has: their own, unless users share some."""
        return who

    def began(self, context: Context) -> Tensor:
        """[B] the round from which on each user is learned: 0, unless the policy has started anew since."""
        return torch.zeros_like(context.rounds)

    def row_size(self, context: Context) -> int:
        """Numbers per row that `scores` works on at once; larger contexts are cut into blocks."""
        return context.arms.shape[1] * self.catalogue.dim

    def predict(self, context: Context) -> Tensor | None:
        """[B, A] expected rewards, if the policy has an opinion (for metrics)."""
        return None

    def coefficients(self) -> Tensor | None:
        """[U, D] the users' estimated preferences theta, if the policy has any (for metrics)."""
        return None

    def diagnostics(self, context: Context) -> dict[str, Tensor]:
        """What else to log: a tag and one number, or many for a histogram."""
        return {}

    def stream(self, purpose: str) -> Stream:
        """Reproducible random numbers; draw with `context.users` and `context.rounds` as counters."""
        return Stream(self.seed, f"policy/{purpose}")

    def share(self, processes: Processes) -> None:
        """Exchange what users share with the processes over which they are split; most share nothing."""

    def anybody(self, here: bool) -> bool:
        """Whether any process says so, of those that share something; alone, this one."""
        return here

    def grow(self, num_users: int) -> None:
        """Make room for new users: there are `num_users` then, and the new ones have the last ids."""
        if num_users < self.num_users:
            raise ValueError(f"a policy for {self.num_users} users cannot shrink to {num_users}")
        for part in all_rows(self, "user"):
            part.grow_rows(num_users)

    def welcome_new_users(self) -> None:
        """From now on grow by itself when a user comes whose id is beyond the last."""
        self._welcomes_new_users = True

    def forget(self, who: Tensor) -> None:
        """Let the users `who` [n] be as new."""
        for part in all_rows(self, "user"):
            part.reset_rows(who)

    def extend(self, catalogue: Catalogue) -> None:
        """Go on with a catalogue that was `extended`: new arms and key-terms have the last ids."""
        self.catalogue.check_extension(catalogue)
        for part in all_rows(self, "arm"):
            part.grow_rows(catalogue.num_arms)
        if self.representation is not None:
            self.representation.extend(catalogue)
        self.catalogue = catalogue

    def _best(self, context: Context) -> Tensor:
        """[B] the first position of each row's highest score."""
        scores = self.scores(context)
        return highest(scores, context.arms.shape, f"{type(self).__name__}.scores")

    def _check(self, context: Context) -> None:
        if context.largest_user >= self.num_users:
            if not self._welcomes_new_users:
                raise ValueError(
                    f"Context.users holds {context.largest_user}, but {type(self).__name__} was built for "
                    f"num_users={self.num_users}: ids go from 0 to {self.num_users - 1}; grow() makes room, "
                    "welcome_new_users() does it on first sight"
                )
            self.grow(context.largest_user + 1)
        if context.largest_arm >= self.catalogue.num_arms:
            raise ValueError(
                f"Context.arms holds {context.largest_arm}, but the catalogue's arms go from 0 to "
                f"{self.catalogue.num_arms - 1}"
            )
        if context.has_own_features:
            own, known = context.arm_features, self.catalogue.arm_features
            if own.shape[2] != known.shape[1] or own.dtype != known.dtype:
                raise ValueError(
                    f"Context.arm_features must hold {known.shape[1]} features in {known.dtype}, as the "
                    f"catalogue does, got {own.shape[2]} in {own.dtype}"
                )
