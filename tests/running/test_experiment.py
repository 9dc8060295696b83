"""Experiments in Python: the same as in YAML, and results that can be looked at."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

import conbandit_torch
from conbandit_torch import (
    Callback,
    ConfigError,
    ConUCB,
    Experiment,
    Hidden,
    JobsFailedError,
    Lemma1,
    LinUCB,
    LogSchedule,
    MovieLens,
    Ratings,
    Synthetic,
    read_results,
)
from conbandit_torch.core.parts import node_of
from conbandit_torch.running.plan import Plan
from tests.helpers.configs import GOOD, write

WORLD = {"users": 4, "arms": 40, "terms": 8, "dim": 5, "pool": 6, "max_terms": 3}


def in_python(**changes):
    """GOOD, as Python writes it."""
    given = {
        "environment": partial(Synthetic, **WORLD),
        "policies": {
            "Lin": partial(LinUCB, alpha=0.4),
            "Con": partial(ConUCB, mix=0.3, schedule=LogSchedule(2)),
        },
        "rounds": 12,
        "seeds": range(2),
    }
    return Experiment(**(given | changes))


class Fails(Callback):
    def on_round(self, simulation, played):
        raise OSError("no luck")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return in_python().run(tmp_path_factory.mktemp("out"), progress=False)


def test_python_and_yaml_are_the_same_experiment(tmp_path):
    experiment = in_python()
    assert Experiment.from_yaml(write(tmp_path, GOOD)) == experiment
    assert in_python(rounds=13) != experiment
    experiment.to_yaml(tmp_path / "again.yaml")
    assert Experiment.from_yaml(tmp_path / "again.yaml") == experiment


def test_python_and_yaml_give_the_same_numbers(results, tmp_path):
    from conbandit_torch.commands.main import main

    assert main(["run", str(write(tmp_path, GOOD)), "--out", str(tmp_path / "out")]) == 0
    pd.testing.assert_frame_equal(read_results(tmp_path / "out").frame(), results.frame())


def test_parts_may_be_classes_partials_objects_or_as_in_yaml():
    con = {
        "class_path": "ConUCB",
        "init_args": {"mix": 0.3, "schedule": GOOD["policies"]["Con"]["init_args"]["schedule"]},
    }
    assert in_python(environment=Synthetic(**WORLD)) == in_python()
    assert in_python(environment=GOOD["environment"]) == in_python()
    assert in_python(policies={"Lin": partial(LinUCB, alpha=0.4), "Con": con}) == in_python()
    assert in_python(policies={"Lin": LinUCB}) == in_python(policies={"Lin": "LinUCB"})


def test_settings_are_those_of_a_plan_with_the_same_defaults():
    import dataclasses
    import inspect

    known = {one.name: one for one in dataclasses.fields(Plan) if one.name != "source"}
    given = inspect.signature(Experiment).parameters
    assert set(given) == set(known)
    for name, one in known.items():
        if one.default is not dataclasses.MISSING:
            assert given[name].default == one.default, name


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"policies": {"a": partial(LinUCB, alhpa=1.0)}},
            "policies.a.init_args: LinUCB has no argument 'alhpa' .did you mean 'alpha'",
        ),
        ({"policies": {"a": Synthetic}}, "policies.a: conbandit_torch.Synthetic is not a kind of Bandit"),
        ({"policies": {"a": partial(ConUCB, schedule=3)}}, "policies.a.init_args.schedule"),
        (
            {"policies": {"a": partial(ConUCB, representation=object())}},
            "policies.a.init_args.representation: a config cannot hold this object",
        ),
        ({"policies": {"a": partial(max, 1)}}, r"policies.a: expected partial\(Class"),
        ({"policies": {"a": lambda catalogue, users: None}}, "policies.a: expected a class, or partial"),
        ({"policies": {"result.json": LinUCB}, "rounds": 0}, "rounds: expected a whole number"),
        ({"seeds": []}, "seeds: expected distinct whole numbers"),
        ({"keep_policies": "perhaps"}, "keep_policies: expected true or false"),
        (
            {"environment": partial(Synthetic, seed=3)},
            "environment.init_args: Synthetic has no argument 'seed'",
        ),
    ],
)
def test_what_is_wrong_is_said_as_for_yaml(changes, words):
    with pytest.raises(ConfigError, match=f"Experiment: {words}"):
        in_python(**changes)


def test_a_policy_that_was_built_is_no_part(world):
    with pytest.raises(ConfigError, match=r"policies.a: is a policy .* give partial\(LinUCB, ...\)"):
        in_python(policies={"a": LinUCB(world.catalogue, world.num_users)})


def test_a_class_inside_a_function_is_refused():
    class Local(LinUCB):
        pass

    with pytest.raises(ConfigError, match="Local is defined inside a function"):
        in_python(policies={"a": Local})


def test_jobs_that_fail_are_an_error_that_names_them(tmp_path):
    with pytest.raises(JobsFailedError, match=r"4 of 4 jobs failed\nLin seed 0: OSError: no luck"):
        in_python(callbacks={"mine": Fails}).run(tmp_path, progress=False)


def test_frame_has_a_line_per_policy_seed_and_record(results):
    frame = results.frame()
    assert list(frame.columns[:4]) == ["policy", "seed", "round", "cumulative_regret"]
    assert results["Con"].rounds[-2:].tolist() == [10, 12]
    assert len(frame) == 2 * 2 * len(results["Con"].rounds)  # policies, seeds, records
    one = frame[(frame.policy == "Con") & (frame.seed == 1) & (frame["round"] == 12)]
    assert one.cumulative_regret.item() == results["Con"].metrics["cumulative_regret"][1, -1]


def test_curves_are_those_of_the_file(results):
    written = pd.read_csv(results.folder / "curves.csv")
    curves = results.curves()
    assert list(curves.columns) == list(written.columns)
    np.testing.assert_allclose(curves.iloc[:, 3:].to_numpy(), written.iloc[:, 3:].to_numpy(), rtol=1e-8)


def test_a_notebook_shows_a_table_and_a_picture(results):
    html = results._repr_html_()
    assert "<td>Con</td>" in html and "data:image/png;base64," in html
    assert results.plot()._repr_png_().startswith(b"\x89PNG")
    assert "Order by regret" in results.report()._repr_markdown_()
    labels = {line.get_label() for line in results.plot("theta_error").axes[0].lines}
    assert labels == {"Lin", "Con"}
    with pytest.raises(ConfigError, match="no metric 'regrets'"):
        results.plot("regrets")


def test_names_in_html_are_escaped(tmp_path):
    from conbandit_torch.results.results import Results

    assert "<script>" not in Results(tmp_path / "<script>")._repr_html_()


def test_reprs_are_short_and_say_what_was_given(results, world):
    assert repr(in_python()) == "Experiment(Synthetic: Lin, Con; 12 rounds, 2 seeds)"
    assert "Con: " in repr(results) and "regret after 12 rounds" in repr(results)
    assert repr(Synthetic(**WORLD)) == "Synthetic(users=4, arms=40, terms=8, dim=5, pool=6, max_terms=3)"
    policy = ConUCB(world.catalogue, 7, mix=0.3, alpha=0.25, schedule=LogSchedule(2))
    assert repr(policy) == "ConUCB(num_users=7, mix=0.3, schedule=LogSchedule(questions=2))"
    assert repr(world.catalogue) == "Catalogue(60 arms, 12 key-terms, 6 features in torch.float64)"
    assert repr(world.observe()) == "Context(7 users, 9 candidates each)"
    assert repr(Hidden(3)) == "Hidden(size=3)"


def test_values_become_what_a_config_writes(tmp_path):
    assert node_of(partial(ConUCB, alpha=Lemma1(), representation=Hidden(3)), "")["init_args"] == {
        "alpha": {"class_path": "conbandit_torch.Lemma1", "init_args": {"sigma": 0.05, "printed": False}},
        "representation": {"class_path": "conbandit_torch.Hidden", "init_args": {"size": 3}},
    }
    reader = node_of(partial(Ratings, MovieLens(tmp_path, min_tag_count=5)), "")["init_args"]["data"]
    assert reader["init_args"]["path"] == str(tmp_path) and reader["init_args"]["min_tag_count"] == 5
    assert node_of({"a": [np.int64(3), torch.tensor(0.5), tmp_path]}, "") == {"a": [3, 0.5, str(tmp_path)]}


def test_what_is_remembered_does_not_keep_a_catalogue(world):
    assert "catalogue" not in vars(LinUCB(world.catalogue, 3))["_called_with"]


def test_a_class_of_the_running_program_needs_this_process(tmp_path, monkeypatch):
    experiment = in_python(policies={"a": LinUCB})
    monkeypatch.setitem(experiment.plan.policies["a"], "class_path", "__main__.Mine")
    with pytest.raises(ConfigError, match="put it into a file"):
        experiment.run(tmp_path, jobs=2)


def test_the_package_is_typed():
    from pathlib import Path

    assert (Path(conbandit_torch.__file__).parent / "py.typed").is_file()
