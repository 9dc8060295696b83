"""A stranger's classes: the documentation's work as printed, one of a new kind works, wrong ones are told."""

import csv
import json
import re
import runpy
import sys

import pytest
import torch
import yaml

from conbandit_torch import (
    Bandit,
    Callback,
    ConUCB,
    ConversationMixin,
    LinearBandit,
    LinUCB,
    Observed,
    Representation,
    Schedule,
    Selection,
    Simulation,
    WhileUncertain,
    play_round,
)
from conbandit_torch.commands.main import main
from conbandit_torch.configuration.load import load
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.testing import CHECKS
from tests.conftest import REPOSITORY, small_world
from tests.helpers.configs import GOOD, changed, write
from tests.helpers.documents import blocks

# The documentation.

PAGE = REPOSITORY / "docs" / "extending.md"
GUIDE = PAGE.read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A user's folder, which is the current one; modules imported from there are forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def test_the_guides_files_run_as_printed(folder):
    for block in blocks(PAGE):  # files to write; `tests/documentation` tries the command at a small size
        if block.file:
            (folder / block.file).write_text(block.code)
            if block.language == "python":
                assert len(block.code.splitlines()) <= 43, block.file
    assert main(["run", "mine.yaml", "--out", "results"]) == 0
    with (folder / "results" / "summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["policy"] for row in rows] == [
        name for name in ("LinUCB", "Fourier", "Novelty", "ConNovelty") for _ in range(2)
    ]
    assert all("error" not in row for row in rows)
    asked = (folder / "results" / "ConNovelty" / "seed1" / "questions.csv").read_text().splitlines()
    assert len(asked) == 1 + 20 * 11  # a header, and floor(12 (1 - exp(-60 / 10))) questions to 20 users
    assert (folder / "results" / "LinUCB" / "seed0" / "questions.csv").read_text() == asked[0] + "\n"
    checks = runpy.run_path("test_mine.py")
    checks["test_my_bandits_keep_the_contract"]()


def test_everything_that_the_guide_names_exists():
    import conbandit_torch.environments.drawn as environments

    for name in re.findall(r"`([A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*)[`(]", GUIDE):
        known = (sys.modules["conbandit_torch"], environments)
        assert any(hasattr(module, name) for module in known) or f"class {name}(" in GUIDE, name
    for hook in re.findall(r"^\| `(\w+)\(", GUIDE, re.MULTILINE):
        assert hasattr(LinearBandit, hook)


# A bandit of a kind that the package does not have, in 30 lines.


class Discounted(LinearBandit):
    """LinUCB that forgets: M and b return to where they started by a few percent with every observation."""

    def __init__(
        self,
        catalogue,
        num_users,
        *,
        discount: float = 0.97,
        alpha: float = 0.3,
        ridge: float = 1.0,
        seed: int = 0,
    ):
        super().__init__(catalogue, num_users, alpha=alpha, ridge=ridge, seed=seed)
        self.discount = discount

    def learn(self, context, arm, reward):
        model, who = self.arm_model, context.users
        start = model.ridge * torch.eye(model.dim).to(model.gram)
        model.gram[who] = start + self.discount * (model.gram[who] - start)
        model.moment[who] *= self.discount
        model.refresh(who)
        super().learn(context, arm, reward)


class ConDiscounted(ConversationMixin, Discounted):
    pass


class StopOnce(Callback):
    """Stops a run that starts, not one that is resumed."""

    def __init__(self, at: int):
        self.at = at

    def on_start(self, simulation):
        self.resumed = simulation.round > 0
        with (simulation.folder / "starts.txt").open("a") as file:
            file.write(f"{simulation.round}\n")

    def on_round(self, simulation, played):
        if simulation.round == self.at and not self.resumed:
            simulation.stop()


def test_a_new_kind_of_bandit_keeps_the_contract():
    for check in CHECKS:  # what is forgotten depends on what came last
        if check.__name__ != "check_the_order_of_rewards_does_not_matter":
            check(Discounted)
            check(ConDiscounted)


def test_a_bandit_that_forgets_follows_its_equations():
    world = small_world()
    policy = Discounted(world.catalogue, 7, discount=0.8, ridge=0.5)
    M, b = 0.5 * torch.eye(6).double().repeat(7, 1, 1), torch.zeros(7, 6).double()
    for _ in range(20):
        played = play_round(policy, world)
        x = world.catalogue.arm_features[played.arm_ids]
        M = 0.2 * 0.5 * torch.eye(6).double() + 0.8 * M + x[:, :, None] * x[:, None, :]
        b = 0.8 * b + played.outcome.feedback[0].reward[:, None] * x
    torch.testing.assert_close(policy.coefficients(), torch.linalg.solve(M, b), rtol=1e-9, atol=1e-9)


def test_a_new_kind_of_bandit_is_run_stopped_resumed_reported_and_drawn(folder, capsys, monkeypatch):
    policies = {name: f"tests.test_extending.{name}" for name in ("Discounted", "ConDiscounted")}
    stop = {"class_path": "tests.test_extending.StopOnce", "init_args": {"at": 13}}
    config = GOOD | {"rounds": 30, "policies": policies, "callbacks": {"stop": stop}}
    path = str(write(folder, config))
    assert main(["run", path, "--out", "whole", "--callbacks.stop.init_args.at", "99"]) == 0
    assert main(["run", path, "--out", "broken"]) == 130
    left = 4  # two policies, two seeds
    while main(["resume", "broken"]) == 130:
        left -= 1
        assert left
    for name in policies:
        for seed in (0, 1):
            whole, broken = (folder / out / name / f"seed{seed}" for out in ("whole", "broken"))
            assert (whole / "starts.txt").read_text() == "0\n"
            assert (broken / "starts.txt").read_text() == "0\n13\n"
            one, other = (json.loads((job / "result.json").read_text()) for job in (whole, broken))
            assert one["fingerprint"] == other["fingerprint"]
            metrics = [(job / "metrics.csv").read_text().splitlines() for job in (whole, broken)]
            first, second = (
                [line.rpartition(",")[0] for line in lines] for lines in metrics
            )  # without times
            assert first == second and [line.partition(",")[0] for line in first[-3:]] == ["10", "20", "30"]
    capsys.readouterr()
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["report", "broken"]) == 0
    assert main(["plot", "broken"]) == 0
    assert capsys.readouterr().out.count("ConDiscounted") >= 2
    assert "ConDiscounted" in (folder / "broken" / "report.md").read_text()
    assert list((folder / "broken" / "plots").glob("*.png"))


# Callbacks from YAML.


def test_callbacks_are_part_of_the_config_and_new_for_every_job(tmp_path):
    stop = {"class_path": "tests.test_extending.StopOnce", "init_args": {"at": 13}}
    experiment = load(write(tmp_path, GOOD | {"callbacks": {"stop": stop}}))
    assert yaml.safe_load(experiment.dump("Con", 1))["callbacks"] == {"stop": stop}
    assert "callbacks" not in yaml.safe_load(load(write(tmp_path, GOOD)).dump())


@pytest.mark.parametrize(
    ("callbacks", "message"),
    [
        ([1], r"callbacks: expected a mapping of names to callbacks, got \[1\]"),
        (
            {"a": "tests.test_extending.Discounted"},
            "callbacks.a: tests.test_extending.Discounted is not a kind of Callback",
        ),
        ({"a": "Nowhere"}, "callbacks.a: unknown class 'Nowhere'; your own is named module.Class"),
        ({"a": "tests.test_extending.StopOnce"}, "callbacks.a.init_args: StopOnce needs the argument 'at'"),
        (
            {"a": {"class_path": "tests.test_extending.StopOnce", "init_args": {"at": "x"}}},
            "callbacks.a.init_args.at: expected int, got x",
        ),
    ],
)
def test_a_wrong_callback_is_told_before_anything_runs(tmp_path, callbacks, message):
    with pytest.raises(ConfigError, match=message):
        load(write(tmp_path, GOOD | {"callbacks": callbacks}))


# Wrong hooks are told: the class, what was expected, what came.


def hook(base, **methods):
    """A subclass `Mine` of the base, or an object of it if it needs no arguments."""
    cls = type("Mine", (base,), methods)
    return cls if issubclass(cls, Bandit) else cls()


def talking(**parts):
    return lambda catalogue, num_users: ConUCB(catalogue, num_users, **parts)


def rule(scores):
    return talking(select=hook(Selection, scores=scores))


def schedule(**methods):
    return talking(schedule=hook(Schedule, **methods))


def linear(base=LinUCB, **methods):
    return hook(base, **methods)


def seeing(encode):
    def build(self, seed):
        self.dim = 6

    return lambda *args: LinUCB(*args, representation=hook(Representation, build=build, encode=encode))


def nan_scores(self, asking):
    scores = torch.zeros(len(asking), 12)
    scores[3, 4] = torch.nan
    return scores


WRONG = {
    r"Mine.scores must give \[7, 12\] numbers, got \[7\]": rule(lambda s, a: torch.zeros(len(a))),
    r"Mine.scores must give \[7, 12\] numbers, got \[12\]": rule(lambda s, a: torch.zeros(12)),
    "Mine.scores must give floating-point numbers, got torch.int64": rule(
        lambda s, a: torch.zeros(len(a), 12, dtype=torch.int64)
    ),
    "Mine.scores must give finite numbers, got nan in row 3": rule(nan_scores),
    r"Mine.scores must give a tensor \[7, 12\], got list": rule(lambda s, a: [1, 2]),
    r"Mine.total must give \[7\] numbers, got \[1\]": schedule(total=lambda s, t: torch.ones(1)),
    r"Mine.total must give a tensor \[7\], got int": schedule(total=lambda s, t: 5),
    "Mine.total must give finite numbers of at least 0, got nan": schedule(total=lambda s, t: t * torch.nan),
    "Mine.total must give finite numbers of at least 0, got inf": schedule(total=lambda s, t: t / 0),
    "Mine.total must give finite numbers of at least 0, got -1.0": schedule(total=lambda s, t: -t),
    "Mine.due must give torch.bool, got torch.int64": talking(
        schedule=hook(WhileUncertain, due=lambda s, a: a.context.rounds)
    ),
    r"Mine.scores must give \[7, 9\] numbers, got \[7\]": linear(scores=lambda s, c: torch.ones(7)),
    r"Mine.encode must give \[60, 6\] numbers, got \[60, 5\]; Mine.dim is 6": seeing(
        lambda s, x, a: x[..., 1:]
    ),
    "Mine.encode must give torch.float64, got torch.float32; Mine.dim is 6": seeing(
        lambda s, x, a: x.float()
    ),
    r"Mine.centre must give \[7, 6\] numbers, got \[7, 1\]": linear(centre=lambda s, who: torch.ones(7, 1)),
    r"Mine.extra must give \[7, 9\] numbers, got \[7, 1\]": linear(
        extra=lambda self, context, theta: torch.ones(7, 1).double()
    ),
    r"Mine.centre must give \[7, 6\] numbers, got \[7, 7\]": linear(
        ConUCB, centre=lambda self, who: torch.ones(7, 7).double()
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_a_wrong_hook_is_told_in_the_first_rounds(message):
    world = small_world()
    policy = WRONG[message](world.catalogue, 7)
    with pytest.raises((ValueError, TypeError), match=message):
        for _ in range(3):  # the third has questions
            play_round(policy, world)


def build(base):
    return hook(base)(small_world().catalogue, 7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hook(Selection), "Mine .*scores"),
        (lambda: hook(Schedule), "Mine .*total"),
        (lambda: build(Bandit), "Mine .*learn"),
        (
            lambda: hook(Callback, on_ruond=None),
            "Mine.on_ruond is not a hook; hooks are on_start, on_round, ",
        ),
        (
            lambda: ConUCB(small_world().catalogue, 7, alhpa=0.2),
            "ConUCB has no argument 'alhpa'; did you mean 'alpha'",
        ),
        (
            lambda: type("Mine", (ConversationMixin, LinUCB), {})(small_world().catalogue, 7, mxi=0.2),
            "Mine has no argument 'mxi'; did you mean 'mix'",
        ),
        (
            lambda: type("Mine", (ConversationMixin, LinUCB), {})(small_world().catalogue, 7, ridge=0.2),
            "Mine has no argument 'ridge'; with two levels the arm level's ridge is 1 - mix",
        ),
        (
            lambda: [
                LinUCB(small_world().catalogue, 7, representation=shared) for shared in 2 * [Observed()]
            ],
            "this Observed belongs to another policy: build one for each",
        ),
    ],
)
def test_what_cannot_work_is_refused_when_it_is_made(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


class Unfinished(Bandit):
    def learn(self, context, arm, reward):
        pass


class UnfinishedRule(Selection):
    pass


def test_an_unfinished_class_in_a_config_is_told_what_it_lacks(tmp_path):
    for key, name, message in (
        ("policies.Con.class_path", "Unfinished", "Unfinished lacks .*scores.*which every Bandit has"),
        (
            "policies.Con.init_args.select",
            "UnfinishedRule",
            "UnfinishedRule lacks scores, which every Selection",
        ),
    ):
        config = changed(key, f"tests.test_extending.{name}")
        if name == "Unfinished":
            del config["policies"]["Con"]["init_args"]
        with pytest.raises(ConfigError, match=message):
            load(write(tmp_path, config))


def test_a_simulation_outside_a_job_has_no_folder(world):
    assert Simulation(LinUCB(world.catalogue, 7), world, rounds=1).folder is None
