"""What is measured. The only place where a policy's estimates meet the environment's truth."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.environments.base import Environment
from conbandit_torch.records import Round


@dataclass
class Record:
    """The metrics at one round; None where a policy or environment has no such number.

    Attributes:
        round: rounds played.
        cumulative_regret: regret so far, mean per user (Eq. 1).
        regret: regret per shown arm since the last record.
        reward: reward per shown arm since the last record.
        theta_error: mean over users of `|theta - theta_*|`.
        prediction_error: root mean square of `x^T theta - E[r]` over this round's candidates.
        questions: questions so far, mean per user.
        effective_terms: exponential of the entropy of the key-terms asked so far: K if all were asked
            alike, 1 if only one was.
        seconds: wall-clock time so far.
        details: further tagged numbers; those with more than one value are for histograms.
    """

    round: int
    cumulative_regret: float
    regret: float
    reward: float
    theta_error: float | None
    prediction_error: float | None
    questions: float
    effective_terms: float | None = None
    seconds: float = 0.0
    details: dict[str, Tensor] = field(default_factory=dict)


class Metrics:
    """Sums up rounds on the device; numbers leave it only when a record is read.

    Args:
        environment: whose rounds are summed up.
    """

    def __init__(self, environment: Environment) -> None:
        device = environment.catalogue.arm_features.device
        self._num_users = environment.num_users
        # Regret so far; regret, reward and rows since the last record; questions so far.
        self._sums = torch.zeros(5, dtype=torch.float64, device=device)
        self._asked = torch.zeros(environment.catalogue.num_terms, dtype=torch.int64, device=device)

    def add(self, played: Round) -> None:
        """Count one round."""
        outcome = played.outcome
        regret, reward = outcome.regret[outcome.rows], outcome.reward[outcome.rows]
        total = regret.sum(dtype=torch.float64)
        self._sums[0] += total
        self._sums[1] += total
        self._sums[2] += reward.sum(dtype=torch.float64)
        self._sums[3] += len(reward)
        for question, _ in played.dialogue:
            self._sums[4] += len(question)
            if question.terms is not None:
                self._asked += torch.bincount(question.terms, minlength=len(self._asked))

    def read(self, number: int, played: Round, policy: Bandit, environment: Environment) -> Record:
        """The record of round `number`, which was `played` last."""
        total, regret, reward, rows, questions = self._sums.tolist()
        self._sums[1:4] = 0
        rows = max(rows, 1)
        concentration = self._concentration()
        details = policy.diagnostics(played.context) | concentration
        return Record(
            round=number,
            cumulative_regret=total / self._num_users,
            regret=regret / rows,
            reward=reward / rows,
            theta_error=_theta_error(policy, environment),
            prediction_error=_prediction_error(played, policy, environment),
            questions=questions / self._num_users,
            effective_terms=float(concentration["questions/effective_terms"]) if concentration else None,
            details={tag: value.clone() for tag, value in details.items()},  # the state goes on changing
        )

    def _concentration(self) -> dict[str, Tensor]:
        """Which key-terms were asked, and how concentrated the questions are on few of them."""
        if not len(self._asked) or not bool(self._asked.any()):
            return {}
        share = self._asked.double() / self._asked.sum()
        entropy = -torch.special.xlogy(share, share).sum()
        return {
            "questions/distinct_terms": (share > 0).sum(),
            "questions/effective_terms": entropy.exp(),
            "questions/top10_share": share.topk(min(10, len(share))).values.sum(),
            "questions/times_asked": self._asked,
        }


def _theta_error(policy: Bandit, environment: Environment) -> float | None:
    estimate, truth = policy.coefficients(), environment.preferences()
    if estimate is None or truth is None or estimate.shape != truth.shape:
        return None  # a model on more or other features has no counterpart of theta_*
    return float((estimate - truth).norm(dim=1).mean())


def _prediction_error(played: Round, policy: Bandit, environment: Environment) -> float | None:
    predicted = policy.predict(played.context)
    if predicted is None:
        return None
    return float((predicted - environment.expected(played.context)).square().mean().sqrt())
