"""Catalogues of items as one CSV file, and the one of this package."""

from collections import Counter

import pytest
import torch

from conbandit_torch.core.errors import DataError
from conbandit_torch.datasets.items import read_items


def written(folder, text):
    path = folder / "items.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_films_have_enough_items_and_key_terms():
    films = read_items("films")
    counts = Counter(term for terms in films.terms for term in terms)
    assert len(films.names) >= 200 and 25 <= len(counts) <= 40 and min(counts.values()) >= 5
    for details in films.details:
        assert set(details) == {"year", "director"} and 1900 < int(details["year"]) < 2030
    assert all(name == name.strip() and "  " not in name for name in films.names)


def test_features_are_key_terms_and_the_decade_of_length_one(tmp_path):
    path = written(tmp_path, "item,terms,year\nA,x|y,1954\nB,y,1999\nC,z,\n")
    catalogue = read_items(path).catalogue()
    assert catalogue.arm_names == ("A", "B", "C") and catalogue.term_names == ("x", "y", "z")
    assert catalogue.feature_names == ("x", "y", "z", "the 1950s", "the 1990s")
    rows = torch.tensor([[1, 1, 0, 0.5, 0], [0, 1, 0, 0, 0.5], [0, 0, 1, 0, 0]], dtype=torch.float64)
    torch.testing.assert_close(catalogue.arm_features, rows / rows.norm(dim=1, keepdim=True))
    assert catalogue.terms_of(torch.tensor([0])).target.tolist() == [0, 1]


def test_other_columns_are_for_people(tmp_path):
    items = read_items(written(tmp_path, '\ufeffitem,terms,who\n"A, or B", x | x | y ,me\n'))
    assert items.names == ("A, or B",) and items.terms == (("x", "y"),) and items.details == ({"who": "me"},)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("item,term\nA,x\n", "line 1: no column 'terms' .did you mean 'term'"),
        ("item,terms\n", "expected 1 to 100,000 items, got 0"),
        ("item,terms\nA,x\nA,y\n", "line 3: item 'A' is on line 2 already"),
        ("item,terms\nA,|\n", "line 2: every item needs a name and a key-term"),
        ("item,terms\nA,x,y\n", "line 2: expected 2 fields"),
        ("item,terms\nA\n", "line 2: expected 2 fields"),
        ('item,terms\n"A,x\n', "not a CSV file"),
        ("item,terms\nA\x07,x\n", "line 2: names are at most 200 printable characters"),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, said):
    with pytest.raises(DataError, match=said):
        read_items(written(tmp_path, text))


def test_a_missing_file_is_named():
    with pytest.raises(DataError, match="nowhere.csv: no such file; 'films' is the catalogue"):
        read_items("nowhere.csv")
