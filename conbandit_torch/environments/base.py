"""What every environment is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from conbandit_torch.core.attributes import submodule
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.context import Context
from conbandit_torch.core.parts import Remembers, short_repr
from conbandit_torch.core.processes import ALONE, Processes
from conbandit_torch.core.questions import Answer, Question
from conbandit_torch.core.rounds import Logged, Outcome
from conbandit_torch.environments.hiding import HiddenFeatures


class Environment(nn.Module, Remembers, ABC):
    """The users' side of the loop. Three verbs: observe, answer, pull.

    Attributes:
        catalogue: what policies may know of arms and key-terms.
        num_users: U.
        length: rounds that can be played; None: any number.
        processes: over which users are split.
        first_user: id of this process's first user among all.
        hidden_features: features that policies do not see; None: they see all.
        details: what people may read of every arm besides its name, such as a year; None: nothing.
    """

    catalogue: Catalogue = submodule()
    num_users: int
    length: int | None = None
    processes: Processes = ALONE
    first_user = 0
    hidden_features: HiddenFeatures | None = None
    details: Sequence[Mapping[str, str]] | None = None

    def __init__(self) -> None:
        super().__init__()

    __repr__ = short_repr

    def split(self, processes: Processes) -> None:
        """Keep this process's share of the users, and forget the others."""
        if processes.size > 1:
            raise ValueError(f"{type(self).__name__} cannot be split over processes")

    def reset(self) -> None:
        """Back to the first round; every simulation starts with it."""

    def logged(self, rounds: int | None = None) -> Logged | None:
        """What the first `rounds` rounds (None: all) replay of a log; None: every reward is seen."""
        return None

    @abstractmethod
    def observe(self) -> Context:
        """Who is here and which arms they may be shown."""

    @abstractmethod
    def answer(self, context: Context, question: Question) -> Answer:
        """The answers to the question."""

    @abstractmethod
    def pull(self, context: Context, arm: Tensor) -> Outcome:
        """What comes of showing the arms at positions `arm` [B]; ends the round."""

    @abstractmethod
    def expected(self, context: Context) -> Tensor | None:
        """[B, A] true expected rewards of the candidates, for metrics; None where nobody knows them."""

    def preferences(self) -> Tensor | None:
        """[U, D] true parameters, for metrics; None where a policy cannot identify them."""
        return None
