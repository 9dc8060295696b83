"""Lightning loggers beside TensorBoard, by a line of YAML."""

import json
import struct
import subprocess
import sys

import pytest
from lightning.fabric.loggers.logger import Logger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from conbandit_torch.commands.main import main
from tests.helpers.commands import numbers, rows
from tests.helpers.configs import GOOD, write

CSV = "lightning.pytorch.loggers.CSVLogger"
ONE = GOOD | {"seeds": "0", "policies": {"Con": GOOD["policies"]["Con"]}}


def run(tmp_path, node, out="out", **config):
    path = write(tmp_path, ONE | config | ({"loggers": {"other": node}} if node else {}))
    return main(["run", str(path), "--out", str(tmp_path / out)])


def logged_to_tensorboard(folder):
    """{tag: {round: value}} of all scalars."""
    events = EventAccumulator(str(folder)).Reload()
    return {
        tag: {point.step: pytest.approx(point.value, rel=1e-6) for point in events.Scalars(tag)}
        for tag in events.Tags()["scalars"]
    }


def in_columns(table):
    """{tag: {round: value}} of CSVLogger's rows."""
    tags = [name for name in table[0] if name != "step"]
    return {tag: {int(row["step"]): float(row[tag]) for row in table if row[tag]} for tag in tags}


@pytest.mark.parametrize("node", [CSV, {"class_path": CSV, "init_args": {"name": "mine"}}])
def test_a_logger_receives_what_tensorboard_does(node, tmp_path):
    assert run(tmp_path, node) == 0
    job = tmp_path / "out" / "Con" / "seed0"
    name = "lightning_logs" if node == CSV else "mine"
    table = rows(job / name / "version_0" / "metrics.csv")
    assert in_columns(table) == logged_to_tensorboard(job)
    assert "mix: 0.3" in (job / name / "version_0" / "hparams.yaml").read_text()


def test_numbers_do_not_depend_on_loggers(tmp_path):
    assert run(tmp_path, None, out="without") == 0
    assert run(tmp_path, {"class_path": CSV, "init_args": {"save_dir": str(tmp_path / "csv")}}) == 0
    assert numbers(tmp_path / "out") == numbers(tmp_path / "without")
    # And the same results are taken for the same experiment's.
    assert run(tmp_path, None) == 0


class Broken(Logger):
    """Fails at the first number."""

    name = version = "broken"

    def log_metrics(self, metrics, step=None):
        raise RuntimeError("out of ink")

    def log_hyperparams(self, params, *args, **kwargs):
        pass


BROKEN = "tests.callbacks.test_loggers.Broken"


def test_a_logger_that_fails_is_left_out_and_the_run_goes_on(tmp_path, caplog):
    assert run(tmp_path, BROKEN) == 0
    assert "logger other failed and is left out from here on: RuntimeError: out of ink" in caplog.text
    assert run(tmp_path, None, out="without") == 0
    assert numbers(tmp_path / "out") == numbers(tmp_path / "without")
    assert logged_to_tensorboard(tmp_path / "out" / "Con" / "seed0")


def test_or_it_stops_the_run_if_told_to(tmp_path, capsys):
    assert run(tmp_path, BROKEN, if_logger_fails="stop") == 1
    assert "RuntimeError: out of ink" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ("CSVLogger", "a logger is named by its path, for example lightning.pytorch.loggers.CSVLogger"),
        ("lightning.pytorch.loggers.CVSLogger", "loggers.other.class_path: lightning.pytorch.loggers.CVSLogger"),
        ("conbandit_torch.LinUCB", "conbandit_torch.LinUCB is not a logger such as"),
        ({"class_path": CSV, "init_args": {"nam": "x"}}, f"{CSV} has no argument 'nam' (did you mean 'name'?)"),
        ({"class_path": CSV, "init_args": [1]}, "init_args: expected arguments by name, got [1]"),
        (3, "loggers.other: expected class_path and init_args, got 3"),
    ],
)  # fmt: skip
def test_a_logger_that_cannot_be_made_is_refused_before_anything_runs(node, message, tmp_path, capsys):
    assert run(tmp_path, node) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_a_resumed_job_logs_all_its_records_in_a_new_run(tmp_path):
    stopping = {"stop": {"class_path": "tests.helpers.simulations.StopAt", "init_args": {"number": 6}}}
    assert run(tmp_path, CSV, callbacks=stopping) == 130
    assert main(["resume", str(tmp_path / "out")]) == 0
    job = tmp_path / "out" / "Con" / "seed0"
    found = in_columns(rows(job / "lightning_logs" / "version_1" / "metrics.csv"))
    for tag in ("Regret/cumulative", "reward/mean", "error/theta"):
        assert found[tag] == logged_to_tensorboard(job)[tag]


@pytest.mark.slow
def test_mlflow_receives_what_tensorboard_does(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="needs mlflow (pip install mlflow-skinny)")
    store = f"file:{tmp_path / 'mlruns'}"
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    node = {"class_path": "lightning.pytorch.loggers.MLFlowLogger", "init_args": {"tracking_uri": store}}
    assert run(tmp_path, node) == 0
    client = mlflow.MlflowClient(store)
    (found,) = client.search_runs([client.get_experiment_by_name("lightning_logs").experiment_id])
    assert found.info.run_name == "Con/seed0" and found.info.status == "FINISHED"
    assert found.data.params["mix"] == "0.3"
    expected = logged_to_tensorboard(tmp_path / "out" / "Con" / "seed0")
    assert found.data.metrics.keys() == expected.keys()
    for tag in expected:
        history = client.get_metric_history(found.info.run_id, tag)
        assert {point.step: point.value for point in history} == expected[tag]


@pytest.mark.slow
def test_weights_and_biases_receives_what_tensorboard_does(tmp_path):
    pytest.importorskip("wandb", reason="needs wandb (pip install wandb)")
    node = {
        "class_path": "lightning.pytorch.loggers.WandbLogger",
        "init_args": {"offline": True, "project": "bandits"},
    }
    path = write(tmp_path, GOOD | {"loggers": {"wandb": node}})
    done = subprocess.run(
        [sys.executable, "-m", "conbandit_torch", "run", path, "--out", tmp_path / "out"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0 and "left out" not in done.stderr, done.stderr
    for job in [tmp_path / "out" / policy / f"seed{seed}" for policy in ("Lin", "Con") for seed in (0, 1)]:
        (file,) = job.glob("wandb/offline-run-*/run-*.wandb")
        assert read_wandb(file) == logged_to_tensorboard(job)


def leveldb_log(path):
    """The records of a log in LevelDB's format, after W&B's 7 bytes of header."""
    data, place, record = path.read_bytes(), 7, b""
    while place + 7 <= len(data):
        if 2**15 - place % 2**15 < 7:  # the rest of a block is too short for a record
            place += 2**15 - place % 2**15
            continue
        _, length, kind = struct.unpack_from("<IHB", data, place)  # its checksum is W&B's business
        record += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # a whole one, or the last part
            yield record
            record = b""


def read_wandb(path):
    """{tag: {round: value}} of a file of Weights & Biases."""
    from wandb.proto import wandb_internal_pb2

    found = {}
    for data in leveldb_log(path):
        record = wandb_internal_pb2.Record.FromString(data)
        items = {
            (item.key or "/".join(item.nested_key)): json.loads(item.value_json)
            for item in record.history.item
        }
        for tag, value in items.items():
            if not tag.startswith("_") and tag != "trainer/global_step":
                found.setdefault(tag, {})[items["trainer/global_step"]] = value
    return found
