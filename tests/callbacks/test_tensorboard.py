"""What TensorBoard shows, read back through its own server."""

import json
import re
import urllib.request
from urllib.parse import urlencode

import numpy as np
import pytest
import torch
from tensorboard import program
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter

from conbandit_torch.callbacks.events import add_histogram
from conbandit_torch.commands.main import main
from tests.helpers.commands import rows
from tests.helpers.configs import GOOD, write


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tensorboard")
    out = folder / "results"
    assert main(["run", str(write(folder, GOOD)), "--out", str(out), "--log_every", "4"]) == 0
    return out


@pytest.fixture(scope="module")
def server(results):
    """A TensorBoard of this process that has read everything; gives a function that fetches JSON from it."""
    board = program.TensorBoard()
    once = ["--reload_task", "blocking", "--reload_interval", "0", "--load_fast", "false"]
    board.configure(
        argv=["tensorboard", "--logdir", str(results), "--host", "127.0.0.1", "--port", "0", *once]
    )
    address = board.launch()  # listens from here on

    def fetch(path, **query):
        with urllib.request.urlopen(f"{address}data/{path}?{urlencode(query)}", timeout=60) as answer:
            return json.load(answer)

    return fetch


def test_the_server_shows_every_run_and_its_regret_curve(server, results):
    singles = ["Con/seed0", "Con/seed1", "Lin/seed0", "Lin/seed1"]
    runs = server("runs")
    assert runs[:2] == ["Lin", "Con"] and sorted(runs[2:]) == singles
    for run in singles:
        points = server("plugin/scalars/scalars", run=run, tag="Regret/cumulative", format="json")
        expected = rows(results / run / "metrics.csv")
        assert [step for _, step, _ in points] == [1, 2, 3, 4, 8, 12]
        for (_, _, value), row in zip(points, expected, strict=True):
            assert value == pytest.approx(float(row["cumulative_regret"]), rel=1e-6)  # stored in float32


def test_the_server_knows_hyper_parameters_and_config(server, results):
    assert "config/text_summary" in server("plugin/text/tags")["Con/seed0"]
    experiment = server("plugin/hparams/experiment", request='{"experimentName": ""}')
    columns = {info["name"] for info in experiment["hparamInfos"]}
    assert columns >= {"policy", "seed", "alpha", "mix", "schedule", "schedule.questions"}
    assert [info["name"]["tag"] for info in experiment["metricInfos"]] == ["Regret/cumulative"]


def test_hyper_parameters_stand_beside_the_end_of_the_real_curve(server, results):
    columns = {"hparams": [{"hparam": name, "includeInResult": True} for name in ("alpha", "mix", "policy")]}
    metric = {"metric": {"group": "", "tag": "Regret/cumulative"}, "includeInResult": True}
    request = {
        "experimentName": "", "colParams": [*columns["hparams"], metric], "startIndex": 0, "sliceSize": 99,
        "allowedStatuses": ["STATUS_SUCCESS", "STATUS_UNKNOWN", "STATUS_RUNNING"],
    }  # fmt: skip
    groups = server("plugin/hparams/session_groups", request=json.dumps(request))["sessionGroups"]
    found = {group["name"]: (group["hparams"], group["metricValues"]) for group in groups}
    assert sorted(found) == ["Con/seed0", "Con/seed1", "Lin/seed0", "Lin/seed1"]
    for name, (arguments, (final,)) in found.items():
        assert "default" not in arguments.values()
        assert arguments["mix"] == (0.3 if name.startswith("Con") else "-")
        last = rows(results / name / "metrics.csv")[-1]
        assert final["value"] == pytest.approx(float(last["cumulative_regret"]), rel=1e-6)


def test_tags_are_stable_and_grouped(results):
    events = EventAccumulator(str(results / "Con" / "seed0")).Reload()
    assert set(events.Tags()["scalars"]) == {
        "Regret/cumulative",
        "Regret/instant",
        "reward/mean",
        "error/theta",
        "error/prediction",
        "questions/per_user",
        "questions/distinct_terms",
        "questions/effective_terms",
        "questions/top10_share",
        "width/arm",
        "width/term",
    }
    assert events.Tags()["histograms"] == ["questions/times_asked"]
    plugins = events.SummaryMetadata("_hparams_/session_start_info").plugin_data
    assert plugins.plugin_name == "hparams"
    text = events.Tensors("config/text_summary")[0].tensor_proto.string_val[0].decode()
    assert re.search(r"class_path: conbandit_torch\.(\w+\.)*ConUCB$", text, re.MULTILINE)


def test_learning_is_shown(tmp_path):
    """Losses fall where they are followed, and what is unsure has a width."""
    on_terms = {"class_path": "HiddenOnTerms", "init_args": {"size": 2, "refit_every": 4}}
    network = {"class_path": "Network", "init_args": {"steps": 30, "outputs": 3, "refit_every": 4}}
    clicks = {"class_path": "Logistic", "init_args": {"refit_every": 4}}
    policies = {
        "per arm": {"class_path": "HConUCB", "init_args": {"hidden_dim": 2, "refit_every": 4}},
        "on key-terms": {"class_path": "HConUCB", "init_args": {"representation": on_terms}},
        "network": {"class_path": "NeuralLinear", "init_args": {"representation": network}},
        "clicks": {"class_path": "ConLogisticUCB", "init_args": {"link": clicks}},
    }
    config = write(tmp_path, GOOD | {"seeds": "0", "policies": policies})
    assert main(["run", str(config), "--out", str(tmp_path / "out"), "--log_every", "4"]) == 0
    shown = {
        "per arm": {"width/hidden", "hidden/last_change", "hidden/refit_seconds"},
        "on key-terms": {"width/hidden", "hidden/squared_error", "hidden/residual_length"},
        "network": {"network/loss_before", "network/loss_after", "network/refit_seconds"},
        "clicks": {"link/refit_loss", "link/refit_seconds", "link/share_at_bound", "width/term"},
    }
    for name, tags in shown.items():
        events = EventAccumulator(str(tmp_path / "out" / name / "seed0")).Reload()
        assert set(events.Tags()["scalars"]) >= tags | {"width/arm"}, name
        last = {tag: events.Scalars(tag)[-1].value for tag in tags}
        assert all(np.isfinite(list(last.values()))), name
        if name == "network":
            assert last["network/loss_after"] < last["network/loss_before"]
        if "width/hidden" in tags:
            assert last["width/hidden"] > 0


def test_the_server_shows_bands_of_all_policies_in_one_chart(server):
    layout = server("plugin/custom_scalars/layout")
    charts = {chart["title"]: chart for category in layout["category"] for chart in category["chart"]}
    assert charts["cumulative regret"]["margin"]["series"] == [
        {
            "value": "Regret/average over seeds",
            "lower": "Regret over seeds/95 % low",
            "upper": "Regret over seeds/95 % high",
        }
    ]


def test_histograms_hold_what_was_logged(tmp_path):
    values = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    with SummaryWriter(str(tmp_path)) as writer:
        add_histogram(writer, "random", values, 1)
        add_histogram(writer, "constant", torch.full((5,), 2.0), 1)
        add_histogram(writer, "partly", torch.tensor([1.0, float("nan"), 3.0, float("inf")]), 1)
        add_histogram(writer, "nothing", torch.full((3,), float("nan")), 1)
    events = EventAccumulator(str(tmp_path)).Reload()
    assert set(events.Tags()["histograms"]) == {"random", "constant", "partly"}
    found = {tag: events.Histograms(tag)[0].histogram_value for tag in events.Tags()["histograms"]}
    assert (found["random"].min, found["random"].max) == (float(values.min()), float(values.max()))
    exact = values.double()
    assert found["random"].sum == pytest.approx(float(exact.sum()), rel=1e-12)
    assert found["random"].sum_squares == pytest.approx(float(exact.square().sum()), rel=1e-12)
    below = [int((values <= limit).sum()) for limit in found["random"].bucket_limit]
    counted = np.cumsum(found["random"].bucket)
    assert len(counted) == 64 and np.abs(counted - below).max() <= 1  # a value may lie on an edge
    assert found["constant"].num == 5 and sum(found["constant"].bucket) == 5
    assert (found["partly"].num, found["partly"].sum) == (2, 4)
