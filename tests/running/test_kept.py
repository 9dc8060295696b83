"""Policies that finished jobs keep, and folders that are passed on."""

import json
from dataclasses import replace

import pytest
import torch

from conbandit_torch import (
    Bandit,
    CoFineUCB,
    ConfigError,
    Context,
    ConUCB,
    DataError,
    Experiment,
    HConUCB,
    LinUCB,
    LogSchedule,
    Simulation,
    load_policy,
)
from conbandit_torch.bandits import pretrained
from conbandit_torch.core.digests import fingerprint
from conbandit_torch.core.seals import sealed, unsealed
from conbandit_torch.running import kept
from conbandit_torch.running.job import build
from conbandit_torch.running.result import read_result
from tests.conftest import small_world
from tests.helpers.configs import GOOD, changed, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    Experiment.from_yaml(write(folder, GOOD)).run(folder / "out", progress=False)
    return folder / "out"


@pytest.fixture
def copied(folder, tmp_path):
    import shutil

    return shutil.copytree(folder, tmp_path / "copy")


class Mine(LinUCB):
    """A policy of a stranger's."""


def test_a_kept_policy_is_the_one_that_the_run_ended_with(folder, tmp_path):
    simulation = build(Experiment.from_yaml(write(tmp_path, GOOD)).plan, ("Con", 1), 1)
    simulation.run()
    policy = load_policy(folder, "Con", seed=1)
    assert type(policy) is ConUCB and policy.arm_model.weight == 0.3  # mix
    assert fingerprint(policy.state_dict()) == fingerprint(simulation.policy.state_dict())
    assert fingerprint(policy.state_dict()) == read_result(folder / "Con" / "seed1").fingerprint
    context = Context(torch.arange(4), torch.arange(40).expand(4, 40), rounds=12, catalogue=policy.catalogue)
    assert torch.equal(policy.choose(context), simulation.policy.choose(context))


def test_it_takes_the_runs_catalogue_and_no_other(folder):
    sizes = GOOD["environment"]["init_args"]
    own = small_world(**sizes, seed=1).catalogue
    with pytest.raises(ConfigError, match="the policy is in 32-true, the catalogue in torch.float64"):
        load_policy(folder, "Con", 1, catalogue=own)
    assert load_policy(folder, "Con", 1, catalogue=own.float()).catalogue is own
    other = small_world(**sizes, seed=2).catalogue.float()
    with pytest.raises(ConfigError, match="learned on another catalogue"):
        load_policy(folder, "Con", 1, catalogue=other)


def test_another_precision_is_converted_in_words(folder, caplog):
    policy = load_policy(folder, "Lin", precision="64-true")
    assert policy.arm_model.gram.dtype == torch.float64
    assert torch.equal(policy.arm_model.gram.float(), load_policy(folder, "Lin").arm_model.gram)
    assert "was kept in 32-true and is converted to 64-true" in caplog.text
    with pytest.raises(ConfigError, match="precision must be one of 32-true, 64-true"):
        load_policy(folder, "Lin", precision="16")


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (("Cone",), "there is no policy 'Cone' .did you mean 'Con'"),
        (("Con", 5), "Con was not run with seed 5; valid: 0, 1"),
    ],
)
def test_a_job_that_is_not_there_is_said(folder, job, words):
    with pytest.raises(ConfigError, match=words):
        load_policy(folder, *job)


def test_a_damaged_file_is_said_and_what_to_do(copied):
    path = copied / "Con" / "seed0" / "policy.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(
        DataError, match=r"policy.safetensors is damaged.*remove .*seed0, and run the experiment again"
    ):
        load_policy(copied, "Con")
    path.unlink()
    with pytest.raises(DataError, match="policy.safetensors: No such file"):
        load_policy(copied, "Con")
    assert load_policy(copied, "Con", 1)


def test_policies_are_kept_unless_told_otherwise(tmp_path):
    Experiment.from_yaml(write(tmp_path, changed("keep_policies", False))).run(
        tmp_path / "out", progress=False
    )
    assert not list((tmp_path / "out").rglob("policy.safetensors"))
    with pytest.raises(ConfigError, match="kept no policy"):
        load_policy(tmp_path / "out", "Con")


def test_results_do_not_depend_on_whether_policies_are_kept(tmp_path):
    plan = Experiment.from_yaml(write(tmp_path, GOOD)).plan
    without = replace(plan, keep_policies=False)
    assert plan.digest("Con", 0) == without.digest("Con", 0)


def test_a_disk_that_cannot_hold_the_policies_is_said_before_anything_runs(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(kept.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1000}))
    with pytest.raises(ConfigError, match="the disk has 0.0 GB left: keep_policies: false keeps none"):
        Experiment.from_yaml(write(tmp_path, GOOD)).run(tmp_path / "out", progress=False)
    monkeypatch.setattr(kept.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 10**13}))
    kept.expect_room(tmp_path, 3 * 10**9)
    assert "the policies to keep take 3.0 GB" in caplog.text


def test_room_is_that_of_the_state(folder):
    policy = load_policy(folder, "Con")
    state = sum(one.nbytes for one in policy.state_dict().values())
    assert kept.kept_bytes(policy, "32-true") == state
    header = 4096  # names, shapes and the config
    assert state < (folder / "Con" / "seed0" / "policy.safetensors").stat().st_size < state + header


@pytest.mark.parametrize("kind", [LinUCB, ConUCB, HConUCB, CoFineUCB, Mine])
def test_a_folder_gives_the_policy_back(kind, tmp_path, world):
    given = {
        ConUCB: {"mix": 0.3, "schedule": LogSchedule(2)},
        CoFineUCB: {"projection": torch.eye(6).double()[:, :2]},
    }
    policy = kind(world.catalogue, world.num_users, **given.get(kind, {}))
    Simulation(policy, world, rounds=10).run()
    policy.save_pretrained(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "model.safetensors"}
    again = Bandit.from_pretrained(tmp_path)
    assert type(again) is kind and repr(again.catalogue) == repr(policy.catalogue)
    assert fingerprint(again.state_dict()) == fingerprint(policy.state_dict())
    assert again.catalogue.term_names == policy.catalogue.term_names
    context = world.observe()
    assert torch.equal(again.choose(context), policy.choose(context))
    again.update(context, again.choose(context), torch.ones(len(context)))  # and it goes on learning


def test_a_policy_that_has_grown_is_given_back_as_it_is(tmp_path, world):
    policy = LinUCB(world.catalogue, 3)
    policy.grow(9)
    policy.save_pretrained(tmp_path)
    assert LinUCB.from_pretrained(tmp_path).num_users == 9


def edited(folder, **changes):
    path = folder / "config.json"
    path.write_text(sealed(unsealed(path.read_text()) | changes))


def test_a_folder_cannot_have_anything_else_called(tmp_path, world):
    ConUCB(world.catalogue, 3, schedule=LogSchedule(2)).save_pretrained(tmp_path)
    with pytest.raises(DataError, match="holds a ConUCB, which is not a kind of HConUCB"):
        HConUCB.from_pretrained(tmp_path)
    edited(tmp_path, class_path="nowhere.Policy")
    with pytest.raises(
        DataError, match="names nowhere.Policy, which is not imported: import nowhere, if you trust it"
    ):
        Bandit.from_pretrained(tmp_path)
    for name in ("subprocess.Popen", "conbandit_torch.prepare"):
        part = {"class_path": name, "init_args": {"args": ["touch", str(tmp_path / "called")]}}
        edited(tmp_path, class_path="conbandit_torch.ConUCB", init_args={"schedule": part})
        with pytest.raises(DataError, match=name):
            Bandit.from_pretrained(tmp_path)
    assert not (tmp_path / "called").exists()


def test_damage_to_a_folder_is_said(tmp_path, world):
    LinUCB(world.catalogue, 3).save_pretrained(tmp_path)
    config = tmp_path / pretrained.CONFIG
    text = config.read_text()
    config.write_text(json.dumps(json.loads(text) | {"num_users": 4}))
    with pytest.raises(DataError, match="config.json is damaged: its checksum"):
        LinUCB.from_pretrained(tmp_path)
    config.write_text(text)
    edited(tmp_path, format=7)
    with pytest.raises(DataError, match="format 7"):
        LinUCB.from_pretrained(tmp_path)
    config.write_text(text)
    edited(tmp_path, init_args={"alhpa": 1.0})
    with pytest.raises(DataError, match="LinUCB has no argument 'alhpa'"):
        LinUCB.from_pretrained(tmp_path)
    with (tmp_path / pretrained.MODEL).open("ab") as file:
        file.write(b"x")
    with pytest.raises(DataError, match="model.safetensors is damaged"):
        LinUCB.from_pretrained(tmp_path)
    with pytest.raises(DataError, match="`save_pretrained` writes one"):
        LinUCB.from_pretrained(tmp_path / "nowhere")
