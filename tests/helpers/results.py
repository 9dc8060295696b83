"""Results that nobody ran."""

import numpy as np

from conbandit_torch.results.policies import PolicyResults
from conbandit_torch.running.objective import REGRET


def made_up(objective=REGRET, **asked_and_values):
    """Results whose policies asked so much, and have these values at the end, one a seed."""
    return {
        name: PolicyResults(
            seeds=list(range(len(values))),
            seconds=np.full(len(values), 2.0),
            rounds=np.array([10, 20]),
            metrics={
                objective.column: np.array([[0.0, value] for value in values]),
                "theta_error": np.full((len(values), 2), np.nan),
                "questions": np.array([[0.0, asked]] * len(values)),
            },
            num_users=5,
            objective=objective,
        )
        for name, (asked, values) in asked_and_values.items()
    }
