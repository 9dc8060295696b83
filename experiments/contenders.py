"""The policies that are measured, each with its plain NumPy loop and what its rule cannot avoid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from conbandit_torch import (
    ArmCon,
    Bandit,
    CoFineUCB,
    ConLinUCB,
    ConLinUCBBS,
    ConLinUCBMCR,
    ConLinUCBUCB,
    ConThompson,
    ConUCB,
    EpsilonGreedy,
    Greedy,
    HArmCon,
    HConLinUCB,
    HConUCB,
    HLinUCB,
    HVarLCR,
    HVarMRC,
    HVarRS,
    LinThompson,
    LinUCB,
    Synthetic,
    VarLCR,
    VarMRC,
    VarRS,
)
from conbandit_torch.conversation.spanner import spanner
from experiments import conversing_loops, hidden_loops, loops
from experiments.loops import Graph, Linear, World

MakeLoop = Callable[[Graph, int, Any], Linear]


@dataclass(frozen=True)
class Contender:
    """One policy.

    Attributes:
        policy: the class.
        loop: (graph, users, a fresh policy) to the loop that decides alike.
        products: products [A, D] x [D, D] per user-round that the rule cannot avoid; None: its scores need
            none.
        hidden: whether it is of the hidden-feature family.
        arguments: the policy's, where they are not the defaults.
    """

    policy: type[Bandit]
    loop: MakeLoop
    products: int | None
    hidden: bool = False
    arguments: dict[str, Any] = field(default_factory=dict)

    def build(self, environment: Synthetic) -> Bandit:
        """A fresh policy."""
        return self.policy(environment.catalogue, environment.num_users, **self.arguments)


def _plain(kind: type[Linear], **arguments: Any) -> MakeLoop:
    """A loop that needs nothing of the policy."""
    return lambda graph, users, policy: kind(graph, users, **arguments)


def _spanning(graph: Graph, users: int, policy: ConLinUCBBS) -> Linear:
    among = spanner(policy.catalogue.term_features.double()).tolist()
    return conversing_loops.OneLevel(graph, users, rule="random", among=among, alpha=ONE_LEVEL["alpha"])


def _cofine(graph: Graph, users: int, policy: CoFineUCB) -> Linear:
    return loops.CoFine(graph, users, projection=policy.projection.double().numpy(), **COFINE)


def _hidden(kind: type[Linear], **arguments: Any) -> MakeLoop:
    """A loop that starts at the policy's hidden features."""
    return lambda graph, users, policy: kind(
        graph, users, hidden=policy.representation.hidden.double().numpy(), **arguments
    )


# The parameters of the released code, on both sides.
PLAIN: dict[str, Any] = {"ridge": 1.0, "alpha": 0.5}
ONE_LEVEL: dict[str, Any] = {"ridge": 1.0, "alpha": 0.5}
TWO_LEVELS: dict[str, Any] = {"mix": 0.5, "term_ridge": 1.0, "alpha": 0.25, "term_alpha": 0.25}
COFINE: dict[str, Any] = {"alpha": 0.25, "coarse_alpha": 0.25}
HIDDEN: dict[str, Any] = {"hidden_alpha": 0.1, "hidden_ridge": 1.0}

_one = partial(_plain, conversing_loops.OneLevel, **ONE_LEVEL)
_two = partial(_plain, conversing_loops.TwoLevels, **TWO_LEVELS)
_hidden_two = partial(_hidden, hidden_loops.HiddenTwoLevels, **TWO_LEVELS, **HIDDEN)
MRC, LCR = "max_related_confidence", "largest_confidence_reduction"

CONTENDERS: dict[str, Contender] = {
    "LinUCB": Contender(LinUCB, _plain(loops.Linear, **PLAIN), 1, arguments=PLAIN),
    "Arm-Con": Contender(ArmCon, _plain(loops.AskingArms, **PLAIN), 1, arguments=PLAIN),
    "ConUCB": Contender(ConUCB, _two(), 2, arguments=TWO_LEVELS),
    "Var-RS": Contender(VarRS, _two(rule="random"), 2, arguments=TWO_LEVELS),
    "Var-MRC": Contender(VarMRC, _two(rule=MRC), 2, arguments=TWO_LEVELS),
    "Var-LCR": Contender(VarLCR, _two(rule=LCR), 2, arguments=TWO_LEVELS),
    "ConLinUCB": Contender(ConLinUCB, _one(), 1, arguments=ONE_LEVEL),
    "ConLinUCB-MCR": Contender(ConLinUCBMCR, _one(rule="max_confidence_radius"), 1, arguments=ONE_LEVEL),
    "ConLinUCB-UCB": Contender(ConLinUCBUCB, _one(rule="upper_confidence"), 1, arguments=ONE_LEVEL),
    "ConLinUCB-BS": Contender(ConLinUCBBS, _spanning, 1, arguments=ONE_LEVEL),
    "CoFineUCB": Contender(CoFineUCB, _cofine, 1, arguments=COFINE),
    "Greedy": Contender(Greedy, _plain(loops.Linear, alpha=0.0), None),
    "EpsilonGreedy": Contender(EpsilonGreedy, _plain(loops.EpsilonGreedy), None),
    "LinThompson": Contender(LinThompson, _plain(loops.Thompson), None),
    "ConThompson": Contender(ConThompson, _plain(conversing_loops.TwoLevelThompson), None),
    "hLinUCB": Contender(HLinUCB, _hidden(hidden_loops.HiddenLinear, **PLAIN, **HIDDEN), 1, True, PLAIN),
    "hArm-Con": Contender(HArmCon, _hidden(hidden_loops.HiddenAskingArms, **PLAIN, **HIDDEN), 1, True, PLAIN),
    "hConUCB": Contender(HConUCB, _hidden_two(), 2, True, TWO_LEVELS),
    "hVar-RS": Contender(HVarRS, _hidden_two(rule="random"), 2, True, TWO_LEVELS),
    "hVar-MRC": Contender(HVarMRC, _hidden_two(rule=MRC), 2, True, TWO_LEVELS),
    "hVar-LCR": Contender(HVarLCR, _hidden_two(rule=LCR), 2, True, TWO_LEVELS),
    "hConLinUCB": Contender(
        HConLinUCB,
        _hidden(hidden_loops.HiddenOneLevel, rule="max_confidence_radius", **ONE_LEVEL, **HIDDEN),
        1,
        True,
        ONE_LEVEL,
    ),
}


def edges_of(environment: Synthetic) -> list[tuple[int, int, float]]:
    """Arm, key-term and weight of every edge."""
    catalogue = environment.catalogue
    edges = catalogue.terms_of(torch.arange(catalogue.num_arms))
    return list(zip(edges.owner.tolist(), edges.target.tolist(), edges.weight.tolist(), strict=True))


def numpy_side(environment: Synthetic, truth: Synthetic) -> tuple[Graph, World]:
    """What the loops see, and their users; `truth` is the same world with all features seen."""
    edges, terms = edges_of(environment), environment.catalogue.num_terms
    graph = Graph(environment.catalogue.arm_features.double().numpy(), edges, terms)
    X, theta = truth.catalogue.arm_features.double().numpy(), truth.theta.double().numpy()
    return graph, World(X, edges, terms, theta, truth.pool, truth.noise)
