"""Replay of logs with their own candidates: against a reference, and off-policy estimates against the truth."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from conbandit_torch import ConUCB, GeneratedEvents, LinUCB, LogSchedule, Random, ReplayEvents, Simulation
from conbandit_torch.callbacks.base import StoppedError
from conbandit_torch.core.digests import fingerprint
from conbandit_torch.datasets.base import Prepared
from conbandit_torch.datasets.events import LoggedEvents, as_sets
from conbandit_torch.environments.replay.generated import generate_log
from conbandit_torch.running.user_sums import USER_COLUMNS
from experiments import replay as experiment
from tests.helpers.simulations import StopAt, comparable
from tests.reference import events as reference
from tests.reference import linear


def ragged(context=True, seed=3, users=5, arms=30):
    """Users with logs of different lengths, events with 2 to 6 candidates of which 1 or 2 were served."""
    rng = np.random.default_rng(seed)
    world = generate_log(users, arms, 8, 4, 1, 3, 0.1, seed=seed)
    owner = rng.permutation(np.repeat(np.arange(users), rng.integers(20, 60, users)))
    offers = [rng.permutation(arms)[: rng.integers(2, 7)].tolist() for _ in owner]
    offers[3] = offers[1]  # a set that occurs again
    which, first, candidates = as_sets(offers)
    events, items = [], []
    for event, offer in enumerate(offers):
        for item in rng.permutation(offer)[: rng.integers(1, 3)]:
            events.append(event)
            items.append(int(item))
    log = LoggedEvents(
        users=torch.from_numpy(owner),
        times=torch.arange(len(owner)) // 3,  # some at the same time
        offers=which,
        first=first,
        candidates=candidates,
        events=torch.tensor(events),
        items=torch.tensor(items),
        clicks=torch.from_numpy((rng.random(len(items)) < 0.5).astype(float)),
        positions=torch.from_numpy(rng.integers(0, 2, len(items))),
        propensities=torch.from_numpy(rng.uniform(0.1, 0.9, len(items))),
        context=torch.from_numpy(rng.normal(2, 3, (len(owner), 2))) if context else None,
    )
    lengths = torch.linspace(0.5, 1.5, arms, dtype=torch.float64)  # else all have the same score at first
    return Prepared(**vars(world) | {"events": log, "features": world.features * lengths[:, None]})


@pytest.mark.parametrize(("context", "position"), [(True, None), (False, None), (True, 1)])
def test_replay_of_events_equals_the_slow_protocol_decision_by_decision(context, position):
    data = ragged(context)
    world = ReplayEvents(data, fit_share=0.25, position=position, seed=2)
    policy = LinUCB(world.catalogue, world.num_users, ridge=0.8, alpha=0.4)
    shown = {user: [] for user in range(world.num_users)}

    class Keep(experiment.Truth):
        def on_round(self, simulation, played):
            for row, user in enumerate(played.context.users.tolist()):
                shown[user].append(int(played.arm_ids[row]))

    simulation = Simulation(
        policy, world, rounds=world.length, callbacks=[Keep(0)], precision="64-true", log_every=world.length
    )
    simulation.run()
    X = data.features.numpy()
    log = data.events
    features = log.context.numpy() if context else np.zeros((len(log.users), 0))
    played = {e for user in range(5) for _, e, *_ in reference.own_events(log, user, position)}
    features = reference.standardised(features, sorted(played))
    sums = simulation.metrics.user_sums()
    lengths = []
    for number, user in enumerate(world.source_users.tolist()):
        own = reference.own_events(log, user, position)
        fitted = max(1, int(0.25 * len(own)))
        theta = reference.fit(own[:fitted], X, features, 1.0)
        np.testing.assert_allclose(world.theta[number], theta, rtol=1e-9, atol=1e-12)
        slow = linear.LinUCB(X.shape[1] * (1 + features.shape[1]), 0.8, 0.4)
        chosen, clicks, expected = reference.play(slow, own[fitted:], number, X, features, theta, seed=2)
        assert shown[number] == chosen
        np.testing.assert_allclose(policy.coefficients()[number], slow.theta, rtol=1e-9, atol=1e-12)
        for column in USER_COLUMNS:
            assert getattr(sums, column)[number] == pytest.approx(expected[column], rel=1e-12), column
        lengths.append(len(chosen))
        assert expected["clicks"] == sum(clicks)
    assert lengths == sorted(lengths, reverse=True) and sums.counted.sum() > 15
    assert world.logged().events == sum(lengths)


def test_rounds_hold_events_with_equally_many_candidates_in_the_users_own_order():
    world = ReplayEvents(ragged(context=False), fit_share=0.25)
    number = dict.fromkeys(range(world.num_users), 0)
    for _ in range(world.length):
        context = world.observe()
        assert torch.equal(context.arms, world.observe().arms)  # the same until the round is over
        for user in context.users.tolist():
            assert int(world.rounds[user]) == number[user]
            number[user] += 1
        world.pull(context, torch.zeros(len(context), dtype=torch.int64))
    assert number == {user: int(count) for user, count in enumerate(world.rounds)}
    with pytest.raises(RuntimeError, match="the log is over"):
        world.observe()


def test_lists_of_impressions_count_whatever_is_picked():
    data = ragged(context=False)
    log = data.events
    size = log.sizes[log.offers]
    events = torch.arange(len(log.users)).repeat_interleave(size)
    items = torch.cat([log.candidates[log.first[o] : log.first[o + 1]] for o in log.offers])
    whole = replace(
        log,
        events=events,
        items=items,
        clicks=(items % 2).double(),
        positions=None,
        propensities=torch.ones(len(items), dtype=torch.float64),
    )
    world = ReplayEvents(replace(data, events=whole))
    assert world.serving == "uniform"
    simulation = Simulation(Random(world.catalogue, world.num_users), world, rounds=world.length)
    simulation.run()
    sums = simulation.metrics.user_sums()
    np.testing.assert_array_equal(sums.counted, sums.events)
    np.testing.assert_allclose(sums.robust, sums.clicks, rtol=1e-5)


def test_a_conversing_policy_plays_events_with_context():
    world = ReplayEvents(ragged(), fit_share=0.25)
    policy = ConUCB(world.catalogue, world.num_users, schedule=LogSchedule(2))
    record = Simulation(policy, world, rounds=world.length).run()[-1]
    assert record.questions > 0 and 0 < record.counted < world.logged().events
    assert world.catalogue.dim == 3 * 4 and not world.catalogue.term_features[:, 4:].any()


def test_how_items_were_served_is_told_from_the_propensities():
    sizes = {"users": 4, "arms": 20, "terms": 5, "dim": 3, "events": 10, "pool": 4}
    assert GeneratedEvents(**sizes).serving == "uniform"
    assert GeneratedEvents(**sizes, skew=2.0).serving == "skewed"
    data = ragged()
    assert ReplayEvents(replace(data, events=replace(data.events, propensities=None))).serving == "unknown"


def test_a_replay_of_events_resumes_exactly():
    def simulation(*callbacks):
        world = ReplayEvents(ragged(), fit_share=0.25)
        policy = ConUCB(world.catalogue, world.num_users, schedule=LogSchedule(2))
        return Simulation(policy, world, rounds=world.length, callbacks=callbacks)

    whole, stopped, resumed = simulation(), simulation(StopAt(23)), simulation()
    whole.run()
    with pytest.raises(StoppedError):
        stopped.run()
    resumed.restore(stopped.state())
    resumed.run()
    assert comparable(resumed.records) == comparable(whole.records)
    for part in ("policy", "environment", "metrics"):
        ours, theirs = (getattr(one, part).state_dict() for one in (resumed, whole))
        assert fingerprint(ours) == fingerprint(theirs)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"position": 7}, "position is 7, but the log has 0, 1"),
        ({"users": 9}, "users must be from 1 to the 5 with events to replay, got 9"),
        ({"hidden": 1}, "features cannot be hidden where events have a context"),
        ({"fit_share": 0.0}, "fit_share must lie between 0 and 1"),
    ],
)
def test_what_cannot_be_played_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        ReplayEvents(ragged(), **changes)


def test_data_without_offers_are_for_replay():
    with pytest.raises(ValueError, match="play them with Replay"):
        ReplayEvents(generate_log(3, 10, 4, 3, 5, 2, 0.1, seed=0))


@pytest.mark.slow
def test_estimates_find_the_true_rates_and_replay_does_not_where_servings_are_skewed(tmp_path):
    """Two small logs of each kind: unbiased estimates within three standard errors, errors over users."""
    assert experiment.main(["estimators", "--quick", "--out", str(tmp_path)]) == 0
    table = [line.split("|") for line in (tmp_path / "estimators.md").read_text().splitlines()[2:12]]
    assert len(table) == 10 and all(len(cells) == 10 for cells in table)
