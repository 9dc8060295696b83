"""From the runs of a leaderboard to its numbers: scores, ranks over tasks, verdicts on claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any, Literal

import numpy as np

from conbandit_torch.leaderboard.board import Board, Claim, Task
from conbandit_torch.leaderboard.play import FAILED, FOUND, PUBLISHED, TUNED, read_json
from conbandit_torch.results.logs import UserIntervals
from conbandit_torch.results.paired import LEVEL, holm, paired_p
from conbandit_torch.results.policies import PolicyResults
from conbandit_torch.results.read import read_results
from conbandit_torch.running.folder import RESULT
from conbandit_torch.running.objective import REGRET, Objective

_RESAMPLES = 4000  # of the seeds, for the ranks' intervals

Verdict = Literal["holds", "not separated", "reversed", "not run"]


@dataclass(frozen=True)
class Score:
    """What a policy did on a task with some parameters.

    Attributes:
        policy: its name.
        values: [S] what it is judged by, of every seed of the evaluation.
        half: half-width of the 95 % interval of their mean.
        questions: asked per user.
        micros: wall-clock microseconds per user and round.
    """

    policy: str
    values: np.ndarray
    half: float
    questions: float
    micros: float

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return float(self.values.mean())


@dataclass(frozen=True)
class TaskStandings:
    """What the policies did on a task.

    Attributes:
        task: which.
        objective: what they are judged by.
        scores: by parameters ("published" or "tuned") and policy, best first.
        failed: why policies have no score.
        found: what the studies found.
        unfinished: policies with fewer seeds than the evaluation's, which are in no number.
        clicks: intervals and tests of replayed logs, over users too, by parameters.
    """

    task: Task
    objective: Objective
    scores: dict[str, dict[str, Score]]
    failed: dict[str, str]
    found: dict[str, Any]
    unfinished: list[str]
    clicks: dict[str, UserIntervals]

    @property
    def main(self) -> str:
        """By which parameters the policies are ordered."""
        return PUBLISHED if self.task.paper else TUNED

    @property
    def ranked(self) -> list[Score]:
        """Best first."""
        return list(self.scores.get(self.main, {}).values())

    def p(self, one: str, other: str) -> float:
        """Of the paired test of two policies that have a score: over seeds and, on a log, over users."""
        scores = self.scores[self.main]
        over_seeds = paired_p(scores[one].values, scores[other].values)
        return self.clicks[self.main].p(one, other, over_seeds)

    def as_good(self) -> set[str]:
        """The best policy, and those that paired tests, Holm-corrected, do not separate from it."""
        if not self.ranked:
            return set()
        best, *others = (score.policy for score in self.ranked)
        p_values = holm({other: self.p(best, other) for other in others})
        return {best} | {name for name, p in p_values.items() if not p < LEVEL}


@dataclass(frozen=True)
class Rank:
    """A policy's mean rank over tasks, with its 95 % interval, and its rank on every task."""

    policy: str
    mean: float
    low: float
    high: float
    by_task: dict[str, float]


@dataclass(frozen=True)
class Test:
    """One policy against another on a task.

    Attributes:
        worse: the policy that the claim says is worse.
        gain: by how much the better one is better.
        p: of the paired test, corrected.
        verdict: what follows.
    """

    worse: str
    gain: float
    p: float
    verdict: Verdict


@dataclass(frozen=True)
class Checked:
    """A claim with its tests, by task; the paper's own setting is one of them."""

    claim: Claim
    tests: dict[str, list[Test]]

    def verdict(self, task: str) -> Verdict:
        """All tests of a task in a word: it holds if all hold, and is reversed if one is."""
        found = [test.verdict for test in self.tests.get(task, [])]
        for word in ("reversed", "not run", "not separated"):
            if word in found:
                return word
        return "holds" if found else "not run"


def read_standings(board: Board, folder: Path) -> list[TaskStandings]:
    """What the folder holds of every task that has begun."""
    return [_read_task(board, task, folder / task.name) for task in board.tasks.values()]


def _read_task(board: Board, task: Task, folder: Path) -> TaskStandings:
    seeds = board.protocol.seeds
    objective = REGRET
    scores, clicks, unfinished = {}, {}, []
    for parameters in (PUBLISHED, TUNED):
        if next((folder / parameters).glob(f"*/seed*/{RESULT}"), None) is None:
            continue
        results = read_results(folder / parameters)
        whole = {name: own for name, own in results.items() if set(seeds) <= set(own.seeds)}
        unfinished += [name for name in results if name not in whole and name not in unfinished]
        objective = next(iter(results.values())).objective
        clicks[parameters] = UserIntervals(whole, seeds)
        scores[parameters] = _scores(whole, seeds, objective, clicks[parameters])
    failed, found = read_json(folder / FAILED), read_json(folder / FOUND)
    return TaskStandings(task, objective, scores, failed, found, unfinished, clicks)


def _scores(
    results: Mapping[str, PolicyResults], seeds: list[int], objective: Objective, clicks: UserIntervals
) -> dict[str, Score]:
    found = []
    for name, own in results.items():
        values = own.final(objective.column, seeds)
        seconds = own.seconds[own.rows_of(seeds)].mean()
        found.append(
            Score(
                name,
                values,
                clicks.half(values, name),
                float(own.final("questions", seeds).mean()),
                float(seconds / (own.rounds[-1] * own.num_users) * 1e6),
            )
        )
    found.sort(key=lambda score: (isnan(score.mean), objective.sign * score.mean))
    return {score.policy: score for score in found}


def rank_policies(standings: list[TaskStandings], resamples: int = _RESAMPLES) -> list[Rank]:
    """Ranks over the tasks that are no paper's own, best first, by tuned parameters.

    A policy that failed on a task is last there. One that has not played all tasks has no rank. Intervals are
    percentiles over resampled seeds: within a task all policies have the same seeds, as they met the same
    rounds, and tasks are resampled independently.
    """
    from scipy.stats import rankdata

    tasks = [one for one in standings if not one.task.paper and one.ranked]
    every = dict.fromkeys(name for one in tasks for name in [*one.scores[TUNED], *one.failed])
    names = [name for name in every if all(name in one.scores[TUNED] or name in one.failed for one in tasks)]
    if not names or not tasks:
        return []
    draws = np.random.default_rng(0)
    by_task, resampled = {}, np.zeros((resamples, len(names)))
    for one in tasks:
        seeds = len(next(iter(one.ranked)).values)
        lost = np.full(seeds, np.inf)
        values = np.stack(  # [P, S], less is better
            [
                one.objective.sign * one.scores[TUNED][name].values if name in one.scores[TUNED] else lost
                for name in names
            ]
        )
        by_task[one.task.name] = rankdata(values.mean(1))
        picked = draws.integers(seeds, size=(resamples, seeds))
        resampled += rankdata(values[:, picked].mean(2).T, axis=1) / len(tasks)
    low, high = np.percentile(resampled, (2.5, 97.5), axis=0)
    means = np.mean(list(by_task.values()), axis=0)
    found = [
        Rank(
            name,
            float(means[number]),
            float(low[number]),
            float(high[number]),
            {task: float(own[number]) for task, own in by_task.items()},
        )
        for number, name in enumerate(names)
    ]
    return sorted(found, key=lambda rank: rank.mean)


def check_claims(board: Board, standings: list[TaskStandings]) -> list[Checked]:
    """Every claim, in the paper's own setting and on its tasks; all tests are corrected together."""
    by_name = {one.task.name: one for one in standings}
    raw: dict[tuple[int, str, str], tuple[float, float]] = {}
    for number, claim in enumerate(board.claims):
        for task in (*([claim.own] if claim.own else []), *claim.tasks):
            one = by_name[task]
            scores = one.scores.get(one.main, {})
            for worse in claim.worse:
                if claim.better in scores and worse in scores:
                    gain = one.objective.sign * (scores[worse].mean - scores[claim.better].mean)
                    raw[number, task, worse] = gain, one.p(claim.better, worse)
    corrected = holm({key: p for key, (_, p) in raw.items()})
    checked = []
    for number, claim in enumerate(board.claims):
        tests: dict[str, list[Test]] = {}
        for task in (*([claim.own] if claim.own else []), *claim.tasks):
            for worse in claim.worse:
                key = number, task, worse
                gain, p = raw[key][0] if key in raw else float("nan"), corrected.get(key, float("nan"))
                tests.setdefault(task, []).append(Test(worse, gain, p, _verdict(key in raw, gain, p)))
        checked.append(Checked(claim, tests))
    return checked


def _verdict(was_run: bool, gain: float, p: float) -> Verdict:
    if not was_run:
        return "not run"
    if not p < LEVEL:
        return "not separated"
    return "holds" if gain > 0 else "reversed"
