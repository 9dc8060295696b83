"""The decisions of published implementations, repeated exactly."""

import numpy as np
import pytest
import torch

from conbandit_torch import ArmCon, ConUCB, LinUCB, LogSchedule, Recorded, VarLCR, play_round
from tests.conftest import GOLDEN

PUBLISHED = {
    "LinUCB": lambda *args: LinUCB(*args, ridge=1.0, alpha=0.5),
    "Arm-Con": lambda *args: ArmCon(*args, ridge=1.0, alpha=0.5),
    "ConUCB": lambda *args: ConUCB(*args, mix=0.5, term_ridge=1.0, alpha=0.25, term_alpha=0.25),
    "Var-LCR": lambda *args: VarLCR(*args, mix=0.5, term_ridge=1.0, alpha=0.25, term_alpha=0.25),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_recorded_decision_is_repeated(name):
    environment = Recorded(GOLDEN / "conucb_trace.npz")
    policy = PUBLISHED[name](environment.catalogue, environment.num_users)
    recorded = environment.decisions(name)
    arms, asked, regret, theta_error, questions = [], [], [], [], []
    for _ in range(environment.length):
        played = play_round(policy, environment)
        arms.append(played.arm_ids)
        regret.append(played.outcome.regret)
        theta_error.append((policy.coefficients() - environment.preferences()).norm(dim=1))
        questions.append(len(played.dialogue))
        for question, _ in played.dialogue:
            if question.terms is not None:
                asked.append(question.terms)
            else:
                asked.append(played.context.arms.gather(1, question.positions[:, None]).squeeze(1))
    np.testing.assert_array_equal(torch.stack(arms, 1), recorded.arms)
    np.testing.assert_allclose(torch.stack(regret, 1), recorded.regret, rtol=0, atol=1e-9)
    np.testing.assert_allclose(torch.stack(theta_error, 1), recorded.theta_error, rtol=0, atol=1e-9)
    if name == "LinUCB":
        assert recorded.asked is None and not asked
    else:
        np.testing.assert_array_equal(torch.stack(asked, 1), recorded.asked)
        assert questions == environment.budget.tolist()


def test_log_schedule_gives_the_recorded_budget():
    budget = Recorded(GOLDEN / "conucb_trace.npz").budget
    total = LogSchedule(5).total(torch.arange(1, len(budget) + 1))
    assert torch.equal(total.long(), budget.cumsum(0))
