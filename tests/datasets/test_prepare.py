"""Preparation against slow and obvious computations, and a cache that is never stale."""

import importlib
import json
import os

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from conbandit_torch import DataError, LastFM, MovieLens, Table, prepare
from conbandit_torch.datasets import cache as cache_module
from conbandit_torch.datasets import prepare as prepare_module
from conbandit_torch.datasets.base import Dataset, Interactions
from conbandit_torch.datasets.prepare import draw_unseen, principal_components
from experiments import data_benchmark
from experiments.data_benchmark import write_ratings
from experiments.small_sources import small_sources
from tests.conftest import ALGEBRA, EXACT
from tests.helpers.data import real

SMALL = small_sources()


def slow_features(side, dim):
    """Dense PCA by SVD, rows of length 1, signs free."""
    centred = side - side.mean(0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    scores = centred @ axes[:dim].T
    return scores / np.linalg.norm(scores, axis=1, keepdims=True)


def dataset(side):
    """Items with these side features [N, F] and nothing else of interest."""
    size = len(side)
    names = np.array([f"i{i}" for i in range(size)], object)
    nothing = Interactions(*(np.zeros(0, kind) for kind in (np.int32, np.int32, np.float32, np.int64)))
    one = csr_matrix(np.ones((size, 1), np.float32))
    return Dataset(names[:0], names, names, names[:1], one, csr_matrix(side), names[:0], nothing)


@pytest.mark.parametrize("most_columns", [2000, 3])  # by covariance, and by iteration
def test_features_are_principal_components_of_length_one(most_columns, monkeypatch):
    monkeypatch.setattr(prepare_module, "_MOST_COLUMNS", most_columns)
    rng = np.random.default_rng(0)
    side = (rng.random((60, 20)) < 0.3) * rng.random(20)  # distinct variances: distinct components
    features = principal_components(dataset(side), 5).numpy()
    expected = slow_features(side, 5)
    signs = np.sign((features * expected).sum(0))
    np.testing.assert_allclose(features, expected * signs, **ALGEBRA)
    np.testing.assert_array_equal(features, principal_components(dataset(side), 5).numpy())


def test_components_have_the_sign_of_their_largest_loading():
    rng = np.random.default_rng(1)
    side = rng.normal(size=(50, 4)) * [5, 3, 2, 1]
    features = principal_components(dataset(side), 4).numpy()
    for component in range(4):  # the side features' axes are nearly the components
        assert np.corrcoef(features[:, component], side[:, component])[0, 1] > 0.5


def test_preferences_are_ridge_regressions_on_all_of_a_users_feedback(tmp_path):
    write_ratings(tmp_path, rows=3000, users=41, movies=60)
    prepared = prepare(MovieLens(tmp_path), dim=4, ridge=0.7, cache=tmp_path / "cache")
    data = MovieLens(tmp_path).read()
    expected = slow_features(data.side.toarray().astype(np.float64), 4)
    features = prepared.features.numpy()
    np.testing.assert_allclose(features, expected * np.sign((features * expected).sum(0)), **ALGEBRA)
    for user in range(41):
        gram, moment = 0.7 * np.eye(4), np.zeros(4)
        for u, i, value in zip(data.feedback.users, data.feedback.items, data.feedback.values, strict=True):
            if u == user:
                gram += np.outer(features[i], features[i])
                moment += (value >= 4) * features[i]
        np.testing.assert_allclose(prepared.theta[user], np.linalg.solve(gram, moment), **ALGEBRA)
    np.testing.assert_array_equal(prepared.clicks, data.feedback.values >= 4)
    assert prepared.times.tolist() == sorted(prepared.times.tolist())


def test_users_in_blocks_get_the_same_preferences(tmp_path, monkeypatch):
    write_ratings(tmp_path, rows=500, users=23, movies=40)
    whole = prepare(MovieLens(tmp_path), dim=3, cache=tmp_path / "one")
    monkeypatch.setattr(prepare_module, "rows_per_block", lambda width: 5)
    torch.testing.assert_close(
        prepare(MovieLens(tmp_path), dim=3, cache=tmp_path / "two").theta, whole.theta, **ALGEBRA
    )


@pytest.mark.parametrize("name", SMALL)
def test_prepared_data_make_a_catalogue_with_equal_weights(name, tmp_path):
    reader = SMALL[name].reader(SMALL[name].write(tmp_path))
    prepared = prepare(reader, dim=2, cache=tmp_path / "cache")
    catalogue, data = prepared.catalogue(), reader.read()
    assert catalogue.term_names == tuple(data.terms) and catalogue.arm_names == tuple(data.titles)
    torch.testing.assert_close(prepared.features.norm(dim=1), torch.ones(len(data.items)).double())
    edges = catalogue.terms_of(torch.arange(len(data.items)))
    own = data.item_terms.toarray()
    weights = own / own.sum(1, keepdims=True)
    found = torch.zeros(own.shape).double()
    found[edges.owner, edges.target] = edges.weight
    np.testing.assert_allclose(found, weights, rtol=1e-6)


@pytest.mark.parametrize(("threshold", "all_are"), [(1, 1), (6, 0)])
def test_feedback_that_is_all_one_thing_is_refused(threshold, all_are, tmp_path):
    SMALL["table csv"].write(tmp_path)
    problem = (
        rf"positive_from={threshold} all feedback is {all_are} \(its values are from \d.* to \d.*\), so there"
    )
    with pytest.raises(DataError, match=problem):
        prepare(Table(tmp_path, positive_from=threshold), dim=2, cache=tmp_path / "cache")
    positive = prepare(Table(tmp_path, has_negatives=False), dim=2, cache=tmp_path / "cache")
    assert 0 < positive.clicks.mean() < 1


def test_unseen_items_stand_in_for_negatives(tmp_path):
    reader = SMALL["lastfm"].reader(SMALL["lastfm"].write(tmp_path))
    data = reader.read()
    prepared = prepare(reader, dim=2, cache=tmp_path / "cache")
    users, items, clicks = prepared.users, prepared.items, prepared.clicks
    for user in range(len(data.users)):
        liked, other = (items[(users == user) & (clicks == c)].tolist() for c in (1, 0))
        assert len(set(other)) == len(other) == min(len(liked), len(data.items) - len(liked))
        assert not set(liked) & set(other)
    assert clicks[:2].sum() == 1 and users[0] == users[1]  # side by side, so that no stretch has one sort
    again = prepare(reader, dim=2, seed=1, cache=tmp_path / "cache")
    assert again.items.tolist() != items.tolist()


def test_a_drawn_item_stands_beside_the_users_event_with_its_time():
    times = np.array([5, 6, 7, 9], np.int64)
    seen = Interactions(np.array([0, 1, 0, 0]), np.array([2, 2, 2, 4]), np.ones(4, np.float32), times)
    joined, clicks = prepare_module.with_unseen(seen, num_users=2, num_items=6, seed=0)
    assert joined.users.tolist() == [0, 0, 1, 1, 0, 0, 0]  # the third was no new item
    assert joined.times.tolist() == [5, 5, 6, 6, 7, 9, 9]
    assert [sum(clicks[joined.times == time]) for time in times] == [1, 1, 1, 1]


def test_a_drawn_item_comes_first_as_often_as_second():
    users = 4000
    one = np.zeros(users, np.int32)
    seen = Interactions(np.arange(users, dtype=np.int32), one, one.astype(np.float32), one.astype(np.int64))
    _, clicks = prepare_module.with_unseen(seen, users, 5, seed=0)
    # Of 4000 pairs, with a standard deviation of 32: four of them. All would click in a replay's first round.
    assert abs(clicks[::2].sum() - users / 2) < 128 and (clicks[::2] + clicks[1::2] == 1).all()


def test_features_that_sum_up_feedback_can_be_left_out(tmp_path):
    reader = SMALL["movielens csv"].reader(SMALL["movielens csv"].write(tmp_path))
    data = reader.read()
    assert data.feedback_columns == 2 and list(data.side_names[-2:]) == ["mean rating", "ratings"]
    known = dataset(data.side[:, :-2].toarray())
    for use_feedback_columns, expected in ((True, data), (False, known)):
        prepared = prepare(reader, dim=2, use_feedback_columns=use_feedback_columns, cache=tmp_path / "cache")
        np.testing.assert_array_equal(prepared.features, principal_components(expected, 2))


@pytest.mark.parametrize("name", ["lastfm", "yelp"])
def test_all_that_sums_up_feedback_is_marked(name, tmp_path):
    data = SMALL[name].reader(SMALL[name].write(tmp_path)).read()
    sums = {"lastfm": ["log of mean plays", "listeners"], "yelp": ["stars", "reviews"]}[name]
    assert data.feedback_columns == 2 and list(data.side_names[-2:]) == sums


def test_every_unseen_item_is_as_likely_as_any_other():
    users = 4000
    who = np.repeat(np.arange(users, dtype=np.int32), 2)
    what = np.tile(np.array([1, 4], np.int32), users)
    seen = Interactions(who, what, np.ones(2 * users, np.float32), np.zeros(2 * users, np.int64))
    _, drawn = draw_unseen(seen, users, 7, seed=0)
    counts = np.bincount(drawn, minlength=7)
    assert counts[[1, 4]].tolist() == [0, 0] and counts.sum() == 2 * users
    # 1600 each, with standard deviation 31: five of them.
    assert (abs(counts[[0, 2, 3, 5, 6]] - 1600) < 155).all()


def test_a_user_who_has_met_nearly_everything_gets_what_is_left():
    met = np.array([0, 1, 2, 0, 1, 2, 3], np.int32)
    who = np.array([0, 0, 0, 1, 1, 1, 1], np.int32)
    seen = Interactions(who, met, np.ones(7, np.float32), np.zeros(7, np.int64))
    beside, drawn = draw_unseen(seen, 2, 4, seed=0)
    assert drawn.tolist() == [3] and who[beside].tolist() == [0]


def test_more_features_than_the_data_give_are_refused(tmp_path):
    reader = SMALL["movielens csv"].reader(SMALL["movielens csv"].write(tmp_path))
    with pytest.raises(
        DataError, match=r"dim=50 is more than the 7 items with 9 side features give: at most 6"
    ):
        prepare(reader, cache=tmp_path / "cache")
    side = np.zeros((9, 6))
    side[:4, 0] = side[2:7, 1] = side[::2, 2] = 1  # rank 3
    with pytest.raises(DataError, match="dim=4 is more .*: at most 3"):
        principal_components(dataset(side), 4)
    with pytest.raises(DataError, match="dim=50 is more .*: at most 3"):  # not 6, for which there is room
        principal_components(dataset(side), 50)
    for wrong in ({"dim": 0}, {"ridge": 0.0}, {"ridge": float("nan")}):
        with pytest.raises(ValueError, match="must be"):
            prepare(reader, **wrong)


def test_an_item_without_a_direction_is_refused():
    with pytest.raises(DataError, match="1 items, such as 'i2', have the mean's side features"):
        principal_components(dataset(np.array([[1.0, 0], [-1, 0], [0, 0], [0, 3], [0, -3]])), 2)
    with pytest.raises(DataError, match="at most 0"):
        principal_components(dataset(np.ones((5, 2))), 1)


# The cache.


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """A reader of the small table, a function that prepares it, and how often data were read."""
    reads = []
    monkeypatch.setattr(Table, "read", lambda self, read=Table.read: reads.append(1) or read(self))
    (tmp_path / "data").mkdir()
    SMALL["table csv"].write(tmp_path / "data")

    def again(path=tmp_path / "data", kind=Table, dim=2, ridge=1.0, seed=0, **parameters):
        parameters = {"positive_from": 4} | parameters
        return prepare(kind(path, **parameters), dim=dim, ridge=ridge, seed=seed, cache=tmp_path / "cache")

    return tmp_path / "data", again, reads


def test_what_was_prepared_is_read_from_the_cache_and_is_the_same(counted):
    _, again, reads = counted
    first, second = again(), again()
    assert len(reads) == 1
    for name, value in vars(first).items():
        other = getattr(second, name)
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(other, value, **EXACT)
        else:
            assert other == value


def test_a_moved_folder_needs_no_new_preparation(counted):
    folder, again, reads = counted
    again()
    again(folder.rename(folder.with_name("moved")))
    assert len(reads) == 1


def test_a_changed_source_is_prepared_anew_even_with_its_old_size_and_date(counted):
    folder, again, reads = counted
    again()
    path = folder / "feedback.csv"
    before, content = path.stat(), path.read_bytes()
    path.write_bytes(content.replace(b"b1,3", b"b1,5", 1))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    changed = again()
    assert len(reads) == 2
    path.write_bytes(content)
    assert changed.clicks.sum() == again().clicks.sum() + 1 and len(reads) == 2


def test_another_parameter_or_class_is_another_preparation(counted):
    _, again, reads = counted

    class Likes(Table):
        has_negatives = False

    others = [{"dim": 3}, {"ridge": 2.0}, {"seed": 1}, {"positive_from": 3}, {"min_user_feedback": 2}]
    others += [{"has_negatives": False}, {"kind": Likes}]
    for number, other in enumerate(({}, *others), start=1):
        again(**other)
        assert len(reads) == number
    for other in others:
        again(**other)
    assert len(reads) == len(others) + 1


def test_a_changed_reader_is_another_preparation(counted, tmp_path, monkeypatch):
    _, again, reads = counted
    code = tmp_path / "own_reader.py"
    text = "from conbandit_torch import Table\nclass Own(Table):\n    pass\n"
    code.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    import own_reader

    again(kind=own_reader.Own), again(kind=own_reader.Own)
    assert len(reads) == 1
    code.write_text(text + "# changed\n")
    again(kind=own_reader.Own)
    assert len(reads) == 2


def test_another_format_of_the_cache_is_another_preparation(counted, monkeypatch):
    _, again, reads = counted
    again()
    monkeypatch.setattr(cache_module, "FORMAT", cache_module.FORMAT + 1)
    again()
    assert len(reads) == 2


def test_a_change_of_a_base_class_in_another_file_is_another_preparation(tmp_path, monkeypatch):
    SMALL["table csv"].write(tmp_path)
    base = tmp_path / "some_base.py"
    base.write_text("from conbandit_torch import Table\nclass Base(Table):\n    pass\n")
    (tmp_path / "some_own.py").write_text("from some_base import Base\nclass Own(Base):\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    reader = importlib.import_module("some_own").Own(tmp_path)
    before = cache_module.cache_path(reader, {})
    assert cache_module.cache_path(reader, {}) == before
    base.write_text(base.read_text() + "# changed\n")
    assert cache_module.cache_path(reader, {}) != before


def test_every_value_of_an_attribute_counts(tmp_path):
    reader = SMALL["table csv"].reader(SMALL["table csv"].write(tmp_path))
    paths = set()
    for place in range(3):
        reader.keep = np.zeros(5000)  # numpy's own text leaves out the middle
        reader.keep[2000 + place] = 1
        paths.add(cache_module.cache_path(reader, {}))
    reader.keep = lambda: None  # has no content to look at
    assert len(paths) == 3 and cache_module.cache_path(reader, {}) not in paths


@pytest.mark.parametrize("damage", ["a byte", "cut off", "empty", "no names", "other names", "foreign"])
def test_a_damaged_cache_is_made_anew(damage, counted, tmp_path, caplog):
    from safetensors.torch import load_file, save_file

    _, again, reads = counted
    good = again()
    (path,) = (tmp_path / "cache").glob("*.safetensors")
    content = bytearray(path.read_bytes())
    if damage == "a byte":
        content[-1] ^= 1
    elif damage == "cut off":
        del content[-1:]
    elif damage == "empty":
        content.clear()
    elif damage == "foreign":
        content = b"something else"
    if damage.endswith("names"):
        tensors = load_file(path)
        other = torch.tensor(list(json.dumps({"user_names": []}).encode()), dtype=torch.uint8)
        tensors = {**tensors, "names": other} if damage == "other names" else {"theta": tensors["theta"]}
        save_file(tensors, path, {"fingerprint": cache_module.fingerprint(tensors)})  # a right checksum
    else:
        path.write_bytes(content)
    torch.testing.assert_close(again().theta, good.theta, **EXACT)
    assert len(reads) == 2 and "is damaged" in caplog.text
    again()
    assert len(reads) == 2


def test_nothing_is_kept_if_the_source_changes_while_it_is_read(counted, tmp_path, monkeypatch):
    folder, again, _ = counted

    def read(self, read=Table.read):
        data = read(self)
        (folder / "items.csv").write_bytes((folder / "items.csv").read_bytes() + b"b10,Drama,1,red,T\n")
        return data

    monkeypatch.setattr(Table, "read", read)
    with pytest.raises(DataError, match="its files were changed while they were read"):
        again()
    assert not list((tmp_path / "cache").glob("*.safetensors"))


def test_the_cache_is_where_the_environment_says(counted, tmp_path, monkeypatch):
    folder, _, _ = counted
    monkeypatch.setenv("CONBANDIT_CACHE", str(tmp_path / "elsewhere"))
    prepare(Table(folder, positive_from=4), dim=2)
    assert [path.suffix for path in sorted((tmp_path / "elsewhere").iterdir())] == [".lock", ".safetensors"]
    monkeypatch.delenv("CONBANDIT_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_module.cache_folder() == tmp_path / ".cache" / "conbandit_torch"


def test_the_benchmark_measures_every_step(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        data_benchmark, "measure_apart", data_benchmark.measure
    )  # a new process takes seconds
    assert data_benchmark.main(["--rows", "600", "900", "--dim", "3", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == (tmp_path / "data_benchmark.md").read_text()
    found = json.loads((tmp_path / "data_benchmark.json").read_text())
    assert [result["rows"] for result in found] == [600, 900]
    for result in found:
        assert [step for step, *_ in result["steps"]] == [
            "import",
            "read",
            "read and prepare",
            "from the cache",
        ]
        assert all(seconds > 0 and cpu > 0 and peak > 10**7 for _, seconds, cpu, peak in result["steps"])
        assert result["cache"] > 17 * result["rows"]  # bytes of an event


@real
def test_published_data_are_prepared(tmp_path):
    movies = prepare(MovieLens("$CONBANDIT_DATA/ml-latest-small", min_tag_count=5), cache=tmp_path)
    assert movies.theta.shape == (610, 50) and 0.4 < movies.clicks.mean() < 0.6
    music = prepare(LastFM("$CONBANDIT_DATA/hetrec2011-lastfm-2k"), cache=tmp_path)
    assert music.clicks.mean() == 0.5 and music.catalogue().num_terms == len(music.term_names)
