"""Simulation on prepared data, from Python and from a config."""

import pytest
import torch
import yaml

import conbandit_torch.datasets
from conbandit_torch import ConUCB, LinUCB, Ratings, Simulation
from conbandit_torch.commands.main import main
from conbandit_torch.configuration.build import build_environment
from conbandit_torch.configuration.load import load
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.datasets.base import Prepared, Reader
from conbandit_torch.environments.replay.generated import generate_log
from tests.conftest import ALGEBRA
from tests.helpers.commands import rows

LENGTHS = (3, 9, 6, 9)  # events of each user


def small_data():
    data = generate_log(len(LENGTHS), 40, 8, 6, max(LENGTHS), 3, 0.1, seed=1)
    keep = data.times < torch.tensor(LENGTHS)[data.users]
    events = {name: getattr(data, name)[keep] for name in ("users", "items", "clicks", "times")}
    return Prepared(**vars(data) | events)


class Source(Reader):
    """A reader for configs; what it reads does not matter here."""

    def __init__(self, path: str, least: int = 1) -> None:
        self.path, self.least = path, least

    def files(self):
        return []

    def read(self):
        raise NotImplementedError


@pytest.fixture
def prepare(monkeypatch):
    """Stands in for the preparation, and notes what it is asked for."""
    asked = []

    class Module:
        @staticmethod
        def prepare(reader, **how):
            asked.append((reader, how))
            return small_data()

    monkeypatch.setitem(__import__("sys").modules, "conbandit_torch.datasets.prepare", Module)
    monkeypatch.setattr(conbandit_torch.datasets, "prepare", Module, raising=False)
    return asked


def config(tmp_path, **arguments):
    path = tmp_path / "ratings.yaml"
    source = {"class_path": "tests.environments.test_ratings.Source", "init_args": {"path": "somewhere"}}
    environment = {"class_path": "Ratings", "init_args": {"data": source, "pool": 9} | arguments}
    policies = {"Lin": {"class_path": "LinUCB"}, "Con": {"class_path": "ConUCB"}}
    path.write_text(
        yaml.safe_dump({"rounds": 6, "environment": environment, "policies": policies}, sort_keys=False)
    )
    return path


def test_the_fitted_preferences_are_the_truth():
    data = small_data()
    world = Ratings(data, pool=9, noise=0.0, seed=3)
    assert (world.num_users, world.catalogue.num_arms) == (4, 40)
    assert world.catalogue.term_names == tuple(data.term_names)
    context = world.observe()
    means = torch.einsum("bad,bd->ba", data.features[context.arms], data.theta)
    torch.testing.assert_close(world.expected(context), means, **ALGEBRA)
    outcome = world.pull(context, torch.zeros(4, dtype=torch.int64))
    torch.testing.assert_close(outcome.feedback[0].reward, means[:, 0], **ALGEBRA)
    torch.testing.assert_close(outcome.regret, means.amax(1) - means[:, 0], **ALGEBRA)


def test_the_most_active_users_are_kept_in_the_datas_order():
    data = small_data()
    world = Ratings(data, pool=9, users=3)
    assert world.user_names == ["user 1", "user 2", "user 3"]
    assert torch.equal(world.theta, data.theta[1:])
    assert Ratings(data, pool=9, users=1).user_names == ["user 1"]  # the first of two with nine events
    with pytest.raises(ValueError, match="users must be from 1 to the 4 users of the data, got 5"):
        Ratings(data, pool=9, users=5)


def test_policies_learn_and_the_data_do_not_change_with_the_seed():
    worlds = [Ratings(small_data(), pool=9, seed=seed) for seed in (1, 2)]
    assert torch.equal(worlds[0].theta, worlds[1].theta)
    assert not torch.equal(worlds[0].observe().arms, worlds[1].observe().arms)
    *_, middle, last = Simulation(LinUCB(worlds[0].catalogue, 4), worlds[0], rounds=60, log_every=30).run()
    assert last.cumulative_regret < 1.5 * middle.cumulative_regret  # 2 if nothing was learned
    assert last.theta_error < middle.theta_error and last.ctr is None


def test_hidden_features_are_split_off():
    world = Ratings(small_data(), pool=9, hidden=2)
    assert world.catalogue.dim == 4 and world.theta.shape == (4, 6)
    Simulation(ConUCB(world.catalogue, 4), world, rounds=5).run()


def test_a_config_names_the_reader(tmp_path, prepare):
    path = config(tmp_path, dim=6, ridge=0.5, users=2, cache="kept", hidden=1)
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 0
    assert [row["policy"] for row in rows(tmp_path / "out" / "summary.csv")] == ["Lin", "Con"]
    reader, how = prepare[0]
    assert (reader.path, reader.least) == ("somewhere", 1)
    assert how == {"dim": 6, "ridge": 0.5, "seed": 0, "use_feedback_columns": True, "cache": "kept"}
    held = yaml.safe_load((tmp_path / "out" / "Lin" / "seed0" / "config.yaml").read_text())
    assert held["environment"]["init_args"]["data"]["init_args"] == {"path": "somewhere", "least": 1}


def test_bad_arguments_in_a_config_are_named(tmp_path, prepare):
    experiment = load(config(tmp_path, users=5))
    with pytest.raises(ConfigError, match=r"ratings.yaml: environment: users must be from 1 to the 4 users"):
        build_environment(experiment, 0)
    with pytest.raises(
        ConfigError, match=r"environment.init_args.data.init_args: Source has no argument 'pth'"
    ):
        load(config(tmp_path), [("environment.init_args.data.init_args.pth", "x")])
    with pytest.raises(ConfigError, match=r"environment.init_args.data: unknown class 'Nowhere'"):
        load(config(tmp_path), [("environment.init_args.data", "Nowhere")])
