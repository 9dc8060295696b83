"""From a reader's data to features, clicks and true preferences, as in [Zhang20]; once, then from a cache."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from conbandit_torch.core.blocks import rows_per_block
from conbandit_torch.core.errors import DataError
from conbandit_torch.core.randomness import Stream
from conbandit_torch.datasets.base import Dataset, Interactions, Prepared, Reader
from conbandit_torch.datasets.cache import cached
from conbandit_torch.datasets.key_terms import KeyTerms
from conbandit_torch.datasets.preferences import fit_preferences
from conbandit_torch.datasets.reading.files import need_libraries

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from sklearn.decomposition import PCA

_MOST_COLUMNS = 2000  # up to which the covariance of side features is worked on as a whole


def prepare(
    reader: Reader,
    *,
    dim: int | None = 50,
    ridge: float = 1.0,
    seed: int = 0,
    use_feedback_columns: bool = True,
    key_terms: KeyTerms | None = None,
    cache: str | Path | None = None,
) -> Prepared:
    """Data to run on.

    Items' features are the first `dim` principal components of their side features, scaled to length 1;
    feedback of at least `reader.positive_from` is 1, other feedback 0; where a source has no negatives, as
    many items that the user has not met, drawn at random, are 0; a user's preferences are a ridge regression
    on all of the user's feedback.

    The result is kept on disk, and read from there the next time. It is made anew when anything that it
    depends on has changed: the content of the source's files (not their dates), the reader, a parameter.

    Args:
        reader: where the data come from.
        dim: D, length of a feature vector; None: the side features themselves, of length 1 per item, as for
            embeddings.
        ridge: weight of the penalty on preferences.
        seed: of the drawn negatives.
        use_feedback_columns: whether side features that sum up feedback, such as an item's mean rating, are
            used; where that feedback is to be predicted, they would give it away.
        key_terms: how key-terms are made, such as `Clusters`, and items without any are kept; None: they are
            the source's, and items without any are left out.
        cache: folder of kept results; None: `CONBANDIT_CACHE`, or else `~/.cache/conbandit_torch`.
    """
    if dim is not None and dim < 1:
        raise ValueError(f"dim must be at least 1, got {dim}")
    if not (ridge > 0 and math.isfinite(ridge)):
        raise ValueError(f"ridge must be above 0 and finite, got {ridge}")
    parameters: dict[str, Any] = {
        "dim": dim,
        "ridge": ridge,
        "seed": seed,
        "use_feedback_columns": use_feedback_columns,
    }
    if key_terms is None:
        return cached(reader, parameters, cache, lambda: _prepare(reader, **parameters))
    made, whole = {"key_terms": repr(key_terms)}, reader.keeping_all_items()
    return cached(reader, parameters | made, cache, lambda: key_terms.made(_prepare(whole, **parameters)))


def _prepare(
    reader: Reader, dim: int | None, ridge: float, seed: int, use_feedback_columns: bool
) -> Prepared:
    need_libraries()
    data = reader.read()
    if not use_feedback_columns:
        kept = data.side.shape[1] - data.feedback_columns
        data = replace(data, side=data.side[:, :kept], side_names=data.side_names[:kept])
    try:
        features = side_features(data) if dim is None else principal_components(data, dim)
    except DataError as error:
        raise DataError(f"{reader.path}: {error}") from None
    feedback = data.feedback
    clicks = (feedback.values >= np.float32(reader.positive_from)).astype(np.float64)
    if reader.has_negatives and clicks.min() == clicks.max():
        lowest, highest = feedback.values.min(), feedback.values.max()
        raise DataError(
            f"{reader.path}: with positive_from={reader.positive_from:g} all feedback is {clicks[0]:.0f} "
            f"(its values are from {lowest:g} to {highest:g}), so there is nothing to learn: give another or "
            "a reader whose has_negatives is False"
        )
    if not reader.has_negatives:
        feedback, clicks = with_unseen(feedback, len(data.users), len(data.items), seed)
    users, items = (torch.from_numpy(ids.astype(np.int64)) for ids in (feedback.users, feedback.items))
    graph = data.item_terms.tocoo()
    return Prepared(
        features=features,
        item_terms=torch.from_numpy(np.stack((graph.row, graph.col)).astype(np.int64)),
        theta=fit_preferences(users, items, torch.from_numpy(clicks), features, len(data.users), ridge),
        users=users,
        items=items,
        clicks=torch.from_numpy(clicks),
        times=torch.from_numpy(feedback.times),
        user_names=data.users.tolist(),
        item_names=data.titles.tolist(),
        term_names=data.terms.tolist(),
        feature_names=_names(data, dim),
        events=data.events,
    )


def _names(data: Dataset, dim: int | None) -> list[str]:
    if dim is not None:
        return [f"component {number + 1}" for number in range(dim)]
    names: list[str] = data.side_names.tolist()
    return names


def side_features(data: Dataset) -> Tensor:
    """[N, F] float64: the side features as they are, every row of length 1."""
    items, columns = data.side.shape
    if columns > _MOST_COLUMNS:
        raise DataError(
            f"dim=None keeps all {columns} side features of {items} items, more than {_MOST_COLUMNS}: give a "
            "dim to reduce them to"
        )
    side = data.side.toarray().astype(np.float64)
    lengths = np.linalg.norm(side, axis=1, keepdims=True)
    lost = np.flatnonzero(lengths[:, 0] == 0)
    if len(lost):
        raise DataError(f"{len(lost)} items, such as {data.titles[lost[0]]!r}, have no side features but 0")
    return torch.from_numpy(side / lengths)


def principal_components(data: Dataset, dim: int) -> Tensor:
    """[N, D] float64: the first principal components of the side features, every row of length 1.

    The side features stay sparse: their covariance is decomposed as a whole where it is small, and by
    Arnoldi iteration on the implicitly centred matrix otherwise. A component's largest loading is positive,
    so that its sign is determined.
    """
    from sklearn.decomposition import PCA

    side: csr_matrix = data.side.astype(np.float64)
    items, columns = side.shape
    most = min(items - 1, columns)
    if dim > most:
        if most > 0 and columns <= _MOST_COLUMNS:  # what there is may be less than there is room for
            with np.errstate(invalid="ignore"):
                most = _rank(PCA(most, svd_solver="covariance_eigh").fit(side))
        raise DataError(_too_many(dim, most, items, columns))
    solver = "arpack" if columns > _MOST_COLUMNS and dim < columns else "covariance_eigh"
    with np.errstate(invalid="ignore"):  # of items without any difference
        pca = PCA(dim, svd_solver=solver, random_state=0).fit(side)
    if _rank(pca) < dim:
        raise DataError(_too_many(dim, _rank(pca), items, columns))
    axes = pca.components_.T  # [F, D]
    axes = axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(dim)])
    scores = np.asarray(side @ axes - pca.mean_ @ axes)  # [N, D] centred
    lengths = np.linalg.norm(scores, axis=1, keepdims=True)
    lost = np.flatnonzero(lengths[:, 0] <= 1e-9 * lengths.max())
    if len(lost):
        raise DataError(
            f"{len(lost)} items, such as {data.titles[lost[0]]!r}, have the mean's side "
            f"features in all {dim} components, hence no direction: raise dim, or give more side features"
        )
    return torch.from_numpy(scores / lengths)


def _rank(pca: PCA) -> int:
    """Directions that the data have: variances of others are rounding errors."""
    return int((pca.explained_variance_ > 1e-10 * pca.explained_variance_[0]).sum())


def _too_many(dim: int, most: int, items: int, columns: int) -> str:
    return (
        f"dim={dim} is more than the {items} items with {columns} side features give: at most {most}; lower "
        "dim, or keep more items, tags or other side features"
    )


def with_unseen(
    feedback: Interactions, num_users: int, num_items: int, seed: int
) -> tuple[Interactions, np.ndarray]:
    """The feedback, all of it 1, each user's drawn unseen items between it, and who clicked what [E].

    An unseen item stands right before or right after the event it goes with, each as likely: if it were
    always after, all users of a replayed round would click, and in the next one none.
    """
    beside, drawn = draw_unseen(feedback, num_users, num_items, seed)
    events = np.arange(len(feedback.users))
    before = (
        Stream(seed, "unseen items first").uniform(torch.from_numpy(beside), 0, 1).squeeze(1).numpy() < 0.5
    )
    order = np.argsort(
        np.concatenate((events, np.where(before, beside - 0.25, beside + 0.25))), kind="stable"
    )
    joined = Interactions(
        users=np.concatenate((feedback.users, feedback.users[beside]))[order],
        items=np.concatenate((feedback.items, drawn.astype(np.int32)))[order],
        values=np.concatenate((feedback.values, np.zeros(len(beside), np.float32)))[order],
        times=np.concatenate((feedback.times, feedback.times[beside]))[order],
    )
    return joined, (order < len(events)).astype(np.float64)


def draw_unseen(
    feedback: Interactions, num_users: int, num_items: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """For every user as many distinct items that the user has not met as ones that were met, or all left.

    Returns:
        [M] events that they go with, each the user's first with an item, and [M] the drawn items.
    """
    pairs = feedback.users.astype(np.int64) * num_items + feedback.items
    pairs, first = np.unique(pairs, return_index=True)  # by user, then item
    met = np.bincount(pairs // num_items, minlength=num_users)  # [U] items that each has met
    items, starts = pairs % num_items, np.cumsum(met) - met
    events = np.sort(first)
    events = events[np.argsort(feedback.users[events], kind="stable")]  # by user, then time
    stream = Stream(seed, "unseen items")
    beside, drawn = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for number in np.unique(met[met > 0]).tolist():  # users who have met equally many at once
        count = min(number, num_items - number)
        if count == 0:
            continue
        for users in torch.from_numpy(np.flatnonzero(met == number)).split(rows_per_block(4 * number)):
            rows = starts[users.numpy()][:, None] + np.arange(number)  # [B, number] into the pairs
            rank = stream.subsets(users, 0, count, num_items - number).contiguous()  # [B, count]
            # The r-th item not met is r plus the number of met ones before it.
            before = torch.from_numpy(items[rows] - np.arange(number))
            drawn.append((rank + torch.searchsorted(before, rank, right=True)).numpy().ravel())
            beside.append(events[rows[:, :count]].ravel())
    return np.concatenate(beside), np.concatenate(drawn)
