"""Stores in PostgreSQL: the same as in SQLite, and shared by processes that have different users."""

import pytest
import torch
from sqlalchemy import NullPool, create_engine, text

from conbandit_torch import ConUCB, DataError, HConUCB, LinearSchedule, Recommender
from conbandit_torch.live.owners import OwnedError
from conbandit_torch.live.store import StoreError
from tests.conftest import small_world

pytestmark = pytest.mark.slow
ASKING = LinearSchedule(questions=1, every=2)
USERS = ("ann", "bob", "eve")


def independent():
    return ConUCB(small_world().catalogue, 1, schedule=ASKING)


def sharing():
    return HConUCB(small_world().catalogue, 1, hidden_dim=2, refit_every=4, schedule=ASKING)


def talk(recommender, users=USERS, rounds=6):
    shown = []
    for number in range(rounds):
        for user in users:
            if number % 3 and (question := recommender.ask(user)) is not None:
                recommender.answer(user, question, number / rounds)
        slates = recommender.recommend_many(users)
        recommender.feedback_many([slate[0] for slate in slates], [number / rounds] * len(users))
        shown.append([slate[0].item for slate in slates])
    return shown


@pytest.mark.parametrize("make", [independent, sharing])
def test_it_is_as_in_sqlite(postgres, tmp_path, make):
    name = make.__name__
    with (
        Recommender(make(), store=postgres, name=name, snapshot_every=9) as one,
        Recommender(make(), store=tmp_path / "a.db") as other,
    ):
        assert talk(one) == talk(other)
        assert one.users == other.users == USERS
        for key, value in one.state().items():
            assert torch.equal(value, other.state()[key]), key
        for mine, theirs in zip(one.events(), other.events(), strict=True):
            assert (mine.user, mine.kind, mine.names, mine.value) == (
                theirs.user,
                theirs.kind,
                theirs.names,
                theirs.value,
            )
        shown, question = one.recommend("ann"), one.ask("ann")
        before = one.profile("ann")
    with Recommender(make(), store=postgres, name=name) as again:
        assert again.profile("ann") == before
        assert again.ask("ann") == question is not None
        again.feedback(shown, 1.0)
        with pytest.raises(ValueError, match="has had its reward already"):
            again.feedback(shown, 1.0)
        again.forget("ann")
        assert {event.user for event in again.events()} == {"bob", "eve"}


def test_processes_share_a_store_by_having_different_users(postgres):
    place = {"store": postgres, "name": "shared"}
    with Recommender(independent(), **place) as one:
        talk(one, ("ann", "bob"))
        with Recommender(independent(), **place) as other:
            talk(other, ("eve",))
            with pytest.raises(OwnedError, match="user 'ann' is served by process .* send them there"):
                other.recommend("ann")
            with pytest.raises(OwnedError, match="user 'ann' is served"):
                other.recommend_many(["new", "ann"])
            assert other.users == ("eve",)  # and "new" was not let in
            with pytest.raises(OwnedError, match="user 'eve' is served"):
                one.ask("eve")
            open_ = one.recommend("ann")
            with pytest.raises(OwnedError, match="user 'ann' is served"):
                other.feedback(open_, 1.0)
            theirs = one.profile("bob"), one.profile("ann")
            events = [event.id for event in one.events() if event.user == "ann"]
            one.close()
            assert (other.profile("bob"), other.profile("ann")) == theirs  # taken over
            other.feedback(open_, 1.0)
            assert max(events) < [event.id for event in other.events() if event.user == "ann"][-1]
            with pytest.raises(ValueError, match="cannot add items"):
                other.add_items(["x"], torch.zeros(1, 6))


def test_users_who_share_something_have_one_writer(postgres):
    place = {"store": postgres, "name": "writer"}
    with Recommender(sharing(), **place) as one:
        talk(one)
        with pytest.raises(OwnedError, match="in use by process .* one process must have the whole store"):
            Recommender(sharing(), **place)
    with Recommender(sharing(), **place) as again:
        assert again.users == USERS


def test_one_that_wants_to_be_alone_is_alone(postgres):
    place = {"store": postgres, "name": "lonely"}
    with Recommender(independent(), alone=True, **place) as one:
        talk(one)
        with pytest.raises(OwnedError, match="in use by process .* that process has the whole store"):
            Recommender(independent(), **place)
        one.add_items(["x"], torch.zeros(1, 6))
        before = one.profile("bob")
    with pytest.raises(DataError, match="items were added to this store"):
        Recommender(independent(), **place)
    with Recommender(independent(), alone=True, **place) as again:
        assert again.items[-1] == "x" and again.profile("bob") == before


def test_who_loses_the_connection_can_write_nothing_more_and_opens_it_again(postgres):
    with Recommender(independent(), store=postgres, name="lost") as recommender:
        talk(recommender)
        before = recommender.profile("bob")
        with create_engine(postgres, poolclass=NullPool).connect() as admin:
            admin.execute(
                text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
                )
            )
        with pytest.raises(StoreError, match="the database failed"):
            recommender.recommend("bob")
        assert recommender.profile("bob") == before
        assert recommender.recommend("bob").round == 6
