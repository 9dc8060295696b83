"""Answers that spread over similar key-terms, for any conversing bandit."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from conbandit_torch.bandits.linucb import LinUCB
from conbandit_torch.conversation.key_terms import KeyTermMixin
from conbandit_torch.conversation.schedules import LogSchedule, Schedule
from conbandit_torch.conversation.term_rules import OptimalTerm, Selection
from conbandit_torch.conversation.two_levels import ConversationMixin
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.context import Context
from conbandit_torch.core.questions import About, Terms
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.representation import Representation


class GraphMixin(KeyTermMixin):
    """Learns of an answer about a key-term something about every key-term that resembles it.

    It stands left of the mixin that says where answers go:

        class GraphConUCB(GraphMixin, ConversationMixin, LinUCB): ...

    Rule: of an answer y about k, for every l with S_kl > 0:  G += S_kl x~_l x~_l^T,  b += S_kl y x~_l.
    Symbols: S `similarity`, with S_kk = 1; G and b are of the level that answers enter.
    Differs: see `GraphConUCB`.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        similarity: [K, K] S, from 0 to 1; None: that of `term_similarity`.
        as_released: as the released code does: full weight in G, and, in the round of an answer, a theta that
            does not know it yet.
        base: arguments of the mixin and the base bandit to its right.
    """

    similarity: Tensor  # [K, K]
    stale_theta: Tensor  # [U, D] theta as of the users' last rewards

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        similarity: Tensor | None = None,
        as_released: bool = False,
        **base: Any,
    ) -> None:
        super().__init__(catalogue, num_users, **base)
        if self.representation.learns:
            raise ValueError(
                f"{type(self).__name__} spreads answers with weights, which a representation that learns "
                f"({type(self.representation).__name__}) has no log of: give one that does not learn"
            )
        if not self.link.is_linear:
            raise ValueError(
                f"{type(self).__name__} learns answers of similar key-terms by least squares with weights, "
                f"which are for linear means, not for those of {self.link!r}: use the link Identity()"
            )
        if similarity is None:
            similarity = term_similarity(catalogue)
        size = catalogue.num_terms
        given = similarity.to(catalogue.arm_features)
        if given.shape != (size, size):
            raise ValueError(f"similarity must be [K, K] = [{size}, {size}], got {list(given.shape)}")
        if not bool(((given >= 0) & (given <= 1)).all()) or not bool((given.diagonal() == 1).all()):
            raise ValueError("similarity must be from 0 to 1, and 1 of a key-term with itself")
        self.as_released = as_released
        self.register_buffer("similarity", given)
        if as_released:
            self.register_rows("stale_theta", catalogue.arm_features.new_zeros(self.arm_model.dim))

    def learn_answer(self, context: Context, about: About, value: Tensor) -> None:
        """Learn the answers about all similar key-terms, at the level that answers enter."""
        if not isinstance(about, Terms):
            raise ValueError(f"{type(self).__name__} asks about key-terms, got {type(about).__name__}")
        near = self.similarity[about.of]  # [Q, K]
        row, term = near.nonzero(as_tuple=True)  # [E] each
        weight, models = near[row, term], self.models_of(context.take(row).who)
        x, target = self.representation.terms(term), value[row]
        model = self.levels()[self.answer_level].model
        if self.as_released:
            model.update(models, x, weight * target)
        else:
            model.update(models, x, target, weight)

    def evidence(self, about: About, value: Tensor) -> Tensor:
        """[Q, D] `sum_l S_kl y x~_l`."""
        return value[:, None] * (self.similarity[about.ids().squeeze(1)] @ self.representation.terms())

    def learn(self, context: Context, arm: Tensor, reward: Tensor) -> None:
        """Learn the rewards; theta then knows all answers."""
        super().learn(context, arm, reward)
        if self.as_released:
            self.stale_theta[context.who] = self.theta(context.who)

    def preference(self, context: Context) -> Tensor:
        """[B, D] theta; as released, that of the users' last rewards."""
        return self.stale_theta[context.who] if self.as_released else super().preference(context)


class GraphConUCB(GraphMixin, ConversationMixin, LinUCB):
    """ConUCB that spreads answers over similar key-terms (WWW 2022).

    Rule: arms as in `ConUCB` (Eq. 6 and 7); of an answer y about k, for every l with S_kl > 0:
        M~ += S_kl x~_l x~_l^T,  b~ += S_kl y x~_l.
    Symbols: S `similarity`; lam `mix`, lam~ `term_ridge`, alpha `alpha`, alpha~ `term_alpha`.
    Differs: released code gives M~ the full weight 1, which is over-confident, and chooses the arm of a round
    with a theta that does not know the round's answers yet; `as_released` does both. Its sampler of questions
    rests on an exact tie that rounding decides, and is left out: `select` takes any rule.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        similarity: [K, K] S, from 0 to 1; None: that of `term_similarity`.
        as_released: as the released code does, see above.
        mix: lam, how much the arms' own rewards count against the key-terms' guidance, in (0, 1).
        term_ridge: lam~, weight of the key-term level's penalty.
        alpha: factor of the arm level's width, a number or a theory value (`Lemma1`).
        term_alpha: factor of the key-term level's width, a number or a theory value (`Lemma3`).
        schedule: when to ask.
        select: what to ask.
        representation: what the model sees of the arms; None: the catalogue's features.
        seed: seed of the policy's own random draws.
    """

    not_arguments: ClassVar[dict[str, str]] = {
        "link": "answers of similar key-terms are learned by least squares with weights, for linear means"
    }

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        similarity: Tensor | None = None,
        as_released: bool = False,
        mix: float = 0.5,
        term_ridge: float = 1.0,
        alpha: Alpha = 0.25,
        term_alpha: Alpha = 0.25,
        schedule: Schedule = LogSchedule(5),
        select: Selection = OptimalTerm(),
        representation: Representation | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            similarity=similarity,
            as_released=as_released,
            mix=mix,
            term_ridge=term_ridge,
            alpha=alpha,
            term_alpha=term_alpha,
            schedule=schedule,
            select=select,
            representation=representation,
            seed=seed,
        )


def term_similarity(catalogue: Catalogue) -> Tensor:
    """[K, K] how much key-terms resemble each other, as GraphConUCB's released code has it.

    `S_kl = 0.5 / (n_k + n_l - 1) + 0.5 cos(x~_k, x~_l)` for key-terms that share an arm, n_k being the number
    of key-terms that share an arm with k, itself included; cosines below 0.001 count as 0. Others have 0, and
    S_kk = 1.
    """
    features = catalogue.terms().double()
    edges = catalogue.terms_of(catalogue.all_arms)
    size = (catalogue.num_arms, catalogue.num_terms)
    places, ones = torch.stack((edges.owner, edges.target)), torch.ones_like(edges.weight).double()
    has = torch.sparse_coo_tensor(places, ones, size, check_invariants=False)
    together = torch.sparse.mm(has.t(), has).to_dense() > 0  # [K, K]
    number = together.sum(1).double()
    direction = torch.nn.functional.normalize(features, dim=1)
    cosine = direction @ direction.T
    cosine = torch.where(cosine < 0.001, 0.0, cosine)
    found: Tensor = together * (0.5 / (number[:, None] + number[None] - 1) + 0.5 * cosine)
    return found.fill_diagonal_(1).clamp(0, 1).to(catalogue.arm_features)
