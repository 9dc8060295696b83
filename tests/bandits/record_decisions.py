"""What every policy decided, and how it is recorded.

`python -m tests.bandits.record_decisions` records all cases; with beginnings of names, only those cases.
"""

import sys
from functools import partial

import numpy as np
import torch

from conbandit_torch import (
    AbruptChange,
    ArmCon,
    Arms,
    AskAgainConLinUCB,
    AskAgainConUCB,
    BarycentricSpanner,
    BestTwoTerms,
    CLiME,
    CLiSK,
    CoFineUCB,
    Comparison,
    ConCoFineUCB,
    ConLinUCB,
    ConLinUCBBS,
    ConLinUCBMCR,
    ConLinUCBUCB,
    ConPE,
    Context,
    ConThompson,
    ConUCB,
    DiscountedConLinUCB,
    DiscountedConUCB,
    DiscountedLinUCB,
    Environment,
    EpsilonGreedy,
    GeneratedLog,
    Greedy,
    HArmCon,
    HConLinUCB,
    HConUCB,
    HLinUCB,
    HRelativeConUCB,
    HVarLCR,
    HVarMRC,
    HVarRS,
    Lemma1,
    Lemma3,
    LinearSchedule,
    LinThompson,
    LinUCB,
    LogSchedule,
    MaxConfidenceRadius,
    NoConversation,
    Random,
    RelativeConUCB,
    RestartingLinUCB,
    Synthetic,
    UpperConfidenceTerm,
    VarLCR,
    VarMRC,
    VarRS,
    WhileUncertain,
    WindowedConLinUCB,
    WindowedConUCB,
    WindowedLinUCB,
    play_round,
)
from tests.conftest import GOLDEN

FILE = GOLDEN / "decisions.npz"
ROUNDS, USERS = 200, 7
KEY_TERM, ARM, PAIR = 0, 1, 2


def asked_in(played):
    """Every question of a round: users asked [Q], KEY_TERM, ARM or PAIR, catalogue ids asked about [Q].

    Of a pair, the first id times 100, and the second.
    """
    context = played.context
    for question, _ in played.dialogue:
        if isinstance(question.about, Comparison):
            first, second = question.about.ids().T
            yield context.take(question.rows).users, PAIR, 100 * first + second
            continue
        kind = ARM if isinstance(question.about, Arms) else KEY_TERM
        yield context.take(question.rows).users, kind, question.about.of


def play(environment, policy, rounds=ROUNDS):
    """[3, n] round, user, arm of all that was shown; [4, m] round, user, kind, id of all that was asked."""
    shown, asked = [], []
    for number in range(rounds):
        played = play_round(policy, environment)
        users = played.context.users
        shown.append((torch.full_like(users, number), users, played.arm_ids))
        for of, kind, about in asked_in(played):
            asked.append((torch.full_like(of, number), of, torch.full_like(of, kind), about))
    return _flat(shown, 3), _flat(asked, 4)


def _flat(parts, columns):
    flat = [np.zeros((columns, 0), np.int16), *(torch.stack(part).numpy().astype(np.int16) for part in parts)]
    return np.concatenate(flat, axis=1)


class Visited(Environment):
    """A world to which users come in changing numbers and orders: one stays away long, one comes late."""

    def __init__(self, world, as_range):
        super().__init__()
        self.world, self.catalogue, self.num_users = world, world.catalogue, world.num_users
        self.as_range, self.finished = as_range, 0

    def observe(self):
        now = self.finished
        if self.as_range and now % 10 == 9 and not 40 <= now < 120:
            return self.world.observe()
        first, number = 5 * now + now // 11, 1 + (now * now + now // 7) % USERS
        order = [(first + 3 * place) % USERS for place in range(number)]
        away = {2 if now < 70 else None, 6 if 40 <= now < 120 else None}
        users = torch.tensor([user for user in order if user not in away] or [now % 2])
        clock = getattr(self.world, "counted", self.world.rounds)  # a replayed log counts what matched
        arms = self.world.pools(users, self.world.rounds[users])
        return Context(users, arms, rounds=clock[users], catalogue=self.catalogue)

    def answer(self, context, question):
        return self.world.answer(context, question)

    def pull(self, context, arm):
        self.finished += 1
        return self.world.pull(context, arm)

    def expected(self, context):
        return self.world.expected(context)


SIZES = {"users": USERS, "arms": 80, "terms": 14, "dim": 6, "pool": 9, "max_terms": 3, "seed": 11}
# Few key-terms of many candidates each: none are those of the same candidates, so that none tie for VarMRC.
FEW = {"terms": 6, "pool": 20}


def synthetic(**changes):
    return Visited(Synthetic(**(SIZES | changes)), as_range=True)


def hidden(**changes):
    return synthetic(hidden=2, **changes)


def changing(**changes):
    return synthetic(drift=AbruptChange(at=[30, 60], share=0.6), **changes)


def replayed_to_everyone(**changes):
    # One feature is hidden: all of them have length 1 in a log, and would tie until something is learned.
    return GeneratedLog(**(SIZES | {"pool": 4, "events": 300, "dim": 7, "hidden": 1} | changes))


def replayed(**changes):
    return Visited(replayed_to_everyone(**changes), as_range=False)


WORLDS = {"synthetic": synthetic, "hidden": hidden, "replayed": replayed}
LOG = {"schedule": LogSchedule(5)}
LINEAR = {"schedule": LinearSchedule(2, every=7)}
UNCERTAIN = {"schedule": WhileUncertain(0.5, questions=20)}
REFIT = {"refit_every": 20, "refit_sweeps": 2}

SILENT = (Random, LinUCB, Greedy, EpsilonGreedy, LinThompson, CoFineUCB)
ASKING = (
    ArmCon,
    ConUCB,
    VarRS,
    VarMRC,
    VarLCR,
    ConThompson,
    ConLinUCB,
    ConLinUCBMCR,
    ConLinUCBBS,
    ConLinUCBUCB,
)
ASKING_WITH_HIDDEN_FEATURES = (HArmCon, HConUCB, HVarRS, HVarMRC, HVarLCR, HConLinUCB)


def _case(label, world, policy, **arguments):
    make_world = partial(world, **(FEW if policy in (VarMRC, HVarMRC) else {}))
    return f"{policy.__name__}, {label}", (make_world, partial(policy, **arguments))


def _usual_cases():
    for policy in SILENT:
        for name, world in WORLDS.items():
            yield _case(name, world, policy)
    for policy in ASKING:
        yield _case("synthetic", synthetic, policy, **LOG)
        yield _case("hidden", hidden, policy, **LINEAR)
        yield _case("replayed", replayed, policy, **UNCERTAIN)
    for policy in (HLinUCB, *ASKING_WITH_HIDDEN_FEATURES):
        log, linear, uncertain = ({}, {}, {}) if policy is HLinUCB else (LOG, LINEAR, UNCERTAIN)
        yield _case("synthetic", synthetic, policy, **linear)
        yield _case("hidden", hidden, policy, **uncertain)
        yield _case("hidden, refit", hidden, policy, **log, **REFIT)
        yield _case("replayed", replayed, policy, **log)
        yield _case("replayed, refit", replayed, policy, **uncertain, **REFIT)


def _weighted(policy, ridge, weight):
    """A policy whose regressions have another prior, as a conversation gives them; widths have the weight."""

    def make(*args, **arguments):
        made = policy(*args, **arguments)
        made.arm_model.set_prior(ridge, weight)
        return made

    make.__name__ = policy.__name__
    return make


def _unusual_cases():
    two_levels = {"mix": 0.7, "term_ridge": 2.0}
    theory = {"alpha": Lemma1(0.1), "term_alpha": Lemma3(norm_bound=2.0)}
    learned = {"hidden_dim": 3, "hidden_alpha": 0.3, "hidden_ridge": 2.0, "init_scale": 0.1, "alpha": 0.4}
    yield _case("synthetic, Lemma1", synthetic, LinUCB, alpha=Lemma1(), ridge=2.0)
    yield _case("replayed, weight", replayed, _weighted(LinUCB, 1.0, 0.7), alpha=0.3 / 0.7)
    yield _case("synthetic, ridge", synthetic, _weighted(Greedy, 0.5, 2.0))
    yield _case("hidden, epsilon", hidden, EpsilonGreedy, epsilon=0.3, seed=5)
    yield _case("synthetic, scale", synthetic, LinThompson, scale=0.3, ridge=2.0, seed=5)
    yield _case(
        "synthetic, alphas", synthetic, CoFineUCB, alpha=0.4, coarse_alpha=0.6, coarse_dim=3, coarse_ridge=2.0
    )
    yield _case("replayed, alphas", replayed, CoFineUCB, alpha=0.1, coarse_alpha=0.5, coarse_dim=2, ridge=0.5)
    yield _case("synthetic, ridge", synthetic, ArmCon, **UNCERTAIN, alpha=0.3, ridge=2.0)
    yield _case("synthetic, theory", synthetic, ConUCB, **LINEAR, **two_levels, **theory)
    yield _case("synthetic, printed", synthetic, ConUCB, **LOG, alpha=Lemma1(printed=True))
    yield _case("synthetic, uncertain", synthetic, ConUCB, **UNCERTAIN, **two_levels)
    yield _case("hidden, never asked", hidden, ConUCB, schedule=NoConversation(), **two_levels)
    yield _case("replayed, mix", replayed, ConUCB, **LINEAR, **two_levels, alpha=0.5, term_alpha=0.4)
    yield _case("synthetic, radius", synthetic, ConUCB, **LINEAR, select=MaxConfidenceRadius())
    yield _case("synthetic, spanner", synthetic, ConUCB, **LINEAR, select=BarycentricSpanner())
    yield _case("replayed, upper bound", replayed, ConUCB, **LINEAR, select=UpperConfidenceTerm(0.5))
    yield _case("synthetic, mix", synthetic, VarLCR, **UNCERTAIN, **two_levels)
    yield _case("synthetic, mix", synthetic, VarMRC, **UNCERTAIN, **two_levels)
    yield _case("synthetic, seed", synthetic, VarRS, **UNCERTAIN, **two_levels, seed=5)
    yield _case("synthetic, scale", synthetic, ConThompson, **UNCERTAIN, scale=0.3)
    yield _case("replayed, scales", replayed, ConThompson, **LOG, **two_levels, scale=0.3, term_scale=0.2)
    yield _case("synthetic, uncertain", synthetic, ConLinUCB, **UNCERTAIN, alpha=0.3, ridge=2.0)
    yield _case("synthetic, Lemma1", synthetic, ConLinUCBMCR, **LINEAR, alpha=Lemma1())
    yield _case("synthetic, alpha", synthetic, ConLinUCBUCB, **LINEAR, select=UpperConfidenceTerm(0.6))
    yield _case("hidden, scales", hidden, HLinUCB, **learned, ridge=2.0)
    yield _case("hidden, scales, refit", hidden, HArmCon, **LINEAR, **learned, **REFIT)
    yield _case("hidden, scales", hidden, HConUCB, **LOG, **learned, **two_levels)
    yield _case("hidden, scales, refit", hidden, HConUCB, **LINEAR, **learned, **two_levels, **REFIT)
    yield _case("hidden, theory", hidden, HConUCB, **LOG, **theory, hidden_alpha=0.5)
    yield _case("hidden, scales, refit", hidden, HConLinUCB, **LINEAR, **learned, **REFIT, ridge=2.0)
    for policy in (LinUCB, CoFineUCB, HLinUCB):
        yield _case("replayed to everyone", replayed_to_everyone, policy)
    for policy in (ArmCon, ConUCB, ConThompson, ConLinUCB):
        yield _case("replayed to everyone", replayed_to_everyone, policy, **LOG)
    for policy in (HArmCon, HConUCB, HConLinUCB):
        yield _case("replayed to everyone, refit", replayed_to_everyone, policy, **LINEAR, **REFIT)


def _concofine_cases():
    yield _case("synthetic", synthetic, ConCoFineUCB, **LOG)
    yield _case("hidden", hidden, ConCoFineUCB, **LINEAR)
    yield _case("replayed", replayed, ConCoFineUCB, **UNCERTAIN)
    factors = {"alpha": 0.4, "coarse_alpha": 0.6, "coarse_dim": 3, "coarse_ridge": 2.0}
    yield _case("synthetic, alphas", synthetic, ConCoFineUCB, **UNCERTAIN, **factors, mix=0.7, term_ridge=2.0)
    yield _case("replayed to everyone", replayed_to_everyone, ConCoFineUCB, **LOG)


def _later_cases():
    for policy in (DiscountedLinUCB, WindowedLinUCB):
        yield _case("synthetic", synthetic, policy)
        yield _case("replayed", replayed, policy)
    for policy in (DiscountedConUCB, WindowedConUCB, DiscountedConLinUCB, WindowedConLinUCB):
        ages = {"gamma": 0.97} if policy.__name__.startswith("Discounted") else {"window": 20}
        yield _case("changing", changing, policy, **LINEAR, **ages)
        yield _case("hidden", hidden, policy, **UNCERTAIN)
    for policy in (RelativeConUCB, HRelativeConUCB):
        yield _case("synthetic", synthetic, policy, **LOG)
        yield _case("hidden", hidden, policy, **LINEAR, pairs=BestTwoTerms(), learn_as="both")
    for policy in (CLiSK, CLiME, ConPE):
        yield _case("synthetic", synthetic, policy)
        yield _case("replayed", replayed, policy, alpha=0.3)
    yield _case("hidden, refit", hidden, HRelativeConUCB, **LOG, **REFIT)
    for policy in (RestartingLinUCB, AskAgainConUCB, AskAgainConLinUCB):
        asks = {} if policy is RestartingLinUCB else LINEAR
        yield _case("changing", changing, policy, **asks, patience=20.0)
        yield _case("hidden", hidden, policy, **asks, patience=2.0, growth=1.5)


CASES = dict([*_usual_cases(), *_unusual_cases(), *_later_cases()])
CONCOFINE_CASES = dict(_concofine_cases())


def decisions(name):
    """What the policy of a case shows and asks."""
    make_world, make_policy = (CASES | CONCOFINE_CASES)[name]
    world = make_world()
    return play(world, make_policy(world.catalogue, world.num_users))


def main(*beginnings):
    """Record the cases whose names begin so, and keep what is recorded of the others."""
    recorded = {}
    if beginnings:
        with np.load(FILE) as file:
            recorded.update(file)
    for name in CASES | CONCOFINE_CASES:
        if not beginnings or name.startswith(beginnings):
            recorded[f"{name}/shown"], recorded[f"{name}/asked"] = decisions(name)
    np.savez_compressed(FILE, **recorded)


if __name__ == "__main__":
    main(*sys.argv[1:])
