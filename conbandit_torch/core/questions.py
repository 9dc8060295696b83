"""What may be asked, and what comes back.

Every question is about weights over arms: an arm is one weight, a key-term k spreads over its arms as
`p_{a,k}`, a comparison is the weights of its first side less those of its second. Features, true means and
the steps of hidden features follow from these weights, by one formula each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from typing_extensions import Self

from conbandit_torch.core.blocks import EVERY_ROW, Index
from conbandit_torch.core.catalogue import Catalogue, Edges
from conbandit_torch.core.context import Context


class Features(Protocol):
    """Vectors of arms and of key-terms: those of a catalogue, or of a policy's representation."""

    def arms(self, ids: Index = EVERY_ROW) -> Tensor:
        """[n, D] of arms, by default of all of them."""

    def terms(self, ids: Index = EVERY_ROW) -> Tensor:
        """[n, D] of key-terms, by default of all of them."""


class About(ABC):
    """What each of Q questions is about, as weights over the catalogue's arms."""

    @abstractmethod
    def __len__(self) -> int:
        """Q."""

    @abstractmethod
    def take(self, rows: Index) -> About:
        """What some of the questions are about."""

    @abstractmethod
    def features(self, source: Features) -> Tensor:
        """[Q, D] `sum_a w_a x_a`, from the vectors that `source` has."""

    @abstractmethod
    def edges(self, catalogue: Catalogue) -> Edges:
        """The weights themselves: owner [E] is the question, target [E] the arm."""

    @abstractmethod
    def table(self, source: Features) -> tuple[Tensor, Tensor]:
        """[n, D] and [Q]: `features` as rows of a table, which many questions about the same share."""

    @abstractmethod
    def sides(self) -> tuple[Sides, ...]:
        """What a person has to value: the thing asked about, or the two that are compared."""

    @abstractmethod
    def ids(self) -> Tensor:
        """[Q, n] what a person would name: one id per question, or two."""

    @abstractmethod
    def of_ids(self, ids: Tensor) -> About:
        """This kind of question about other `ids`."""


@dataclass(frozen=True)
class _Ids(About):
    """One id per question.

    Attributes:
        of: [Q] the ids.
    """

    of: Tensor

    def __post_init__(self) -> None:
        if self.of.ndim != 1 or self.of.dtype != torch.int64:
            raise ValueError(
                f"{type(self).__name__} needs ids [Q] in int64, got {list(self.of.shape)} in {self.of.dtype}"
            )

    def __len__(self) -> int:
        return self.of.shape[0]

    def ids(self) -> Tensor:
        """[Q, 1] the ids."""
        return self.of[:, None]

    def of_ids(self, ids: Tensor) -> Self:
        """Questions about others."""
        return type(self)(ids.squeeze(1))

    def take(self, rows: Index) -> Self:
        """Some of them."""
        return type(self)(self.of[rows])

    def sides(self) -> tuple[Sides, ...]:
        """The one."""
        return (self,)  # type: ignore[return-value]


class Terms(_Ids):
    """Key-terms, one per question: "are you interested in basketball?".

    Args:
        of: [Q] ids of key-terms.
    """

    def features(self, source: Features) -> Tensor:
        """[Q, D] `x~_k = sum_a p_{a,k} x_a`."""
        return source.terms(self.of)

    def edges(self, catalogue: Catalogue) -> Edges:
        """The key-terms' arms, with their shares `p_{a,k}`."""
        return catalogue.arms_of(self.of)

    def table(self, source: Features) -> tuple[Tensor, Tensor]:
        """[K, D] all key-terms' features, and [Q] which of them."""
        return source.terms(), self.of


@dataclass(frozen=True)
class ShiftedTerms(Terms):
    """Vectors near key-terms: `x~_k + e`. Nobody can be asked about one, but papers have it (CLiSK).

    Attributes:
        of: [Q] ids of key-terms.
        by: [Q, D] e, in the features that policies see.
    """

    by: Tensor

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.by.ndim != 2 or len(self.by) != len(self):
            raise ValueError(f"ShiftedTerms needs by [{len(self)}, D], got {list(self.by.shape)}")

    def take(self, rows: Index) -> ShiftedTerms:
        """Some of them."""
        return ShiftedTerms(self.of[rows], self.by[rows])

    def features(self, source: Features) -> Tensor:
        """[Q, D] `x~_k + e`."""
        return source.terms(self.of) + self.by

    def edges(self, catalogue: Catalogue) -> Edges:
        """There are none."""
        raise ValueError("a vector near a key-term has no weights over arms: ask about the key-term itself")

    def table(self, source: Features) -> tuple[Tensor, Tensor]:
        """[Q, D] and [Q]: every vector is a row of its own."""
        return self.features(source), torch.arange(len(self), device=self.of.device)

    def of_ids(self, ids: Tensor) -> ShiftedTerms:
        """Not possible: another key-term has another shift."""
        raise ValueError("a vector near a key-term has more than an id: ask about the key-term itself")


class Arms(_Ids):
    """Arms, one per question.

    Args:
        of: [Q] the arms' ids in the catalogue.
    """

    def features(self, source: Features) -> Tensor:
        """[Q, D] `x_a`."""
        return source.arms(self.of)

    def edges(self, catalogue: Catalogue) -> Edges:
        """Each arm, with weight 1."""
        return Edges(
            torch.arange(len(self), device=self.of.device),
            self.of,
            catalogue.arm_features.new_ones(len(self)),
        )

    def table(self, source: Features) -> tuple[Tensor, Tensor]:
        """[N, D] all arms' features, and [Q] which of them."""
        return source.arms(), self.of


Sides = Terms | Arms


@dataclass(frozen=True)
class Comparison(About):
    """Which of two is liked better. The answer is 1 for the first, 0 for the second, 0.5 for neither.

    Attributes:
        first: key-terms or arms, one per question.
        second: what each is compared with; of the same kind, and as many.
    """

    first: Sides
    second: Sides

    def __post_init__(self) -> None:
        if type(self.first) is not type(self.second) or len(self.first) != len(self.second):
            raise ValueError(
                "a Comparison is of as many Terms with Terms, or Arms with Arms, got "
                f"{len(self.first)} {type(self.first).__name__} and {len(self.second)} "
                f"{type(self.second).__name__}"
            )

    def __len__(self) -> int:
        return len(self.first)

    def take(self, rows: Index) -> Comparison:
        """Some of the comparisons."""
        return Comparison(self.first.take(rows), self.second.take(rows))

    def features(self, source: Features) -> Tensor:
        """[Q, D] the difference of both sides' features."""
        return self.first.features(source) - self.second.features(source)

    def edges(self, catalogue: Catalogue) -> Edges:
        """The first side's weights, and the second's with their sign turned."""
        one, other = self.first.edges(catalogue), self.second.edges(catalogue)
        cell = torch.cat((one.owner, other.owner)) * catalogue.num_arms + torch.cat(
            (one.target, other.target)
        )
        cells, place = cell.unique(return_inverse=True)  # an arm on both sides has the difference
        weight = torch.cat((one.weight, -other.weight))
        weight = weight.new_zeros(len(cells)).index_add_(0, place, weight)
        kept = weight != 0
        cells = cells[kept]
        return Edges(cells // catalogue.num_arms, cells % catalogue.num_arms, weight[kept])

    def table(self, source: Features) -> tuple[Tensor, Tensor]:
        """[Q, D] and [Q]: every comparison has a row of its own."""
        return self.features(source), torch.arange(len(self), device=self.first.of.device)

    def sides(self) -> tuple[Sides, ...]:
        """Both."""
        return self.first, self.second

    def ids(self) -> Tensor:
        """[Q, 2] the first and the second."""
        return torch.stack((self.first.of, self.second.of), dim=1)

    def of_ids(self, ids: Tensor) -> Comparison:
        """Comparisons of others."""
        return Comparison(self.first.of_ids(ids[:, :1]), self.second.of_ids(ids[:, 1:]))


@dataclass(frozen=True)
class Question:
    """One question each to some rows of a context.

    Attributes:
        rows: which rows of the context are asked, Q of them.
        about: what each of them is asked about.
    """

    rows: Index
    about: About

    def __len__(self) -> int:
        return len(self.about)

    def check(self, context: Context, catalogue: Catalogue) -> Context:
        """The context of the rows that are asked, if the question can be put to them.

        Raises:
            ValueError: rows repeat, or what is asked about does not fit the rows or the catalogue.
        """
        if isinstance(self.rows, Tensor):
            rows = self.rows
            if rows.ndim != 1 or rows.dtype != torch.int64:
                raise ValueError(
                    f"Question.rows must be [Q] in int64, got {list(rows.shape)} in {rows.dtype}"
                )
            if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < len(context):
                raise ValueError(
                    f"Question.rows must be from 0 to {len(context) - 1}, got {int(rows.min())} to "
                    f"{int(rows.max())}"
                )
            if len(rows.unique()) != len(rows):
                raise ValueError(f"Question.rows must be distinct, got {rows.tolist()}: ask again instead")
        asked = context.take(self.rows)
        if len(self.about) != len(asked):
            raise ValueError(
                f"a question must be about {len(asked)} things, one per row, got {len(self.about)}"
            )
        for side in self.about.sides():
            limit, kind = (
                (catalogue.num_terms, "key-terms")
                if isinstance(side, Terms)
                else (catalogue.num_arms, "arms")
            )
            if len(side) and not 0 <= int(side.of.min()) <= int(side.of.max()) < limit:
                raise ValueError(
                    f"a question about {kind} needs ids from 0 to {limit - 1}, got {int(side.of.min())} to "
                    f"{int(side.of.max())}"
                )
        return asked


@dataclass(frozen=True)
class Answer:
    """What came back to the Q rows of a question.

    Attributes:
        value: [Q] the answers; those that are not known may hold anything.
        known: [Q] bool, whether there was an answer: "don't know" counts as a question and teaches nothing;
            None: all of them.
    """

    value: Tensor
    known: Tensor | None = None

    def __post_init__(self) -> None:
        known = self.known
        if self.value.ndim != 1 or (known is not None and known.shape != self.value.shape):
            shape = None if known is None else list(known.shape)
            raise ValueError(
                f"an Answer needs value [Q] and known [Q], got {list(self.value.shape)}, {shape}"
            )
        if known is not None and known.dtype != torch.bool:
            raise ValueError(f"Answer.known must be bool, got {known.dtype}")

    def __len__(self) -> int:
        return self.value.shape[0]

    @property
    def rows(self) -> Index:
        """Which of the Q rows have an answer."""
        if self.known is None or bool(self.known.all()):
            return EVERY_ROW
        return self.known.nonzero().squeeze(1)
