"""Where the public names are defined, so that one can be imported without all the others.

A name is added in three places: here, in the package's `__all__`, and in its imports for type checkers.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES_OF = {
    "conbandit_torch.bandits.aging": ("DiscountedLinUCB", "WindowedLinUCB"),
    "conbandit_torch.bandits.base": ("Bandit",),
    "conbandit_torch.bandits.cofineucb": ("CoFineUCB",),
    "conbandit_torch.bandits.greedy": (
        "EpsilonGreedy",
        "Greedy",
    ),
    "conbandit_torch.bandits.hlinucb": ("HLinUCB",),
    "conbandit_torch.bandits.linear": ("LinearBandit",),
    "conbandit_torch.bandits.linucb": ("LinUCB",),
    "conbandit_torch.bandits.logistic": ("LogisticThompson", "LogisticUCB"),
    "conbandit_torch.bandits.neural": ("NeuralLinear", "NeuralThompson"),
    "conbandit_torch.bandits.restarts": ("RestartMixin", "RestartingLinUCB"),
    "conbandit_torch.bandits.thompson": ("LinThompson",),
    "conbandit_torch.bandits.uniform": ("Random",),
    "conbandit_torch.callbacks.base": ("Callback",),
    "conbandit_torch.conversation.aging": (
        "DiscountedConLinUCB",
        "DiscountedConUCB",
        "WindowedConLinUCB",
        "WindowedConUCB",
    ),
    "conbandit_torch.conversation.ask_again": ("AskAgainConLinUCB", "AskAgainConUCB"),
    "conbandit_torch.conversation.mixins": ("ArmConversationMixin",),
    "conbandit_torch.conversation.concofineucb": ("ConCoFineUCB",),
    "conbandit_torch.conversation.clime": ("CLiME", "EigenvalueTest", "WeakestDirection"),
    "conbandit_torch.conversation.clisk": ("CLiSK", "PerturbedTerm"),
    "conbandit_torch.conversation.worth": ("WorthAsking",),
    "conbandit_torch.conversation.conlinucb": (
        "ConLinUCB",
        "ConLinUCBBS",
        "ConLinUCBMCR",
        "ConLinUCBUCB",
        "HConLinUCB",
    ),
    "conbandit_torch.conversation.conlogistic": ("ConLogisticThompson", "ConLogisticUCB"),
    "conbandit_torch.conversation.conpe": ("ConPE",),
    "conbandit_torch.conversation.conneural": ("ConNeuralLinear",),
    "conbandit_torch.conversation.conthompson": ("ConThompson",),
    "conbandit_torch.conversation.conucb": (
        "ArmCon",
        "ConUCB",
        "VarLCR",
        "VarMRC",
        "VarRS",
    ),
    "conbandit_torch.conversation.hconucb": ("HArmCon", "HConUCB"),
    "conbandit_torch.conversation.hconucb_variants": ("HVarLCR", "HVarMRC", "HVarRS"),
    "conbandit_torch.conversation.key_terms": ("KeyTermMixin",),
    "conbandit_torch.conversation.one_level": ("OneLevelMixin",),
    "conbandit_torch.conversation.asking": ("Asking",),
    "conbandit_torch.conversation.regret_bound": ("regret_bound",),
    "conbandit_torch.conversation.schedules": (
        "LinearSchedule",
        "LogSchedule",
        "NoConversation",
        "Schedule",
        "WhileUncertain",
    ),
    "conbandit_torch.conversation.spanner": ("BarycentricSpanner",),
    "conbandit_torch.conversation.comparisons": (
        "ComparisonMixin",
        "RelativeConUCB",
    ),
    "conbandit_torch.conversation.graph": (
        "GraphConUCB",
        "GraphMixin",
    ),
    "conbandit_torch.conversation.pair_rules": (
        "BestDifference",
        "BestThenDifference",
        "BestTwoTerms",
        "PairSelection",
    ),
    "conbandit_torch.conversation.term_rules": (
        "LargestConfidenceReduction",
        "MaxConfidenceRadius",
        "MaxRelatedConfidence",
        "OptimalTerm",
        "RandomTerm",
        "Selection",
        "UpperConfidenceTerm",
    ),
    "conbandit_torch.conversation.two_levels": ("ConversationMixin",),
    "conbandit_torch.core.catalogue": ("Catalogue",),
    "conbandit_torch.core.context": ("Context",),
    "conbandit_torch.core.decisions": ("OpenDecisions",),
    "conbandit_torch.core.errors": (
        "ConfigError",
        "DataError",
    ),
    "conbandit_torch.core.questions": (
        "Answer",
        "Arms",
        "Comparison",
        "Question",
        "ShiftedTerms",
        "Terms",
    ),
    "conbandit_torch.core.randomness": ("Stream",),
    "conbandit_torch.core.rounds": (
        "Feedback",
        "Outcome",
        "Round",
    ),
    "conbandit_torch.datasets.base": (
        "Prepared",
        "Reader",
    ),
    "conbandit_torch.datasets.events": ("LoggedEvents",),
    "conbandit_torch.datasets.prepare": ("prepare",),
    "conbandit_torch.datasets.readers.coat": ("Coat",),
    "conbandit_torch.datasets.readers.json_reviews": ("JsonReviews",),
    "conbandit_torch.datasets.readers.kuai": ("Kuai",),
    "conbandit_torch.datasets.readers.lastfm": ("LastFM",),
    "conbandit_torch.datasets.readers.mind": ("MIND",),
    "conbandit_torch.datasets.readers.movielens": ("MovieLens",),
    "conbandit_torch.datasets.readers.movielens_users": ("MovieLensUsers",),
    "conbandit_torch.datasets.readers.open_bandit": ("OpenBandit",),
    "conbandit_torch.datasets.readers.table": ("Table",),
    "conbandit_torch.datasets.readers.yelp": ("Yelp",),
    "conbandit_torch.environments.answers": (
        "AnswerModel",
        "BestItem",
        "BestShare",
        "Biased",
        "Corrupted",
        "DontKnow",
        "Graded",
        "ItemMean",
        "YesNo",
    ),
    "conbandit_torch.environments.base": ("Environment",),
    "conbandit_torch.environments.curved": ("Curved",),
    "conbandit_torch.environments.delays": (
        "Delay",
        "FixedDelay",
        "GeometricDelay",
    ),
    "conbandit_torch.environments.drift": ("AbruptChange", "Drift", "SmoothDrift"),
    "conbandit_torch.environments.ratings": ("Ratings",),
    "conbandit_torch.environments.recorded": ("Recorded",),
    "conbandit_torch.environments.replay.events": ("ReplayEvents",),
    "conbandit_torch.environments.replay.generated": ("GeneratedLog",),
    "conbandit_torch.environments.replay.generated_events": ("GeneratedEvents",),
    "conbandit_torch.environments.replay.protocol": ("Replay",),
    "conbandit_torch.environments.synthetic": ("Synthetic",),
    "conbandit_torch.environments.tastes": ("Tastes",),
    "conbandit_torch.live.recommender": ("Recommender",),
    "conbandit_torch.loop": (
        "Simulation",
        "play_round",
    ),
    "conbandit_torch.models.confidence": (
        "Confidence",
        "Lemma1",
        "Lemma3",
    ),
    "conbandit_torch.models.hidden": ("Hidden",),
    "conbandit_torch.models.hidden_terms": ("HiddenOnTerms",),
    "conbandit_torch.models.refits": ("RefitSchedule",),
    "conbandit_torch.models.history": (
        "Observations",
        "Refit",
    ),
    "conbandit_torch.models.levels": ("Level",),
    "conbandit_torch.models.links": ("Identity", "Link", "Logistic"),
    "conbandit_torch.models.network": ("Layers", "Network"),
    "conbandit_torch.models.representation": (
        "Observed",
        "Representation",
    ),
    "conbandit_torch.models.ridge": ("RidgeRegression",),
    "conbandit_torch.results.off_policy": (
        "LoggedDecisions",
        "off_policy",
    ),
    "conbandit_torch.results.read": ("read_results",),
    "conbandit_torch.results.results": ("Results",),
    "conbandit_torch.running.experiment": (
        "Experiment",
        "JobsFailedError",
    ),
    "conbandit_torch.running.kept": ("load_policy",),
}
PUBLIC = {name: module for module, names in _NAMES_OF.items() for name in names}
"""The module of every public name."""


def public(name: str) -> Any:
    """The public object of this name, imported now if it was not before."""
    return getattr(import_module(PUBLIC[name]), name)
