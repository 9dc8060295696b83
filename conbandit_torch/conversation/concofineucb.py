"""CoFineUCB with a conversation."""

from __future__ import annotations

from conbandit_torch.bandits.cofineucb import CoFineUCB
from conbandit_torch.conversation.mixin import ConversationMixin


class ConCoFineUCB(ConversationMixin, CoFineUCB):
    """CoFineUCB that also asks: the coarse level guides the key-terms', which guides the arms'.

    Rule: as `ConUCB`, with the base's centre in the key-term level's place of 0:
        theta~ = M~^-1 (b~ + lam~ P theta_c),  theta = M^-1 (b + (1-lam) theta~);
        `CoFineUCB`'s second width is added to Eq. 7.
    Symbols: as `ConUCB` and `CoFineUCB`.
    Differs: no paper has it; the widths are as `CoFineUCB` says.
    """
