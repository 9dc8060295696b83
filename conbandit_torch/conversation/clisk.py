"""CLiSK: key-terms are perturbed before one is chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from conbandit_torch.conversation.asking import Asking
from conbandit_torch.conversation.conlinucb import ConLinUCB
from conbandit_torch.conversation.mixins import checked_part
from conbandit_torch.conversation.schedules import LogSchedule, Schedule
from conbandit_torch.conversation.term_rules import Selection
from conbandit_torch.core.blocks import rows_per_block
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.questions import About, ShiftedTerms, Terms
from conbandit_torch.models.confidence import Alpha


@dataclass(frozen=True)
class PerturbedTerm(Selection):
    """The key-term that the user is expected to like best, after a random shift of each (CLiSK).

    Rule: argmax `(x~_k + e_k)^T theta`; every coordinate of e_k is N(0, rho^2), truncated to [-R, R].
    Symbols: rho `scale`, R `bound`; theta is that of the level that answers enter.
    Differs: the values of rho and R are ours. The paper has one level; two are our extension.

    Args:
        scale: rho, standard deviation of the shifts before they are truncated.
        bound: R, the largest shift of a coordinate.
    """

    scale: float = 0.1
    bound: float = 0.2

    def __post_init__(self) -> None:
        for name in ("scale", "bound"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must be above 0 and finite, got {getattr(self, name)}")

    def scores(self, asking: Asking) -> Tensor:
        """[B, K] what the shifted key-terms are expected to be worth."""
        number = asking.catalogue.num_terms
        every = torch.arange(number, device=asking.asked.device)
        rows = rows_per_block(number * asking.terms().shape[1])
        runs = [asking.take(slice(start, start + rows)) for start in range(0, len(asking), rows)]
        return torch.cat([self._scores(run, every.expand(len(run), -1)) for run in runs])

    def _scores(self, asking: Asking, terms: Tensor) -> Tensor:
        theta = asking.theta()  # [B, D]
        return theta @ asking.terms().T + torch.bmm(self.shifts(asking, terms), theta[:, :, None]).squeeze(2)

    def shifts(self, asking: Asking, terms: Tensor) -> Tensor:
        """[B, n, D] e_k of key-terms [B, n], for the users' present questions."""
        number, dim = asking.catalogue.num_terms, asking.terms().shape[1]
        counter = asking.asked[:, None] * number + terms  # one per user, question and key-term
        users = asking.context.users[:, None].expand_as(terms)
        uniform = asking.stream("shift").uniform(users.flatten(), counter.flatten(), dim)
        low = torch.special.ndtr(uniform.new_tensor(-self.bound / self.scale))
        normal = torch.special.ndtri(low + (1 - 2 * low) * uniform)
        shifts: Tensor = (self.scale * normal).clamp(-self.bound, self.bound)
        return shifts.view(*terms.shape, dim).to(asking.terms())


class CLiSK(ConLinUCB):
    """ConLinUCB that chooses among randomly shifted key-terms (CLiSK, KDD 2025).

    Rule: as `ConLinUCB`, but
        ask k = argmax_k (x~_k + e_k)^T theta, with `PerturbedTerm`;
        M += z z^T,  b += r~ z,  where z is x~_k, or x~_k + e_k as published.
    Symbols: rho and R are those of `perturb`; b(t) `schedule`.
    Differs: a person can be asked about a key-term, not about a vector near it. So by default only the choice
    is perturbed. With `ask_about="perturbed"` answer and update are about x~_k + e_k, as published; this
    needs an environment that is linear in the features seen. Written from the paper's abstract and a summary:
    its schedule and its parameters could not be checked.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        ridge: weight of the penalty `|theta|^2`.
        alpha: factor of the arm level's width, a number or a theory value (`Lemma1`).
        schedule: when to ask.
        perturb: how key-terms are shifted.
        ask_about: "term": the key-term that was chosen; "perturbed": the shifted vector, as published.
        seed: seed of the policy's own random draws.
    """

    not_arguments: ClassVar[dict[str, str]] = {
        "representation": "shifts are in units of the catalogue's features",
        "link": "an answer about a shifted vector is learned by least squares, for linear means",
    }

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        ridge: float = 1.0,
        alpha: Alpha = 0.5,
        schedule: Schedule = LogSchedule(5),
        perturb: PerturbedTerm = PerturbedTerm(),
        ask_about: Literal["term", "perturbed"] = "term",
        seed: int = 0,
    ) -> None:
        if ask_about not in ("term", "perturbed"):
            raise ValueError(f"ask_about must be 'term' or 'perturbed', got {ask_about!r}")
        self._perturb = checked_part("perturb", PerturbedTerm, perturb)
        self._ask_about = ask_about
        super().__init__(
            catalogue, num_users, ridge=ridge, alpha=alpha, schedule=schedule, select=perturb, seed=seed
        )

    def question(self, asking: Asking) -> About:
        """The key-terms that are chosen, or as published the vectors near them."""
        terms = self.select(asking)
        if self._ask_about == "term":
            return Terms(terms)
        return ShiftedTerms(terms, self._perturb.shifts(asking, terms[:, None]).squeeze(1))
