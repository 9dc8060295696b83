"""Readers: every format, its odd forms, and everything that can be wrong with it."""

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from conbandit_torch import MIND, DataError, LastFM, MovieLens, Reader, Table, Yelp
from conbandit_torch.commands.main import main
from conbandit_torch.configuration.build import build_part
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.datasets.reading.files import read_json_lines
from conbandit_torch.datasets.reading.opening import opened
from experiments.small_sources import small_sources
from tests.helpers.data import real

SMALL = small_sources()


def written(name, folder):
    """The reader of a small source, with its files written."""
    return SMALL[name].reader(SMALL[name].write(folder))


def replace(path, old, new, count=1):
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, count))


def terms_of(data, item):
    row = list(data.items).index(item)
    return {data.terms[k] for k in data.item_terms[row].indices}


def side_of(data, item):
    row = data.side[list(data.items).index(item)].toarray()[0]
    return {name: value for name, value in zip(data.side_names, row.tolist(), strict=True) if value}


@pytest.mark.parametrize("name", SMALL)
def test_every_format_gives_the_common_form(name, tmp_path):
    reader = written(name, tmp_path)
    data = reader.read()
    users, items, values, times = data.feedback
    assert (users.dtype, items.dtype, values.dtype, times.dtype) == (np.int32, np.int32, np.float32, np.int64)
    assert set(users) == set(range(len(data.users)))  # nobody is left without feedback
    assert items.min() >= 0 and items.max() < len(data.items) == len(data.titles) == len(set(data.items))
    assert (np.diff(times) >= 0).all()
    assert data.item_terms.shape == (len(data.items), len(data.terms))
    assert (data.item_terms.getnnz(axis=0) > 0).all() and (data.item_terms.getnnz(axis=1) > 0).all()
    assert set(data.item_terms.data) == {1}
    assert data.side.shape == (len(data.items), len(data.side_names))
    dense = data.side.toarray()
    numbers = [~np.isin(column, (0, 1)).all() for column in dense.T]
    np.testing.assert_allclose(dense[:, numbers].mean(0), 0, atol=1e-6)
    for path in reader.files():
        assert path.name in SMALL[name].files


@pytest.mark.parametrize("name", ["movielens dat", "movielens 100k"])
def test_the_forms_of_movielens_agree(name, tmp_path):
    (tmp_path / "csv").mkdir()
    (tmp_path / "other").mkdir()
    SMALL["movielens csv"].write(tmp_path / "csv")
    one, other = MovieLens(tmp_path / "csv").read(), written(name, tmp_path / "other").read()
    for field in ("users", "items", "terms"):
        assert list(getattr(one, field)) == list(getattr(other, field))
    np.testing.assert_array_equal(one.item_terms.toarray(), other.item_terms.toarray())
    np.testing.assert_array_equal(one.feedback.values - 0.5, other.feedback.values)  # the CSV has half stars
    for column in ("users", "items", "times"):
        np.testing.assert_array_equal(getattr(one.feedback, column), getattr(other.feedback, column))
    assert [title.removesuffix(": again") for title in other.titles] == list(one.titles)


def test_movielens_tags_count_in_any_case_and_only_if_asked_for(tmp_path):
    data = written("movielens csv", tmp_path).read()
    assert terms_of(data, "1") == {"Action", "tag: noir"} and data.counts["tags"] == 6
    assert data.counts["items without key-terms (dropped)"] == 2
    side = side_of(data, "1")
    assert side["decade: 1970s"] == side["Action"] == 1 and "mean rating" in side
    assert "tag: noir" not in MovieLens(tmp_path).read().terms
    assert "tag: noir" not in MovieLens(tmp_path, min_tag_count=7).read().terms


def test_side_numbers_are_standardised_over_the_items_that_are_left(tmp_path):
    data = written("table csv", tmp_path).read()
    price = data.side.toarray()[:, list(data.side_names).index("price")]
    prices = {"b1": 1.5, "b2": 3.0, "b3": 4.5, "b6": 9.0, "b9": 13.5}  # b4 and b8 have none
    known = np.array(list(prices.values()))
    expected = [(prices[i] - known.mean()) / known.std() if i in prices else 0.0 for i in data.items]
    np.testing.assert_allclose(price, expected, rtol=1e-6)
    assert "colour: red" in side_of(data, "b3") and not any("colour" in n for n in side_of(data, "b2"))


def test_parquet_and_csv_agree(tmp_path):
    folders = [tmp_path / "csv", tmp_path / "parquet"]
    for folder in folders:
        folder.mkdir()
    one, other = (written(f"table {folder.name}", folder).read() for folder in folders)
    for field in ("users", "items", "titles", "terms", "side_names"):
        assert list(getattr(one, field)) == list(getattr(other, field))
    np.testing.assert_array_equal(one.side.toarray(), other.side.toarray())
    for a, b in zip(one.feedback, other.feedback, strict=True):
        np.testing.assert_array_equal(a, b)


def test_parquet_may_have_lists_moments_and_nulls(tmp_path):
    moments = pd.to_datetime([1700000001, 1700000000, 1700000002], unit="s")
    feedback = {"user": [2**53 + 1, 2**53, 7], "item": [1.0, 2.0, 1.0], "value": 1.0, "time": moments}
    pd.DataFrame(feedback).to_parquet(tmp_path / "feedback.parquet")
    items = {"item": [1, 2], "terms": [["x", "y"], ["z"]], "size": [3, None]}
    pd.DataFrame(items, dtype=object).to_parquet(tmp_path / "items.parquet")
    data = Table(tmp_path).read()
    assert list(data.users) == [str(2**53 + 1), str(2**53), "7"] and list(data.items) == ["1", "2"]
    assert terms_of(data, "1") == {"x", "y"} and terms_of(data, "2") == {"z"}
    assert data.feedback.times.tolist() == [1700000000, 1700000001, 1700000002]


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("user", [2**53 + 1, None], "feedback.parquet: line 2: user: is empty"),
        ("item", ["a", None], "feedback.parquet: line 2: item: is empty"),
        (
            "time",
            pd.to_datetime([5, None], unit="s"),
            "feedback.parquet: row 2: time: expected a whole number",
        ),
    ],
)
def test_nulls_in_parquet_are_refused_where_there_must_be_a_value(column, values, message, tmp_path):
    columns = {"user": ["u", "v"], "item": ["a", "b"], "value": [1.0, 0.0]} | {column: values}
    kinds = {"user": "Int64"} if column == "user" else {}
    pd.DataFrame(columns).astype(kinds).to_parquet(tmp_path / "feedback.parquet")
    (tmp_path / "items.csv").write_text("item,terms\na,x\nb,y\n")
    with pytest.raises(DataError, match=message):
        Table(tmp_path).read()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("value,item,user\n1,a,u\n1,b\n", "line 3: user: is empty, or the line cut off"),
        ("value,user,item\n1,u,a\n1,v\n", "line 3: item: is empty, or the line cut off"),
        ("user,item,value\n ,a,1\n", "line 2: user: is empty, or the line cut off"),
    ],
)
def test_lines_that_are_cut_off_invent_no_users(text, message, tmp_path):
    (tmp_path / "feedback.csv").write_text(text)
    (tmp_path / "items.csv").write_text("item,terms\na,x\nb,y\n")
    with pytest.raises(DataError, match=f"feedback.csv: {message}"):
        Table(tmp_path).read()


@pytest.mark.parametrize(
    ("items", "feedback", "message"),
    [
        ("item,terms\nb1,x\n\n\nb1,y\n", "", "items.csv: line 5: item 'b1' is there a second time"),
        ('item,terms,title\nb1,x,"a\nb\nc"\nb1,y,z\n', "", "items.csv: line 5: item 'b1' is there a second time"),
        ("item,terms\nb1,x\n", "user,item,value\n\nu,b1,1\n,b1,1\n", "feedback.csv: line 4: user: is empty"),
        ("item,terms\nb1,x\n", "user,item,value,more\nu,b1,1," + 140000 * "x" + "\n,b1,1,\n", "feedback.csv: line 2: user: is empty"),
        ("item,terms\nb1,x\n", "user,item,value,time\na,b1,1,1700000000000000000\nb,b1,oops,3\n", "feedback.csv: line 3: value"),
    ],
)  # fmt: skip
def test_lines_are_counted_as_an_editor_counts_them(items, feedback, message, tmp_path):
    (tmp_path / "items.csv").write_text(items)
    (tmp_path / "feedback.csv").write_text(feedback or "user,item,value\nu,b1,1\n")
    with pytest.raises(DataError, match=message):
        Table(tmp_path).read()


def test_yelp_attributes_come_in_many_forms(tmp_path):
    written("yelp", tmp_path)
    path = tmp_path / "yelp_academic_dataset_business.json"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    first = next(record for record in records if record["business_id"] == "b1")
    for attributes, expected in {
        '{"Old": {"s": "True", "f": "False", "u": "u\'bar\'"}}': {"Old.s", "Old.u=bar"},
        '["BikeParking: True", "Music: {\'dj\': True, \'live\': False}", "Noise: u\'quiet\'"]': {
            "BikeParking", "Music.dj", "Noise=quiet",
        },
    }.items():  # fmt: skip
        first |= {"attributes": json.loads(attributes), "state": None}
        path.write_text("\n".join(map(json.dumps, records)))
        side = side_of(Yelp(tmp_path, min_user_feedback=1, min_item_feedback=1).read(), "b1")
        assert {n for n in side if n.startswith("attribute")} == {f"attribute: {n}" for n in expected}
        assert not any("None" in name for name in side)


def test_yelp_understands_old_and_new_businesses(tmp_path):
    data = written("yelp", tmp_path).read()
    assert "shop" not in data.items and "Restaurants" not in data.terms
    assert terms_of(data, "b3") == {"Drama", "Comedy"}  # from text
    assert terms_of(data, "b6") == {"Action", "Comedy"}  # from a list
    assert {n for n in side_of(data, "b1") if n.startswith("attribute")} == {
        "attribute: WiFi=no",
        "attribute: BusinessParking.street",
        "attribute: GoodForKids",
        "attribute: RestaurantsPriceRange2=1",
    }
    assert "attribute: BusinessParking.lot" in side_of(data, "b2")  # a dict, not a text of one
    assert not [n for n in side_of(data, "b4") if n.startswith("attribute")]  # null
    assert side_of(data, "b4")["city: City 1, AZ"] == 1
    assert 1457740800 in data.feedback.times and 1457745133 in data.feedback.times  # a day, and a moment


def test_yelp_counts_a_users_reviews_of_any_business_once(tmp_path):
    written("yelp", tmp_path)
    counts = {"min_item_feedback": 0, "category": "Restaurants"}
    assert list(Yelp(tmp_path, min_user_feedback=7, **counts).read().users) == ["u1"]  # one is of a shop
    with pytest.raises(DataError, match="min_user_feedback=8 leaves no user: the most that one has is 7"):
        Yelp(tmp_path, min_user_feedback=8, **counts).read()


def test_yelp_attributes_run_no_code(tmp_path):
    written("yelp", tmp_path)
    bomb = f"__import__('pathlib').Path({str(tmp_path / 'exploded')!r}).touch()"
    path = tmp_path / "yelp_academic_dataset_business.json"
    replace(path, b"u'free'", json.dumps(bomb)[1:-1].encode())
    Yelp(tmp_path, min_user_feedback=1, min_item_feedback=1).read()
    assert not (tmp_path / "exploded").exists()


def test_lastfm_is_read_in_its_own_encodings(tmp_path):
    data = written("lastfm", tmp_path).read()
    assert set(data.terms) == {"rock", "café"} and data.titles[0] == 'Café "1", the film (1975)'
    assert not LastFM.has_negatives and not data.feedback.times.any()
    assert "rare" in LastFM(tmp_path, min_tag_count=1).read().terms


def test_mind_has_an_event_for_every_news_of_an_impression(tmp_path):
    data = written("mind", tmp_path).read()
    assert len(data.feedback.users) == 2 * data.counts["impressions"]
    assert set(data.feedback.values) == {0, 1}
    assert terms_of(data, "N1") == {"sports", "subcategory: sub1", "entity: E1"}
    assert data.feedback.times.min() == 1573333558  # 11/9/2019 21:05:58
    terms = MIND(tmp_path, min_entity_count=3).read().terms
    assert "entity: E0" in terms and "entity: E1" not in terms


def test_mind_tells_entities_of_one_name_apart(tmp_path):
    written("mind", tmp_path)
    replace(tmp_path / "news.tsv", b'"Label": "E2"', b'"Label": "E1"', 9)
    assert {"entity: E1 (Q1)", "entity: E1 (Q2)", "entity: E0"} <= set(
        MIND(tmp_path, min_entity_count=2).read().terms
    )


def test_thresholds_are_counted_once_and_what_they_drop_is_counted(tmp_path):
    path = tmp_path
    (path / "items.csv").write_text("item,terms\na,x\nb,y\nc,z\n")
    (path / "feedback.csv").write_text(
        "user,item,value\n1,a,1\n1,b,0\n2,a,1\n3,c,1\n3,a,0\n4,gone,1\n4,b,1\n"
    )
    data = Table(path, min_user_feedback=2, min_item_feedback=2).read()
    # User 2 goes for one event, item c for one; iterating would then drop user 3, and so on.
    assert list(data.users) == ["1", "3", "4"] and list(data.items) == ["a", "b"]
    assert data.counts == {
        "users": 4,
        "items": 3,
        "events": 7,
        "feedback on unknown items (dropped)": 1,
        "users with too little feedback (dropped)": 1,
        "items with too little feedback (dropped)": 1,
        "items without key-terms (dropped)": 0,
        "users left without feedback (dropped)": 0,
    }
    np.testing.assert_array_equal(data.feedback.values, [1, 0, 0, 1])


def test_a_users_own_text_may_be_anything(tmp_path):
    (tmp_path / "items.csv").write_bytes(
        '\ufeffitem,terms,title\n"NA",x| y |,"A, ""B""\nC"\nnull,y,\n'.encode()  # with a mark, as Excel writes
    )
    (tmp_path / "feedback.csv.gz").write_bytes(
        gzip.compress(b"user,item,value\r\nnan,NA,1\r\n\r\nNone,null,-2.5")
    )
    data = Table(tmp_path).read()
    assert list(data.users) == ["nan", "None"] and list(data.items) == ["NA", "null"]
    assert terms_of(data, "NA") == {"x", "y"} and data.titles[0] == 'A, "B"\nC'


def test_a_column_may_have_any_name(tmp_path):
    (tmp_path / "items.csv").write_text("item,terms,line,value\na,x,red,1\nb,x,blue,3\n")
    (tmp_path / "feedback.csv").write_text("line,user,item,value\n7,1,a,1\n8,2,b,1\n")
    data = Table(tmp_path).read()
    assert side_of(data, "a") == {"x": 1, "line: red": 1, "value": -1} and not data.feedback.times.any()


def test_variables_in_a_path_are_filled_in(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_DATA", str(tmp_path))
    written("table csv", tmp_path)
    assert Table("$MY_DATA").files()[0] == tmp_path / "feedback.csv"
    assert Table("$MY_DATA/items.csv").files()[0] == tmp_path / "feedback.csv"
    assert MovieLens("~/x").path == Path.home() / "x"


def test_a_reader_is_named_shortly_in_configs(tmp_path):
    SMALL["movielens csv"].write(tmp_path)
    node = {"class_path": "MovieLens", "init_args": {"path": str(tmp_path), "min_tag_count": 2}}
    reader = build_part("environment.data", node, Reader)
    assert isinstance(reader, MovieLens) and reader.min_tag_count == 2
    node["init_args"]["min_tags"] = 3
    with pytest.raises(ConfigError, match="environment.data.*no argument 'min_tags'.*valid: path, min_user"):
        build_part("environment.data", node, Reader)
    with pytest.raises(ConfigError, match="min_tag_count must be at least 0, got -1"):
        build_part("x", {**node, "init_args": {"path": "", "min_tag_count": -1}}, Reader)


# What can be wrong: (source, file, old bytes, new bytes, what the error says after the file's name).
BUSINESS, REVIEW = "yelp_academic_dataset_business.json", "review.json.gz"
WRONG = {
    "a column is missing": ("movielens csv", "ratings.csv", b"rating", b"score", "there is no column 'rating'; it has"),
    "text for a number": ("movielens csv", "ratings.csv", b"1,2,5.5", b"1,2,good", "line 3: rating: expected a number, got 'good'"),
    "not a number": ("movielens csv", "ratings.csv", b"1,2,5.5", b"1,2,nan", "line 3: rating: expected a number, got 'nan'"),
    "too large": ("movielens csv", "ratings.csv", b"1,2,5.5", b"1,2,1e99", "line 3: rating: expected a number, got '1e99'"),
    "a fraction for an id": ("movielens csv", "ratings.csv", b"1,2,5.5", b"1,2.5,4", "line 3: movieId: expected a whole number, got '2.5'"),
    "an endless id": ("movielens csv", "ratings.csv", b"1,2,5.5", b"1," + b"9" * 30 + b",4", "line 3: movieId: expected a whole number"),
    "an empty field": ("movielens csv", "ratings.csv", b"1,2,5.5", b"1,2,", "line 3: rating: expected a number, got ''"),
    "a field too many": ("movielens csv", "ratings.csv", b"1,2,5.5", b"1,2,4,5", "line 3: expected 4 fields, got 5"),
    "a field too few": ("movielens csv", "movies.csv", b",(no genres listed)", b"", "line 6: expected 3 fields, got 2"),
    "always a field too many": ("table csv", "items.csv", b"item,terms,price,colour,", b"item,terms,price,", "more fields than there are columns"),
    "an open quote": ("movielens csv", "movies.csv", b'(19115)"', b"(19115)", "line 10: a quote is not closed"),
    "another encoding": ("movielens csv", "movies.csv", b"\xc3\xa9", b"\xe9", "line 2: not text in utf-8"),
    "NUL": ("movielens csv", "ratings.csv", b"1,2,5.5", b"1,2,\0", "NUL characters"),
    "no text at all": ("movielens csv", "ratings.csv", None, b"\xff\xfe\x00", "not text in utf-8"),
    "empty": ("movielens csv", "ratings.csv", None, b"", "the file is empty"),
    "an id twice": ("movielens csv", "movies.csv", b"\n2,", b"\n1,", "line 3: movie 1 is there a second time"),
    "no ratings": ("movielens csv", "ratings.csv", None, b"userId,movieId,rating,timestamp\n", "min_user_feedback=1 leaves no user: there is no feedback at all"),
    "a tab beside ::": ("movielens dat", "ratings.dat", b"1::2::", b"1::2\t::", "a tab in a file"),
    "too few of ::": ("movielens dat", "ratings.dat", b"1::2::", b"1::2:", "line 2: movieId: expected a whole number, got '2:5'"),
    "a genre too few": ("movielens 100k", "u.genre", b"Drama|3\n", b"", "u.item: line 1: expected 8 fields, got 9|more fields"),
    "a genre twice": ("movielens 100k", "u.genre", b"Drama|3", b"Comedy|3", "expected distinct genres"),
    "another separator": ("lastfm", "tags.dat", None, b"tagID,tagValue\n1,rock\n", "there is no column 'tagID'; it has 'tagID,tagValue'"),
    "a tag twice": ("lastfm", "tags.dat", b"2\tcaf", b"1\tcaf", "line 3: tag 1 is there a second time"),
    "a time": ("mind", "behaviors.tsv", b"11/10/2019", b"2019-11-10", "line 1: time: expected a time such as 11/15/2019 8:55:22 AM"),
    "a test set": ("mind", "behaviors.tsv", b"N1-0", b"N1", r"line 1: impressions: expected news with clicks such as 'N1-0 N2-1' \(a test set has none"),
    "a news field too few": ("mind", "news.tsv", b"\t[]\n", b"\n", "line 1: expected 8 fields, got 7"),
    "no impressions": ("mind", "behaviors.tsv", b"\tN1-0 N2-0\n", b"\n", "line 1: impressions: expected news with clicks.*got ''"),
    "a tag's end": ("movielens csv", "tags.csv", b"Noir,1\n", b"Noir\n", "line 2: timestamp: expected a whole number"),
    "entities": ("mind", "news.tsv", b'"WikidataId"', b'"Id"', "line 1: title entities: expected a JSON list"),
    "cut JSON of entities": ("mind", "news.tsv", b'1.0}]', b"1.0}", "line 1: title entities: expected a JSON list"),
    "a news id twice": ("mind", "news.tsv", b"N2\t", b"N1\t", "line 2: news 'N1' is there a second time"),
    "cut JSON": ("yelp", BUSINESS, b'"state": "AZ", ', b'"state": "AZ', "line 1: not valid JSON, or cut off"),
    "no object": ("yelp", BUSINESS, b"{", b"[1]\n{", r"line 1: expected a JSON object, got \[1\]"),
    "deep JSON": ("yelp", BUSINESS, b"{", b"[" * 100_000 + b"\n{", "line 1: not valid JSON"),
    "a key is missing": ("yelp", BUSINESS, b'"stars"', b'"star"', "line 1: stars: expected a number, got nothing"),
    "stars": ("yelp", BUSINESS, b'"stars": 1.5', b'"stars": NaN', "line 1: stars: expected a number, got nan"),
    "a long number": ("yelp", BUSINESS, b'"stars": 1.5', b'"stars": 1' + b"0" * 400, "line 1: stars: expected a number, got 10000"),
    "an id of another type": ("yelp", BUSINESS, b'"b1"', b"1", "line 1: business_id: expected text, got 1"),
    "a business twice": ("yelp", BUSINESS, b'"b2"', b'"b1"', "line 2: business 'b1' is there a second time"),
    "categories": ("yelp", BUSINESS, b'"Restaurants, Action"', b"[1]", "line 1: categories: expected text or a list of text"),
    "attributes": ("yelp", BUSINESS, b'"attributes": null', b'"attributes": 3', "line 4: attributes: expected an object, got 3"),
    "no such category": ("yelp", BUSINESS, None, b"", "none of 0 businesses has category 'Restaurants'"),
    "no Parquet": ("table parquet", "items.parquet", None, b"item,terms", "not a Parquet file, or a damaged one"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_said_with_file_and_line(wrong, tmp_path):
    name, file, old, new, message = WRONG[wrong]
    reader = written(name, tmp_path)
    if old is None:
        (tmp_path / file).write_bytes(new)
    else:
        replace(tmp_path / file, old, new, -1 if wrong == "another encoding" else 1)
    with pytest.raises(DataError, match=message) as caught:
        reader.read()
    assert str(caught.value).startswith(str(tmp_path)) and "\n" not in str(caught.value)
    if "leaves no" not in message and "u.genre" not in file:
        assert str(caught.value).startswith(f"{tmp_path / file}: ")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"stars": 4', b'"stars": "4"', "line 3: stars: expected a number, got '4'"),
        (b'"date": "2016', b'"date": "16', "line 1: date: expected one such as 2016-03-09"),
        (b"}\n", b"\n", "line 1: not valid JSON"),
        (b"Good", b"\xff", "line 1: not text in utf-8"),
    ],
)
def test_what_is_wrong_inside_a_gzip_file_is_said_too(old, new, message, tmp_path):
    reader = written("yelp", tmp_path)
    path = tmp_path / REVIEW
    content = gzip.decompress(path.read_bytes())
    assert old in content
    path.write_bytes(gzip.compress(content.replace(old, new, 1)))
    with pytest.raises(DataError, match=f"{REVIEW}: {message}"):
        reader.read()


@pytest.mark.parametrize("damage", ["cut off", "another byte"])
def test_a_damaged_gzip_file_is_an_error(damage, tmp_path):
    reader = written("yelp", tmp_path)
    path = tmp_path / REVIEW
    content = bytearray(path.read_bytes())
    if damage == "cut off":
        del content[len(content) // 2 :]
    else:
        content[-6] ^= 1  # of the checksum
    path.write_bytes(content)
    with pytest.raises(DataError, match="the gzip file is damaged or cut off"):
        reader.read()


@pytest.mark.parametrize("name", SMALL)
def test_a_missing_file_or_folder_is_an_error(name, tmp_path):
    reader = written(name, tmp_path)
    for path in reader.files():
        content = path.read_bytes()
        path.unlink()
        with pytest.raises(DataError, match="there is no"):
            reader.read()
        path.write_bytes(content)
    reader.path = tmp_path / "nowhere"
    with pytest.raises(DataError, match="nowhere: no such file or folder"):
        reader.read()


def test_items_without_key_terms_and_users_without_items_are_errors_when_nothing_is_left(tmp_path):
    (tmp_path / "feedback.csv").write_text("user,item,value\n1,a,1\n")
    (tmp_path / "items.csv").write_text("item,terms\na,\nb, | \n")
    with pytest.raises(DataError, match="none of the 2 items with enough feedback has key-terms"):
        Table(tmp_path).read()
    (tmp_path / "items.csv").write_text("item,terms\na,\nb,x\n")
    with pytest.raises(DataError, match="no feedback is left.*none of the users met one of the items"):
        Table(tmp_path).read()
    with pytest.raises(DataError, match="min_item_feedback=2 leaves no item: the most that one has is 1"):
        Table(tmp_path, min_item_feedback=2).read()


def test_tags_of_a_release_without_any_are_an_error(tmp_path):
    written("movielens 100k", tmp_path)
    with pytest.raises(DataError, match="the 100k release has no tags"):
        MovieLens(tmp_path, min_tag_count=1).read()


# The command line.


@pytest.mark.parametrize("name", SMALL)
def test_inspect_recognises_every_format(name, tmp_path, capsys):
    reader = written(name, tmp_path)
    # Thresholds of the published size would leave nothing of so little.
    low = ["--min_user_feedback", "1", "--min_item_feedback", "0"]
    low += ["--min_tag_count", "1"] if name == "lastfm" else []
    assert main(["data", "inspect", str(tmp_path), *low]) == 0
    output = capsys.readouterr().out
    assert f"{tmp_path}: {type(reader).__name__}" in output.replace("\n", "")
    if name == "movielens csv":
        for line in (
            "movies 9",
            "ratings 24",
            "items without key-terms (dropped) 2",
            "items left 7",
            "key-terms 3",
        ):
            assert line in " ".join(output.replace("│", " ").split())
        assert "(mean / median / max)" in output and "positive (at least 4)" in output


def test_prepare_fills_the_cache_and_shows_how_to_use_it(tmp_path, capsys):
    SMALL["movielens csv"].write(tmp_path)
    cache = tmp_path / "cache"
    command = ["data", "prepare", str(tmp_path), "--dim", "3", "--cache", str(cache), "--min_tag_count", "2"]
    assert main(command) == 0
    (kept,) = cache.glob("*.safetensors")
    output = capsys.readouterr().out
    assert "Prepared 4 users, 7 items, 4 key-terms" in output and str(kept) in output
    for line in (
        "class_path: MovieLens",
        f"path: {tmp_path}",
        "min_tag_count: 2",
        "dim: 3",
        f"cache: {cache}",
    ):
        assert line in output
    assert main([*command, "--seed", "1"]) == 0 and len(list(cache.glob("*.safetensors"))) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspect", "nowhere"], "nowhere: no such file or folder"),
        (["inspect", "."], "no known format"),
        (["inspect", "data", "--min_tagcount", "2"], "no argument 'min_tagcount' (did you mean 'min_tag_count'?)"),
        (["inspect", "data", "--min_tag_count", "[", "--x=1"], "--min_tag_count: '[' is not a YAML value"),
        (["inspect", "data", "--min_tag_count", "few"], "min_tag_count: expected int, got few"),
        (["inspect", "data", "--min_user_feedback", "99"], "min_user_feedback=99 leaves no user"),
        (["inspect", "data", "--reader", "Movies"], "unknown class 'Movies' (did you mean 'MovieLens'?)"),
        (["prepare", "data", "--dim", "99"], "dim=99 is more than"),
        (["prepare", "data", "--dim", "0"], "--dim must be at least 1, got 0"),
        (["prepare", "data", "--ridge", "-1"], "--ridge must be above 0 and finite, got -1.0"),
        (["inspect", "data", "--positive_from", "null"], "positive_from: expected a value such as 4.0, got null"),
        (["prepare", "data", "--dim", "2", "--cache", "data/movies.csv"], "the cache of prepared data cannot be used"),
    ],
)  # fmt: skip
def test_bad_commands_say_what_is_wrong(arguments, message, tmp_path, monkeypatch, capsys):
    (tmp_path / "data").mkdir()
    SMALL["movielens csv"].write(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    assert main(["data", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_parameter_that_may_be_none_may_be_null(tmp_path, capsys):
    written("yelp", tmp_path)
    few = ["--min_user_feedback", "1", "--min_item_feedback", "1"]
    assert main(["data", "inspect", str(tmp_path), *few, "--category", "null"]) == 0
    assert "businesses of category any" in capsys.readouterr().out


def test_a_reader_of_ones_own_is_named_on_the_command_line(tmp_path, monkeypatch, capsys):
    written("table csv", tmp_path)
    (tmp_path / "my_reader.py").write_text(
        "from conbandit_torch import Table\nclass MyReader(Table):\n    positive_from = 2\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["data", "inspect", ".", "--reader", "my_reader.MyReader"]) == 0
    assert "MyReader" in capsys.readouterr().out


# Published data.


@real
def test_movielens_latest_small_has_the_published_counts():
    reader = MovieLens("$CONBANDIT_DATA/ml-latest-small", min_tag_count=5)
    data = reader.read()
    assert [data.counts[name] for name in ("users", "movies", "ratings", "tags")] == [610, 9742, 100836, 3683]
    assert data.counts["items without key-terms (dropped)"] == 33  # 34 have no genre, one of them a tag
    assert len(data.users) == 610 and len(data.items) == 9742 - 33
    assert len(MovieLens("$CONBANDIT_DATA/ml-latest-small").read().terms) == 19


@real
def test_lastfm_has_the_published_counts():
    data = LastFM("$CONBANDIT_DATA/hetrec2011-lastfm-2k", min_tag_count=1).read()
    names = ("users", "artists", "listened", "tags", "tags given")
    assert [data.counts[name] for name in names] == [1892, 17632, 92834, 11946, 186479]
    assert "björk" in {title.lower() for title in data.titles}


def lines_of(path):
    with opened(path) as (raw, _):
        return [len(line) for line in raw]


@pytest.mark.parametrize("read", [lines_of, lambda path: list(read_json_lines(path))], ids=["raw", "json"])
@pytest.mark.parametrize("content", [b"a", b"{" + b" " * 1000 + b"}\n"], ids=["one line", "lines"])
def test_a_small_file_that_unpacks_to_a_huge_one_is_not_unpacked(tmp_path, content, read):
    """256 MB in 256 kB or so: a quarter of it at most is looked at."""
    path = tmp_path / "bomb.gz"
    piece = content * (2**20 // len(content))
    with gzip.open(path, "wb") as file:
        for _ in range(256):
            file.write(piece)
    with pytest.raises(DataError, match="bomb.gz: unpacks to more than 100 times its size"):
        read(path)


def test_a_table_that_unpacks_to_a_huge_one_is_refused(tmp_path):
    folder = SMALL["movielens csv"].write(tmp_path)
    (folder / "ratings.csv").unlink()
    with gzip.open(folder / "ratings.csv.gz", "wb") as file:
        file.write(b"userId,movieId,rating,timestamp\n")
        for _ in range(128):
            file.write(b"1,1,4,7\n" * 2**17)
    with pytest.raises(DataError, match="ratings.csv.gz: unpacks to more than 100 times its size"):
        MovieLens(folder).read()
