"""Bandits on a network that converse."""

from __future__ import annotations

from conbandit_torch.conversation.conucb import ConUCB
from conbandit_torch.conversation.schedules import LogSchedule, Schedule
from conbandit_torch.conversation.term_rules import OptimalTerm, Selection
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.models.confidence import Alpha
from conbandit_torch.models.links import Identity, Link
from conbandit_torch.models.network import Network
from conbandit_torch.models.representation import Representation


class ConNeuralLinear(ConUCB):
    """NeuralLinear guided by a conversation about key-terms (ours).

    Rule: as `ConUCB`, with `phi_a = (x_a, s f_w(x_a))` for x_a, and of a key-term the mean of its arms' phi;
        the network is trained on rewards and answers: see `Network`.
    With one level: `ConLinUCB(representation=Network())`.
    Symbols: lam `mix`, lam~ `term_ridge`, alpha_t `alpha`, alpha~_t `term_alpha`, b(t) `schedule`.
    Differs: no paper has it.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        mix: lam, how much the arms' own rewards count against the key-terms' guidance, in (0, 1).
        term_ridge: lam~, weight of the key-term level's penalty.
        alpha: factor of the arm level's width, a number or a theory value.
        term_alpha: factor of the key-term level's width, a number or a theory value.
        schedule: when to ask.
        select: what to ask.
        representation: the network, with the arguments of its training; None: `Network()`.
        link: how means follow from scores: `Identity()`, or `Logistic()` for clicks.
        seed: seed of the policy's own random draws.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        num_users: int,
        *,
        mix: float = 0.5,
        term_ridge: float = 1.0,
        alpha: Alpha = 0.25,
        term_alpha: Alpha = 0.25,
        schedule: Schedule = LogSchedule(5),
        select: Selection = OptimalTerm(),
        representation: Representation | None = None,
        link: Link = Identity(),
        seed: int = 0,
    ) -> None:
        super().__init__(
            catalogue,
            num_users,
            mix=mix,
            term_ridge=term_ridge,
            alpha=alpha,
            term_alpha=term_alpha,
            schedule=schedule,
            select=select,
            representation=Network() if representation is None else representation,
            link=link,
            seed=seed,
        )
