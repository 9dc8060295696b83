"""Tuning: what a trial is, resuming, sharing the work, and bad search spaces."""

import copy
import re
import threading
from functools import partial

import pytest
import yaml
from optuna.samplers import TPESampler
from rich.console import Console

from conbandit_torch.commands.main import main
from conbandit_torch.configuration.build import build_environment
from conbandit_torch.configuration.load import load, read, resolve
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.core.seals import is_as_sealed
from conbandit_torch.running.job import build
from conbandit_torch.tuning.search_space import Tuning, at_the_edge, distribution, read_tunings
from conbandit_torch.tuning.tune import _new_point, finished, open_study, tune
from tests.helpers.commands import conbandit
from tests.helpers.configs import GOOD, LOG, SPACE, TUNABLE, write


def with_space(space, **section):
    return TUNABLE | {"tune": {"seeds": "10-11", "space": space} | section}


@pytest.fixture
def tuning(tmp_path):
    path = write(tmp_path, TUNABLE)
    return read_tunings(read(path), path)[0]


def trials_of(tuning, folder):
    return [(t.params, t.value) for t in open_study(tuning, folder).get_trials() if t.value is not None]


def quiet():
    return Console(quiet=True)


def test_a_trials_value_is_the_mean_regret_on_the_tuning_seeds(tuning, tmp_path):
    best = tune(tuning, tmp_path / "out", quiet(), trials=3)
    assert len(finished(open_study(tuning, tmp_path / "out"))) == 3
    path = tmp_path / "again.yaml"
    config = copy.deepcopy(GOOD)
    config["policies"]["Lin"]["init_args"] |= best.params
    path.write_text(yaml.safe_dump(config))
    regrets = [build(load(path), ("Lin", seed), 1).run()[-1].cumulative_regret for seed in (10, 11)]
    kept = {name: best.user_attrs[name] for name in ("objective", "values")}
    assert kept == {"objective": "regret", "values": regrets} and best.value == sum(regrets) / 2


def test_on_a_replayed_log_it_is_the_click_through_rate(tmp_path, capsys):
    sizes = {"users": 20, "arms": 30, "terms": 5, "dim": 4, "events": 40, "pool": 4}
    world = {"class_path": "GeneratedLog", "init_args": sizes}
    config = TUNABLE | {"environment": world, "rounds": 20}
    assert main(["tune", str(write(tmp_path, config)), "--trials", "1", "--out", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr()
    assert "CTR" in shown.out and ": CTR 0." in shown.err and "1 - CTR" not in shown.out + shown.err
    assert "regret" not in shown.out + shown.err
    assert "Lin: CTR 0." in (tmp_path / "out" / "tuned.yaml").read_text()


def test_the_configs_own_values_are_tried_first(tuning, tmp_path):
    tune(tuning, tmp_path / "out", quiet(), trials=2)
    first, second = trials_of(tuning, tmp_path / "out")
    assert first[0] == {"alpha": 0.4, "ridge": 1.0}  # the config leaves ridge to its default
    assert second[0]["alpha"] != 0.4


def test_an_own_value_outside_the_search_space_is_tried_first_too(tmp_path, capsys):
    space = {"Lin": {"alpha": {"low": 0.01, "high": 0.1}, "ridge": [2.0, 3.0]}}  # the config has 0.4 and 1.0
    path, out = write(tmp_path, with_space(space)), tmp_path / "out"
    assert main(["tune", str(path), "--trials", "3", "--out", str(out)]) == 0
    assert "the config's" in capsys.readouterr().out
    (tuning,) = read_tunings(read(path), path)
    own, *others = trials_of(tuning, out)
    assert own[0] == {}  # nothing is set
    assert all(params["alpha"] <= 0.1 and params["ridge"] >= 2 for params, _ in others)
    seeds = {"seeds": tuning.seeds, "log_every": tuning.config["rounds"]}
    experiment = resolve(tuning.config | seeds, path)
    expected = [build(experiment, ("Lin", seed), 1).run()[-1].cumulative_regret for seed in tuning.seeds]
    assert open_study(tuning, out).get_trials()[0].user_attrs["values"] == expected
    assert main(["tune", str(path), "--trials", "4", "--out", str(out)]) == 0  # and not a second time
    assert [params for params, _ in trials_of(tuning, out)].count({}) == 1


def test_no_point_is_tried_twice(tmp_path, capsys):
    space = {"Lin": {"alpha": [0.1, 0.4], "ridge": {"low": 1, "high": 3, "step": 1}}}
    path = write(tmp_path, with_space(space))
    assert main(["tune", str(path), "--trials", "20", "--out", str(tmp_path / "out")]) == 0
    (tuning,) = read_tunings(read(path), path)
    points = [(params["alpha"], params["ridge"]) for params, _ in trials_of(tuning, tmp_path / "out")]
    assert sorted(points) == [(0.1, 1), (0.1, 2), (0.1, 3), (0.4, 1), (0.4, 2), (0.4, 3)]
    assert points[0] == (0.4, 1)


def test_two_commands_that_ask_at_the_same_time_get_different_points(tuning, tmp_path):
    """Both have seen as many trials, so that their samplers have the same seed."""
    study, space = open_study(tuning, tmp_path), {"alpha": distribution({"low": 0.01, "high": 1.0})}
    study.sampler = TPESampler(seed=0)
    first = study.ask(space).params
    study.sampler = TPESampler(seed=0)
    assert study.ask(space).params == first  # as it would be without a check

    class SameSeed(TPESampler):
        def __init__(self, seed, **options):
            super().__init__(seed=seed if seed > 2 else 0, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("optuna.samplers.TPESampler", SameSeed)
        assert _new_point(study, space, None).params != first


@pytest.mark.parametrize("rest", [b'{"op_code":', b"\x00\x00", b'{"op_code":4,"worker_id":"a"}'])
def test_a_journal_with_a_torn_last_line_goes_on(tuning, tmp_path, rest):
    tune(tuning, tmp_path / "out", quiet(), trials=2)
    before = trials_of(tuning, tmp_path / "out")
    with (tmp_path / "out" / "Lin.journal").open("ab") as file:
        file.write(rest)
    tune(tuning, tmp_path / "out", quiet(), trials=4)
    after = trials_of(tuning, tmp_path / "out")
    assert after[:2] == before and len(after) == 4


def test_a_damaged_journal_is_named(tmp_path, capsys):
    path = write(tmp_path, TUNABLE)
    words = ["tune", str(path), "--trials", "1", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    journal = tmp_path / "out" / "Lin.journal"
    journal.write_bytes(b"nonsense\n" + journal.read_bytes())
    assert main(words) == 2
    assert f"{journal}: damaged (JSONDecodeError" in capsys.readouterr().err


@pytest.mark.parametrize(
    "changed", ['"user_attr": ?{"values"', '"param_value_internal"', '"state": ?1,"values"']
)
def test_one_changed_digit_in_a_journal_is_seen(tmp_path, capsys, changed):
    words = ["tune", str(write(tmp_path, TUNABLE)), "--trials", "2", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    journal = tmp_path / "out" / "Lin.journal"
    lines = journal.read_text().splitlines(keepends=True)
    place = max(number for number, line in enumerate(lines) if re.search(changed, line))
    digit = re.search(rf"{changed}:.*?\d\.\d(\d)", lines[place]).start(1)
    other = str((int(lines[place][digit]) + 1) % 10)
    lines[place] = lines[place][:digit] + other + lines[place][digit + 1 :]
    journal.write_text("".join(lines))
    assert main(words) == 2
    assert f"{journal}: damaged, trial 1 is not what was written" in capsys.readouterr().err.replace(
        "\n", " "
    )


def test_trials_on_other_data_are_refused(tuning, tmp_path, monkeypatch):
    tune(tuning, tmp_path / "out", quiet(), trials=1)
    build_other = partial(build_environment, seed=99)
    monkeypatch.setattr("conbandit_torch.tuning.tune.build_environment", lambda one, _: build_other(one))
    with pytest.raises(ConfigError, match="Lin was tuned there on other data .sha256 .* name another folder"):
        tune(tuning, tmp_path / "out", quiet(), trials=2)


def test_values_to_start_from_are_tried_next(tmp_path):
    path = write(tmp_path, with_space(SPACE, start={"Lin": {"ridge": 0.7}}))
    (tuning,) = read_tunings(read(path), path)
    tune(tuning, tmp_path / "out", quiet(), trials=2)
    assert [params.get("ridge") == 0.7 for params, _ in trials_of(tuning, tmp_path / "out")] == [False, True]


@pytest.mark.slow
def test_a_study_that_was_broken_off_goes_on_as_it_would_have(tuning, tmp_path):
    tune(tuning, tmp_path / "whole", quiet(), trials=14)  # beyond the sampler's random start
    tune(tuning, tmp_path / "parts", quiet(), trials=5)
    tune(tuning, tmp_path / "parts", quiet(), trials=14)
    assert trials_of(tuning, tmp_path / "parts") == trials_of(tuning, tmp_path / "whole")
    tune(tuning, tmp_path / "parts", quiet(), trials=14)  # nothing left to do
    assert len(trials_of(tuning, tmp_path / "parts")) == 14


def test_two_workers_share_one_study(tuning, tmp_path):
    """At most one trial too many: the other worker's last, which was running when the number was reached."""
    both = [
        threading.Thread(target=tune, args=(tuning, tmp_path / "out", quiet()), kwargs={"trials": 8})
        for _ in range(2)
    ]
    open_study(tuning, tmp_path / "out")
    for worker in both:
        worker.start()
    for worker in both:
        worker.join()
    done = trials_of(tuning, tmp_path / "out")
    assert 8 <= len(done) <= 9


def test_a_trial_that_fails_is_told_and_does_not_end_the_study(tmp_path, capsys):
    space = {"Con": {"mix": [2.0, 0.3]}}  # 2 is out of range
    config = write(tmp_path, with_space(space))
    out = tmp_path / "out"
    assert main(["tune", str(config), "--trials", "6", "--out", str(out)]) == 0
    shown = capsys.readouterr()
    assert "FAILED, ConfigError" in shown.err and "mix must be in (0, 1), got 2.0" in shown.err
    assert yaml.safe_load((out / "tuned.yaml").read_text())["policies"]["Con"]["init_args"]["mix"] == 0.3


def test_the_tuned_config_runs_and_keeps_what_earlier_commands_found(tmp_path, capsys):
    space = SPACE | {"Con": {"mix": {"low": 0.1, "high": 0.9}, "schedule.init_args.questions": [1, 3]}}
    config, out = write(tmp_path, with_space(space)), tmp_path / "out"
    for name in ("Lin", "Con"):
        assert main(["tune", str(config), "--policy", name, "--trials", "2", "--out", str(out)]) == 0
    table = capsys.readouterr().out
    assert "Con: best of 2 trials (2 seeds, 95 % t interval)" in " ".join(table.split())
    tuned = yaml.safe_load((out / "tuned.yaml").read_text())
    assert "tune" not in tuned and tuned["seeds"] == "0-1" and list(tuned["policies"]) == ["Lin", "Con"]
    for tuning in read_tunings(read(config), config):
        best = finished(open_study(tuning, out))[0]
        for name, value in best.params.items():
            node = tuned["policies"][tuning.policy]["init_args"]
            for key in name.split("."):
                node = node[key]
            assert node == value
    assert is_as_sealed((out / "tuned.yaml").read_text())
    assert main(["run", str(out / "tuned.yaml"), "--out", str(tmp_path / "run")]) == 0


@pytest.mark.slow
def test_trials_in_processes_count_as_asked(tmp_path):
    config, out = write(tmp_path, TUNABLE), tmp_path / "out"
    done = conbandit("tune", config, "--trials", "5", "--jobs", "2", "--out", out)
    assert done.returncode == 0, done.stderr
    assert len(finished(open_study(read_tunings(read(config), config)[0], out))) == 5


def test_a_value_at_an_end_of_its_range_is_pointed_out():
    tuning = Tuning({}, None, "Lin", [1], SPACE["Lin"], {})
    assert at_the_edge(tuning, {"alpha": 0.011, "ridge": 1.0}) == ["alpha"]
    assert at_the_edge(tuning, {"alpha": 0.1, "ridge": 1.99}) == ["ridge"]
    assert at_the_edge(Tuning({}, None, "Lin", [1], {"alpha": [1, 2]}, {}), {"alpha": 1}) == []


def test_a_study_of_another_search_space_is_refused(tuning, tmp_path):
    open_study(tuning, tmp_path / "out")
    other = Tuning(tuning.config, tuning.source, "Lin", [10, 12], tuning.space, {})
    with pytest.raises(ConfigError, match="tuned there with another config or search space"):
        open_study(other, tmp_path / "out")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (GOOD, "tune: expected a mapping with seeds and space, there is no such section"),
        (with_space({}), "tune.space: expected a mapping of policies"),
        (with_space(SPACE, seeds="1-3"), "tune.seeds: 1 is a seed of the evaluation too"),
        (with_space(SPACE, seeds="a"), "tune.seeds: expected numbers like"),
        (with_space(SPACE, sedes=3), "tune: unknown key 'sedes' (did you mean 'seeds'?)"),
        (with_space({"Lim": SPACE["Lin"]}), "there is no policy of 'Lim' (did you mean 'Lin'?)"),
        (with_space({"Lin": {"alpha": 3}}), "tune.space.Lin.alpha: expected {low: ..., high: ...}"),
        (with_space({"Lin": {"alpha": {"low": 1}}}), "tune.space.Lin.alpha: the key 'high' is missing"),
        (with_space({"Lin": {"alpha": {"low": 1, "high": 0}}}), "tune.space.Lin.alpha: "),
        (with_space({"Lin": {"alpha": {"low": "a", "high": "b"}}}), "tune.space.Lin.alpha: "),
        (
            with_space({"Lin": {"alpha": {"low": 0.0, "high": 1e308, "step": 1e-308}}}),
            "tune.space.Lin.alpha: the range cannot be cut into such steps",
        ),
        (with_space(SPACE, start=[1]), "tune.start: expected values by policy and argument, got [1]"),
        (with_space(SPACE, start={"Con": {}}), "tune.start: there is no search space of 'Con'"),
        (
            with_space(SPACE, start={"Lin": {"alpha": 7}}),
            "tune.start.Lin.alpha: 7 is not in the search space",
        ),
        (with_space({"Lin": {"alfa": [1, 2]}}), "LinUCB has no argument 'alfa' (did you mean 'alpha'?)"),
    ],
)
def test_a_bad_search_space_is_one_clear_message(tmp_path, config, message, capsys):
    path = write(tmp_path, config)
    assert main(["tune", str(path), "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_policy_without_a_search_space_is_named(tmp_path, capsys):
    path = write(tmp_path, TUNABLE)
    assert main(["tune", str(path), "--policy", "Con", "--out", str(tmp_path / "out")]) == 2
    assert "there is no search space of 'Con'; valid: Lin" in capsys.readouterr().err


def test_what_was_overridden_for_trials_is_not_the_evaluations(tmp_path, capsys):
    words = ["tune", str(write(tmp_path, TUNABLE)), "--trials", "1", "--rounds", "3"]
    words += ["--environment.init_args.users", "2", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    tuned = yaml.safe_load((tmp_path / "out" / "tuned.yaml").read_text())
    assert tuned["rounds"] == TUNABLE["rounds"] and tuned["environment"] == TUNABLE["environment"]
    said = "Not in tuned.yaml, as they were given to tune only: "
    shown = capsys.readouterr().out
    assert said in shown and "--rounds 3" in shown and "--environment.init_args.users 2" in shown


def test_trials_play_a_whole_log(tmp_path):
    path = write(tmp_path, TUNABLE | {"rounds": "all", "environment": LOG})
    (found,) = read_tunings(read(path), path)
    length = load(path).rounds
    trial = found.trial({})
    assert trial["rounds"] == trial["log_every"] == length > 0
