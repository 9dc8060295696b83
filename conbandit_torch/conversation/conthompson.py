"""Thompson sampling with a conversation."""

from __future__ import annotations

from conbandit_torch.bandits.thompson import LinThompson
from conbandit_torch.conversation.schedules import LogSchedule, Schedule
from conbandit_torch.conversation.term_rules import OptimalTerm, Selection
from conbandit_torch.conversation.two_levels import ConversationMixin
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.models.confidence import Alpha, check_alpha
from conbandit_torch.models.links import Identity, Link
from conbandit_torch.models.representation import Representation


class ConThompson(ConversationMixin, LinThompson):
    """Thompson sampling at both levels of a conversation ([Zhang20], Related Work).

    Rule, with M~, theta~, M, b as in `ConUCB` (Eq. 6):
        sample theta~' ~ N(theta~, v~^2 M~^-1), then theta' ~ N(M^-1 (b + (1-lam) theta~'), v^2 M^-1),
        show argmax_a x^T theta'; ask by Eq. 8.
    The centre is sampled and no width is added.
    Symbols: v `scale`, v~ `term_scale`, lam `mix`, lam~ `term_ridge`, b(t) `schedule`.
    Differs: the paper only sketches it; that key-terms are asked by Eq. 8, not by a sample, is our choice.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        mix: lam, how much the arms' own rewards count against the key-terms' guidance, in (0, 1).
        term_ridge: lam~, weight of the key-term level's penalty.
        scale: factor of the arm-level sample's standard deviation, a number or a theory value.
        term_scale: factor of the key-term-level sample's standard deviation, likewise.
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
        mix: float = 0.5,
        term_ridge: float = 1.0,
        scale: Alpha = 0.1,
        term_scale: Alpha = 0.1,
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
            scale=scale,
            term_alpha=check_alpha("term_scale", term_scale),
            schedule=schedule,
            select=select,
            representation=representation,
            link=link,
            seed=seed,
        )
