"""Tables of one's own: lists of key-terms, columns with a meaning, ids, embeddings, and what looks wrong."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch

from conbandit_torch import DataError, MovieLens, Ratings, Table, prepare
from conbandit_torch.commands.main import main
from experiments.small_sources import small_sources

SMALL = small_sources()
FEEDBACK = "user,item,value\nu,a,1\nu,b,0\nv,a,0\nv,c,1\n"


def write(folder, items, feedback=FEEDBACK):
    (folder / "items.csv").write_text(items)
    (folder / "feedback.csv").write_text(feedback)
    return folder


def terms_of(data):
    return {
        item: {data.terms[k] for k in data.item_terms[row].indices} for row, item in enumerate(data.items)
    }


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        (("x|y", "y | z", "x"), {}),
        (('"x,y"', '"y, z,"', "x"), {"separator": ","}),
        (("x;y", "y;z", "x"), {"separator": ";"}),
        (("\"['x', 'y']\"", "\"['y', 'z']\"", "['x']"), {}),
        (('"[""x"", ""y""]"', '"[""y"",""z""]"', '"[""x""]"'), {"separator": ","}),
        (('"[x, y]"', '"[y, z]"', "[x]"), {}),
        (("\"{'y', 'x'}\"", "\"('z', 'y')\"", "x"), {}),
    ],
)
def test_key_terms_are_separated_or_lists(fields, options, tmp_path):
    lines = [f"{item},{text}" for item, text in zip("abc", fields, strict=True)]
    data = Table(write(tmp_path, "\n".join(["item,terms", *lines, ""])), **options).read()
    assert terms_of(data) == {"a": {"x", "y"}, "b": {"y", "z"}, "c": {"x"}}


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("\"['x' 'y']\"", r"line 4: terms: expected a list such as \['a', 'b'\]"),
        ('"[{x: 1}]"', "line 4: terms: expected a list such as"),
        ('"[[x], y]"', "line 4: terms: expected a list such as"),
    ],
)
def test_a_list_that_cannot_be_read_is_refused(field, message, tmp_path):
    with pytest.raises(DataError, match=f"items.csv: {message}"):
        Table(write(tmp_path, f"item,terms\na,x\nb,y\nc,{field}\n")).read()


def test_another_separator_is_not_taken_for_part_of_a_name(tmp_path):
    write(tmp_path, 'item,terms\na,"x,y"\nb,"y, z"\nc,x\n')
    with pytest.raises(
        DataError, match=r"no field has '\|', but 2 of 3 have ',', such as 'x,y': give separat"
    ):
        Table(tmp_path).read()
    assert list(Table(tmp_path, separator="|").read().terms) == ["x,y", "y, z", "x"]
    with pytest.raises(ValueError, match="separator must be at least one character"):
        Table(tmp_path, separator="")


def test_rare_key_terms_can_be_left_out(tmp_path):
    data = Table(write(tmp_path, "item,terms\na,x|y\nb,y|y\nc,x|z\n"), min_term_count=2).read()
    assert set(data.terms) == {"x", "y"}
    data = Table(write(tmp_path, "item,terms\na,x|y|y\nb,x\nc,x|z\n"), min_term_count=2).read()
    assert list(data.terms) == ["x"]  # y stands twice in one item


def test_columns_are_ignored_or_sum_up_feedback_as_told(tmp_path):
    write(tmp_path, "item,terms,isbn,stars,price\na,x,1X,4,1\nb,y,2X,2,5\nc,z,3X,,3\n")
    data = Table(tmp_path, ignore=["isbn"], feedback_columns=["stars"]).read()
    assert list(data.side_names) == ["x", "y", "z", "price", "stars"] and data.feedback_columns == 1
    without = prepare(
        Table(tmp_path, ignore=["isbn"], feedback_columns=["stars"]),
        dim=None,
        use_feedback_columns=False,
        cache=tmp_path / "cache",
    )
    assert without.feature_names == ["x", "y", "z", "price"] and without.features.shape == (3, 4)
    with pytest.raises(DataError, match=r"ignore: no side column 'isnb' \(did you mean 'isbn'"):
        Table(tmp_path, ignore=["isnb"]).read()
    with pytest.raises(DataError, match="line 2: isbn: feedback_columns are numbers, got '1X'"):
        Table(tmp_path, feedback_columns=["isbn"]).read()
    with pytest.raises(DataError, match="no side column 'terms'"):
        Table(tmp_path, ignore=["terms"]).read()


def test_an_id_with_point_zero_is_the_whole_number(tmp_path):
    feedback = "user,item,value\n7,1.0,1\n7.0,2.0,0\nv1.0,2,1\n"
    data = Table(write(tmp_path, "item,terms\n1,x\n2,y\n", feedback)).read()
    assert list(data.users) == ["7", "v1.0"] and list(data.items) == ["1", "2"]
    assert data.feedback.items.tolist() == [0, 1, 1]
    write(tmp_path, "item,terms\n1,x\n1.0,y\n")
    with pytest.raises(DataError, match="line 3: item '1' is there a second time"):
        Table(tmp_path).read()


def test_files_whose_ids_never_meet_are_refused_with_examples(tmp_path):
    write(tmp_path, "item,terms\ntt01,x\ntt02,y\n")
    with pytest.raises(
        DataError, match="none of its items is in items.csv: it has 'a', and.* such as 'tt01'"
    ):
        Table(tmp_path).read()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_two_columns_of_one_name_are_refused(ending, tmp_path):
    write(tmp_path, "\nitem,terms,size,size\na,x,1,2\n")
    if ending == "parquet":
        import pyarrow
        from pyarrow.parquet import write_table

        columns = [pyarrow.array([text]) for text in ("a", "x", "1", "2")]
        table = pyarrow.Table.from_arrays(columns, names=["item", "terms", "size", "size"])
        write_table(table, tmp_path / "items.parquet")
    with pytest.raises(DataError, match=f"items.{ending}: 2 columns are called 'size'"):
        Table(tmp_path, items=f"items.{ending}").read()


VECTORS = np.array([[3.0, 4.0, 0.0], [0.0, -2.0, 0.0], [1.0, 2.0, 2.0]])


@pytest.mark.parametrize("where", ["spaces", "brackets", "npy", "npz", "parquet"])
def test_embeddings_are_features_as_they_are(where, tmp_path):
    style = {"spaces": "{} {} {}", "brackets": '"[{}, {}, {}]"'}.get(where, "")
    lines = [f"{i},{t},{style.format(*v)}" for i, t, v in zip("abc", "xyx", VECTORS, strict=True)]
    write(tmp_path, "\n".join(["item,terms,vector", *lines, ""]))
    embedding, name = "vector", "items"
    if where == "npy":
        embedding = "vectors.npy"
        np.save(tmp_path / embedding, VECTORS.astype(np.float32))
    if where == "npz":
        embedding = "vectors.npz"
        rows = [2, 0, 1]
        names = np.array(["c", "a", "b", "unused"])
        np.savez(tmp_path / embedding, item=names, vectors=np.vstack((VECTORS[rows], VECTORS[:1])))
    if where == "parquet":
        name = "items.parquet"
        frame = pd.DataFrame({"item": list("abc"), "terms": list("xyx"), "vector": VECTORS.tolist()})
        frame.to_parquet(tmp_path / name)
    reader = Table(tmp_path, items=name, embedding=embedding)
    found = prepare(reader, dim=None, cache=tmp_path / "cache")
    lengths = np.linalg.norm(VECTORS, axis=1, keepdims=True)
    torch.testing.assert_close(found.features, torch.from_numpy(VECTORS / lengths))
    assert found.feature_names == ["embedding 1", "embedding 2", "embedding 3"]
    assert prepare(reader, dim=2, cache=tmp_path / "cache").features.shape == (3, 2)
    environment = Ratings(reader, dim=None, pool=2, cache=tmp_path / "cache")
    assert environment.catalogue.dim == 3


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("1 2", "line 4: vector: expected 3 numbers, as in the first row, got 2"),
        ("1 x 2", "line 4: vector: expected numbers such as 0.1 0.2 0.3, got '1 x 2'"),
        ("", "line 4: vector: expected numbers"),
        ("1 nan 2", "line 4: vector: expected numbers"),
    ],
)
def test_a_vector_that_is_none_is_refused(field, message, tmp_path):
    write(tmp_path, f"item,terms,vector\na,x,1 2 3\nb,y,1 2 3\nc,z,{field}\n")
    with pytest.raises(DataError, match=message):
        Table(tmp_path, embedding="vector").read()


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones((2, 3)), "expected 3 rows of distinct items, one per row of the table of items, got 2"),
        (np.ones(3), r"expected numbers \[N, F\], got float64 \[3\]"),
        (np.array([["a"], ["b"], ["c"]]), r"expected numbers \[N, F\]"),
        (np.array([[1.0], [np.inf], [1.0]]), "the vector of item 'b' has NaN"),
        (np.array([[object()]]), "no array of numbers"),
    ],
)
def test_a_file_of_vectors_that_does_not_fit_is_refused(array, message, tmp_path):
    write(tmp_path, "item,terms\na,x\nb,y\nc,z\n")
    np.save(tmp_path / "v.npy", array, allow_pickle=True)
    with pytest.raises(DataError, match=f"v.npy: {message}"):
        Table(tmp_path, embedding="v.npy").read()


def test_an_item_without_a_vector_is_named(tmp_path):
    write(tmp_path, "item,terms\na,x\nb,y\nc,z\n")
    np.savez(tmp_path / "v.npz", item=np.array(["a", "c"]), vectors=np.ones((2, 2)))
    with pytest.raises(DataError, match="1 of 3 items have no row, such as 'b'"):
        Table(tmp_path, embedding="v.npz").read()
    with pytest.raises(DataError, match=r"there is no w.npy"):
        Table(tmp_path, embedding="w.npy").read()


def test_as_many_side_features_are_not_kept_as_would_not_fit(tmp_path):
    items = "".join(f"i{n},t{n}\n" for n in range(2001))
    feedback = "user,item,value\nu,i0,1\nu,i1,0\n"
    write(tmp_path, f"item,terms\n{items}", feedback)
    with pytest.raises(DataError, match="dim=None keeps all 2001 side features"):
        prepare(Table(tmp_path), dim=None, cache=tmp_path / "cache")


# What looks wrong.


def inspected(folder, capsys, *options):
    assert main(["data", "inspect", str(folder), *options]) == 0
    return [
        line.removeprefix("Looks wrong: ")
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("Looks wrong")
    ]


def test_inspect_says_what_looks_wrong(tmp_path, capsys):
    items = "".join(f"i{n},t{n},c{n},{n % 2}z\n" for n in range(20))
    events = "".join(f"u{n % 3},i{n % 25},{1 + n % 5}\n" for n in range(50))
    write(tmp_path, f"item,terms,code,kind\n{items}", f"user,item,value\n{events}")
    positive, unknown, terms, column = inspected(tmp_path, capsys)
    assert positive.startswith("All feedback is positive: its values are from 1 to 5, and positive_from is 1")
    assert unknown.startswith("10 events are on items that the table of items does not have")
    assert terms.startswith("There are 20 key-terms for 20 items")
    assert column.startswith("Column 'code' has 20 values for 20 items")
    assert inspected(tmp_path, capsys, "--ignore", "[code]", "--positive_from", "4") == [unknown, terms]
    (none,) = inspected(tmp_path, capsys, "--positive_from", "9", "--ignore", "[code]")[:1]
    assert none.startswith("No feedback is positive: its highest value is 5")


def test_one_key_term_per_item_is_remarked(tmp_path, capsys):
    items = "".join(f"i{n},t{n % 3}\n" for n in range(20))
    write(tmp_path, f"item,terms\n{items}", "user,item,value\nu,i0,1\nu,i1,0\n")
    (remark,) = inspected(tmp_path, capsys)
    assert remark.startswith("Every item has exactly one key-term")


def test_data_that_look_right_are_not_remarked_on(tmp_path, capsys):
    SMALL["movielens csv"].write(tmp_path)
    assert inspected(tmp_path, capsys) == []


# MovieLens.


def test_lines_with_too_many_fields_print_no_warning(tmp_path):
    SMALL["movielens 100k"].write(tmp_path)
    longer = (tmp_path / "u.item").read_bytes().replace(b"\n", b"|1|2\n")
    (tmp_path / "u.item").write_bytes(longer)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with pytest.raises(DataError, match="u.item: the lines have more fields|line 1: expected"):
            MovieLens(tmp_path).read()
    assert said == []


@pytest.mark.parametrize(("form", "ratings"), [("dat", "ratings.dat"), ("100k", "u.data")])
def test_a_release_without_ratings_is_told_its_own_files_name(form, ratings, tmp_path):
    SMALL[f"movielens {form}"].write(tmp_path)
    (tmp_path / ratings).unlink()
    with pytest.raises(DataError, match=f"there is no {ratings}"):
        MovieLens(tmp_path).read()
