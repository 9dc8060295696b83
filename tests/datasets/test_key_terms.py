"""Key-terms that are made: clusters of items, on files of our own and on real data."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from conbandit_torch import (
    Clusters,
    ConUCB,
    DataError,
    KeyTerms,
    LastFM,
    LinUCB,
    Ratings,
    Replay,
    ReplayEvents,
    Table,
    play_round,
    prepare,
)
from conbandit_torch.configuration.build import build_environment
from conbandit_torch.configuration.load import load
from conbandit_torch.environments.replay.generated import generate_log
from conbandit_torch.environments.replay.generated_events import with_offers
from experiments.small_sources import small_sources
from tests.helpers.data import real

GROUPS, EACH = 4, 6


def write(folder, terms=True):
    """Items in four groups that are far apart; those of the last two groups have no key-terms."""
    rng = np.random.default_rng(0)
    middle = 10 * np.eye(GROUPS)
    lines = ["item,title,a,b,c,d" + (",terms" if terms else "")]
    for item in range(GROUPS * EACH):
        group = item % GROUPS
        numbers = ",".join(f"{x:.4f}" for x in middle[group] + rng.normal(scale=0.1, size=GROUPS))
        tag = f",tag {group}" if group < 2 else ","
        lines.append(f"i{item},title {item},{numbers}{tag if terms else ''}")
    (folder / "items.csv").write_text("\n".join(lines) + "\n")
    events = ["user,item,value,time"]
    for user in range(5):
        for number in range(20):
            events.append(f"u{user},i{(7 * number + user) % (GROUPS * EACH)},{(number + user) % 2},{number}")
    (folder / "feedback.csv").write_text("\n".join(events) + "\n")
    return Table(folder)


def test_items_without_key_terms_are_kept_where_key_terms_are_made_and_only_there(tmp_path):
    reader = write(tmp_path)
    own = prepare(reader, dim=3, cache=tmp_path / "cache")
    made = prepare(reader, dim=3, key_terms=Clusters(GROUPS), cache=tmp_path / "cache")
    assert len(own.item_names) == 2 * EACH and own.term_names == ["tag 0", "tag 1"]
    assert len(made.item_names) == GROUPS * EACH
    assert reader.needs_terms and reader.read().counts["items without key-terms (dropped)"] == 2 * EACH
    assert reader.keeping_all_items().read().counts["items without key-terms (kept)"] == 2 * EACH


@pytest.mark.parametrize("terms", [True, False], ids=["few tags", "no column of tags"])
def test_clusters_are_the_groups_of_items_that_are_alike(tmp_path, terms):
    reader = write(tmp_path, terms)
    if not terms:
        with pytest.raises(DataError, match="terms"):
            prepare(reader, dim=3, cache=tmp_path / "cache")
    made = prepare(reader, dim=3, key_terms=Clusters(GROUPS), cache=tmp_path / "cache")
    item, term = made.item_terms.numpy()
    assert item.tolist() == list(range(GROUPS * EACH))  # one key-term each
    for group in range(GROUPS):
        assert len(set(term[group::GROUPS])) == 1
    assert len(set(term)) == GROUPS == len(made.term_names)


def test_a_cluster_is_named_after_its_most_central_items_and_the_largest_comes_first(tmp_path):
    made = prepare(write(tmp_path), dim=3, key_terms=Clusters(3), cache=tmp_path / "cache")
    X, label = made.features.numpy(), made.item_terms[1].numpy()
    sizes = np.bincount(label)
    assert sizes.tolist() == sorted(sizes, reverse=True) and sizes.max() > sizes.min()
    for number, name in enumerate(made.term_names):
        own = np.flatnonzero(label == number)
        away = np.linalg.norm(X[own] - X[own].mean(0), axis=1)
        central = [made.item_names[item] for item in own[np.argsort(away, kind="stable")[:3]]]
        assert name == f"cluster {number + 1}: {', '.join(central)}"


def test_no_item_is_closer_to_another_centre():
    data = Clusters(12).made(generate_log(6, 90, 8, 5, 30, 3, 0.3, seed=1))
    X, label = data.features.double().numpy(), data.item_terms[1].numpy()
    centres = np.stack([X[label == k].mean(0) for k in range(12)])
    nearest = np.linalg.norm(X[:, None] - centres, axis=2).argmin(1)
    np.testing.assert_array_equal(nearest, label)


def test_what_was_made_is_kept_under_the_part_it_was_made_by(tmp_path, monkeypatch):
    reader, cache = write(tmp_path), tmp_path / "cache"
    made = prepare(reader, dim=3, key_terms=Clusters(4), cache=cache)
    prepare(reader, dim=3, key_terms=Clusters(3), cache=cache)
    prepare(reader, dim=3, cache=cache)
    assert len(list(cache.glob("*.safetensors"))) == 3
    monkeypatch.setattr(Clusters, "made", None)
    again = prepare(reader, dim=3, key_terms=Clusters(4), cache=cache)
    assert again.term_names == made.term_names and torch.equal(again.item_terms, made.item_terms)


def test_the_same_seed_makes_the_same_clusters_on_any_number_of_threads():
    data = generate_log(6, 90, 8, 5, 30, 3, 0.3, seed=1)
    one, other = Clusters(12).made(data), Clusters(12).made(data)
    assert torch.equal(one.item_terms, other.item_terms)
    assert not torch.equal(one.item_terms, Clusters(12, starts=1, seed=5).made(data).item_terms)


def test_ratings_and_both_replays_take_them_and_policies_ask_about_them(tmp_path):
    reader = write(tmp_path)
    how = {"dim": 3, "key_terms": Clusters(4), "pool": 4, "cache": tmp_path / "cache"}
    worlds = [Ratings(reader, **how), Replay(reader, **how)]
    log = generate_log(6, 40, 8, 5, 60, 3, 0.1, seed=0)
    worlds.append(ReplayEvents(with_offers(log, 60, 4, 0.5, 0), key_terms=Clusters(5)))
    for world in worlds:
        assert world.catalogue.num_terms in (4, 5)
        assert world.catalogue.term_names[0].startswith("cluster 1: ")
        policy = ConUCB(world.catalogue, world.num_users)
        asked = sum(len(q) for _ in range(6) for q, _ in play_round(policy, world).dialogue)
        assert asked > 0


def test_a_config_names_them(tmp_path):
    write(tmp_path)
    part = {"class_path": "Clusters", "init_args": {"number": 4}}
    data = {"class_path": "Table", "init_args": {"path": str(tmp_path)}}
    arguments = {"data": data, "dim": 3, "pool": 4, "key_terms": part, "cache": str(tmp_path / "cache")}
    plan = {
        "rounds": 3,
        "seeds": [0],
        "environment": {"class_path": "Ratings", "init_args": arguments},
        "policies": {"LinUCB": {"class_path": "LinUCB"}},
    }
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(plan))
    world = build_environment(load(path), 0)
    assert world.catalogue.num_terms == 4 and world.catalogue.num_arms == GROUPS * EACH
    play_round(LinUCB(world.catalogue, world.num_users), world)


class Single(KeyTerms):
    """A stranger's: one key-term for all."""

    def made(self, prepared):
        items = torch.arange(len(prepared.item_names))
        edges = torch.stack((items, torch.zeros_like(items)))
        return type(prepared)(**vars(prepared) | {"item_terms": edges, "term_names": ["all"]})


def test_key_terms_of_your_own_need_one_method(tmp_path):
    world = Ratings(write(tmp_path), dim=3, pool=4, key_terms=Single(), cache=tmp_path / "cache")
    assert world.catalogue.term_names == ("all",)


@pytest.mark.parametrize("name", small_sources())
def test_every_reader_keeps_all_items_when_told_to(name, tmp_path):
    small = small_sources()[name]
    reader = small.reader(small.write(tmp_path))
    own, every = reader.read(), reader.keeping_all_items().read()
    assert {*own.items} <= {*every.items}
    assert not any("key-terms (dropped)" in what for what in every.counts)


def test_bad_numbers_are_refused(tmp_path):
    for name in ("number", "starts"):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
            Clusters(**{name: 0})
    with pytest.raises(DataError, match="number=25 is more than the 24 items that differ"):
        Ratings(write(tmp_path), dim=3, pool=4, key_terms=Clusters(25), cache=tmp_path / "cache")


@real
@pytest.mark.slow
def test_lastfm_has_more_artists_where_key_terms_are_made(tmp_path):
    reader = LastFM(Path(os.environ["CONBANDIT_DATA"]) / "hetrec2011-lastfm-2k")
    own = Ratings(reader, users=50, dim=20, cache=tmp_path)
    made = Ratings(reader, users=50, dim=20, key_terms=Clusters(50, starts=1), cache=tmp_path)
    assert made.catalogue.num_arms > own.catalogue.num_arms
    assert made.catalogue.num_terms == 50
    policy = ConUCB(made.catalogue, 50)
    assert all(torch.isfinite(play_round(policy, made).outcome.regret).all() for _ in range(5))
