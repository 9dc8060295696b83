"""Users split over processes: the same decisions, the same numbers, checkpoints of all."""

import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial

import pytest
import torch

from conbandit_torch import (
    ConThompson,
    ConUCB,
    Environment,
    GeometricDelay,
    HConLinUCB,
    HConUCB,
    HiddenOnTerms,
    HVarRS,
    LinearSchedule,
    Logistic,
    Network,
    Recorded,
    RefitSchedule,
    Simulation,
    Synthetic,
    VarMRC,
    WhileUncertain,
)
from conbandit_torch.commands.main import main
from conbandit_torch.core.processes import Processes
from conbandit_torch.loop import play_round
from conbandit_torch.running.checkpoint import (
    OtherProcessesError,
    latest_checkpoint,
    list_checkpoints,
    write_checkpoint,
)
from conbandit_torch.running.job import refuse_unlike_processes
from conbandit_torch.running.origin import Origin, OtherOriginError
from tests.conftest import ALGEBRA, EXACT, REPOSITORY, small_world, wait_for
from tests.helpers.commands import rows, start
from tests.helpers.configs import GOOD, write

ROUNDS = 22  # passes floor(log t) = 3


class Board:
    """Where threads that stand in for processes exchange their values."""

    def __init__(self, size):
        self.values, self.barrier = [None] * size, threading.Barrier(size, timeout=60)

    def exchange(self, rank, value):
        self.values[rank] = value
        self.barrier.wait()
        every = list(self.values)
        self.barrier.wait()
        return every


class Threads(Processes):
    """Processes whose exchange is that of threads: everything above it is the real code."""

    def __init__(self, rank, size, board):
        super().__init__(rank, size)
        object.__setattr__(self, "board", board)

    def _collect(self, values):
        return torch.stack(self.board.exchange(self.rank, values.clone()))

    def sum(self, values):
        return self._collect(values).sum(0)

    def broadcast(self, value):
        return self.board.exchange(self.rank, value)[0]

    def wait(self):
        self.board.barrier.wait()


def together(size, work):
    """`work(processes)` of all ranks at once; returns what each returned."""
    board, results, errors = Board(size), [None] * size, []

    def call(rank):
        try:
            with torch.no_grad():
                results[rank] = work(Threads(rank, size, board))
        except Exception as error:
            errors.append(error)
            board.barrier.abort()

    threads = [threading.Thread(target=call, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def test_rows_are_gathered_by_rank_whatever_their_number_and_type():
    def work(processes):
        n = (3, 0, 2)[processes.rank]
        ids = torch.arange(n) + 10 * processes.rank
        return processes.gather(ids, torch.full((n, 2), float(processes.rank)), torch.empty(n, 0))

    for ids, numbers, nothing in together(3, work):
        assert ids.tolist() == [0, 1, 2, 20, 21]
        assert numbers.tolist() == [[0, 0]] * 3 + [[2, 2]] * 2
        assert nothing.shape == (5, 0)


def test_every_user_has_one_process():
    for users in (3, 7, 100):
        shares = [Processes(rank, 3).share_of(users) for rank in range(3)]
        assert [user for own in shares for user in range(users)[own]] == list(range(users))


def on_key_terms(catalogue, num_users):
    """ConUCB with hidden features on key-terms, and refits that get rarer."""
    hidden = HiddenOnTerms(2, refit_every=RefitSchedule(3, growth=0.2))
    return ConUCB(catalogue, num_users, representation=hidden)


def on_a_network(catalogue, num_users, **arguments):
    """ConUCB on a network that is trained every four rounds."""
    seen = Network(hidden=4, outputs=3, steps=5, batch=16, refit_every=4)
    return ConUCB(catalogue, num_users, representation=seen, **arguments)


POLICIES = {
    "ConUCB on a network": (on_a_network, {}),
    "ConUCB for clicks on a network": (on_a_network, {"link": Logistic(refit_every=5)}),
    "ConUCB on key-terms": (on_key_terms, {}),
    "ConUCB": (ConUCB, {}),
    "ConThompson": (ConThompson, {}),
    "VarMRC": (VarMRC, {"schedule": LinearSchedule(2, every=4)}),
    "HConUCB": (HConUCB, {"hidden_dim": 2}),
    "HConUCB with refit": (HConUCB, {"hidden_dim": 2, "refit_every": 10}),
    "HConLinUCB, unequal questions": (
        HConLinUCB,
        {"hidden_dim": 2, "refit_every": 7, "schedule": WhileUncertain(0.6, questions=9)},
    ),
    "HVarRS": (HVarRS, {"hidden_dim": 2}),
}


def decisions(make, arguments, processes=None, **world):
    """(round, user) -> what the user was asked and shown."""
    environment = small_world(hidden=2, **world)
    if processes is not None:
        environment.split(processes)
    policy = make(environment.catalogue, environment.num_users, **arguments)
    Simulation(policy, environment, rounds=1, precision="64-true")  # joins policy and environment
    log = {}
    for number in range(ROUNDS):
        played = play_round(policy, environment)
        users = played.context.users.tolist()
        asked = {user: [] for user in users}
        for question, _ in played.dialogue:
            for user, term in zip(
                played.context.users[question.rows].tolist(), question.about.of, strict=True
            ):
                asked[user].append(int(term))
        for user, arm in zip(users, played.arm_ids.tolist(), strict=True):
            log[number, user] = asked[user], arm
    return log


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(("size", "present"), [(2, None), (3, 3)], ids=["everyone", "three a round"])
def test_decisions_do_not_depend_on_the_number_of_processes(name, size, present):
    """With three users a round, a process often has none of them, and must still follow the others."""
    make, arguments = POLICIES[name]
    whole = decisions(make, arguments, users_per_round=present)
    parts = together(size, lambda processes: decisions(make, arguments, processes, users_per_round=present))
    assert {key: value for part in parts for key, value in part.items()} == whole
    assert any(asked for asked, _ in whole.values())


@pytest.mark.parametrize("name", POLICIES)
def test_decisions_do_not_depend_on_the_number_of_processes_where_rewards_are_late(name):
    """Processes get as many parts of feedback as the others, some of them empty."""
    make, arguments = POLICIES[name]
    delay = GeometricDelay(2.0, lost=0.1)
    whole = decisions(make, arguments, delay=delay)
    parts = together(2, lambda processes: decisions(make, arguments, processes, delay=delay))
    assert {key: value for part in parts for key, value in part.items()} == whole


class Arriving(Synthetic):
    """Users 2 and 6, the last of each of two processes, come from the tenth round on."""

    def visitors(self):
        users = self._everyone
        return users if int(self.step) >= 10 else users[(users != 2) & (users != 6)]


def arriving(make, arguments, processes=None):
    world = Arriving(users=7, arms=60, terms=12, dim=6, pool=9, max_terms=3, hidden=2, seed=3)
    known = world.num_users
    if processes is not None:
        world.split(processes)
        known = world.num_users - 1
    policy = make(world.catalogue, known, **arguments)
    policy.share(world.processes)
    log = {}
    for number in range(ROUNDS):
        if number == 10:
            policy.grow(world.num_users)
        played = play_round(policy, world)
        for user, arm in zip(played.context.users.tolist(), played.arm_ids.tolist(), strict=True):
            log[number, user] = arm
    return log


@pytest.mark.parametrize("name", POLICIES)
def test_users_who_arrive_in_split_runs_are_treated_as_if_they_had_been_there(name):
    make, arguments = POLICIES[name]
    whole = arriving(make, arguments)
    parts = together(2, lambda processes: arriving(make, arguments, processes))
    assert {key: value for part in parts for key, value in part.items()} == whole


def simulation(processes=None, rounds=ROUNDS, **arguments):
    environment = small_world(hidden=2)
    if processes is not None:
        environment.split(processes)
    policy = HConUCB(environment.catalogue, environment.num_users, hidden_dim=2, refit_every=10)
    return Simulation(policy, environment, rounds=rounds, log_every=5, precision="64-true", **arguments)


def test_every_process_reads_the_metrics_of_all_users():
    whole = simulation().run()
    for records in together(2, lambda processes: simulation(processes).run()):
        for one, other in zip(records, whole, strict=True):
            for name in ("cumulative_regret", "regret", "reward", "prediction_error", "questions"):
                assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9)
            assert (one.effective_terms is None) == (other.effective_terms is None)  # until somebody is asked
            if other.effective_terms is not None:
                assert one.effective_terms == pytest.approx(other.effective_terms, rel=1e-9)


def test_hidden_features_stay_equal_on_all_processes_bit_for_bit():
    def work(processes):
        made = simulation(processes)
        made.run()
        return made.policy.representation.hidden

    one, other = together(2, work)
    torch.testing.assert_close(one, other, **EXACT)
    alone = simulation()
    alone.run()
    torch.testing.assert_close(one, alone.policy.representation.hidden, **ALGEBRA)


def test_a_checkpoint_holds_all_processes_and_a_run_goes_on_from_it(tmp_path):
    def first(processes):
        made = simulation(processes)
        made.rounds = 15
        made.run()
        write_checkpoint(tmp_path, made.state(), processes)

    def second(processes):
        made = simulation(processes)
        made.restore(latest_checkpoint(tmp_path, processes))
        assert made.round == 15
        return made.run()[-1].cumulative_regret

    together(2, first)
    (path,) = list_checkpoints(tmp_path)
    assert sorted(file.name for file in path.iterdir()) == [
        "manifest.json",
        "state-1.safetensors",
        "state.safetensors",
    ]
    uninterrupted = together(2, lambda processes: simulation(processes).run()[-1].cumulative_regret)
    assert together(2, second) == uninterrupted


def test_a_checkpoint_of_another_number_of_processes_is_refused(tmp_path):
    def write(processes):
        write_checkpoint(tmp_path, simulation(processes).state(), processes)

    together(2, write)
    with pytest.raises(OtherProcessesError, match="written by 2 processes, and this run has 1: use as many"):
        latest_checkpoint(tmp_path)


def test_all_processes_pass_over_a_checkpoint_that_one_cannot_read(tmp_path):
    def write(processes):
        for rounds in (5, 10):
            made = simulation(processes, rounds)
            made.run()
            write_checkpoint(tmp_path, made.state(), processes)

    together(2, write)
    (tmp_path / "000000010" / "state-1.safetensors").write_bytes(b"nothing")
    found = together(2, lambda processes: latest_checkpoint(tmp_path, processes).round)
    assert found == [5, 5]


def test_processes_with_other_kernels_or_other_data_do_not_work_together():
    """Each would take its own hidden features, which all users share, for those of all."""
    for unlike in ({"kernels": "torch"}, {"data": "b" * 64}, {"version": "9"}):
        own = Origin(version="1", kernels="numba 1", data="a" * 64)

        def work(processes, own=own, unlike=unlike):
            refuse_unlike_processes(replace(own, **unlike) if processes.rank == 1 else own, processes)

        with pytest.raises(OtherOriginError, match="another process has something else"):
            together(3, work)
        together(3, partial(refuse_unlike_processes, own))


def test_a_recording_is_split_too():
    def regrets(processes):
        environment = Recorded(REPOSITORY / "tests" / "golden" / "conucb_trace.npz")
        environment.split(processes)
        policy = ConUCB(environment.catalogue, environment.num_users)
        played = [play_round(policy, environment).arm_ids for _ in range(30)]
        return torch.stack(played, dim=1)

    whole = regrets(Processes())
    torch.testing.assert_close(torch.cat(together(2, regrets)), whole, **EXACT)


class Still(Environment):
    """A stranger's environment, which knows nothing of processes."""

    observe = answer = pull = expected = None


def test_what_cannot_be_split_says_so():
    with pytest.raises(ValueError, match="Still cannot be split over processes"):
        Still().split(Processes(0, 2))
    with pytest.raises(ValueError, match="7 users cannot be split over 20 processes"):
        small_world().split(Processes(0, 20))


@pytest.mark.slow
def test_two_processes_stopped_and_resumed_by_torchrun_end_like_one(tmp_path):
    policies = {
        "hConUCB": {"class_path": "HConUCB", "init_args": {"hidden_dim": 2, "refit_every": 50}},
        "ConUCB": {"class_path": "ConUCB"},
    }
    settings = {"rounds": 300, "seeds": "0", "precision": "64-true", "checkpoint_every": 50}
    config = write(tmp_path, GOOD | settings | {"policies": policies})
    assert main(["run", str(config), "--out", str(tmp_path / "alone")]) == 0
    out = tmp_path / "split"
    process = start("run", config, "--out", out, "--devices", "2")
    wait_for(lambda: list_checkpoints(out / "hConUCB" / "seed0" / "checkpoints"))
    process.terminate()  # the first tells the other
    assert "stopped after round" in process.communicate()[1]
    assert process.returncode == 130
    resume = ["--nproc-per-node", "2", "-m", "conbandit_torch", "resume", str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *resume], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    for name in policies:
        whole, split = (rows(tmp_path / f / name / "seed0" / "metrics.csv") for f in ("alone", "split"))
        for column in ("cumulative_regret", "prediction_error", "questions"):
            assert [float(row[column]) for row in split] == pytest.approx(
                [float(row[column]) for row in whole], rel=1e-9
            )


def test_several_processes_and_several_jobs_at_once_are_refused(tmp_path, capsys):
    assert main(["run", str(write(tmp_path, GOOD)), "--devices", "2", "--jobs", "2"]) == 2
    assert "use one or the other" in capsys.readouterr().err
    assert main(["run", str(write(tmp_path, GOOD)), "--num-nodes", "0"]) == 2
    assert "--num-nodes must be at least 1, got 0" in capsys.readouterr().err


def test_what_was_drawn_for_all_users_is_not_kept_for_a_share_of_them():
    world, untouched = small_world(), small_world()
    everyone = world.observe().arms  # drawn ahead, of all seven
    for environment in (world, untouched):
        environment.split(Processes(1, 2))
    share = world.observe().arms
    assert torch.equal(share, untouched.observe().arms) and torch.equal(share, everyone[-len(share) :])
