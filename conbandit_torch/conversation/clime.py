"""CLiME: questions where an eigenvalue shows that a direction is little explored."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from conbandit_torch.conversation.asking import Asking
from conbandit_torch.conversation.conlinucb import ConLinUCB
from conbandit_torch.conversation.schedules import Schedule, expect_not_negative
from conbandit_torch.conversation.term_rules import Selection
from conbandit_torch.core.algebra import quadratic
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.links import Identity, Link
from conbandit_torch.models.representation import Representation


@dataclass(frozen=True)
class EigenvalueTest(Schedule):
    """Ask, at certain rounds, while some direction is explored too little (CLiME, KDD 2025).

    Rule: at round t = 1, 2, 4, 8, ... (or every so many rounds) ask while `lambda_min(G) < alpha t`, up to
    `per_check` questions per check on average, and `questions` in all.
    Symbols: G is the matrix of the level that answers enter, M with one level, its ridge included.
    Differs: the test is from memory and could not be checked. The paper decides at once how often each
    direction is asked about; here every answer is learned before the eigenvalues are looked at again, which
    needs no guess of how much an answer helps. Some directions no key-term reaches, so questions are capped.

    Args:
        alpha: how fast every eigenvalue is to grow per round.
        questions: the most questions a user is ever asked.
        per_check: the most questions per check, on average since the user's first.
        every: rounds between checks; None: checks at t = 1, 2, 4, 8 and so on.
    """

    alpha: float = 0.1
    questions: int = 50
    per_check: float = 10
    every: int | None = None

    def __post_init__(self) -> None:
        for name in ("alpha", "questions", "per_check"):
            expect_not_negative(name, getattr(self, name))
        if self.every is not None and self.every < 1:
            raise ValueError(f"every must be at least 1, got {self.every}")

    def total(self, rounds: Tensor) -> Tensor:
        """The most questions that could have been asked by the end of round t."""
        powers = torch.frexp(rounds.double()).exponent  # floor(log2 t) + 1
        checks = powers if self.every is None else rounds // self.every
        return (self.per_check * checks.double()).clamp_max(self.questions)

    def due(self, asking: Asking) -> Tensor:
        """[B] whether this is a round of the test, and some direction fails it."""
        rounds = asking.rounds + 1
        checked = rounds & (rounds - 1) == 0 if self.every is None else rounds % self.every == 0
        due = super().due(asking) & checked
        rows = due.nonzero().squeeze(1)
        if len(rows):
            some = asking.take(rows)
            least = torch.linalg.eigvalsh(some.model.gram[some.models])[:, 0]  # ascending
            due[rows] = least < self.alpha * rounds[rows]
        return due


@dataclass(frozen=True)
class WeakestDirection(Selection):
    """The key-term that points most into the direction explored least (CLiME, KDD 2025).

    Rule: argmax `|V^T x~_k|`, V the eigenvector of G's smallest eigenvalue; several, where it repeats.
    Symbols: G is M with one level, M~ with two.
    Differs: from memory, as `EigenvalueTest`. The size counts, not the sign: v and -v are one direction.
    Eigenvalues that differ by no more than rounding count as equal: at first, all of them are the ridge, and
    which eigenvectors they have is chance.
    """

    draws = False

    def scores(self, asking: Asking) -> Tensor:
        """[B, K] how much each key-term points into that direction."""
        values, vectors = torch.linalg.eigh(asking.model.gram[asking.models])  # [B, D] ascending, [B, D, D]
        rounding = 8 * values.shape[1] * torch.finfo(values.dtype).eps * values[:, -1:]
        weakest = vectors * (values <= values[:, :1] + rounding)[:, None]  # [B, D, D] V
        return quadratic(torch.bmm(weakest, weakest.mT), asking.terms())  # |V^T x~|^2


class CLiME(ConLinUCB):
    """ConLinUCB that asks about directions whose eigenvalues are small (CLiME, KDD 2025).

    Rule: as `ConLinUCB`, with `EigenvalueTest` for when to ask and `WeakestDirection` for what to ask.
    Symbols: alpha of the test is `schedule.alpha`.
    Differs: as `EigenvalueTest`.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        ridge: weight of the penalty `|theta|^2`.
        alpha: factor of the arm level's width, a number or a theory value (`Lemma1`).
        schedule: when to ask.
        select: what to ask.
        representation: what the model sees of the arms; None: the catalogue's features.
        link: how means follow from scores: `Identity()`, or `Logistic()` for clicks.
        seed: seed of the policy's own random draws.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        ridge: float = 1.0,
        alpha: Alpha = 0.5,
        schedule: Schedule = EigenvalueTest(),
        select: Selection = WeakestDirection(),
        representation: Representation | None = None,
        link: Link = Identity(),
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            ridge=ridge,
            alpha=alpha,
            schedule=schedule,
            select=select,
            representation=representation,
            link=link,
            seed=seed,
        )
