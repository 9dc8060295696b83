"""What is measured. The only place where a policy's estimates meet the environment's truth."""

from __future__ import annotations

from dataclasses import fields
from math import isnan, sqrt
from typing import Any

import torch
from torch import Tensor, nn

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.core.attributes import buffer
from conbandit_torch.core.questions import Terms
from conbandit_torch.core.rounds import Round
from conbandit_torch.core.screen import Screen
from conbandit_torch.environments.base import Environment
from conbandit_torch.kernels import kernels_for
from conbandit_torch.running.objective import CTR
from conbandit_torch.running.record import Record
from conbandit_torch.running.user_sums import USER_COLUMNS, UserSums

WINDOW = 500  # counted events in a window of the click-through rate, as in [Zhang20]

_SAVED = tuple(f.name for f in fields(Record) if f.name != "details")


def records_to_tensor(records: list[Record]) -> Tensor:
    """[T, columns] what is needed to write the records again; NaN where there is no number."""
    rows = [[getattr(record, name) for name in _SAVED] for record in records]
    filled = [[float("nan") if value is None else float(value) for value in row] for row in rows]
    return torch.tensor(filled, dtype=torch.float64).reshape(len(records), len(_SAVED))


def records_from_tensor(saved: Tensor) -> list[Record]:
    """The records, without details."""
    if saved.ndim != 2 or saved.shape[1] != len(_SAVED) or not saved.is_floating_point():
        raise ValueError(
            f"records must be floating point, [T, {len(_SAVED)}], got {saved.dtype}, {list(saved.shape)}"
        )
    if saved[:, 0].isnan().any() or saved[:, [0, _SAVED.index("counted")]].isinf().any():
        raise ValueError("a record's round is NaN or infinite, or its number of counted events infinite")
    records = []
    for row in saved.tolist():
        values: dict[str, Any] = {
            name: None if isnan(value) else value for name, value in zip(_SAVED, row, strict=True)
        }
        whole = {name: int(values[name]) for name in ("round", "counted") if values[name] is not None}
        records.append(Record(**values | whole))
    return records


class Metrics(nn.Module):
    """Sums up rounds on the device; numbers leave it only when a record is read.

    Args:
        environment: whose rounds are summed up.
        screen: counts feedback that was not finite.
    """

    # [6] regret so far; regret, arms shown, rewards and their number since the last record; questions so far
    _sums: Tensor = buffer()
    _asked: Tensor = buffer()  # [K] how often each key-term was asked
    _counted: Tensor = buffer()  # [] events of a log that counted, in the order of round and row
    _clicks: Tensor = buffer()  # [W] clicks in each WINDOW of them; empty unless a log is replayed
    _of_users: Tensor = buffer()  # [U, 7] the columns of `UserSums`; empty unless a log is replayed

    def __init__(self, environment: Environment, screen: Screen) -> None:
        super().__init__()
        self._screen = (screen,)  # in a tuple: it is no part of this module
        self._concentrated: tuple[float, dict[str, Tensor]] = (0.0, {})  # by questions, at the last record
        device = environment.catalogue.arm_features.device
        self._processes = environment.processes
        own = torch.tensor(environment.num_users, device=device)
        self.num_users = int(self._processes.sum(own))
        self.register_buffer("_sums", torch.zeros(6, dtype=torch.float64, device=device))
        asked = torch.zeros(environment.catalogue.num_terms, dtype=torch.int64, device=device)
        self.register_buffer("_asked", asked)
        log = environment.logged()
        events = 0 if log is None else log.events
        self.register_buffer("_counted", torch.zeros((), dtype=torch.int64, device=device))
        clicks = torch.zeros(-(-events // WINDOW), dtype=torch.float64, device=device)
        self.register_buffer("_clicks", clicks)
        users = torch.zeros(environment.num_users if events else 0, len(USER_COLUMNS)).double()
        self.register_buffer("_of_users", users.to(device))

    def add(self, played: Round) -> None:
        """Count one round."""
        rewards = [feedback.reward for feedback in played.outcome.feedback]
        reward = rewards[0] if len(rewards) == 1 else torch.cat([self._sums[:0].float(), *rewards])
        regret = played.outcome.regret
        kernels_for(self._sums).tally(self._sums, reward[:0] if regret is None else regret, reward)
        if len(self._clicks):
            place = self._counted + torch.arange(len(reward), device=reward.device)
            self._clicks.index_add_(0, place // WINDOW, reward.double())
            self._counted += len(reward)
            self._add_to_users(played)
        for question, _ in played.dialogue:
            self._sums[5] += len(question)
            for side in question.about.sides():
                if isinstance(side, Terms):
                    self._asked += torch.bincount(side.of, minlength=len(self._asked))

    def read(self, number: int, played: Round, policy: Bandit, environment: Environment) -> Record:
        """The record of round `number`, which was `played` last."""
        off, predicted = _theta_error(policy, environment), _prediction_error(played, policy, environment)
        errors = [torch.zeros_like(self._sums[:2]) if error is None else error for error in (off, predicted)]
        sums = self._processes.sum(torch.cat((self._sums, *errors)))
        total, regret, shown, reward, seen, questions, *errors_of = sums.tolist()
        distance, users, square, candidates = errors_of
        self._sums[1:5] = 0
        concentration = self._concentration(questions)
        counted, ctr, clicked = self._click_through()
        details = policy.diagnostics(played.context) | concentration | clicked
        if self._screen[0].bad_feedback == "skip":
            details["feedback/skipped"] = self._screen[0].skipped
        return Record(
            round=number,
            cumulative_regret=None if played.outcome.regret is None else total / self.num_users,
            regret=None if played.outcome.regret is None else regret / max(shown, 1),
            reward=reward / max(seen, 1),
            theta_error=distance / users if users else None,
            prediction_error=sqrt(square / candidates) if candidates else None,
            questions=questions / self.num_users,
            effective_terms=float(concentration["questions/effective_terms"]) if concentration else None,
            counted=counted,
            ctr=ctr,
            details={tag: value.clone() for tag, value in details.items()},  # the state goes on changing
        )

    def _add_to_users(self, played: Round) -> None:
        """Sums per user; in a round each user has at most one row."""
        sums, rows, feedback = self._of_users, played.context.rows, played.outcome.feedback[0]
        sums[rows, 0] += 1
        seen = feedback.context.rows
        sums[seen, 1] += 1
        sums[seen, 2] += feedback.reward.double()
        weighted = played.outcome.weighted
        if weighted is not None:
            weight, guess = weighted.weight.double(), weighted.guess.double()
            sums[rows, 6] += guess
            gains = (weight, weight.square(), weight * feedback.reward)
            missed = weight * (feedback.reward - guess[weighted.rows])
            sums[seen, 3:] += torch.stack((*gains, missed), dim=1)

    def user_sums(self) -> UserSums:
        """What replay gave, user by user."""
        return UserSums(*self._of_users.cpu().numpy().T.copy())

    def windows(self) -> list[float]:
        """Click-through rate of every full window of counted events."""
        full = int(self._counted) // WINDOW
        rates: list[float] = (self._clicks[:full] / WINDOW).tolist()
        return rates

    def _click_through(self) -> tuple[int | None, float | None, dict[str, Tensor]]:
        """Counted events and their click-through rate so far, and both as tagged numbers."""
        if not len(self._clicks):
            return None, None, {}
        counted = int(self._counted)
        tagged = {"CTR/events counted": self._counted}
        if not counted:
            return counted, None, tagged
        rate = self._clicks.sum() / counted
        tagged[CTR.tag] = rate
        if counted >= WINDOW:
            tagged["CTR/window"] = self._clicks[counted // WINDOW - 1] / WINDOW
        return counted, float(rate), tagged

    def _concentration(self, questions: float) -> dict[str, Tensor]:
        """Which key-terms were asked, and how concentrated the questions are on few of them.

        It is known, if there was no question since the last record.
        """
        if self._concentrated[0] != questions:
            self._concentrated = questions, self._concentrate()
        return self._concentrated[1]

    def _concentrate(self) -> dict[str, Tensor]:
        asked = self._processes.sum(self._asked)
        if not len(asked) or not bool(asked.any()):
            return {}
        share = asked.double() / asked.sum()
        entropy = -torch.special.xlogy(share, share).sum()
        return {
            "questions/distinct_terms": (share > 0).sum(),
            "questions/effective_terms": entropy.exp(),
            "questions/top10_share": share.topk(min(10, len(share))).values.sum(),
            "questions/times_asked": asked,
        }


def _theta_error(policy: Bandit, environment: Environment) -> Tensor | None:
    """[2] sum over users of the distance between estimate and truth, and the number of users."""
    estimate, truth = policy.coefficients(), environment.preferences()
    if estimate is None or truth is None or estimate.shape != truth.shape:
        return None  # a model on more or other features has no counterpart of theta_*
    return _sum_and_number((estimate - truth).norm(dim=1))


def _prediction_error(played: Round, policy: Bandit, environment: Environment) -> Tensor | None:
    """[2] sum over the candidates of the squared error, and the number of candidates."""
    predicted, expected = policy.predict(played.context), environment.expected(played.context)
    if predicted is None or expected is None:
        return None
    return _sum_and_number((predicted - expected).square())


def _sum_and_number(values: Tensor) -> Tensor:
    total = values.sum(dtype=torch.float64)
    return torch.stack((total, torch.full_like(total, values.numel())))
