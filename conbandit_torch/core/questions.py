"""What may be asked."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from conbandit_torch.core.blocks import EVERY_ROW, Index


@dataclass(frozen=True)
class Question:
    """One question each to some rows of a context: about key-terms, or about candidate arms.

    Attributes:
        rows: which rows of the context are asked, Q of them.
        terms: [Q] key-terms asked about, or None.
        positions: [Q] positions among the row's candidates asked about, or None.
    """

    rows: Index
    terms: Tensor | None = None
    positions: Tensor | None = None

    def __post_init__(self) -> None:
        if (self.terms is None) == (self.positions is None):
            raise ValueError("a Question is either about terms or about positions")

    @property
    def about(self) -> Tensor:
        """[Q] the key-terms, or the positions, asked about."""
        asked = self.terms if self.terms is not None else self.positions
        assert asked is not None  # __post_init__'s promise, for the type checker
        return asked

    def __len__(self) -> int:
        return self.about.shape[0]

    def take(self, rows: Index) -> Question:
        """The question to some of its Q rows, for a context of those rows alone."""
        if self.terms is not None:
            return Question(EVERY_ROW, terms=self.terms[rows])
        return Question(EVERY_ROW, positions=self.about[rows])
