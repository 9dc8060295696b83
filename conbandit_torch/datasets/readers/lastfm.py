"""Last.fm listening and tags, as published for HetRec 2011."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from conbandit_torch.datasets.base import Dataset, Reader
from conbandit_torch.datasets.reading.faults import REAL, TEXT, WHOLE, expect_distinct
from conbandit_torch.datasets.reading.files import UTF8, expand, need, read_table, read_whole
from conbandit_torch.datasets.reading.source import EventList, Ids, Labels, Source, check_least, item_numbers

_LISTENED, _TAGGED, _TAGS, _ARTISTS = (
    "user_artists.dat",
    "user_taggedartists.dat",
    "tags.dat",
    "artists.dat",
)


class LastFM(Reader):
    """Last.fm (HetRec 2011): who listened to which artist, and which tags users gave artists.

    Key-terms are the tags that were given often enough. Side features are these tags, the number of
    listeners, and the logarithm of the mean number of plays. There are no negatives: listened is 1, and
    preparation draws unheard artists as 0. Times are not known. Thresholds are counted once.

    Args:
        path: the unpacked folder.
        min_user_feedback: artists that a user must have listened to.
        min_item_feedback: listeners that an artist must have.
        min_tag_count: times that a tag must have been given to be a key-term.
    """

    has_negatives = False

    def __init__(
        self,
        path: str | Path,
        *,
        min_user_feedback: int = 1,
        min_item_feedback: int = 0,
        min_tag_count: int = 10,
    ) -> None:
        check_least(
            min_user_feedback=min_user_feedback,
            min_item_feedback=min_item_feedback,
            min_tag_count=min_tag_count,
        )
        self.path = expand(path)
        self.min_user_feedback, self.min_item_feedback = min_user_feedback, min_item_feedback
        self.min_tag_count = min_tag_count

    def files(self) -> list[Path]:
        """Listening, tags given, tags and artists."""
        return [need(self.path, name) for name in (_LISTENED, _TAGGED, _TAGS, _ARTISTS)]

    def read(self) -> Dataset:
        """Everything, after the thresholds."""
        listened, tagged, tags_file, artists_file = self.files()
        table = read_whole(artists_file, {"id": WHOLE, "name": TEXT}, separator="\t", quotes=False)
        expect_distinct(artists_file, "artist", table, "id")
        artists = Ids(table["id"].tolist())
        # The published tags are in Windows' encoding, the artists in UTF-8.
        tags = read_whole(
            tags_file,
            {"tagID": WHOLE, "tagValue": TEXT},
            separator="\t",
            quotes=False,
            encodings=(*UTF8, "cp1252"),
        )
        expect_distinct(tags_file, "tag", tags, "tagID")
        names = dict(zip(tags["tagID"].tolist(), tags["tagValue"], strict=True))

        users, events = Ids(), EventList()
        columns = {"userID": WHOLE, "artistID": WHOLE, "weight": REAL}
        for piece in read_table(listened, columns, separator="\t", quotes=False):
            positions = users.positions(piece["userID"]), artists.find(piece["artistID"])
            events.add(*positions, piece["weight"], np.zeros(len(piece), np.int64))
        feedback = events.feedback()

        labels, given = Labels(), 0
        columns = {"userID": WHOLE, "artistID": WHOLE, "tagID": WHOLE}
        for piece in read_table(tagged, columns, separator="\t", quotes=False):
            given += len(piece)
            for artist, tag in zip(artists.find(piece["artistID"]).tolist(), piece["tagID"], strict=True):
                if artist >= 0 and (name := names.get(tag, "").strip()):
                    labels.add(artist, name)
        plays, listeners = item_numbers(feedback, len(artists))
        return Source(
            self.path,
            users=users.names(),
            items=artists.names(),
            titles=table["name"].tolist(),
            terms=[labels.matrix(len(artists), self.min_tag_count)],
            labels=[],
            numbers={},
            feedback_numbers={"log of mean plays": np.log1p(plays.clip(0)), "listeners": listeners},
            feedback=feedback,
            counts={
                "users": len(users),
                "artists": len(artists),
                "listened": len(feedback.users),
                "tags": len(tags),
                "tags given": given,
            },
        ).narrowed(self.min_user_feedback, self.min_item_feedback, needs_terms=self.needs_terms)
