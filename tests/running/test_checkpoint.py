"""Checkpoints: exact, never half-written, safe to load; what is damaged is named."""

import hashlib
import json
import math
import pickle
import shutil
from functools import partial

import pytest
import torch
from safetensors.torch import save_file

from conbandit_torch import (
    ArmCon,
    Callback,
    ConLinUCB,
    ConLogisticUCB,
    ConNeuralLinear,
    ConUCB,
    HArmCon,
    HConUCB,
    HiddenOnTerms,
    HLinUCB,
    LinUCB,
    Logistic,
    Network,
    Random,
    RefitSchedule,
    Simulation,
    VarRS,
)
from conbandit_torch.callbacks.base import StoppedError
from conbandit_torch.callbacks.checkpoints import Checkpoint
from conbandit_torch.callbacks.metrics_file import MetricsFile
from conbandit_torch.core.digests import fingerprint
from conbandit_torch.core.seals import sealed, unsealed
from conbandit_torch.running.checkpoint import (
    FORMAT,
    CheckpointError,
    SavedState,
    latest_checkpoint,
    list_checkpoints,
    read_checkpoint,
    write_checkpoint,
)
from conbandit_torch.running.metrics import records_from_tensor, records_to_tensor
from conbandit_torch.running.record import Record
from tests.conftest import small_world
from tests.helpers.commands import rows
from tests.helpers.simulations import StopAt, comparable


def on_key_terms(catalogue, num_users, **arguments):
    """ConUCB with hidden features on key-terms, and refits that get rarer."""
    hidden = HiddenOnTerms(2, refit_every=RefitSchedule(3, growth=0.2))
    return ConUCB(catalogue, num_users, representation=hidden, **arguments)


def on_a_network(kind, catalogue, num_users, seed):
    own = Network(steps=6, batch=8, hidden=5, outputs=3, refit_every=7)
    return kind(catalogue, num_users, representation=own, seed=seed)


POLICIES = {
    "ConUCB on key-terms": (on_key_terms, {}),
    "Random": (Random, {}),
    "LinUCB": (LinUCB, {}),
    "ConUCB": (ConUCB, {}),
    "VarRS": (VarRS, {}),
    "ArmCon": (ArmCon, {}),
    "ConLinUCB": (ConLinUCB, {}),
    "hLinUCB": (HLinUCB, {"hidden_dim": 2}),
    "hConUCB+refit": (HConUCB, {"hidden_dim": 2, "refit_every": 7}),
    "hArmCon+refit": (HArmCon, {"hidden_dim": 2, "refit_every": 10}),
    "ConLogisticUCB": (ConLogisticUCB, {"link": Logistic(refit_every=7)}),
    "ConNeuralLinear": (partial(on_a_network, ConNeuralLinear), {}),
}


def simulation(name, *callbacks, rounds=40, world=None, **kwargs):
    cls, arguments = POLICIES[name]
    environment = small_world(**(world or {}))
    policy = cls(environment.catalogue, environment.num_users, seed=5, **arguments)
    return Simulation(policy, environment, rounds=rounds, log_every=4, callbacks=callbacks, **kwargs)


@pytest.mark.parametrize("precision", ["32-true", "64-true"])
@pytest.mark.parametrize("world", [{}, {"users_per_round": 3}], ids=["all", "some"])
@pytest.mark.parametrize("name", POLICIES)
def test_a_resumed_simulation_equals_an_uninterrupted_one_bit_for_bit(name, world, precision, tmp_path):
    whole = simulation(name, world=world, precision=precision)
    whole.run()
    broken = simulation(name, StopAt(13), Checkpoint(tmp_path, 100), world=world, precision=precision)
    with pytest.raises(StoppedError, match="stopped after round 13 of 40"):
        broken.run()
    resumed = simulation(name, world=world, precision=precision)
    resumed.restore(latest_checkpoint(tmp_path))
    assert resumed.round == 13
    resumed.run()
    assert comparable(resumed.records) == comparable(whole.records)
    for part in ("policy", "environment", "metrics"):
        ours, theirs = (getattr(s, part).state_dict() for s in (resumed, whole))
        assert fingerprint(ours) == fingerprint(theirs)


def test_the_metrics_file_goes_on_where_the_checkpoint_was(tmp_path):
    def files(folder):
        return MetricsFile(tmp_path / folder / "metrics.csv")

    simulation("ConUCB", files("whole")).run()
    with pytest.raises(StoppedError):
        simulation("ConUCB", files("broken"), StopAt(20), Checkpoint(tmp_path / "checkpoints", 9)).run()
    # As a kill leaves it: rows after the checkpoint, the last one torn.
    with (tmp_path / "broken" / "metrics.csv").open("a") as file:
        file.write("24,1.0,1.0,1.0,1.0,1.0,1.0,1.0\n28,0.")
    resumed = simulation("ConUCB", files("broken"))
    resumed.restore(read_checkpoint(list_checkpoints(tmp_path / "checkpoints")[1]))  # an older one: 18
    assert resumed.round == 18
    resumed.run()
    ours, theirs = (
        [{**row, "seconds": ""} for row in rows(tmp_path / folder / "metrics.csv")]
        for folder in ("broken", "whole")
    )
    assert ours == theirs


def test_checkpoints_are_written_on_time_and_the_last_two_are_kept(tmp_path):
    seen = []

    class Watch(Callback):
        def on_round(self, simulation, played):
            seen.append([int(path.name) for path in list_checkpoints(tmp_path)])

    simulation("LinUCB", Checkpoint(tmp_path, 3), Watch(), rounds=12).run()
    assert seen[2] == [3] and seen[5] == [6, 3] and seen[8] == [9, 6]
    assert seen[11] == [9, 6]  # the last round has results instead


def test_a_half_written_checkpoint_is_not_one(tmp_path):
    write_checkpoint(tmp_path, SavedState(3, {"a": torch.ones(2)}))
    (tmp_path / "000000006.part").mkdir()
    assert [path.name for path in list_checkpoints(tmp_path)] == ["000000003"]
    write_checkpoint(tmp_path, SavedState(6, {"a": torch.ones(3)}))  # over the rest of the broken attempt
    assert latest_checkpoint(tmp_path).tensors["a"].shape == (3,)
    write_checkpoint(tmp_path, SavedState(6, {"a": torch.ones(4)}))  # the same round again
    assert latest_checkpoint(tmp_path).tensors["a"].shape == (4,)


def spoil_truncate(path):
    state = path / "state.safetensors"
    state.write_bytes(state.read_bytes()[:-3])


def spoil_flip(path):
    state = path / "state.safetensors"
    content = bytearray(state.read_bytes())
    content[-1] ^= 1
    state.write_bytes(content)


def spoil_manifest(path):
    (path / "manifest.json").write_text("{")


def spoil_remove_state(path):
    (path / "state.safetensors").unlink()


def spoil_remove_manifest(path):
    (path / "manifest.json").unlink()


def spoil_bit(path):
    """One flipped bit, as of a disk that forgets: round 6 becomes 7."""
    text = (path / "manifest.json").read_text()
    (path / "manifest.json").write_text(text.replace('"round": 6', '"round": 7'))


def forge(path, **changes):
    """Another manifest, with a right checksum."""
    manifest = unsealed((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(sealed(manifest | changes))


def spoil_round(path):
    manifest = unsealed((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(sealed(manifest | {"round": float("inf")}))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoil_truncate, "state.safetensors is damaged: its checksum"),
        (spoil_flip, "state.safetensors is damaged: its checksum"),
        (spoil_manifest, "manifest.json is damaged: it is empty, cut or no JSON"),
        (spoil_bit, "manifest.json is damaged: its checksum is not that of its content"),
        (spoil_remove_state, "state.safetensors: No such file"),
        (spoil_remove_manifest, "no checkpoint (No such file or directory manifest.json)"),
        (spoil_round, "manifest.json is damaged: cannot convert float infinity to integer"),
    ],
)
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_taken(tmp_path, spoil, message, caplog):
    for number in (3, 6):
        write_checkpoint(tmp_path, SavedState(number, {"a": torch.tensor(number)}))
    spoil(tmp_path / "000000006")
    with pytest.raises(CheckpointError) as refused:
        read_checkpoint(tmp_path / "000000006")
    assert str(tmp_path / "000000006") in str(refused.value) and message in str(refused.value)
    assert latest_checkpoint(tmp_path).round == 3
    assert message in caplog.text and "going on from the one before it" in caplog.text


@pytest.mark.parametrize("version", [FORMAT + 1, FORMAT - 1])
def test_another_format_is_refused_and_left_alone(tmp_path, version):
    path = write_checkpoint(tmp_path, SavedState(3, {"a": torch.ones(2)}))
    forge(path, format=version)
    with pytest.raises(CheckpointError, match=f"format {version}, and this version .* reads format {FORMAT}"):
        latest_checkpoint(tmp_path)
    assert path.is_dir()


def test_a_checkpoint_of_the_first_format_is_refused_as_such(tmp_path):
    path = write_checkpoint(tmp_path, SavedState(3, {"a": torch.ones(2)}))
    first = {"format": 1, "round": 3, "sha256": "0" * 64, "others": []}
    (path / "manifest.json").write_text(json.dumps(first))
    with pytest.raises(CheckpointError, match="format 1, and this version"):
        latest_checkpoint(tmp_path)


def test_names_that_only_look_like_numbers_are_no_checkpoints(tmp_path):
    (tmp_path / "²").mkdir()
    (tmp_path / "٣").mkdir()
    assert latest_checkpoint(tmp_path) is None


def test_a_checkpoint_cannot_carry_code(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "exploded"), "w"))

    path = write_checkpoint(tmp_path, SavedState(3, {"a": torch.ones(2)}))
    for content in (pickle.dumps(Bomb()), b"", b"\x00" * 64):
        (path / "state.safetensors").write_bytes(content)
        forge(path, states=[hashlib.sha256(content).hexdigest()])
        with pytest.raises(CheckpointError, match="is not a safetensors file"):
            read_checkpoint(path)
    assert not (tmp_path / "exploded").exists()


def test_a_checkpoint_of_another_policy_is_refused(tmp_path):
    with pytest.raises(StoppedError):
        simulation("LinUCB", StopAt(5), Checkpoint(tmp_path, 100)).run()
    with pytest.raises(
        CheckpointError, match="of another experiment, or of another version of this package: .*asked"
    ):
        simulation("ConUCB").restore(latest_checkpoint(tmp_path))


def test_a_foreign_safetensors_file_is_refused(tmp_path):
    path = write_checkpoint(tmp_path, SavedState(3, {}))
    save_file({"x": torch.ones(1)}, path / "state.safetensors")
    with pytest.raises(CheckpointError, match="checksum"):
        read_checkpoint(path)
    shutil.rmtree(path)
    write_checkpoint(tmp_path, SavedState(3, {"x": torch.ones(1)}))
    with pytest.raises(CheckpointError, match="of another experiment"):
        simulation("LinUCB").restore(latest_checkpoint(tmp_path))


def test_records_with_an_infinite_number_of_events_are_refused():
    record = Record(3, 0.0, 0.0, 0.0, None, None, 0.0, counted=math.inf)
    with pytest.raises(ValueError, match="its number of counted events infinite"):
        records_from_tensor(records_to_tensor([record]))
