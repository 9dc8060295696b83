"""Small made-up data in every format that has a reader, for tests and for fuzz.py."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from conbandit_torch import MIND, LastFM, MovieLens, Reader, Table, Yelp

GENRES = ("Action", "Comedy", "Drama")
USERS, ITEMS = 4, 9


class Small(NamedTuple):
    """A format: its reader, with thresholds that keep nearly everything, and its files."""

    reader: Callable[[Path], Reader]
    files: dict[str, bytes]

    def write(self, folder: Path) -> Path:
        """Write the files."""
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        return folder


def _lines(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _events() -> list[tuple[int, int, int, int]]:
    """(user, item, stars, time), from 1 on; the last item is nobody's, and times are not in order."""
    return [
        (user, item, 1 + (user * item + item) % 5, 1_000_000_000 + 86_400 * ((7 * item + user) % 11))
        for user in range(1, USERS + 1)
        for item in range(1, ITEMS)
        if (user + item) % 4
    ]


def _genres(item: int) -> list[str]:
    return [
        genre for number, genre in enumerate(GENRES, start=1) if item % (number + 1) == 0 or item == number
    ]


def _title(item: int) -> str:
    return f'Caf\u00e9 "{item}", the film (19{70 + 5 * item})'


def _movielens_csv() -> dict[str, bytes]:
    def quoted(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    movies = [
        f"{item},{quoted(_title(item))},{'|'.join(_genres(item)) or '(no genres listed)'}"
        for item in range(1, ITEMS + 1)
    ]
    ratings = [f"{user},{item},{stars}.5,{time}" for user, item, stars, time in _events()]
    tags = [f"{user},{item},{tag},1" for user, item in ((1, 1), (2, 1), (3, 2)) for tag in ("Noir", "noir ")]
    return {
        "movies.csv": _lines("movieId,title,genres", *movies),
        "ratings.csv": _lines("userId,movieId,rating,timestamp", *ratings),
        "tags.csv": _lines("userId,movieId,tag,timestamp", *tags),
    }


def _movielens_dat() -> dict[str, bytes]:
    movies = [f"{item}::{_title(item)}: again::{'|'.join(_genres(item))}" for item in range(1, ITEMS + 1)]
    return {
        "movies.dat": _lines(*movies).decode().encode("latin-1"),
        "ratings.dat": _lines(*("::".join(map(str, event)) for event in _events())),
    }


def _movielens_100k() -> dict[str, bytes]:
    movies = [
        f"{item}|{_title(item)}|01-Jan-1995||http://x|"
        + "|".join(str(int(name in (_genres(item) or ["unknown"]))) for name in ("unknown", *GENRES))
        for item in range(1, ITEMS + 1)
    ]
    return {
        "u.item": _lines(*movies).decode().encode("latin-1"),
        "u.genre": _lines(*(f"{name}|{number}" for number, name in enumerate(("unknown", *GENRES))), ""),
        "u.data": _lines(*("\t".join(map(str, event)) for event in _events())),
    }


def _lastfm() -> dict[str, bytes]:
    tags = ("rock", "caf\u00e9", "rare")
    tagged = [
        f"{user}\t{item}\t{1 + item % (user + 1) % 2}\t1\t4\t2009"
        for user in range(1, USERS + 1)
        for item in range(1, ITEMS)
    ]
    tagged += ["1\t1\t3\t1\t4\t2009", "1\t777\t1\t1\t4\t2009"]  # of a rare tag, and of an unknown artist
    artists = [f"{item}\t{_title(item)}\thttp://x\t" for item in range(1, ITEMS + 1)]
    listened = [f"{user}\t{item}\t{stars * 100}" for user, item, stars, _ in _events()]
    return {
        "artists.dat": _lines("id\tname\turl\tpictureURL", *artists),
        "tags.dat": _lines("tagID\ttagValue", *(f"{n}\t{tag}" for n, tag in enumerate(tags, 1)))
        .decode()
        .encode("cp1252"),
        "user_artists.dat": _lines("userID\tartistID\tweight", *listened),
        "user_taggedartists.dat": _lines("userID\tartistID\ttagID\tday\tmonth\tyear", *tagged),
    }


def _mind() -> dict[str, bytes]:
    news = []
    for item in range(1, ITEMS + 1):
        entities = [{"Label": f"E{item % 3}", "WikidataId": f"Q{item % 3}", "Type": "P", "Confidence": 1.0}]
        fields = [
            f"N{item}",
            "sports" if item % 2 else "news",
            f"sub{item % 3}",
            _title(item),
            "",
            "http://x",
        ]
        news.append("\t".join([*fields, json.dumps(entities) if item % 4 else "[]", "[]"]))
    behaviours = []
    for number, (user, item, stars, _) in enumerate(_events(), start=1):
        shown = f"N{item}-{int(stars > 3)} N{1 + item % 7}-0"
        time = f"11/{9 + number % 20}/2019 {1 + number % 12}:05:58 {'AM' if number % 2 else 'PM'}"
        behaviours.append(f"{number}\tU{user}\t{time}\tN1 N2\t{shown}")
    return {"news.tsv": _lines(*news), "behaviors.tsv": _lines(*behaviours)}


def _yelp() -> dict[str, bytes]:
    businesses: list[dict[str, Any]] = []
    for item in range(1, ITEMS + 1):
        names = ["Restaurants", *_genres(item)]
        business: dict[str, Any] = {
            "business_id": f"b{item}",
            "name": _title(item),
            "city": f"City {item % 3}",
            "state": "AZ",
            "stars": 1 + item % 9 / 2,
            "review_count": 10 * item,
            "categories": ", ".join(names) if item % 2 else names,
            "attributes": {
                "WiFi": ("u'free'", "'no'", "None")[item % 3],
                "BusinessParking": "{'garage': False, 'street': True}" if item % 2 else {"lot": True},
                "GoodForKids": "True" if item % 3 else False,
                "RestaurantsPriceRange2": str(item % 4),
            },
        }
        if item % 4 == 0:
            business["attributes"] = None
        if item % 5 == 0:
            del business["attributes"]
        businesses.append(business)
    businesses.append({**businesses[0], "business_id": "shop", "categories": "Shopping, Books"})
    businesses.append({**businesses[0], "business_id": "nothing", "categories": None})
    reviews = [
        {
            "review_id": f"r{number}",
            "user_id": f"u{user}",
            "business_id": f"b{item}",
            "stars": stars,
            "date": f"2016-03-{10 + time % 17} 01:12:13" if number % 2 else f"2016-03-{10 + time % 17}",
            "text": "Good.",
        }
        for number, (user, item, stars, time) in enumerate(_events())
    ]
    reviews.append({**reviews[0], "business_id": "shop"})
    return {
        "yelp_academic_dataset_business.json": _lines(*map(json.dumps, businesses)),
        "review.json.gz": gzip.compress(_lines(*map(json.dumps, reviews)), mtime=0),
    }


def _table() -> dict[str, bytes]:
    items = []
    for item in range(1, ITEMS + 1):
        price, colour = item * 1.5 if item % 4 else "", ("red", "blue", "")[item % 3]
        items.append(f"b{item},{'|'.join(_genres(item))},{price},{colour},T{item}")
    events = [f"u{user},b{item},{stars},{time}" for user, item, stars, time in _events()]
    return {
        "feedback.csv": _lines("user,item,value,time", *events),
        "items.csv": _lines("item,terms,price,colour,title", *items),
    }


def _parquet() -> dict[str, bytes]:
    import pandas as pd

    files = {}
    for name, content in _table().items():
        buffer = io.BytesIO()
        pd.read_csv(io.BytesIO(content), keep_default_na=name == "items.csv").to_parquet(buffer)
        files[name.replace(".csv", ".parquet")] = buffer.getvalue()
    return files


def small_sources() -> dict[str, Small]:
    """All formats, by name."""

    def table(path: Path) -> Table:
        return Table(path, positive_from=4)

    return {
        "yelp": Small(lambda path: Yelp(path, min_user_feedback=2, min_item_feedback=1), _yelp()),
        "movielens csv": Small(lambda path: MovieLens(path, min_tag_count=2), _movielens_csv()),
        "movielens dat": Small(MovieLens, _movielens_dat()),
        "movielens 100k": Small(MovieLens, _movielens_100k()),
        "lastfm": Small(lambda path: LastFM(path, min_tag_count=2), _lastfm()),
        "mind": Small(lambda path: MIND(path, min_entity_count=2), _mind()),
        "table csv": Small(table, _table()),
        "table parquet": Small(table, _parquet()),
    }
