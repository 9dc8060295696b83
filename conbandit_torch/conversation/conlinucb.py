"""Policies with one level: answers enter the regression that rewards enter."""

from __future__ import annotations

from conbandit_torch.bandits.hlinucb import HLinUCB
from conbandit_torch.bandits.linucb import LinUCB
from conbandit_torch.conversation.estimator import OneLevel
from conbandit_torch.conversation.mixin import ConversationMixin
from conbandit_torch.conversation.selection import MaxConfidenceRadius, UpperConfidenceTerm
from conbandit_torch.conversation.spanner import BarycentricSpanner


class ConLinUCB(ConversationMixin, LinUCB):
    """LinUCB that learns from answers as from rewards (Wang et al., AAAI 2023).

    Rule:
        M = ridge I + sum x x^T + sum x~ x~^T,  b = sum r x + sum r~ x~,  theta = M^-1 b;
        show argmax_a x^T theta + alpha |x|_{M^-1};
        ask argmax_k |X M^-1 x~_k|^2 / (1 + x~_k^T M^-1 x~_k)   (Eq. 8 of [Zhang20], for one level).
    Symbols: b(t) `schedule`.
    Differs: the paper names the rules below; this one has [Zhang20]'s.

    Args:
        conversation: `schedule`, `select`, `ridge` and `seed`, as in `ConversationMixin`, and `alpha`, as in
            `LinUCB`.
    """

    default_estimator = OneLevel


class ConLinUCBMCR(ConLinUCB):
    """ConLinUCB that asks about the key-term it knows least (ConLinUCB-MCR).

    Rule: as `ConLinUCB`, with `MaxConfidenceRadius` in place of Eq. 8.
    Symbols: as `ConLinUCB`.
    Differs: nothing known.
    """

    default_select = MaxConfidenceRadius


class ConLinUCBBS(ConLinUCB):
    """ConLinUCB that asks about a random key-term of a barycentric spanner (ConLinUCB-BS).

    Rule: as `ConLinUCB`, with `BarycentricSpanner` in place of Eq. 8.
    Symbols: as `ConLinUCB`.
    Differs: as `BarycentricSpanner`.
    """

    default_select = BarycentricSpanner


class ConLinUCBUCB(ConLinUCB):
    """ConLinUCB that asks about the key-term that the user may like best (ConLinUCB-UCB).

    Rule: as `ConLinUCB`, with `UpperConfidenceTerm` in place of Eq. 8.
    Symbols: as `ConLinUCB`.
    Differs: nothing known.
    """

    default_select = UpperConfidenceTerm


class HConLinUCB(ConversationMixin, HLinUCB):
    """hLinUCB that learns from answers as from rewards, and asks about what it knows least (ours).

    Rule: as `HConUCB` with one level: theta in the place of theta~, M in that of M~; `MaxConfidenceRadius`.
    Symbols: as `HLinUCB`.
    Differs: no paper has it. It is at its best with `refit_every`.
    """

    default_estimator = OneLevel
    default_select = MaxConfidenceRadius
