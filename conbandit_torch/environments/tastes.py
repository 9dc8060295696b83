"""Items of your own, and simulated people who like some of their key-terms."""

from __future__ import annotations

from pathlib import Path

import torch

from conbandit_torch.core.randomness import Stream
from conbandit_torch.datasets.items import FILMS, read_items
from conbandit_torch.environments.drawn import Drawn


class Tastes(Drawn):
    """Items of a catalogue, and simulated people who each like some of its key-terms.

    Rule: an item's features are its key-terms (see `Items`). A person likes `liked` key-terms, drawn at
    random: theta is `strength` there and 0 elsewhere. A reward is 1 with probability `x^T theta`, clipped to
    [0, 1]; so is an answer, with the mean probability of the key-term's items (Eq. 5).
    Symbols: as in `Synthetic`.
    Differs: it is no setting of a paper. `conbandit run` plays it with these people; `conbandit chat` and
    `conbandit serve` take the items alone, and real people come in their place.

    Args:
        items: a CSV file with the columns `item`, `terms` (`a|b`) and others that people see; or "films", the
            catalogue of this package.
        users: U, simulated people.
        liked: key-terms that each of them likes.
        strength: how much; with 1.5, an item that has one of three key-terms liked is liked by most.
        pool: candidates per user and round, drawn without replacement.
        users_per_round: how many users come each round; None: all.
        seed: seed of tastes, visitors, pools and noise.
    """

    def __init__(
        self,
        items: str | Path = FILMS,
        *,
        users: int = 100,
        liked: int = 3,
        strength: float = 1.5,
        pool: int = 50,
        users_per_round: int | None = None,
        seed: int = 0,
    ) -> None:
        read = read_items(items)
        catalogue = read.catalogue()
        if users < 1:
            raise ValueError(f"users must be at least 1, got {users}")
        if not 1 <= liked <= catalogue.num_terms:
            raise ValueError(f"liked must be from 1 to the {catalogue.num_terms} key-terms, got {liked}")
        if not 0 < strength < float("inf"):
            raise ValueError(f"strength must be above 0 and finite, got {strength}")
        drawn = Stream(seed, "tastes").subsets(
            torch.arange(users), 0, liked, catalogue.num_terms
        )  # [U, liked]
        theta = torch.zeros(users, catalogue.dim, dtype=torch.float64)  # [U, D]
        theta.scatter_(1, drawn, strength)  # the first K features are the key-terms
        super().__init__(
            catalogue,
            theta,
            pool=pool,
            noise=0.0,
            feedback="binary",
            users_per_round=users_per_round,
            hidden=0,
            hidden_seed=seed,
            seed=seed,
        )
        self.details = read.details
