"""The record of a log's events: what it refuses, and that the cache keeps it."""

import pytest
import torch

from conbandit_torch.datasets.base import Prepared
from conbandit_torch.datasets.cache import _read, _write
from conbandit_torch.datasets.events import LoggedEvents, as_sets


def tables(**other):
    """Two users, three events: two with the same three candidates, one with two, both of them served."""
    offers, first, candidates = as_sets([[0, 2, 3], [0, 2, 3], [1, 2]])
    return {
        "users": torch.tensor([0, 1, 0]),
        "times": torch.tensor([1, 1, 2]),
        "offers": offers,
        "first": first,
        "candidates": candidates,
        "events": torch.tensor([0, 1, 2, 2]),
        "items": torch.tensor([2, 0, 1, 2]),
        "clicks": torch.tensor([1.0, 0.0, 0.0, 1.0], dtype=torch.float64),
    } | other


def test_a_set_that_occurs_again_is_kept_once():
    log = LoggedEvents(**tables())
    assert log.offers.tolist() == [0, 0, 1]
    assert log.sizes.tolist() == [3, 2] and log.candidates.tolist() == [0, 2, 3, 1, 2]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("users", torch.tensor([0, 1]), "times must have one row per event, 2, got 3"),
        ("users", torch.tensor([0.0, 1.0, 0.0]), "users must be int64"),
        ("items", torch.tensor([1, 0, 1, 2]), "event 0 served item 1, which is none of its candidates"),
        ("items", torch.tensor([2, 0, 1, 9]), "event 2 served item 9, which is none of its candidates"),
        ("items", torch.tensor([2, 0, 2, 2]), "event 2 served item 2 more than once"),
        ("events", torch.tensor([0, 2, 1, 2]), "events must be ascending"),
        ("events", torch.tensor([0, 0, 2, 2]), "each of the 3 events at least once"),
        ("clicks", torch.tensor([1.0, 0.5, 0.0, 1.0]), "clicks must be 0 or 1"),
        ("candidates", torch.tensor([0, 2, 2, 1, 2]), "item 2 more than once: set 0"),
        ("first", torch.tensor([0, 3, 4]), "first must go from 0 to the 5 candidates"),
        ("first", torch.tensor([0, 0, 5]), "set 0 has no candidates"),
        ("offers", torch.tensor([0, 0, 2]), "offers must be from 0 to 1"),
        ("propensities", torch.tensor([0.5, 0.0, 0.5, 0.5]), "got 0.0 at serving 1"),
        ("context", torch.tensor([[0.0], [1.0], [torch.nan]]), "without NaN"),
    ],
)
def test_tables_that_do_not_fit_are_refused(name, value, message):
    with pytest.raises(ValueError, match=message):
        LoggedEvents(**tables(**{name: value}))


def test_the_cache_keeps_every_table(tmp_path):
    log = LoggedEvents(
        **tables(
            positions=torch.tensor([0, 1, 0, 1]),
            propensities=torch.full((4,), 0.25, dtype=torch.float64),
            context=torch.arange(6, dtype=torch.float64).view(3, 2),
            context_names=["hour", "phone"],
        )
    )
    nothing = torch.zeros(0, dtype=torch.int64)
    prepared = Prepared(
        features=torch.eye(4, dtype=torch.float64),
        item_terms=torch.tensor([[0, 1, 2, 3], [0, 0, 1, 1]]),
        theta=torch.zeros(2, 4, dtype=torch.float64),
        users=nothing,
        items=nothing,
        clicks=nothing.double(),
        times=nothing,
        user_names=["u", "v"],
        item_names=list("abcd"),
        term_names=["s", "t"],
        events=log,
    )
    _write(tmp_path / "kept.safetensors", prepared)
    found = _read(tmp_path / "kept.safetensors")
    assert found is not None and found.events is not None
    for name, tensor in log.tensors().items():
        assert torch.equal(getattr(found.events, name), tensor), name
    assert list(found.events.context_names) == ["hour", "phone"]
