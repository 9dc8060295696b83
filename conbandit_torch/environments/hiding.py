"""Which features policies do not see: drawn, drawn in balance, or named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.errors import choices
from conbandit_torch.core.randomness import Stream

_DRAWS = 256  # splits that the balanced one is the best of


class HiddenFeatures(NamedTuple):
    """What was kept from the policies.

    Attributes:
        names: of the columns.
        share: their part of the arms' summed `|x|^2`.
    """

    names: list[str]
    share: float


def hidden_columns(catalogue: Catalogue, hidden: int | Sequence[str], seed: int, balanced: bool) -> Tensor:
    """[H] the columns that policies do not see, ascending.

    Args:
        catalogue: all features.
        hidden: how many are drawn, or the names of which.
        seed: of the draw.
        balanced: of 256 draws, take the one whose share of the arms' summed `|x|^2` is closest to H / D. A
            draw may hide one of the few columns that most of `|x|^2` is in, or none of them, and then seeds
            are not comparable.
    """
    dim = catalogue.dim
    if not isinstance(hidden, int):
        return _named(catalogue, hidden)
    if not 0 <= hidden < dim:
        raise ValueError(f"hidden must be from 0 to {dim - 1}, below the number of features, got {hidden}")
    draws = torch.arange(_DRAWS if balanced else 1)
    splits = Stream(seed, "split").bits(draws, 0, dim).argsort(1)[:, :hidden]  # [draws, H]
    if balanced:
        shares = _squares(catalogue)[splits].sum(1)
        splits = splits[(shares - hidden / dim).abs().argmin()][None]
    return splits[0].sort().values


def describe_hidden(catalogue: Catalogue, columns: Tensor) -> HiddenFeatures | None:
    """The columns' names and their share of `|x|^2`; None: nothing is hidden."""
    if not len(columns):
        return None
    names = [catalogue.feature_names[column] for column in columns.tolist()]
    return HiddenFeatures(names, float(_squares(catalogue)[columns].sum()))


def _named(catalogue: Catalogue, names: Sequence[str]) -> Tensor:
    known = catalogue.feature_names
    for name in names:
        if name not in known:
            raise ValueError(f"hidden: there is no feature {name!r}{choices(str(name), known)}")
    if len(set(names)) != len(names) or len(names) >= len(known):
        raise ValueError(
            f"hidden must name distinct features, fewer than the {len(known)} there are, got {list(names)}"
        )
    return torch.tensor(sorted(known.index(name) for name in names), dtype=torch.int64)


def _squares(catalogue: Catalogue) -> Tensor:
    """[D] each column's share of the arms' summed `|x|^2`."""
    squares = catalogue.arm_features.double().square().sum(0)
    return squares / squares.sum().clamp_min(torch.finfo(torch.float64).tiny)
