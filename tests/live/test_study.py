"""What people did is an experiment's result: reports, curves and logs."""

import csv
import re

import numpy as np
import pytest
from scipy import stats
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from conbandit_torch import Replay, Table, play_round
from conbandit_torch.commands.main import main
from conbandit_torch.configuration.load import load
from conbandit_torch.configuration.packaged import find_config
from conbandit_torch.live.study import Study
from conbandit_torch.results.people import PersonSums, compare_people, welch
from tests.helpers.person import PEOPLE


def play(study, visitor, person, rounds):
    for _ in range(rounds):
        turn = study.turn(visitor, move_on=True)
        while turn.question is not None:
            study.answer(visitor, turn.question.id, person.answers(turn.question.names[0]))
            turn = study.turn(visitor)
        for offer in turn.shown:
            study.react(visitor, offer.decision, float(person.likes(offer.card.item)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A study with eight people, two per policy, four rounds each; one more has joined and done nothing."""
    folder = tmp_path_factory.mktemp("study")
    study = Study(load(find_config("live/films")), folder, curves=True)
    for number in range(8):
        play(study, study.join(f"person {number}"), PEOPLE[number % 4], 4)
    study.join("idle", "ConUCB")
    study.close()
    return folder


def test_a_study_goes_on_where_it_was(folder):
    study = Study(load(find_config("live/films")), folder)
    visitor = study.visitors.find("person 0")
    turn = study.turn(visitor)
    assert turn.rated == 12 and study.tally.by_policy()[0].people == 3
    study.close()


def test_report_compares_people_who_met_different_policies(folder, capsys):
    assert main(["report", str(folder), "--baseline", "Random"]) == 0
    printed = capsys.readouterr().out
    assert "Order by reward:" in printed and "Welch" in printed
    lines = (folder / "report.md").read_text().splitlines()
    rows = {cells[1]: cells[2:] for line in lines if len(cells := [c.strip() for c in line.split("|")]) > 3}
    assert rows["ConUCB"][0] == "3" and rows["LinUCB"][0] == "2"  # the idle one is a visitor too
    assert rows["ConUCB"][1] == "24" and rows["Random"][3] == "-"
    assert main(["report", str(folder), "--baseline", "Rnd"]) == 2
    assert "no such policy" in capsys.readouterr().err


def test_welchs_test_is_scipys():
    rng = np.random.default_rng(3)
    one, other = rng.normal(0.5, 0.1, 12), rng.normal(0.4, 0.3, 7)
    difference, half, p = welch(one, other)
    scipys = stats.ttest_ind(one, other, equal_var=False)
    interval = scipys.confidence_interval()
    np.testing.assert_allclose([difference, p], [one.mean() - other.mean(), scipys.pvalue], rtol=1e-9)
    np.testing.assert_allclose([difference - half, difference + half], interval, rtol=1e-9)


def test_a_person_counts_once_however_much_they_rate():
    people = [PersonSums("a", "X", rated=100, reward=100.0), PersonSums("b", "X", rated=1, reward=0.0)]
    people += [PersonSums("c", "Y", rated=2, reward=1.0), PersonSums("d", "Y"), PersonSums("e", "Z")]
    report = compare_people(people, ["X", "Y", "Z"])
    assert {line[0]: line[3] for line in report.lines} == {"X": "0.500 ± 6.353", "Y": "0.500", "Z": "-"}
    assert report.lines[-1][0] == "Z" and ">" not in report.order


def test_tensorboard_has_the_rewards_of_every_policy(folder):
    for policy in ("ConUCB", "Random"):
        curves = EventAccumulator(str(folder / policy))
        curves.Reload()
        mean = curves.Scalars("CTR/cumulative")
        assert [point.step for point in mean] == list(range(1, 25))
        assert curves.Scalars("questions/per_user")[-1].value == (4 if policy == "ConUCB" else 0)


def test_an_exported_log_is_read_by_table_and_replayed(folder, tmp_path, capsys):
    out = tmp_path / "log"
    assert main(["export", str(folder), str(out)]) == 0
    assert "96 rewards and 16 answers of 8 people" in capsys.readouterr().out
    data = Table(out).read()
    assert len(data.users) == 8 and len(data.feedback.values) == 96 and len(data.terms) == 40
    with (out / "feedback.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    places = {row["item"] for row in rows}
    assert places <= set(data.items.tolist()) and {row["policy"] for row in rows} == {
        "ConUCB",
        "ConLinUCB",
        "LinUCB",
        "Random",
    }
    likes = sum(float(row["value"]) for row in rows)
    assert likes == data.feedback.values.sum() > 0
    world = Replay(Table(out), dim=10, pool=3, cache=tmp_path / "cache")
    from conbandit_torch import ConUCB

    policy = ConUCB(world.catalogue, world.num_users)
    played = [play_round(policy, world) for _ in range(3)]
    assert len(played) == 3
    assert main(["export", str(folder), str(out)]) == 2
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["export", "report"])
def test_a_folder_without_a_study_is_refused(command, tmp_path, capsys):
    assert main([command, str(tmp_path), *([str(tmp_path / "out")] if command == "export" else [])]) == 2
    assert re.search("holds no", capsys.readouterr().err)


def test_serve_refuses_others_without_a_token(capsys, monkeypatch):
    pytest.importorskip("uvicorn", reason="needs uvicorn: pip install 'conbandit-torch[serve]'")
    monkeypatch.delenv("CONBANDIT_TOKEN", raising=False)
    for token in ([], ["--token", "short"]):
        assert main(["serve", "live/films", "--host", "0.0.0.0", *token]) == 2
        assert "it needs a token of at least 16 characters" in capsys.readouterr().err
    assert main(["serve", "live/films", "--port", "70000"]) == 2
    assert "--port 70000: expected a number from 0" in capsys.readouterr().err


@pytest.mark.slow
def test_a_study_in_postgres_is_as_in_files(postgres, tmp_path, capsys):
    folder, reports = tmp_path / "postgres", []
    plan = load(find_config("live/films"))
    for where, store in ((folder, postgres), (tmp_path / "files", None)):
        study = Study(plan, where, store=store)
        for number in range(4):
            play(study, study.join(f"person {number}"), PEOPLE[number], 2)
        leaves = study.join("leaves", "ConUCB")
        play(study, leaves, PEOPLE[0], 1)
        study.forget(leaves)
        study.close()
        assert main(["report", str(where), *([] if store is None else ["--store", store])]) == 0
        reports.append((where / "report.md").read_text())
    assert reports[0] == reports[1]
    assert main(["export", str(folder), str(tmp_path / "log"), "--store", postgres]) == 0
    assert "24 rewards" in capsys.readouterr().out
    assert main(["report", str(folder)]) == 2
    assert "its events are not here: give the database with --store" in capsys.readouterr().err
