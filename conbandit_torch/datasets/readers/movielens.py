"""MovieLens ratings, in all forms in which GroupLens has published them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from conbandit_torch.core.errors import DataError
from conbandit_torch.datasets.base import Dataset, Reader
from conbandit_torch.datasets.reading.faults import REAL, TEXT, WHOLE, expect_distinct
from conbandit_torch.datasets.reading.files import UTF8, expand, find, need, read_table, read_whole
from conbandit_torch.datasets.reading.source import EventList, Ids, Labels, Source, check_least, item_numbers

_NO_GENRE = {"", "(no genres listed)", "unknown"}
_RATING = {"userId": WHOLE, "movieId": WHOLE, "rating": REAL, "timestamp": WHOLE}
_MOVIE = {"movieId": WHOLE, "title": TEXT, "genres": TEXT}
_TAG = {"userId": WHOLE, "movieId": WHOLE, "tag": TEXT, "timestamp": WHOLE}
_YEAR = re.compile(r"\((\d{4})(?:[-\u2013]\d{0,4})?\)\s*$")


class _Form(NamedTuple):
    """How a release writes its files."""

    ratings: str
    movies: str
    tags: str
    separator: str
    header: bool


_CSV = _Form("ratings.csv", "movies.csv", "tags.csv", ",", header=True)
_DAT = _Form("ratings.dat", "movies.dat", "tags.dat", "::", header=False)
_100K = _Form("u.data", "u.item", "", "\t", header=False)


class MovieLens(Reader):
    """MovieLens: `ml-latest`, `ml-latest-small`, 20m, 25m and 32m (CSV), 1m and 10m (`::`), and 100k.

    Key-terms are the genres and, if asked for, tags that users have given often. Side features are these, the
    decade of release (from the title), and every movie's mean rating and number of ratings. Thresholds are
    counted once, on all ratings. A movie nobody rated is kept unless `min_item_feedback` is above 0.

    Args:
        path: the unpacked folder.
        min_user_feedback: ratings that a user must have given.
        min_item_feedback: ratings that a movie must have been given.
        min_tag_count: times that a tag must have been given to be a key-term, in any case of letters;
            None: no tags.
        positive_from: a rating of at least this is 1, a lower one 0.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        min_user_feedback: int = 1,
        min_item_feedback: int = 0,
        min_tag_count: int | None = None,
        positive_from: float = 4.0,
    ) -> None:
        check_least(
            min_user_feedback=min_user_feedback,
            min_item_feedback=min_item_feedback,
            min_tag_count=min_tag_count,
        )
        self.path = expand(path)
        self.min_user_feedback, self.min_item_feedback = min_user_feedback, min_item_feedback
        self.min_tag_count, self.positive_from = min_tag_count, positive_from

    def files(self) -> list[Path]:
        """Ratings, movies and, where they matter, tags (of the 100k release: the list of genres)."""
        form = self._form()
        files = [need(self.path, form.ratings), need(self.path, form.movies)]
        if form is _100K:
            files.append(need(self.path, "u.genre"))
        if self.min_tag_count is not None:
            if not form.tags:
                raise DataError(f"{self.path}: the 100k release has no tags; leave min_tag_count out")
            files.append(need(self.path, form.tags))
        return files

    def read(self) -> Dataset:
        """Everything, after the thresholds."""
        self.files()  # that all are there is seen before the long reading
        form, counts = self._form(), dict[str, int]()
        movies, titles, genres = self._movies(form)
        users, events = Ids(), EventList()
        for piece in read_table(
            need(self.path, form.ratings), _RATING, separator=form.separator, header=form.header
        ):
            events.add(
                users.positions(piece["userId"]),
                movies.find(piece["movieId"]),
                piece["rating"],
                piece["timestamp"],
            )
        feedback = events.feedback()
        counts |= {"users": len(users), "movies": len(movies), "ratings": len(feedback.users)}
        terms = [genres.matrix(len(movies))]
        if self.min_tag_count is not None:
            tags, counts["tags"] = self._tags(form, movies)
            terms.append(tags.matrix(len(movies), self.min_tag_count))
        decades = Labels()
        for movie, title in enumerate(titles):
            if year := _YEAR.search(title):
                decades.add(movie, f"decade: {year[1][:3]}0s")
        rating, number = item_numbers(feedback, len(movies))
        return Source(
            self.path,
            users=users.names(),
            items=movies.names(),
            titles=titles,
            terms=terms,
            labels=[decades.matrix(len(movies))],
            numbers={},
            feedback_numbers={"mean rating": rating, "ratings": number},
            feedback=feedback,
            counts=counts,
        ).narrowed(self.min_user_feedback, self.min_item_feedback, needs_terms=self.needs_terms)

    def _form(self) -> _Form:
        for form in (_DAT, _100K):
            if find(self.path, form.ratings, form.movies) is not None:  # even if one of them is missing
                return form
        return _CSV

    def _movies(self, form: _Form) -> tuple[Ids, list[str], Labels]:
        """Ids, titles and genres."""
        path = need(self.path, form.movies)
        columns, names = _MOVIE, list[str]()
        separator = form.separator
        if form is _100K:
            names = self._genre_names()
            columns = {"movieId": WHOLE, "title": TEXT, "released": TEXT, "video": TEXT, "url": TEXT}
            columns = columns | dict.fromkeys((f"genre {name}" for name in names), WHOLE)
            separator = "|"
        encodings = UTF8 if form is _CSV else (*UTF8, "latin-1")  # 100k and 1m are in the latter
        table = read_whole(
            path, columns, separator=separator, header=form.header, quotes=form is _CSV, encodings=encodings
        )
        expect_distinct(path, "movie", table, "movieId")
        lists = (
            [text.split("|") for text in table["genres"]]
            if form is not _100K
            else [
                [name for name, flag in zip(names, flags, strict=True) if flag]
                for flags in table[[f"genre {name}" for name in names]].to_numpy()
            ]
        )
        genres = Labels()
        for movie, own in enumerate(lists):
            for name in own:
                if (name := name.strip()) not in _NO_GENRE:
                    genres.add(movie, name)
        return Ids(table["movieId"].tolist()), table["title"].tolist(), genres

    def _genre_names(self) -> list[str]:
        """Of the 100k release, in the order of its flags."""
        path = need(self.path, "u.genre")
        pieces = read_table(path, {"genre": TEXT, "number": WHOLE}, separator="|", header=False, quotes=False)
        names = [name for piece in pieces for name in piece["genre"]]
        if len(set(names)) != len(names) or not names:
            raise DataError(f"{path}: expected distinct genres, got {', '.join(names)}")
        return names

    def _tags(self, form: _Form, movies: Ids) -> tuple[Labels, int]:
        """Tags in small letters, and how many were given."""
        labels, number = Labels(), 0
        path = need(self.path, form.tags)
        for piece in read_table(path, _TAG, separator=form.separator, header=form.header, quotes=form.header):
            number += len(piece)
            for movie, tag in zip(movies.find(piece["movieId"]).tolist(), piece["tag"], strict=True):
                name = tag.strip().lower()
                if movie >= 0 and name:
                    labels.add(movie, f"tag: {name}")
        return labels, number
