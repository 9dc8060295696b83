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
    assert sorted(server("runs")) == [*singles, "aggregate/Con", "aggregate/Lin"]
    for run in singles:
        points = server("plugin/scalars/scalars", run=run, tag="regret/cumulative", format="json")
        expected = rows(results / run / "metrics.csv")
        assert [step for _, step, _ in points] == [4, 8, 12]
        for (_, _, value), row in zip(points, expected, strict=True):
            assert value == pytest.approx(float(row["cumulative_regret"]), rel=1e-6)  # stored in float32


def test_the_server_knows_hyper_parameters_and_config(server):
    assert "config/text_summary" in server("plugin/text/tags")["Con/seed0"]
    columns = {
        info["name"]
        for info in server("plugin/hparams/experiment", request='{"experimentName": ""}')["hparamInfos"]
    }
    assert columns >= {"policy", "seed", "alpha", "mix", "schedule", "schedule.questions"}


def test_tags_are_stable_and_grouped(results):
    events = EventAccumulator(str(results / "Con" / "seed0")).Reload()
    assert set(events.Tags()["scalars"]) == {
        "regret/cumulative",
        "regret/instant",
        "reward/mean",
        "error/theta",
        "error/prediction",
        "questions/per_user",
        "questions/distinct_terms",
        "questions/effective_terms",
        "questions/top10_share",
        "width/arm",
        "width/term",
        "final/cumulative_regret",
    }
    assert events.Tags()["histograms"] == ["questions/times_asked"]
    plugins = events.SummaryMetadata("_hparams_/session_start_info").plugin_data
    assert plugins.plugin_name == "hparams"
    text = events.Tensors("config/text_summary")[0].tensor_proto.string_val[0].decode()
    assert re.search(r"class_path: conbandit_torch\.(\w+\.)*ConUCB$", text, re.MULTILINE)


def test_the_server_shows_bands_of_all_policies_in_one_chart(server):
    layout = server("plugin/custom_scalars/layout")
    charts = {chart["title"]: chart for category in layout["category"] for chart in category["chart"]}
    assert charts["cumulative_regret"]["margin"]["series"] == [
        {
            "value": "over_seeds/cumulative_regret_mean",
            "lower": "over_seeds/cumulative_regret_low",
            "upper": "over_seeds/cumulative_regret_high",
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
