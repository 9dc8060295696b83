"""Replay: the protocol against a reference, what is unbiased, what counts, and what is shown of it."""

import json
import math

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from conbandit_torch import (
    ArmCon,
    Arms,
    ConUCB,
    GeneratedLog,
    HConUCB,
    LinUCB,
    LogSchedule,
    Question,
    Random,
    Replay,
    Simulation,
    Terms,
    play_round,
    prepare,
)
from conbandit_torch.callbacks.base import StoppedError
from conbandit_torch.callbacks.checkpoints import Checkpoint
from conbandit_torch.commands.main import main
from conbandit_torch.core import blocks
from conbandit_torch.core.digests import fingerprint
from conbandit_torch.core.randomness import Stream
from conbandit_torch.core.screen import Screen
from conbandit_torch.datasets.base import Prepared
from conbandit_torch.environments.replay.generated import generate_log
from conbandit_torch.environments.replay.log import UserLogs, past_and_rest
from conbandit_torch.results.read import intervals, read_results
from conbandit_torch.running.checkpoint import latest_checkpoint
from conbandit_torch.running.metrics import WINDOW, Metrics
from conbandit_torch.tuning.score import loss, score
from experiments import replay as experiment
from experiments.small_sources import small_sources
from tests.conftest import ALGEBRA
from tests.helpers.commands import rows
from tests.helpers.configs import write
from tests.helpers.simulations import StopAt, comparable
from tests.reference import linear
from tests.reference import replay as reference

LENGTHS = (40, 75, 10, 75, 30, 58)  # the third has too few items for a pool of 9


def small_log():
    """Users with logs of different lengths, events of all of them mixed.

    Features are not of length 1: at first all would have the same score, and rounding would decide.
    """
    log = generate_log(len(LENGTHS), 40, 10, 5, max(LENGTHS), 3, 0.1, seed=4)
    keep = log.times < torch.tensor(LENGTHS)[log.users]
    events = {name: getattr(log, name)[keep] for name in ("users", "items", "clicks", "times")}
    lengths = torch.linspace(0.5, 1.5, len(log.features), dtype=torch.float64)
    return Prepared(**vars(log) | events | {"features": log.features * lengths[:, None]})


def small_replay(**changes):
    return Replay(small_log(), **{"pool": 9, "fit_share": 0.25, "seed": 2} | changes)


def played_out(policy, world):
    """Every round of the log."""
    world.reset()
    return [play_round(policy, world) for _ in range(world.length)]


@pytest.mark.parametrize("name", ["LinUCB", "ConUCB"])
def test_replay_equals_the_slow_protocol_decision_by_decision(name):
    world, log = small_replay(), small_log()
    X = log.features.numpy()
    W = np.zeros((len(X), len(log.term_names)))
    W[tuple(log.item_terms.numpy())] = 1
    W /= W.sum(1, keepdims=True)
    users = reference.logs(log, pool=9, fit_share=0.25)
    assert world.num_users == len(users) == 5 and world.left_out == 1
    if name == "LinUCB":
        policy = LinUCB(world.catalogue, world.num_users, ridge=0.8, alpha=0.4)
    else:
        policy = ConUCB(world.catalogue, world.num_users, schedule=LogSchedule(3))
    rounds = played_out(policy, world)
    counted = 0
    for number, own in enumerate(users):
        slow = linear.LinUCB(X.shape[1], 0.8, 0.4) if name == "LinUCB" else linear.ConUCB(X, W)
        theta = own.fit(X, ridge=1.0)
        np.testing.assert_allclose(world.theta[number], theta, rtol=1e-9)
        b = None if name == "LinUCB" else lambda t: 3 * np.floor(np.log(t))
        how = {"seed": 2, "pool": 9, "noise": 0.1, "b": b}
        chosen, asked, clicks = reference.play(slow, own, number, X, theta, **how)
        present = [played for played in rounds if number < len(played.context)]
        assert [int(played.arm_ids[number]) for played in present] == chosen
        ours = [
            int(question.about.of[rows.index(number)])
            for played in present
            for question, _ in played.dialogue
            if number in (rows := torch.arange(len(played.context))[question.rows].tolist())
        ]
        assert ours == asked
        came = [p.outcome.feedback[0] for p in present]
        seen = [
            f.reward[f.context.users.tolist().index(number)].item()
            for f in came
            if number in f.context.users.tolist()
        ]
        assert seen == clicks
        np.testing.assert_allclose(policy.coefficients()[number], slow.theta, rtol=1e-9, atol=1e-12)
        counted += len(clicks)
    assert counted > 20  # else there was little to compare


def test_a_log_generated_in_small_blocks_is_the_same(monkeypatch):
    sizes = {"users": 9, "arms": 61, "terms": 9, "dim": 7, "events": 40, "pool": 5, "seed": 4}
    whole = dict(GeneratedLog(**sizes).named_buffers())
    monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", 1200)
    small = dict(GeneratedLog(**sizes).named_buffers())
    # The fitted parameters are sums, which other blocks may round in another order.
    torch.testing.assert_close(small.pop("theta"), whole.pop("theta"), **ALGEBRA)
    assert fingerprint(small) == fingerprint(whole)


def test_items_still_to_come_are_those_of_later_events():
    items = torch.tensor([5, 2, 5, 7, 2, 2, 2, 9, 7])
    logs = UserLogs(torch.tensor([0, 5]), torch.tensor([5, 4]), items, torch.zeros(9))
    own = logs.still_to_come(10)
    assert own.first.tolist() == [0, 3]
    assert own.items.tolist() == [2, 7, 5, 7, 9, 2]  # what comes last first, user by user
    assert own.places.tolist() == [2, 0, 2, 1, 0, 2, 2, 1, 0]
    assert own.left.tolist() == [3, 3, 3, 2, 1, 3, 3, 2, 1]


def test_candidates_are_the_served_item_and_others_of_the_user_in_any_place_alike():
    world = GeneratedLog(users=60, arms=60, terms=10, dim=4, events=60, pool=6)
    places = []
    for played in played_out(Random(world.catalogue, world.num_users), world):
        arms, now = played.context.arms, int(world.rounds[0])
        assert all(len(set(row)) == 6 for row in arms.tolist())
        served = world._items[world._first[: len(arms)] + len(places)]
        for user, row in enumerate(arms.tolist()):
            assert set(row) <= set(world._items[world._first[user] :][len(places) : 42].tolist())
        assert now == world.length
        places.append((arms == served[:, None]).long().argmax(1))
        assert ((arms == served[:, None]).sum(1) == 1).all()
    counts = torch.bincount(torch.cat(places), minlength=6)
    # Six kinds of some 2,200 places: a standard deviation is sqrt(n 5 / 36); four of them.
    number = int(counts.sum())
    assert number == world.logged().events > 2000
    assert (counts - number / 6).abs().max() < 4 * math.sqrt(number * 5 / 36)


def test_the_policy_that_picks_at_random_earns_the_logs_click_rate():
    world = GeneratedLog(users=400, arms=60, terms=10, dim=6, events=80, pool=5)
    record = Simulation(Random(world.catalogue, 400), world, rounds=world.length).run()[-1]
    events, rate = world.logged()[:2]
    slack = 4 * math.sqrt(rate * (1 - rate) / record.counted)  # four standard errors
    assert abs(record.ctr - rate) < slack < 0.025
    # An event counts with probability 1 / 5, whatever the policy.
    assert abs(record.counted / events - 0.2) < 4 * math.sqrt(0.16 / events)


def test_the_logs_click_rate_is_of_the_rounds_that_were_played():
    world = small_replay()
    starts = world._first.tolist()
    taken = torch.cat([world._clicks[start : start + 10] for start in starts])
    assert world.logged(10)[:2] == (50, pytest.approx(float(taken.mean())))
    assert world.logged(10).click_rate != world.logged().click_rate
    assert world.logged(world.length) == world.logged()


@pytest.mark.slow
def test_replay_finds_the_true_rates_of_fixed_and_of_learning_policies_whether_items_come_once_or_again(
    tmp_path,
):
    assert experiment.main(["bias", "--quick", "--out", str(tmp_path)]) == 0
    table = [line.split("|") for line in (tmp_path / "bias.md").read_text().splitlines()[2:]]
    true = {cells[2].strip(): float(cells[5]) for cells in table}
    assert len(table) == 10 and len(true) == 5
    assert (
        true["fixed, true preferences"] > 1.5 * true["picks at random"]
    )  # the estimate has something to find


def test_only_matched_rows_learn_and_only_their_users_go_on():
    world = small_replay()
    policy = LinUCB(world.catalogue, world.num_users)
    for _ in range(20):
        before = policy.coefficients().clone(), world.counted.clone()
        played = play_round(policy, world)
        matched = torch.zeros(world.num_users, dtype=torch.bool)
        matched[played.outcome.feedback[0].context.users] = True
        assert torch.equal(world.counted, before[1] + matched)
        assert torch.equal(played.context.rounds, before[1][: len(played.context)])
        assert torch.equal(policy.coefficients()[~matched], before[0][~matched])
        assert played.outcome.regret is None
    assert 0 < world.counted.sum() < 60


def test_users_whose_log_is_over_are_absent():
    world = small_replay()
    events = [log.played for log in reference.logs(small_log(), pool=9, fit_share=0.25)]
    assert 0 < events[-1] < events[0] < 57  # a log ends when too few items are still to come
    assert world.length == events[0] and world.logged().events == sum(events)
    present = [len(played.context) for played in played_out(Random(world.catalogue, 5), world)]
    assert present == [sum(t < own for own in events) for t in range(events[0])]
    assert world.user_names == ["user 1", "user 3", "user 5", "user 0", "user 4"]
    with pytest.raises(
        RuntimeError, match=rf"the log is over after {events[0]} rounds; reset\(\) starts it again"
    ):
        world.observe()


def test_answers_come_from_the_fitted_part_and_know_hidden_features():
    world = small_replay(hidden=2, noise=0.0)
    context = world.observe()
    assert context.arm_features.shape[2] == 3 and world.theta.shape == (5, 5)
    everyone = torch.arange(5)
    about_terms = world.answer(context, Question(everyone, Terms(torch.full((5,), 4)))).value
    torch.testing.assert_close(about_terms, world.theta @ world._world.term_features[4], **ALGEBRA)
    about_arms = world.answer(context, Question(everyone, Arms(context.arms[:, 2]))).value
    features = small_log().features[context.arms[:, 2]]
    torch.testing.assert_close(about_arms, (features * world.theta).sum(1), **ALGEBRA)
    yes_or_no = small_replay(feedback="binary").answer(context, Question(everyone, Terms(everyone))).value
    assert set(yes_or_no.tolist()) <= {0.0, 1.0}
    assert world.expected(context) is None and world.preferences() is None


def test_clicks_that_are_replayed_do_not_change_the_answers():
    log = small_log()
    other = Prepared(**vars(log) | {"clicks": torch.where(log.times < 3, log.clicks, 1 - log.clicks)})
    one, two = (Replay(data, pool=9, fit_share=0.1) for data in (log, other))
    # A tenth of the last user's 30 events are the three that are the same in both.
    assert one.logged().click_rate != two.logged().click_rate
    assert torch.equal(one.theta[4], two.theta[4]) and not torch.equal(one.theta[0], two.theta[0])


@pytest.mark.parametrize("cls", [LinUCB, ArmCon, HConUCB])
def test_a_replay_resumed_within_the_log_equals_an_uninterrupted_one(cls, tmp_path):
    def simulation(*callbacks):
        world = small_replay(hidden=1)
        policy = cls(world.catalogue, world.num_users, **({"hidden_dim": 1} if cls is HConUCB else {}))
        return Simulation(policy, world, rounds=world.length, log_every=5, callbacks=callbacks)

    whole = simulation()
    whole.run()
    with pytest.raises(StoppedError):
        simulation(StopAt(33), Checkpoint(tmp_path, 100)).run()  # two users have left by then
    resumed = simulation()
    resumed.restore(latest_checkpoint(tmp_path))
    resumed.run()
    assert comparable(resumed.records) == comparable(whole.records)
    assert resumed.records[-1].counted > 10
    for part in ("policy", "environment", "metrics"):
        ours, theirs = (getattr(s, part).state_dict() for s in (resumed, whole))
        assert fingerprint(ours) == fingerprint(theirs)


def test_windows_are_exact_where_they_end_within_a_round():
    world = GeneratedLog(users=300, arms=50, terms=10, dim=4, events=40, pool=4)
    policy, metrics = LinUCB(world.catalogue, 300), Metrics(world, Screen())
    clicks = []
    for played in played_out(policy, world):
        metrics.add(played)
        clicks += played.outcome.feedback[0].reward.tolist()
    full = len(clicks) // WINDOW
    assert full >= 3 and len(clicks) % WINDOW
    assert metrics.windows() == [sum(clicks[w * WINDOW : (w + 1) * WINDOW]) / WINDOW for w in range(full)]
    record = metrics.read(28, played, policy, world)
    assert record.counted == len(clicks) and record.ctr == pytest.approx(sum(clicks) / len(clicks), rel=1e-12)
    assert record.cumulative_regret is record.regret is record.theta_error is None
    assert float(record.details["CTR/window"]) == metrics.windows()[-1]


CONFIG = {
    "rounds": 100,
    "seeds": "0-2",
    "log_every": 50,
    "environment": {
        "class_path": "GeneratedLog",
        "init_args": {"users": 50, "arms": 80, "terms": 10, "dim": 5, "events": 150, "pool": 4},
    },
    "policies": {"Lin": {"class_path": "LinUCB"}, "Con": {"class_path": "ConUCB"}},
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replayed")
    assert main(["run", str(write(folder, CONFIG)), "--out", str(folder / "out")]) == 0
    return folder / "out"


def test_a_runs_files_hold_its_click_through_rates(finished):
    results = read_results(finished)
    for name, own in results.items():
        assert own.clicks.ctr.shape == (3, 2) and own.clicks.window == WINDOW
        for seed in range(3):
            folder = finished / name / f"seed{seed}"
            last = rows(folder / "metrics.csv")[-1]
            log = json.loads((folder / "result.json").read_text())["replayed"]
            assert last["cumulative_regret"] == "" and 1000 <= int(last["counted"]) < 1500
            assert log["events"] == 5000 and len(log["ctr"]) == 2
            earned = sum(log["ctr"]) * WINDOW
            assert 0 <= float(last["ctr"]) * int(last["counted"]) - earned <= int(last["counted"]) - 1000
    windows = rows(finished / "windows.csv")
    assert [(row["policy"], row["counted"]) for row in windows] == [
        ("Lin", "500"), ("Lin", "1000"), ("Con", "500"), ("Con", "1000"),
    ]  # fmt: skip
    clicks = results["Con"].clicks
    mean, half = intervals(clicks.ctr[:, 1] / clicks.logged)
    assert float(windows[3]["of_random"]) == pytest.approx(mean, rel=1e-8)
    assert float(windows[3]["of_random_high"]) == pytest.approx(mean + half, rel=1e-8)


def test_tensorboard_shows_click_through_rates_and_no_regret(finished):
    events = EventAccumulator(str(finished / "Con" / "seed0")).Reload()
    tags = events.Tags()["scalars"]
    assert {"CTR/cumulative", "CTR/events counted", "CTR/window"} <= set(tags)
    assert not [tag for tag in tags if "regret" in tag.lower()]
    table = rows(finished / "Con" / "seed0" / "metrics.csv")
    shown = [point.value for point in events.Scalars("CTR/cumulative")]
    np.testing.assert_allclose(shown, [float(row["ctr"]) for row in table], rtol=1e-6)


def test_report_and_figures_of_a_replay(finished, capsys):
    assert main(["report", str(finished)]) == 0
    text = capsys.readouterr().out
    assert "Order by CTR: " in text
    assert max(len(line) for line in text.splitlines() if line.startswith(("┃", "│"))) <= 80
    results = read_results(finished)
    ranked = sorted(results, key=lambda name: -results[name].final("ctr").mean())
    lines = [line.split(" | ") for line in (finished / "report.md").read_text().splitlines()[2:6]]
    assert lines[0][2:5] == ["CTR", "of Lin", "more than Lin"]
    for cells, name in zip(lines[2:], ranked, strict=True):
        assert cells[0] == f"| {name}" and cells[2].startswith(f"{results[name].final('ctr').mean():.4f} ± ")
    assert main(["plot", str(finished)]) == 0
    names = sorted(path.name for path in (finished / "plots").glob("*.png"))
    assert names == ["ctr.png", "ctr_of_baseline.png", "final_ctr.png", "frontier.png"]


@pytest.mark.slow
def test_the_comparison_runs(tmp_path):
    assert experiment.main(["ctr", "--quick", "--out", str(tmp_path)]) == 0
    assert len(read_results(tmp_path)) == 6
    assert (tmp_path / "report.md").exists() and (tmp_path / "plots" / "ctr.pdf").exists()


def test_tuning_prefers_more_clicks():
    world = small_replay()
    record = Simulation(Random(world.catalogue, 5), world, rounds=world.length).run()[-1]
    kept = score([record])
    assert kept == {"objective": "CTR", "values": [record.ctr]} and loss(kept) == -record.ctr


def test_subsets_of_own_populations_are_uniform():
    """Every pair of 4 is as likely: 6 kinds, 6,000 draws, a standard deviation of 28.9; four of them."""
    users = torch.arange(6000)
    pairs = Stream(0, "pairs").subsets_of(users, 0, 2, torch.full((6000,), 4)).sort(1).values
    kinds, counts = pairs.unique(dim=0, return_counts=True)
    assert len(kinds) == 6 and (counts - 1000).abs().max() < 116
    whole = Stream(0, "pairs").subsets_of(torch.arange(2), 0, 3, torch.tensor([3, 10]))
    assert whole[0].sort().values.tolist() == [0, 1, 2] and whole[1].max() < 10


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fit_share": 0.0}, "fit_share must lie between 0 and 1, got 0.0"),
        ({"fit_share": 1.0}, "fit_share must lie between 0 and 1, got 1.0"),
        ({"pool": 1}, "pool must be at least 2, the served item and another, got 1"),
        ({"pool": 41}, "pool is 41, but no user has so many distinct items to replay: the most is 3"),
        ({"fit_share": 0.999}, "pool is 9, but no user has so many distinct items to replay: the most is 1"),
        ({"users": 6}, "users must be from 1 to the 5 with at least 9 distinct items to replay, got 6"),
        ({"noise": -1.0}, "noise must be a number of at least 0, got -1.0"),
        ({"ridge": 0.0}, "ridge must be a number above 0, got 0.0"),
        ({"hidden": 5}, "hidden must be from 0 to 4, below the number of features, got 5"),
        ({"feedback": "loud"}, "feedback must be 'linear', 'binary' or 'logistic', got 'loud'"),
    ],
)
def test_bad_arguments_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        small_replay(**changes)


def test_events_out_of_order_are_put_into_the_order_of_time():
    log, world = small_log(), small_replay()
    mixed = torch.from_numpy(np.random.default_rng(0).permutation(len(log.users)))
    events = {name: getattr(log, name)[mixed] for name in ("users", "items", "clicks", "times")}
    other = Replay(Prepared(**vars(log) | events), pool=9, fit_share=0.25, seed=2)
    torch.testing.assert_close(other.theta, world.theta, **ALGEBRA)
    assert torch.equal(other.observe().arms, world.observe().arms)


def test_a_share_of_the_log_is_rounded_down_and_no_further():
    """In float32, 0.53 of 100 events would be 52."""
    log = generate_log(3, 40, 10, 5, 100, 3, 0.1, seed=4)
    assert int(past_and_rest(log, 0.53)[1].count[0]) == 100 - 53


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("users", lambda ids: ids + 1, "users must be from 0 to 5, as there are 6 names, got 1 to 6"),
        ("items", lambda ids: ids - 40, "items must be from 0 to 39, as there are 40 names, got -40 to"),
        ("clicks", lambda clicks: clicks[1:], r"clicks must be \[E\], one per event, like users"),
    ],
)
def test_a_log_that_does_not_fit_together_is_refused(name, change, message):
    log = small_log()
    with pytest.raises(ValueError, match=message):
        Prepared(**vars(log) | {name: change(getattr(log, name))})


def test_a_readers_features_do_not_tell_of_the_clicks_that_are_replayed(tmp_path):
    source = small_sources()["movielens csv"]
    reader = source.reader(source.write(tmp_path))
    cache = tmp_path / "cache"
    world = Replay(reader, dim=2, pool=2, cache=cache)
    known = prepare(reader, dim=2, use_feedback_columns=False, cache=cache)
    assert torch.equal(world.catalogue.arm_features, known.features)
    assert not torch.equal(known.features, prepare(reader, dim=2, cache=cache).features)


def test_an_empty_log_is_refused():
    log = small_log()
    nothing = {name: getattr(log, name)[:0] for name in ("users", "items", "clicks", "times")}
    with pytest.raises(ValueError, match="the log holds no events"):
        Replay(Prepared(**vars(log) | nothing))


def test_more_rounds_than_the_log_has_are_refused():
    world = small_replay()
    with pytest.raises(ValueError, match=f"rounds is {world.length + 1}, but Replay holds {world.length}"):
        Simulation(Random(world.catalogue, 5), world, rounds=world.length + 1)
