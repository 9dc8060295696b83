"""What is acknowledged is in the store, and the state is what the events make of it."""

import os
import subprocess
import sys
import threading

import pytest
import torch

from conbandit_torch import (
    ConfigError,
    ConThompson,
    ConUCB,
    DataError,
    HConUCB,
    LinearSchedule,
    LinUCB,
    Recommender,
)
from conbandit_torch.live.owners import OwnedError
from conbandit_torch.live.store import Store, StoreError
from tests.conftest import small_world

ASKING = LinearSchedule(questions=1, every=2)
POLICIES = {
    "LinUCB": lambda c: LinUCB(c, 1),
    "ConUCB": lambda c: ConUCB(c, 1, schedule=ASKING),
    "ConThompson": lambda c: ConThompson(c, 1, schedule=ASKING),
    "HConUCB": lambda c: HConUCB(c, 1, hidden_dim=2, refit_every=4, schedule=ASKING),
}
USERS = ("ann", "bob", "eve")


@pytest.fixture(params=POLICIES)
def make(request):
    catalogue = small_world().catalogue
    return lambda: POLICIES[request.param](catalogue)


def talk(recommender, users=USERS, rounds=6):
    """Some rounds, with questions and decisions left open."""
    for number in range(rounds):
        asked = recommender.ask_many(users)
        some = [place for place, one in enumerate(asked) if one is not None and (number + place) % 3]
        values = [(place + number) % 4 / 4 for place in some]
        recommender.answer_many([users[place] for place in some], [asked[place] for place in some], values)
        slates = recommender.recommend_many(users, k=2)
        recommender.feedback_many([slate[number % 2] for slate in slates[1:]], [0.25 * (number % 5), 0.5])
        recommender.feedback(slates[0][0], 1.0)


def state_of(recommender):
    return {key: value.clone() for key, value in recommender.state().items()}


def expect_same(one, other):
    assert one.keys() == other.keys()
    for key, value in one.items():
        assert torch.equal(value, other[key]), key


def test_a_store_is_opened_with_the_state_that_it_was_closed_with(make, tmp_path):
    with Recommender(make(), store=tmp_path / "people.db") as recommender:
        talk(recommender)
        before, events = state_of(recommender), list(recommender.events())
        question = recommender.ask("ann")
        open_ = recommender.recommend("bob", ["arm 3", "arm 4"])
    with Recommender(make(), store=tmp_path / "people.db") as again:
        assert list(again.events())[: len(events)] == events
        assert again.users == USERS
        assert again.ask("ann") == question
        again.feedback(open_, 1.0)
        with pytest.raises(ValueError, match="has had its reward already"):
            again.feedback(open_, 1.0)
        assert any(not torch.equal(value, before[key]) for key, value in again.state().items())


def test_the_state_is_rebuilt_bit_for_bit_with_and_without_snapshots(make, tmp_path):
    with Recommender(make(), store=tmp_path / "a.db", snapshot_every=7) as recommender:
        talk(recommender)
        recommender.snapshot()
        recommender.snapshot()
        talk(recommender, ("ann", "new", "eve"))
        before = state_of(recommender)
        recommender.rebuild()
        expect_same(before, recommender.state())
        talk(recommender, rounds=1)
        before = state_of(recommender)
    with Recommender(make(), store=tmp_path / "a.db") as again:
        expect_same(before, again.state())
        again.rebuild()
        expect_same(before, again.state())


def test_it_goes_on_after_opening_as_if_it_had_never_been_closed(make, tmp_path):
    with Recommender(make(), store=tmp_path / "whole.db") as whole:
        talk(whole)
        talk(whole)
        expected, events = state_of(whole), [event.names for event in whole.events()]
    for _ in range(2):
        with Recommender(make(), store=tmp_path / "parts.db") as part:
            talk(part)
            found = state_of(part)
            assert [event.names for event in part.events()] == events[: sum(1 for _ in part.events())]
    expect_same(expected, found)


def test_events_are_read_in_runs_that_cut_no_batch(make, tmp_path, monkeypatch):
    with Recommender(make(), store=tmp_path / "a.db") as recommender:
        talk(recommender)
        before, events = state_of(recommender), list(recommender.events())
        for rows in (1, 2, 5, 7):
            monkeypatch.setattr("conbandit_torch.live.store._ROWS", rows)
            recommender.rebuild()
            expect_same(before, recommender.state())
            assert list(recommender.events()) == events


def test_a_store_without_a_snapshot_is_opened_from_its_events(make, tmp_path, monkeypatch):
    recommender = Recommender(make(), store=tmp_path / "a.db")
    talk(recommender)
    before = state_of(recommender)
    monkeypatch.setattr(Store, "write_snapshot", lambda *_: None)
    recommender.close()
    with Recommender(make(), store=tmp_path / "a.db") as again:
        expect_same(before, again.state())


def test_snapshots_are_taken_every_so_many_events(tmp_path, monkeypatch):
    taken = []
    monkeypatch.setattr(Store, "write_snapshot", lambda self, event, state: taken.append(event))
    with Recommender(LinUCB(small_world().catalogue, 1), store=tmp_path / "a.db", snapshot_every=5) as r:
        for _ in range(12):
            r.recommend("ann")
    assert taken == [4, 9, 11]


def test_items_and_key_terms_can_be_added(make, tmp_path):
    features = torch.linspace(0, 1, 12, dtype=torch.float64).reshape(2, 6)
    weights = torch.zeros(2, 13, dtype=torch.float64)
    weights[0, 3] = weights[0, 12] = weights[1, 12] = 1
    with Recommender(make(), store=tmp_path / "a.db") as recommender:
        talk(recommender)
        recommender.add_items(["Casablanca", "Alien"], features, weights, terms=["film"])
        assert recommender.items[-2:] == ("Casablanca", "Alien") and recommender.terms[-1] == "film"
        assert recommender.recommend("ann", ["Alien"]).item == "Alien"
        recommender.snapshot()
        talk(recommender)
        recommender.add_items(["Ran"], features[:1])
        talk(recommender, rounds=2)
        before, beliefs = state_of(recommender), recommender.profile("ann").beliefs
        recommender.rebuild()
        expect_same(before, recommender.state())
    with Recommender(make(), store=tmp_path / "a.db") as again:
        expect_same(before, again.state())
        assert again.items[-3:] == ("Casablanca", "Alien", "Ran")
        assert again.profile("ann").beliefs == beliefs
        assert len(again.policy.catalogue.arm_features) == 63


def test_a_person_who_is_forgotten_leaves_no_trace(make, tmp_path):
    path = tmp_path / "a.db"
    with Recommender(make(), store=path, snapshot_every=5) as recommender:
        talk(recommender)
        kept = [event for event in recommender.events() if event.user != "bob"]
        shown = recommender.recommend("bob")
        recommender.forget("bob")
        assert list(recommender.events()) == kept and recommender.users == ("ann", "eve")
        for part in (path, path.with_name("a.db-wal")):
            assert part.exists() and b"bob" not in part.read_bytes(), part
        with pytest.raises(ValueError, match="was never made"):
            recommender.feedback(shown, 1.0)
        assert recommender.explain("bob", "arm 1").reasons == ()
        before = state_of(recommender)
        recommender.rebuild()
        expect_same(before, recommender.state())
    with Recommender(make(), store=path) as again:
        expect_same(before, again.state())
        later = again.recommend("bob")  # as new
        assert later.round == 0 and later.id > shown.id


def test_what_is_left_of_shared_features_is_what_the_others_taught(tmp_path):
    catalogue = small_world().catalogue
    make = POLICIES["HConUCB"]
    with Recommender(make(catalogue)) as both, Recommender(make(catalogue)) as alone:
        for recommender, users in ((both, ("ann", "bob")), (alone, ("ann",))):
            for number in range(9):
                for user in users:
                    shown = recommender.recommend(user, [f"arm {number + 10 * (user == 'bob')}"])
                    recommender.feedback(shown, number / 9)
        learned = both.policy.representation.hidden.clone()
        both.forget("bob")
        assert not torch.equal(both.policy.representation.hidden, learned)
        assert torch.equal(both.policy.representation.hidden, alone.policy.representation.hidden)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda c: (LinUCB(c, 1), None),
            "another policy: conbandit_torch.ConUCB there, conbandit_torch.LinUCB now",
        ),
        (lambda c: (ConUCB(c, 1, alpha=0.7, schedule=ASKING), None), "another arguments"),
        (lambda c: (ConUCB(small_world(seed=9).catalogue, 1, schedule=ASKING), None), "another catalogue"),
        (lambda c: (ConUCB(c, 1, schedule=ASKING), [f"item {i}" for i in range(60)]), "another names"),
    ],
)
def test_a_store_of_something_else_is_refused(tmp_path, change, message):
    catalogue = small_world().catalogue
    with Recommender(ConUCB(catalogue, 1, schedule=ASKING), store=tmp_path / "a.db") as recommender:
        talk(recommender, rounds=1)
    policy, items = change(catalogue)
    with pytest.raises(DataError, match=message):
        Recommender(policy, items, store=tmp_path / "a.db")
    with Recommender(ConUCB(catalogue, 5, schedule=ASKING), store=tmp_path / "a.db") as again:
        assert again.users == USERS  # num_users is not what a policy is


def test_a_second_process_is_refused_and_told_who_has_the_store(tmp_path):
    path = tmp_path / "a.db"
    code = f"""
from conbandit_torch import LinUCB, Recommender
from tests.conftest import small_world
Recommender(LinUCB(small_world().catalogue, 1), store={str(path)!r})
"""
    with Recommender(LinUCB(small_world().catalogue, 1), store=path):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
        with pytest.raises(OwnedError, match="is in use by process"):
            Recommender(LinUCB(small_world().catalogue, 1), store=path)
    assert done.returncode == 1 and f"a.db is in use by process {os.getpid()} on" in done.stderr
    Recommender(LinUCB(small_world().catalogue, 1), store=path).close()


def test_a_database_that_fails_acknowledges_nothing_and_is_opened_again(make, tmp_path):
    recommender = Recommender(make(), store=tmp_path / "a.db")
    talk(recommender)
    before, events = state_of(recommender), list(recommender.events())
    connection = recommender._ledger.store._connection

    def full(*_):
        raise OSError(28, "No space left on device")

    connection.commit = full
    with pytest.raises(StoreError, match="the database failed: .* No space left on device"):
        recommender.recommend("new")
    expect_same(before, recommender.state())
    assert list(recommender.events()) == events and recommender.users == USERS
    talk(recommender)
    recommender.close()


def test_a_policy_that_fails_half_way_leaves_the_state_as_it_was(make, tmp_path, monkeypatch):
    with Recommender(make(), store=tmp_path / "a.db") as recommender:
        talk(recommender)
        shown = recommender.recommend("ann")
        before = state_of(recommender)
        kind = type(recommender.policy)
        update = kind.update

        def fail(self, *given):
            update(self, *given)
            raise RuntimeError("half-way")

        with monkeypatch.context() as patch:
            patch.setattr(kind, "update", fail)
            with pytest.raises(RuntimeError, match="half-way"):
                recommender.feedback(shown, 1.0)
        expect_same(before, recommender.state())
        recommender.feedback(shown, 1.0)


def test_threads_wait_for_one_commit(tmp_path, monkeypatch):
    commits, flush = [], Store.flush
    monkeypatch.setattr(Store, "flush", lambda self: (commits.append(1), flush(self))[1])
    with Recommender(LinUCB(small_world().catalogue, 1), store=tmp_path / "a.db") as recommender:
        users = [f"user {number}" for number in range(8)]
        recommender.recommend_many(users)
        commits.clear()

        def play(user):
            for _ in range(30):
                recommender.feedback(recommender.recommend(user), 0.5, user=user)

        threads = [threading.Thread(target=play, args=(user,)) for user in users]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(commits) <= 8 * 30 * 2
        assert recommender.policy.arm_model.count.tolist()[:8] == [30] * 8
        before = state_of(recommender)
        recommender.rebuild()
        expect_same(before, recommender.state())


def test_older_decisions_are_looked_up_in_the_store(tmp_path, monkeypatch):
    monkeypatch.setattr("conbandit_torch.live.ledger._RECENT", 3)
    with Recommender(LinUCB(small_world().catalogue, 1), store=tmp_path / "a.db") as recommender:
        shown = [recommender.recommend("ann", [f"arm {number}", "arm 9"]) for number in range(8)]
        recommender.feedback_many(shown[:5], [1.0] * 5)
        for one in (shown[0], shown[4]):
            with pytest.raises(ValueError, match="has had its reward already"):
                recommender.feedback(one, 0.0)
        assert int(recommender.policy.arm_model.count[0]) == 5


@pytest.mark.parametrize(
    ("store", "error", "message"),
    [
        ("no/folder/a.db", StoreError, "a.db cannot be opened: unable to open database file"),
        ("text.db", StoreError, "text.db cannot be opened: file is not a database"),
        (
            "mysql://me:secret@host/people",
            ConfigError,
            r"SQLite or PostgreSQL, got mysql://me:\*\*\*@host/people",
        ),
        (
            "postgresql://me:secret@127.0.0.1:1/people",
            StoreError,
            r"me:\*\*\*@127.0.0.1:1/people cannot be opened",
        ),
    ],
)
def test_a_store_that_cannot_be_opened_says_which_and_why(tmp_path, monkeypatch, store, error, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.db").write_text("these are no pages of a database" * 100)
    with pytest.raises(error, match=message) as raised:
        Recommender(LinUCB(small_world().catalogue, 1), store=store)
    assert "secret" not in str(raised.value)
