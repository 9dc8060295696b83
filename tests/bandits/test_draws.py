"""Whether a policy draws: what it says is what it does, and seeds without draws are no sample."""

import inspect

import pytest
import torch

import conbandit_torch
from conbandit_torch import (
    Bandit,
    ConUCB,
    Hidden,
    LinUCB,
    OptimalTerm,
    RandomTerm,
    Selection,
    play_round,
)
from conbandit_torch.commands.main import main
from conbandit_torch.core.digests import fingerprint
from tests.conftest import GOLDEN, small_world
from tests.helpers.commands import rows
from tests.helpers.configs import write

POLICIES = {
    name: value
    for name in conbandit_torch.__all__
    if inspect.isclass(value := getattr(conbandit_torch, name))
    and issubclass(value, Bandit)
    and not inspect.isabstract(value)
}

BASES = {
    "ComparisonMixin",
    "GraphMixin",
    "LinearBandit",
    "KeyTermMixin",
    "ConversationMixin",
    "OneLevelMixin",
    "RestartMixin",
}  # what derives from them may draw


def decisions(make, seed):
    """What is asked, shown and learned in some rounds, always of the same users and arms."""
    world = small_world()
    policy = make(world.catalogue, world.num_users, seed=seed)
    log = []
    for _ in range(40):
        played = play_round(policy, world)
        log += [len(question) for question, _ in played.dialogue]
        log.append(played.arm_ids.tolist())
    return policy, [*log, fingerprint(policy.state_dict())]


@pytest.mark.parametrize("name", POLICIES)
def test_decisions_depend_on_the_seed_where_a_policy_says_so(name):
    policy, log = decisions(POLICIES[name], 1)
    others = [decisions(POLICIES[name], seed)[1] for seed in (2, 3)]
    differ = any(log != other for other in others)
    assert policy.draws == differ or (policy.draws and name in BASES)


def test_parts_that_draw_make_a_policy_draw():
    catalogue = small_world().catalogue
    assert not ConUCB(catalogue, 7, select=OptimalTerm()).draws
    assert ConUCB(catalogue, 7, select=RandomTerm()).draws
    assert LinUCB(catalogue, 7, representation=Hidden(2)).draws and not LinUCB(catalogue, 7).draws

    class Own(Selection):
        def scores(self, asking):
            return torch.zeros(len(asking), asking.catalogue.num_terms)

    assert ConUCB(catalogue, 7, select=Own()).draws  # nobody knows


RECORDED = {
    "rounds": 5,
    "seeds": "0-4",
    "environment": {"class_path": "Recorded", "init_args": {"path": str(GOLDEN / "conucb_trace.npz")}},
    "policies": {"LinUCB": "LinUCB", "ConUCB": "ConUCB"},
}


def test_several_seeds_are_refused_where_nothing_draws(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["run", str(write(tmp_path, RECORDED)), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert "seeds: there are 5, but neither the environment (Recorded) nor a policy draws anything" in said
    assert not out.exists()
    assert main(["run", str(tmp_path / "config.yaml"), "--out", str(out), "--seeds", "3"]) == 0


def test_several_seeds_of_a_policy_that_draws_may_be_compared_with_one_that_does_not(tmp_path, capsys):
    out = tmp_path / "out"
    config = RECORDED | {"policies": {"LinUCB": "LinUCB", "Var-RS": "VarRS", "Random": "Random"}}
    assert main(["run", str(write(tmp_path, config)), "--out", str(out)]) == 0
    assert len(rows(out / "summary.csv")) == 15
    assert main(["report", str(out)]) == 0
    assert "one run and no sample: LinUCB" in capsys.readouterr().out
