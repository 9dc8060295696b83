"""The loop, its metrics and its callbacks."""

import math
import subprocess
import sys
from itertools import pairwise

import pytest
import torch

from conbandit_torch import (
    ArmCon,
    Callback,
    ConUCB,
    Feedback,
    HConUCB,
    LinUCB,
    Outcome,
    Random,
    Representation,
    Simulation,
    Synthetic,
    VarRS,
    play_round,
)
from conbandit_torch.callbacks.base import StoppedError
from conbandit_torch.running.record import early_rounds
from tests.conftest import small_world
from tests.helpers.simulations import StopAt


def simulate(policy_class, rounds=30, world=None, **kwargs):
    world = small_world() if world is None else world
    policy = policy_class(world.catalogue, world.num_users)
    simulation = Simulation(policy, world, rounds=rounds, precision="64-true", **kwargs)
    simulation.run()
    return simulation


def test_records_are_dense_first_then_come_every_so_often_and_at_the_end():
    early = [1, 2, 3, 4, 5, 6, 7, 8]
    assert [r.round for r in simulate(LinUCB, 25, log_every=10).records] == [*early, 10, 20, 25]
    assert [r.round for r in simulate(LinUCB, 20, log_every=10).records] == [*early, 10, 20]
    assert [r.round for r in simulate(LinUCB, 3, log_every=1).records] == [1, 2, 3]


@pytest.mark.parametrize("log_every", [20, 21])
def test_only_the_last_round_is_recorded_where_nothing_else_is_asked_for(log_every):
    assert [r.round for r in simulate(LinUCB, 20, log_every=log_every).records] == [20]


def test_early_records_are_few_and_no_two_neighbours_are_far_apart():
    for log_every, most in ((10, 8), (50, 16), (100, 20), (1000, 30)):
        early = sorted(early_rounds(log_every, 10_000))
        assert early[0] == 1 and len(early) == most
        assert all(later - one <= max(1, one / 4) for one, later in pairwise([*early, log_every]))


@pytest.mark.parametrize("present", [None, 2])
def test_metrics_equal_those_of_a_loop_by_hand(present):
    records = simulate(ConUCB, 30, small_world(users_per_round=present), log_every=10).records
    world = small_world(users_per_round=present)
    policy = ConUCB(world.catalogue, 7)
    by_round = {record.round: record for record in records}
    assert {1, 8, 10, 20, 30} <= by_round.keys()
    regret = questions = 0.0
    window = []
    for t in range(1, 31):
        played = play_round(policy, world)
        regret += float(played.outcome.regret.sum())
        questions += sum(len(q) for q, _ in played.dialogue)
        window.append((played.outcome.regret.mean().item(), played.outcome.feedback[0].reward.mean().item()))
        if t in by_round:
            record = by_round[t]
            assert record.cumulative_regret == pytest.approx(regret / 7, rel=1e-12)
            assert record.questions == pytest.approx(questions / 7)
            assert record.regret == pytest.approx(sum(r for r, _ in window) / len(window), rel=1e-12)
            assert record.reward == pytest.approx(sum(r for _, r in window) / len(window), rel=1e-12)
            window.clear()
            theta = policy.coefficients()
            error = sum(float((theta[u] - world.theta[u]).norm()) for u in range(7)) / 7
            assert record.theta_error == pytest.approx(error, rel=1e-9)
            features, users = played.context.arm_features, played.context.users
            gap = torch.einsum("bad,bd->ba", features, theta[users] - world.theta[users])
            assert record.prediction_error == pytest.approx(gap.square().mean().sqrt().item(), rel=1e-9)


def test_numbers_a_policy_does_not_have_are_none():
    record = simulate(Random).records[-1]
    assert record.theta_error is None and record.prediction_error is None
    assert record.details == {}


def test_concentration_of_the_questions():
    simulation = simulate(VarRS, 60)
    details = simulation.records[-1].details
    asked = details["questions/times_asked"]
    assert int(asked.sum()) == 7 * 20
    assert float(details["questions/distinct_terms"]) == (asked > 0).sum()
    share = [a / 140 for a in asked.tolist() if a]
    assert float(details["questions/effective_terms"]) == pytest.approx(
        math.exp(-sum(p * math.log(p) for p in share))
    )
    assert float(details["questions/top10_share"]) == pytest.approx(sum(sorted(share)[-10:]))
    assert {"width/arm", "width/term"} <= details.keys()


def test_callbacks_hear_everything_in_order():
    heard = []

    class Listener(Callback):
        def on_start(self, simulation):
            heard.append("start")

        def on_round(self, simulation, played):
            heard.append(simulation.round)

        def on_record(self, simulation, record):
            heard.append(f"record {record.round}")

        def on_end(self, simulation):
            heard.append("end")

    simulate(LinUCB, 3, log_every=2, callbacks=[Listener()])
    assert heard == ["start", "record 1", 1, "record 2", 2, "record 3", 3, "end"]


def test_a_break_off_is_told_and_raised():
    heard = []

    class Breaker(Callback):
        def on_round(self, simulation, played):
            raise RuntimeError("no more")

        def on_exception(self, simulation, error):
            heard.append(str(error))

    with pytest.raises(RuntimeError, match="no more"):
        simulate(LinUCB, 3, callbacks=[Breaker()])
    assert heard == ["no more"]


def test_a_misspelt_hook_is_refused():
    with pytest.raises(TypeError, match="Typo.on_rounds is not a hook; hooks are on_start, on_round"):
        type("Typo", (Callback,), {"on_rounds": lambda self: None})


def test_precision_sets_the_dtype():
    world = small_world()
    policy = LinUCB(world.catalogue, 7)
    Simulation(policy, world, rounds=2, precision="32-true").run()
    assert policy.arm_model.inverse.dtype == world.theta.dtype == torch.float32
    assert policy.arm_model.count.dtype == torch.int64


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rounds": 0}, "rounds must be a whole number of at least 1, got 0"),
        ({"rounds": 1.5}, "rounds must be a whole number of at least 1, got 1.5"),
        ({"rounds": 5, "precision": "16-true"}, "precision must be one of 32-true, 64-true, got '16-true'"),
        ({"rounds": 5, "log_every": 0}, "log_every must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    world = small_world()
    with pytest.raises(ValueError, match=message):
        Simulation(LinUCB(world.catalogue, 7), world, **arguments)


def test_policy_and_environment_must_agree_on_users():
    world = small_world()
    with pytest.raises(ValueError, match="built for 5 users, the environment has 7"):
        Simulation(LinUCB(world.catalogue, 5), world, rounds=1)


def test_policy_and_environment_must_share_a_catalogue():
    world, other = small_world(), small_world(seed=9)
    with pytest.raises(ValueError, match="built for another catalogue than the environment's"):
        Simulation(LinUCB(other.catalogue, 7), world, rounds=1)


def test_every_simulation_starts_at_the_first_round():
    world = small_world(users_per_round=3)
    first, second = (simulate(LinUCB, 15, world).records[-1] for _ in range(2))
    assert first.cumulative_regret == second.cumulative_regret


@pytest.mark.parametrize("first", [0, 1])
def test_two_simulations_on_one_environment_run_in_any_order(first):
    """Both are built before either runs; one is resumed half-way."""
    alone = [simulate(policy, 15, small_world(users_per_round=3)).records[-1] for policy in (LinUCB, ConUCB)]
    world = small_world(users_per_round=3)
    half = Simulation(
        ConUCB(world.catalogue, 7), world, rounds=15, precision="64-true", callbacks=[StopAt(8)]
    )
    with pytest.raises(StoppedError):
        half.run()
    both = [
        Simulation(policy(world.catalogue, 7), world, rounds=15, precision="64-true")
        for policy in (LinUCB, ConUCB)
    ]
    both[1].restore(half.state())
    for number in (first, 1 - first):
        both[number].run()
    for ours, expected in zip(both, alone, strict=True):
        assert ours.records[-1].cumulative_regret == expected.cumulative_regret


def test_a_simulation_on_the_cpu_does_not_import_lightning():
    code = (
        "import sys\n"
        "from conbandit_torch import LinUCB, Simulation, Synthetic\n"
        "world = Synthetic(users=3, arms=20, terms=5, dim=4, pool=5, max_terms=2)\n"
        "Simulation(LinUCB(world.catalogue, 3), world, rounds=3).run()\n"
        "sys.exit('lightning' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


def test_a_simulation_runs_once():
    simulation = simulate(LinUCB, 3)
    with pytest.raises(RuntimeError, match="has run already"):
        simulation.run()


def test_data_rounded_to_float32_are_not_taken_for_float64():
    world = small_world()
    Simulation(LinUCB(world.catalogue, 7), world, rounds=1).run()
    with pytest.raises(
        ValueError, match="precision is 64-true, but the environment's data are torch.float32"
    ):
        Simulation(LinUCB(world.catalogue, 7), world, rounds=1, precision="64-true")


def test_a_model_with_features_of_its_own_has_no_theta_error():
    class Biased(Representation):
        def build(self, seed):
            self.dim = self.catalogue.dim + 1

        def encode(self, x, arms):
            return torch.nn.functional.pad(x, (0, 1), value=1.0)

    record = simulate(lambda *args: LinUCB(*args, representation=Biased())).records[-1]
    assert record.theta_error is None and record.prediction_error > 0


def test_records_keep_their_own_numbers():
    """What is recorded does not change with the state later."""
    world = small_world(hidden=2)
    policy = HConUCB(world.catalogue, 7, hidden_dim=2)
    told = []

    class Listener(Callback):
        def on_record(self, simulation, record):
            told.append(record.details)

    run = Simulation(policy, world, rounds=30, log_every=15, precision="64-true", callbacks=[Listener()])
    *_, first, last = run.run()
    *_, early, late = told
    assert int(early["questions/times_asked"].sum()) == 7 * first.questions < 7 * last.questions
    assert not torch.equal(early["hidden/features"], late["hidden/features"])
    assert first.details == {} and last.details is late  # kept of the last record alone: it is a lot


@pytest.mark.parametrize("policy_class", [Random, LinUCB, ConUCB, ArmCon, HConUCB])
def test_only_rows_whose_reward_was_seen_are_learned_and_counted(policy_class):
    """As in replay: sometimes nobody's reward is seen."""

    class Replay(Synthetic):
        def pull(self, context, arm):
            outcome, rows = super().pull(context, arm), (arm == 0).nonzero().squeeze(1)
            reward = outcome.feedback[0].reward[rows]
            return Outcome([Feedback(context.take(rows), arm[rows], reward)], outcome.regret)

    world = Replay(users=2, arms=30, terms=6, dim=4, pool=5, max_terms=2)
    policy = policy_class(world.catalogue, 2)
    seen = []

    class Count(Callback):
        def on_round(self, simulation, played):
            seen.append(len(played.outcome.feedback[0].reward))

    Simulation(policy, world, rounds=60, precision="64-true", callbacks=[Count()]).run()
    assert 0 in seen and max(seen) > 0
    if hasattr(policy, "arm_model"):
        asked = int(policy.asked.sum()) if isinstance(policy, ArmCon) else 0  # learned like rewards
        assert int(policy.arm_model.count.sum()) == sum(seen) + asked
