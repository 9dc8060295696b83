"""The decisions of published implementations, repeated exactly."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from conbandit_torch import (
    ArmCon,
    BestDifference,
    BestThenDifference,
    BestTwoTerms,
    ConLinUCB,
    ConLinUCBBS,
    ConLinUCBMCR,
    ConLinUCBUCB,
    ConUCB,
    GraphConUCB,
    LinUCB,
    LogSchedule,
    Recorded,
    RelativeConUCB,
    Schedule,
    Selection,
    UpperConfidenceTerm,
    VarLCR,
    play_round,
)
from conbandit_torch.conversation.graph import term_similarity
from conbandit_torch.kernels import using
from tests.conftest import GOLDEN


class Tenths(Schedule):
    """`b(t) = int(0.1 (t - 1))`, as released with ConLinUCB."""

    def total(self, rounds):
        return 0.1 * (rounds - 1).double()


@dataclass(frozen=True)
class Given(Selection):
    """Asks what was asked: `terms` [U, b(T)], by the user's question."""

    terms: torch.Tensor

    def scores(self, asking):
        drawn = self.terms[asking.context.users, asking.asked]
        return torch.nn.functional.one_hot(drawn, asking.catalogue.num_terms).double()


def recorded_draws():
    with np.load(GOLDEN / "conlinucb_trace.npz") as trace:
        return Given(torch.from_numpy(trace["spanner"][trace["spanner_draws"]]))


def relative(learn_as, pairs):
    return lambda *args: RelativeConUCB(*args, learn_as=learn_as, pairs=pairs, **TWO_LEVELS)


TWO_LEVELS = {"mix": 0.5, "term_ridge": 1.0, "alpha": 0.25, "term_alpha": 0.25}
ONE_LEVEL = {"ridge": 0.15, "alpha": 0.1, "schedule": Tenths()}
UCB = {"ridge": 0.2, "alpha": 0.1, "schedule": Tenths(), "select": UpperConfidenceTerm(0.1)}
PUBLISHED = {
    ("conucb", "LinUCB"): lambda *args: LinUCB(*args, ridge=1.0, alpha=0.5),
    ("conucb", "Arm-Con"): lambda *args: ArmCon(*args, ridge=1.0, alpha=0.5),
    ("conucb", "ConUCB"): lambda *args: ConUCB(*args, **TWO_LEVELS),
    ("conucb", "Var-LCR"): lambda *args: VarLCR(*args, **TWO_LEVELS),
    ("conlinucb", "LinUCB"): lambda *args: LinUCB(*args, ridge=1.2, alpha=0.5),
    ("conlinucb", "ConLinUCB-MCR"): lambda *args: ConLinUCBMCR(*args, **ONE_LEVEL),
    ("conlinucb", "ConLinUCB-UCB"): lambda *args: ConLinUCBUCB(*args, **UCB),
    ("conlinucb", "ConLinUCB-BS"): lambda *args: ConLinUCBBS(*args, select=recorded_draws(), **ONE_LEVEL),
    ("conlinucb", "ConLinUCB-Eq8"): lambda *args: ConLinUCB(*args, **ONE_LEVEL),
    ("relativeconucb", "LinUCB"): lambda *args: LinUCB(*args, ridge=1.0, alpha=0.5),
    ("relativeconucb", "ConUCB"): lambda *args: ConUCB(*args, **TWO_LEVELS),
}
for where, related in (("", True), ("-all", False)):  # key-terms of the candidates, or any
    two = BestTwoTerms(related=related, distinct=False)
    PUBLISHED |= {
        ("relativeconucb", f"RelativeConUCB-Pos{where}"): relative("winner", two),
        ("relativeconucb", f"RelativeConUCB-PosNeg{where}"): relative("both", two),
        ("relativeconucb", f"RelativeConUCB-DifferenceFast{where}"): relative(
            "difference", BestThenDifference(related=related)
        ),
    }


def graph(*args):
    with np.load(GOLDEN / "graphconucb_trace.npz") as trace:
        drawn = torch.from_numpy(trace["design"][trace["design_draws"]])
        similarity = torch.from_numpy(trace["similarity"])
    return GraphConUCB(*args, similarity=similarity, as_released=True, select=Given(drawn), **TWO_LEVELS)


PUBLISHED["graphconucb", "GraphConUCB"] = graph
PUBLISHED["relativeconucb", "RelativeConUCB-Difference"] = relative("difference", BestDifference())


def recorded(trace):
    return Recorded(GOLDEN / f"{trace}_trace.npz")


@pytest.mark.parametrize("kernels", ["compiled", pytest.param("torch", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("trace", "name"), PUBLISHED, ids=" ".join)
def test_every_recorded_decision_is_repeated(trace, name, kernels):
    with using(kernels):
        assert_every_recorded_decision_is_repeated(trace, name)


def assert_every_recorded_decision_is_repeated(trace, name):
    environment = recorded(trace)
    policy = PUBLISHED[trace, name](environment.catalogue, environment.num_users)
    published = environment.decisions(name)
    arms, asked, regret, theta_error, questions, first_wins = [], [], [], [], [], []
    for _ in range(environment.length):
        played = play_round(policy, environment)
        arms.append(played.arm_ids)
        regret.append(played.outcome.regret)
        theta_error.append((policy.coefficients() - environment.preferences()).norm(dim=1))
        questions.append(len(played.dialogue))
        asked += [question.about.ids() for question, _ in played.dialogue]
        first_wins += [answer.value > 0.5 for _, answer in played.dialogue]
    np.testing.assert_array_equal(torch.stack(arms, 1), published.arms)
    np.testing.assert_allclose(torch.stack(regret, 1), published.regret, rtol=0, atol=1e-9)
    np.testing.assert_allclose(torch.stack(theta_error, 1), published.theta_error, rtol=0, atol=1e-9)
    if name == "LinUCB":
        assert published.asked is None and not asked
    else:
        np.testing.assert_array_equal(torch.stack(asked, 1).squeeze(2), published.asked)
        if published.first_wins is not None:
            np.testing.assert_array_equal(torch.stack(first_wins, 1), published.first_wins)
        assert questions == environment.budget.tolist()


@pytest.mark.parametrize("trace", ["conucb", "conlinucb", "relativeconucb", "graphconucb"])
def test_every_recorded_policy_is_repeated(trace):
    assert {*recorded(trace).recorded_policies} == {name for file, name in PUBLISHED if file == trace}


@pytest.mark.parametrize(("trace", "schedule"), [("conucb", LogSchedule(5)), ("conlinucb", Tenths())])
def test_the_schedule_gives_the_recorded_budget(trace, schedule):
    budget = recorded(trace).budget
    total = schedule.total(torch.arange(1, len(budget) + 1))
    assert torch.equal(total.long(), budget.cumsum(0))


def test_similarity_is_that_of_the_recorded_graph():
    with np.load(GOLDEN / "graphconucb_trace.npz") as trace:
        expected = torch.from_numpy(trace["similarity"])
    found = term_similarity(recorded("graphconucb").catalogue)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)
