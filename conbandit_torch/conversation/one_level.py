"""ConLinUCB's conversation: answers enter the regression that rewards enter."""

from __future__ import annotations

from conbandit_torch.conversation.key_terms import KeyTermMixin


class OneLevelMixin(KeyTermMixin):
    """Asks about key-terms, and learns answers like rewards, in any linear base bandit (ConLinUCB).

        class ConLinUCB(OneLevelMixin, LinUCB): ...

    Rule: M += x~ x~^T,  b += r~ x~;  score as the base's.
    Symbols: none of its own; `ridge` is the base's.
    Differs: nothing known.

    Args:
        catalogue: arms and key-terms.
        num_users: U.
        schedule: when to ask.
        select: what to ask.
        base: the base bandit's own arguments.
    """
