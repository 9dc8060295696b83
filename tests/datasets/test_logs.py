"""Readers of logs: Open Bandit, Coat, MIND's impressions, Kuai, and reviews as JSON lines."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from conbandit_torch import (
    MIND,
    Coat,
    DataError,
    JsonReviews,
    Kuai,
    LinUCB,
    MovieLens,
    MovieLensUsers,
    OpenBandit,
    ReplayEvents,
    Simulation,
    prepare,
)
from conbandit_torch.commands.data import recognise
from experiments.small_sources import small_sources


def terms_of(data):
    return {
        item: {data.terms[k] for k in data.item_terms[row].indices} for row, item in enumerate(data.items)
    }


# Open Bandit.


def open_bandit(folder, policy="random", rows=60):
    """Four items, two positions, three segments; `random` serves each item alike."""
    rng = np.random.default_rng(1)
    inside = folder / policy / "all"
    inside.mkdir(parents=True)
    items = [f"{n},{n},{0.5 * n},{'ab'[n % 2]},{'cd'[n // 2]},e{n}" for n in range(4)]
    head = ",item_id," + ",".join(f"item_feature_{n}" for n in range(4))
    (inside / "item_context.csv").write_text("\n".join([head, *items, ""]))
    users = ",".join(f"user_feature_{n}" for n in range(4))
    lines = [f",timestamp,item_id,position,click,propensity_score,{users},user-item_affinity_0"]
    for n in range(rows):
        time = f"2019-11-24 00:{59 - n % 60:02d}:17.004101+00:00"  # not in order
        item, segment = int(rng.integers(4)), int(rng.integers(3))
        chance = 0.25 if policy == "random" else 0.1 + 0.2 * item / 3
        fields = f"{item},{1 + n % 2},{int(rng.random() < 0.4)},{chance},x{segment},y,z{segment % 2},w"
        lines.append(f"{n},{time},{fields},0.0")
    (inside / "all.csv").write_text("\n".join([*lines, ""]))
    return folder


def test_open_bandit_says_what_was_served_where_and_how_likely(tmp_path):
    data = OpenBandit(open_bandit(tmp_path)).read()
    log = data.events
    lines = [line.split(",") for line in (tmp_path / "random/all/all.csv").read_text().splitlines()[1:]]
    lines.reverse()  # the file's times fall
    assert len(log.users) == len(lines) == 60 and bool((log.times.diff() > 0).all())
    assert [data.items[item] for item in log.items.tolist()] == [line[2] for line in lines]
    assert (log.positions + 1).tolist() == [int(line[3]) for line in lines]
    assert log.clicks.tolist() == data.feedback.values.tolist() == [float(line[4]) for line in lines]
    assert log.propensities.tolist() == [0.25] * 60 and log.sizes.tolist() == [4]
    assert [data.users[user] for user in log.users.tolist()] == [" ".join(line[6:10]) for line in lines]
    assert terms_of(data)["3"] == {"item_feature_1: b", "item_feature_2: d", "item_feature_3: e3"}
    assert log.context is None and int(log.times[0]) == 1574553617  # 2019-11-24 00:00:17 UTC


def test_everyone_as_one_user_has_the_features_as_context(tmp_path):
    data = OpenBandit(open_bandit(tmp_path, "bts"), policy="bts", users="one").read()
    assert list(data.users) == ["everyone"]
    # One value less than there are of each feature.
    assert data.events.context_names == ("user_feature_0: x1", "user_feature_0: x2", "user_feature_2: z1")
    lines = [line.split(",") for line in (tmp_path / "bts/all/all.csv").read_text().splitlines()[:0:-1]]
    expected = [[float(line[6] == "x1"), float(line[6] == "x2"), float(line[8] == "z1")] for line in lines]
    assert data.events.context.tolist() == expected
    assert len(data.events.propensities.unique()) == 4


@pytest.mark.parametrize(("policy", "serving"), [("random", "uniform"), ("bts", "skewed")])
def test_open_bandit_is_replayed(policy, serving, tmp_path):
    reader = OpenBandit(open_bandit(tmp_path, policy), policy=policy)
    world = ReplayEvents(reader, dim=2, cache=tmp_path / "cache", seed=0)
    assert world.serving == serving
    bandit = LinUCB(world.catalogue, world.num_users)
    assert 0 < Simulation(bandit, world, rounds=world.length).run()[-1].counted < 60


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (",0.25,", ",0,", "line 2: propensity_score: expected above 0 and at most 1, got 0"),
        ("2019-11-24", "24/11/2019", "line 2: timestamp: expected one such as 2019-11-24"),
        ("user_feature_3", "feature_3", "there is no column 'user_feature_3'"),
    ],
)
def test_what_is_wrong_with_open_bandit_is_said(old, new, message, tmp_path):
    path = open_bandit(tmp_path) / "random" / "all" / "all.csv"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(DataError, match=f"all.csv: {message}"):
        OpenBandit(tmp_path).read()


@pytest.mark.parametrize("policy", ["random", "bts"])
def test_open_bandits_published_sample_is_read(policy):
    obp = pytest.importorskip("obp")
    data = OpenBandit(Path(obp.__file__).parent / "dataset" / "obd", policy=policy).read()
    assert len(data.items) == 80 and len(data.events.users) == 10_000
    assert sorted(data.events.positions.unique().tolist()) == [0, 1, 2]
    uniform = bool((data.events.propensities - 1 / 80).abs().max() < 1e-6)
    assert uniform == (policy == "random")


# MIND.


def test_an_impression_is_an_event_that_serves_what_it_offers(tmp_path):
    small_sources()["mind"].write(tmp_path)
    path = tmp_path / "behaviors.tsv"
    path.write_text(path.read_text() + "99\tU1\t11/30/2019 1:00:00 AM\t\tN3-0 N4-1 N3-1 N777-1\n")
    data = MIND(tmp_path, min_entity_count=2).read()
    log = data.events
    assert data.counts["impressions"] == len(log.users) == 25
    last = log.events == 24
    assert [data.items[item] for item in log.items[last].tolist()] == ["N3", "N4"]
    assert log.clicks[last].tolist() == [1, 1]  # N3 twice, clicked once; N777 is no news that is known
    assert data.users[int(log.users[-1])] == "U1" and bool((log.times.diff() >= 0).all())
    assert torch.equal(log.items, log.candidates) and log.propensities is None
    kept = prepare(MIND(tmp_path, min_entity_count=2), dim=2, cache=tmp_path / "cache")
    world = ReplayEvents(kept)
    assert world.logged().events > 0


def test_thresholds_leave_out_servings_too(tmp_path):
    small_sources()["mind"].write(tmp_path)
    whole = MIND(tmp_path, min_entity_count=2).read()
    data = MIND(tmp_path, min_entity_count=2, min_item_feedback=6).read()
    assert 0 < len(data.items) < len(whole.items)
    kept = np.isin(whole.items[whole.events.items.numpy()], data.items)
    names = data.items[data.events.items.numpy()]
    assert names.tolist() == whole.items[whole.events.items.numpy()][kept].tolist()
    assert data.events.clicks.tolist() == whole.events.clicks[torch.from_numpy(kept)].tolist()
    assert len(data.events.users) == len(np.unique(whole.events.events.numpy()[kept]))


# MovieLens 100k with its users.


def movielens_users(folder):
    small_sources()["movielens 100k"].write(folder)
    (folder / "u.user").write_text(
        "1|24|M|writer|85711\n2|53|F|other|94043\n3|23|M|other|1\n4|24|F|lawyer|2\n"
    )
    return folder


def test_users_features_are_the_context_of_what_they_rate_next(tmp_path):
    data = MovieLensUsers(movielens_users(tmp_path), pool=3, positive_from=3).read()
    plain = MovieLens(tmp_path).read().feedback
    log = data.events
    assert list(data.users) == ["everyone"] and not data.feedback.users.any()
    assert list(log.context_names) == ["age", "gender: M", "occupation: other", "occupation: writer"]
    known = {0: [24, 1, 0, 1], 1: [53, 0, 1, 0], 2: [23, 1, 1, 0], 3: [24, 0, 0, 0]}
    event = 0
    for row, (user, item) in enumerate(zip(plain.users.tolist(), plain.items.tolist(), strict=True)):
        to_come = set(plain.items[row:][plain.users[row:] == user].tolist())
        if len(to_come) < 3:
            continue
        offered = log.candidates[3 * event : 3 * event + 3].tolist()
        assert offered[0] == item == int(log.items[event]) and set(offered) <= to_come
        name = int(MovieLens(tmp_path).read().users[user]) - 1
        assert log.context[event].tolist() == known[name]
        assert float(log.clicks[event]) == float(plain.values[row] >= 3)
        event += 1
    assert event == len(log.users) == data.counts["ratings that are events"] > 0
    reader = MovieLensUsers(tmp_path, pool=3)
    world = ReplayEvents(reader, dim=2, cache=tmp_path / "cache")
    assert world.num_users == 1 and world.catalogue.dim == 2 * 5


def test_what_is_wrong_with_users_is_said(tmp_path):
    movielens_users(tmp_path)
    with pytest.raises(DataError, match="pool=30 leaves no event"):
        MovieLensUsers(tmp_path, pool=30).read()
    (tmp_path / "u.user").write_text("1|24|M|writer|85711\n")
    with pytest.raises(DataError, match=r"u.user: user \d is missing"):
        MovieLensUsers(tmp_path).read()
    (tmp_path / "u.user").unlink()
    with pytest.raises(DataError, match="there is no u.user"):
        MovieLensUsers(tmp_path).read()


# Coat.


def coat(folder, names=True):
    (folder / "user_item_features").mkdir()
    (folder / "test.ascii").write_text("0 5 1 0\n4 0 0 2\n")
    (folder / "train.ascii").write_text("1 0 0 0\n0 0 3 0\n")
    (folder / "user_item_features" / "item_features.ascii").write_text("1 0 1\n0 1 0\n1 0 0\n0 1 1\n")
    if names:
        (folder / "user_item_features" / "item_features_map.txt").write_text("men\nwomen\nred\n")
    return folder


def test_coat_is_read(tmp_path):
    data = Coat(coat(tmp_path)).read()
    pairs = zip(data.feedback.users.tolist(), data.feedback.items.tolist(), data.feedback.values, strict=True)
    assert list(pairs) == [(0, 1, 5), (0, 2, 1), (1, 0, 4), (1, 3, 2)]
    assert terms_of(data) == {"0": {"men", "red"}, "1": {"women"}, "2": {"men"}, "3": {"women", "red"}}
    assert len(Coat(tmp_path, part="train").read().feedback.users) == 2
    (tmp_path / "user_item_features" / "item_features_map.txt").unlink()
    assert list(Coat(tmp_path).read().terms) == ["feature 0", "feature 2", "feature 1"]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("test.ascii", "0 5 1 0\n4 0 0\n", "line 2: expected 4 numbers, got 3"),
        ("test.ascii", "0 5 1 x\n", "line 1: expected numbers, got '0 5 1 x'"),
        ("test.ascii", "", "the file is empty"),
        ("user_item_features/item_features.ascii", "1 0\n", "expected 4 lines, one per column of test.ascii"),
        ("user_item_features/item_features_map.txt", "a\nb\n", "expected 3 different names"),
    ],
)
def test_what_is_wrong_with_coat_is_said(file, text, message, tmp_path):
    (coat(tmp_path) / file).write_text(text)
    with pytest.raises(DataError, match=f"{file}: {message}"):
        Coat(tmp_path).read()


# Kuai.


def kuairand(folder):
    (folder / "log_random_4_22_to_5_08_pure.csv").write_text(
        "user_id,video_id,date,time_ms,is_click,is_rand\n"
        "7,2,20220422,1650643200500,1,1\n7,3,20220422,1650643100500,0,1\n8,9,20220422,1650643100500,1,1\n"
        "8,2,20220422,1650643200500,0,1\n"
    )
    (folder / "video_features_basic_pure.csv").write_text('video_id,author_id,tag\n2,1,"12,65"\n3,1,12\n')
    return folder


def test_kuairand_is_read(tmp_path):
    data = Kuai(kuairand(tmp_path)).read()
    assert list(data.users) == ["7", "8"] and list(data.items) == ["2", "3"]
    assert data.feedback.times.tolist() == [1650643100, 1650643200, 1650643200]
    assert data.feedback.values.tolist() == [0, 1, 0]
    assert terms_of(data) == {"2": {"tag 12", "tag 65"}, "3": {"tag 12"}}
    assert data.counts["feedback on unknown items (dropped)"] == 1
    with pytest.raises(DataError, match="there is no column 'is_like'"):
        Kuai(tmp_path, value="is_like").read()


def test_kuairec_is_read(tmp_path):
    (tmp_path / "small_matrix.csv").write_text(
        "user_id,video_id,watch_ratio,timestamp\n14,148,0.7,1.5\n14,183,1.9,\n"
    )
    (tmp_path / "item_categories.csv").write_text('video_id,feat\n148,[8]\n183,"[27, 9]"\n')
    data = Kuai(tmp_path).read()
    assert data.feedback.values.tolist() == pytest.approx([0.7, 1.9])
    assert terms_of(data) == {"148": {"tag 8"}, "183": {"tag 27", "tag 9"}}


# Reviews as JSON lines.

AMAZON = (
    [
        {"reviewerID": "A", "asin": "B1", "overall": 5.0, "unixReviewTime": 1400000002},
        {"reviewerID": "A", "asin": "B2", "overall": 2.0, "unixReviewTime": 1400000001},
    ],
    [
        {"asin": "B1", "title": "Lamp", "categories": [["Home", "Light"]]},
        {"asin": "B2", "category": ["Home", "Light"], "price": "$3"},
    ],
)
GOODREADS = (
    [
        {"user_id": "A", "book_id": 1, "rating": 5, "date_added": "Tue May 13 09:53:22 -0700 2014"},
        {"user_id": "A", "book_id": "2", "rating": 2, "date_added": "2014-05-13T16:53:21"},
        {"user_id": "A", "book_id": "2", "rating": 0, "date_added": ""},
    ],
    [
        {
            "book_id": "1",
            "popular_shelves": [{"count": "9", "name": "Home"}, {"count": "1", "name": "Light"}],
        },
        {"book_id": "2", "popular_shelves": [], "genres": {"Home": 3, "Light": 2}},
    ],
)


def json_lines(folder, reviews, items):
    text = "".join(json.dumps(record) + "\n" for record in reviews)
    (folder / "reviews.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "meta.jsonl").write_text("".join(json.dumps(record) + "\n" for record in items))
    return folder


@pytest.mark.parametrize("source", [AMAZON, GOODREADS])
def test_reviews_as_json_lines_are_read(source, tmp_path):
    reader = JsonReviews(json_lines(tmp_path, *source), min_term_count=1)
    data = reader.read()
    assert data.feedback.values.tolist() == [2, 5]
    assert data.feedback.times.tolist() == [1400000001, 1400000002]
    first, second = terms_of(data).values()
    assert first == {"Home", "Light"}
    assert second == {"Home", "Light"}
    assert data.counts["reviews without stars (dropped)"] == len(source[0]) - 2


@pytest.mark.parametrize(
    ("which", "record", "message"),
    [
        (0, {"asin": "B1", "overall": 5.0}, "line 3: there is no user or user_id or reviewerID; it has asin"),
        (0, {"reviewerID": "A", "asin": "B1", "overall": "5"}, "line 3: expected a number of stars, got '5'"),
        (0, AMAZON[0][0] | {"unixReviewTime": "soon"}, "line 3: expected seconds or a date, got 'soon'"),
        (1, AMAZON[1][0], "line 3: item 'B1' is there a second time"),
        (1, {"asin": "B3", "categories": [3]}, "line 3: expected names of key-terms, got 3"),
    ],
)
def test_what_is_wrong_with_json_lines_is_said(which, record, message, tmp_path):
    source = [list(records) for records in AMAZON]
    source[which].append(record)
    with pytest.raises(DataError, match=message):
        JsonReviews(json_lines(tmp_path, *source)).read()


@pytest.mark.parametrize(
    ("make", "reader"),
    [
        (open_bandit, OpenBandit),
        (coat, Coat),
        (kuairand, Kuai),
        (lambda folder: json_lines(folder, *AMAZON), JsonReviews),
    ],
)
def test_logs_are_recognised_and_missing_files_named(make, reader, tmp_path):
    make(tmp_path)
    assert recognise(tmp_path) == reader.__name__
    for path in reader(tmp_path).files():
        if path.name == "item_features_map.txt":  # need not be there
            continue
        content = path.read_bytes()
        path.unlink()
        with pytest.raises(DataError, match=f"there is no .*{path.name.removesuffix('.gz')}"):
            reader(tmp_path).read()
        path.write_bytes(content)
    with pytest.raises(DataError, match="nowhere: no such file or folder"):
        reader(tmp_path / "nowhere").read()
