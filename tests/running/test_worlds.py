"""Jobs that share a world: the same results as with a world for each."""

import copy
import json
from pathlib import Path

import pytest

from conbandit_torch import GeneratedLog
from conbandit_torch.commands.main import main
from conbandit_torch.configuration.load import load
from conbandit_torch.core.digests import data_digest
from conbandit_torch.running.job import run_job
from conbandit_torch.running.worlds import Worlds, build_world
from tests.helpers.commands import numbers
from tests.helpers.configs import GOOD, write
from tests.helpers.simulations import StopAt

POLICIES = {
    "Lin": {"class_path": "LinUCB", "init_args": {"alpha": 0.4, "ridge": 0.3}},
    "Thompson": {"class_path": "LinThompson", "init_args": {"ridge": 0.3}},
    "Con": {"class_path": "ConUCB", "init_args": {"mix": 0.3}},
    "hCon": {"class_path": "HConUCB", "init_args": {"hidden_dim": 2}},
}
SIZES = GOOD["environment"]["init_args"]
LATE = {"class_path": "FixedDelay", "init_args": {"late": 3}}
ENVIRONMENTS = {
    "drawn": ("Synthetic", SIZES | {"hidden": 2}),
    "visited": ("Synthetic", SIZES | {"users_per_round": 2, "feedback": "binary", "delay": LATE}),
    "replayed": ("GeneratedLog", {"users": 5, "arms": 40, "terms": 8, "dim": 5, "events": 50, "pool": 4}),
    "logged": ("GeneratedEvents", {"users": 5, "arms": 40, "terms": 8, "dim": 5, "events": 50, "pool": 4}),
}
COUNTED = """
from pathlib import Path
from conbandit_torch import Synthetic

class Counted(Synthetic):
    def __init__(self, path: str, seed: int = 0) -> None:
        with Path(path).open("a") as file:
            file.write(f"{seed} ")
        super().__init__(users=4, arms=40, terms=8, dim=5, pool=6, max_terms=3, seed=seed)
"""


def config_of(kind):
    name, arguments = ENVIRONMENTS[kind]
    part = {"class_path": name, "init_args": arguments}
    return copy.deepcopy(GOOD) | {"rounds": 20, "log_every": 5, "environment": part, "policies": POLICIES}


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """A config whose environment writes down for which seeds it is built, and where."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # of workers
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "counted_world.py").write_text(COUNTED)
    part = {"class_path": "counted_world.Counted", "init_args": {"path": str(tmp_path / "built.txt")}}
    return write(tmp_path, GOOD | {"environment": part}), tmp_path / "built.txt"


def outcome(folder: Path, job):
    """What a job came to, to the bit."""
    result = json.loads((folder / job[0] / f"seed{job[1]}" / "result.json").read_text())
    return result["fingerprint"], result["origin"]["data"]


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_jobs_that_share_a_world_equal_those_with_a_world_each(kind, tmp_path):
    path = write(tmp_path, config_of(kind))
    experiment = load(path)
    assert main(["run", str(path), "--out", str(tmp_path / "shared"), "--threads", "1"]) == 0
    for job in experiment.jobs():
        assert run_job(experiment, tmp_path / "apart", 1, job).last is not None
        assert outcome(tmp_path / "shared", job) == outcome(tmp_path / "apart", job)
    apart, shared = numbers(tmp_path / "apart"), numbers(tmp_path / "shared")
    assert len(apart) >= len(experiment.jobs()) and all(shared[name] == apart[name] for name in apart)
    assert len({outcome(tmp_path / "apart", job) for job in experiment.jobs()}) == len(experiment.jobs())


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_a_job_resumed_in_a_shared_world_equals_an_uninterrupted_one(kind, tmp_path):
    experiment = load(write(tmp_path, config_of(kind)))
    worlds, jobs = Worlds(experiment), experiment.jobs()[:4]
    for job in jobs:
        assert run_job(experiment, tmp_path / "broken", 1, job, StopAt(7), worlds=worlds).stopped
    for job in reversed(jobs):
        assert run_job(experiment, tmp_path / "broken", 1, job, worlds=worlds).last is not None
        assert run_job(experiment, tmp_path / "whole", 1, job).last is not None
        assert outcome(tmp_path / "broken", job) == outcome(tmp_path / "whole", job)
    assert worlds.of(0).environment is worlds.of(0).environment
    worlds.forget()


def test_a_run_builds_a_world_once_per_seed(counted, tmp_path):
    config, built = counted
    assert main(["run", str(config), "--out", str(tmp_path / "out"), "--seeds", "3-4"]) == 0
    assert built.read_text() == "3 4 "
    assert main(["resume", str(tmp_path / "out")]) == 0  # data are compared, and nothing is left to play
    assert built.read_text() == "3 4 3 "


@pytest.mark.slow
def test_workers_build_a_world_once_per_seed_and_give_the_same_results(counted, tmp_path):
    config, built = counted
    words = ["run", str(config), "--seeds", "0-2", "--threads", "1"]
    assert main([*words, "--out", str(tmp_path / "alone")]) == 0
    built.unlink()
    assert main([*words, "--out", str(tmp_path / "beside"), "--jobs", "2"]) == 0
    seeds = built.read_text().split()
    assert seeds[0] == "0" and set(seeds) == {"0", "1", "2"}  # the first to check the config
    assert max(seeds[1:].count(seed) for seed in set(seeds)) <= 2  # one per worker
    for job in load(config, [("seeds", "0-2")]).jobs():
        assert outcome(tmp_path / "alone", job) == outcome(tmp_path / "beside", job)
    assert numbers(tmp_path / "alone") == numbers(tmp_path / "beside")


def test_a_failed_job_leaves_no_world_behind(tmp_path):
    class FailAt(StopAt):
        def on_round(self, simulation, played):
            if simulation.round == self.number:
                raise LookupError("no such thing")

    experiment = load(write(tmp_path, GOOD))
    worlds = Worlds(experiment)
    before = worlds.of(0).environment
    assert "no such thing" in run_job(experiment, tmp_path, 1, ("Lin", 0), FailAt(3), worlds=worlds).error
    assert worlds.of(0).environment is not before
    worlds.forget()


def test_a_world_has_the_runs_precision_and_a_digest_of_what_was_given(tmp_path):
    config = config_of("replayed")
    for precision, dtype in (("32-true", "float32"), ("64-true", "float64")):
        environment, data = build_world(load(write(tmp_path, config | {"precision": precision})), 1)
        assert str(environment.catalogue.arm_features.dtype) == f"torch.{dtype}"
        assert data == data_digest(GeneratedLog(**ENVIRONMENTS["replayed"][1], seed=1))
