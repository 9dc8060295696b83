"""Combinations of mixins and bases that the package does not export."""

from conbandit_torch import (
    ArmConversationMixin,
    CoFineUCB,
    ConversationMixin,
    EpsilonGreedy,
    LinThompson,
)


class BareThompson(ConversationMixin, LinThompson):
    pass


class ArmThompson(ArmConversationMixin, LinThompson):
    pass


class ArmCoFineUCB(ArmConversationMixin, CoFineUCB):
    pass


class ArmEpsilon(ArmConversationMixin, EpsilonGreedy):
    pass
