"""Conversational contextual bandits in PyTorch.

Names are imported when they are first used, so that `conbandit --help` does not wait for torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conbandit_torch.core.names import PUBLIC, public
from conbandit_torch.core.version import VERSION

if TYPE_CHECKING:
    from conbandit_torch.bandits.aging import DiscountedLinUCB, WindowedLinUCB
    from conbandit_torch.bandits.base import Bandit
    from conbandit_torch.bandits.cofineucb import CoFineUCB
    from conbandit_torch.bandits.greedy import EpsilonGreedy, Greedy
    from conbandit_torch.bandits.hlinucb import HLinUCB
    from conbandit_torch.bandits.linear import LinearBandit
    from conbandit_torch.bandits.linucb import LinUCB
    from conbandit_torch.bandits.logistic import LogisticThompson, LogisticUCB
    from conbandit_torch.bandits.neural import NeuralLinear, NeuralThompson
    from conbandit_torch.bandits.restarts import RestartingLinUCB, RestartMixin
    from conbandit_torch.bandits.thompson import LinThompson
    from conbandit_torch.bandits.uniform import Random
    from conbandit_torch.callbacks.base import Callback
    from conbandit_torch.conversation.aging import (
        DiscountedConLinUCB,
        DiscountedConUCB,
        WindowedConLinUCB,
        WindowedConUCB,
    )
    from conbandit_torch.conversation.ask_again import AskAgainConLinUCB, AskAgainConUCB
    from conbandit_torch.conversation.asking import Asking
    from conbandit_torch.conversation.clime import CLiME, EigenvalueTest, WeakestDirection
    from conbandit_torch.conversation.clisk import CLiSK, PerturbedTerm
    from conbandit_torch.conversation.comparisons import ComparisonMixin, RelativeConUCB
    from conbandit_torch.conversation.concofineucb import ConCoFineUCB
    from conbandit_torch.conversation.conlinucb import (
        ConLinUCB,
        ConLinUCBBS,
        ConLinUCBMCR,
        ConLinUCBUCB,
        HConLinUCB,
    )
    from conbandit_torch.conversation.conlogistic import ConLogisticThompson, ConLogisticUCB
    from conbandit_torch.conversation.conneural import ConNeuralLinear
    from conbandit_torch.conversation.conpe import ConPE
    from conbandit_torch.conversation.conthompson import ConThompson
    from conbandit_torch.conversation.conucb import ArmCon, ConUCB, VarLCR, VarMRC, VarRS
    from conbandit_torch.conversation.graph import GraphConUCB, GraphMixin
    from conbandit_torch.conversation.hconucb import HArmCon, HConUCB
    from conbandit_torch.conversation.hconucb_variants import HVarLCR, HVarMRC, HVarRS
    from conbandit_torch.conversation.key_terms import KeyTermMixin
    from conbandit_torch.conversation.mixins import ArmConversationMixin
    from conbandit_torch.conversation.one_level import OneLevelMixin
    from conbandit_torch.conversation.pair_rules import (
        BestDifference,
        BestThenDifference,
        BestTwoTerms,
        PairSelection,
    )
    from conbandit_torch.conversation.regret_bound import regret_bound
    from conbandit_torch.conversation.relative import HRelativeConUCB, RelativeConLogisticUCB
    from conbandit_torch.conversation.schedules import (
        LinearSchedule,
        LogSchedule,
        NoConversation,
        Schedule,
        WhileUncertain,
    )
    from conbandit_torch.conversation.spanner import BarycentricSpanner
    from conbandit_torch.conversation.term_rules import (
        LargestConfidenceReduction,
        MaxConfidenceRadius,
        MaxRelatedConfidence,
        OptimalTerm,
        RandomTerm,
        Selection,
        UpperConfidenceTerm,
    )
    from conbandit_torch.conversation.two_levels import ConversationMixin
    from conbandit_torch.conversation.worth import WorthAsking
    from conbandit_torch.core.catalogue import Catalogue
    from conbandit_torch.core.context import Context
    from conbandit_torch.core.decisions import OpenDecisions
    from conbandit_torch.core.errors import ConfigError, DataError
    from conbandit_torch.core.questions import Answer, Arms, Comparison, Question, ShiftedTerms, Terms
    from conbandit_torch.core.randomness import Stream
    from conbandit_torch.core.rounds import Feedback, Outcome, Round
    from conbandit_torch.datasets.base import Prepared, Reader
    from conbandit_torch.datasets.events import LoggedEvents
    from conbandit_torch.datasets.key_terms import Clusters, KeyTerms
    from conbandit_torch.datasets.prepare import prepare
    from conbandit_torch.datasets.readers.coat import Coat
    from conbandit_torch.datasets.readers.json_reviews import JsonReviews
    from conbandit_torch.datasets.readers.kuai import Kuai
    from conbandit_torch.datasets.readers.lastfm import LastFM
    from conbandit_torch.datasets.readers.mind import MIND
    from conbandit_torch.datasets.readers.movielens import MovieLens
    from conbandit_torch.datasets.readers.movielens_users import MovieLensUsers
    from conbandit_torch.datasets.readers.open_bandit import OpenBandit
    from conbandit_torch.datasets.readers.table import Table
    from conbandit_torch.datasets.readers.yelp import Yelp
    from conbandit_torch.environments.answers import (
        AnswerModel,
        BestItem,
        BestShare,
        Biased,
        Corrupted,
        DontKnow,
        Graded,
        ItemMean,
        YesNo,
    )
    from conbandit_torch.environments.base import Environment
    from conbandit_torch.environments.curved import Curved
    from conbandit_torch.environments.delays import Delay, FixedDelay, GeometricDelay
    from conbandit_torch.environments.drift import AbruptChange, Drift, SmoothDrift
    from conbandit_torch.environments.ratings import Ratings
    from conbandit_torch.environments.recorded import Recorded
    from conbandit_torch.environments.replay.events import ReplayEvents
    from conbandit_torch.environments.replay.generated import GeneratedLog
    from conbandit_torch.environments.replay.generated_events import GeneratedEvents
    from conbandit_torch.environments.replay.protocol import Replay
    from conbandit_torch.environments.synthetic import Synthetic
    from conbandit_torch.environments.tastes import Tastes
    from conbandit_torch.live.recommender import Recommender
    from conbandit_torch.loop import Simulation, play_round
    from conbandit_torch.models.confidence import Confidence, Lemma1, Lemma3
    from conbandit_torch.models.hidden import Hidden
    from conbandit_torch.models.hidden_terms import HiddenOnTerms
    from conbandit_torch.models.history import Observations, Refit
    from conbandit_torch.models.levels import Level
    from conbandit_torch.models.links import Identity, Link, Logistic
    from conbandit_torch.models.network import Layers, Network
    from conbandit_torch.models.refits import RefitSchedule
    from conbandit_torch.models.representation import Observed, Representation
    from conbandit_torch.models.ridge import RidgeRegression
    from conbandit_torch.results.off_policy import LoggedDecisions, off_policy
    from conbandit_torch.results.read import read_results
    from conbandit_torch.results.results import Results
    from conbandit_torch.running.experiment import Experiment, JobsFailedError
    from conbandit_torch.running.kept import load_policy

__version__ = VERSION

__all__ = [
    "MIND",
    "AbruptChange",
    "Answer",
    "AnswerModel",
    "ArmCon",
    "ArmConversationMixin",
    "Arms",
    "AskAgainConLinUCB",
    "AskAgainConUCB",
    "Asking",
    "Bandit",
    "BarycentricSpanner",
    "BestDifference",
    "BestItem",
    "BestShare",
    "BestThenDifference",
    "BestTwoTerms",
    "Biased",
    "CLiME",
    "CLiSK",
    "Callback",
    "Catalogue",
    "Clusters",
    "CoFineUCB",
    "Coat",
    "Comparison",
    "ComparisonMixin",
    "ConCoFineUCB",
    "ConLinUCB",
    "ConLinUCBBS",
    "ConLinUCBMCR",
    "ConLinUCBUCB",
    "ConLogisticThompson",
    "ConLogisticUCB",
    "ConNeuralLinear",
    "ConPE",
    "ConThompson",
    "ConUCB",
    "Confidence",
    "ConfigError",
    "Context",
    "ConversationMixin",
    "Corrupted",
    "Curved",
    "DataError",
    "Delay",
    "DiscountedConLinUCB",
    "DiscountedConUCB",
    "DiscountedLinUCB",
    "DontKnow",
    "Drift",
    "EigenvalueTest",
    "Environment",
    "EpsilonGreedy",
    "Experiment",
    "Feedback",
    "FixedDelay",
    "GeneratedEvents",
    "GeneratedLog",
    "GeometricDelay",
    "Graded",
    "GraphConUCB",
    "GraphMixin",
    "Greedy",
    "HArmCon",
    "HConLinUCB",
    "HConUCB",
    "HLinUCB",
    "HRelativeConUCB",
    "HVarLCR",
    "HVarMRC",
    "HVarRS",
    "Hidden",
    "HiddenOnTerms",
    "Identity",
    "ItemMean",
    "JobsFailedError",
    "JsonReviews",
    "KeyTermMixin",
    "KeyTerms",
    "Kuai",
    "LargestConfidenceReduction",
    "LastFM",
    "Layers",
    "Lemma1",
    "Lemma3",
    "Level",
    "LinThompson",
    "LinUCB",
    "LinearBandit",
    "LinearSchedule",
    "Link",
    "LogSchedule",
    "LoggedDecisions",
    "LoggedEvents",
    "Logistic",
    "LogisticThompson",
    "LogisticUCB",
    "MaxConfidenceRadius",
    "MaxRelatedConfidence",
    "MovieLens",
    "MovieLensUsers",
    "Network",
    "NeuralLinear",
    "NeuralThompson",
    "NoConversation",
    "Observations",
    "Observed",
    "OneLevelMixin",
    "OpenBandit",
    "OpenDecisions",
    "OptimalTerm",
    "Outcome",
    "PairSelection",
    "PerturbedTerm",
    "Prepared",
    "Question",
    "Random",
    "RandomTerm",
    "Ratings",
    "Reader",
    "Recommender",
    "Recorded",
    "Refit",
    "RefitSchedule",
    "RelativeConLogisticUCB",
    "RelativeConUCB",
    "Replay",
    "ReplayEvents",
    "Representation",
    "RestartMixin",
    "RestartingLinUCB",
    "Results",
    "RidgeRegression",
    "Round",
    "Schedule",
    "Selection",
    "ShiftedTerms",
    "Simulation",
    "SmoothDrift",
    "Stream",
    "Synthetic",
    "Table",
    "Tastes",
    "Terms",
    "UpperConfidenceTerm",
    "VarLCR",
    "VarMRC",
    "VarRS",
    "WeakestDirection",
    "WhileUncertain",
    "WindowedConLinUCB",
    "WindowedConUCB",
    "WindowedLinUCB",
    "WorthAsking",
    "Yelp",
    "YesNo",
    "__version__",
    "load_policy",
    "off_policy",
    "play_round",
    "prepare",
    "read_results",
    "regret_bound",
]


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, public(name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
