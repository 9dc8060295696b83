"""What callers hand over, checked and put in order."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from operator import index

from conbandit_torch.live.records import Asked, Shown
from conbandit_torch.live.vocabulary import expect_text


def named(argument: str, names: Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    """The names that are given, or those that are known."""
    if names is None:
        return tuple(known)
    if len(names) != len(known):
        raise ValueError(f"{argument} must be {len(known)} names, as the catalogue has, got {len(names)}")
    return tuple(names)


def id_of(given: Asked | Shown | int, noun: str) -> int:
    """The id of a question or a decision."""
    try:
        return given.id if isinstance(given, Asked | Shown) else index(given)
    except TypeError:
        raise ValueError(f"a {noun} is given as it was got, or by its id, got {given!r}") from None


def in_range(what: str, value: float, limits: tuple[float, float]) -> float:
    """The value as a number, if it is one within the limits."""
    least, most = limits
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be a number from {least} to {most}, got {value!r}") from None
    if not least <= number <= most:
        raise ValueError(f"{what} must be from {least} to {most}, got {value!r}")
    return number


def expect_distinct(users: Sequence[str]) -> None:
    """Refuse users that are no texts, or not distinct."""
    if isinstance(users, str):
        raise ValueError(f"users must be a list of texts, got {users!r}")
    for user in users:
        expect_text("a user", user)
    if len(set(users)) != len(users):
        raise ValueError(f"users must be distinct, got {users!r}: call once for each round of a user")


def expect_lengths(**columns: Sequence[object]) -> None:
    """Refuse columns of different lengths."""
    if len({len(column) for column in columns.values()}) > 1:
        given = ", ".join(f"{len(column)} {name}" for name, column in columns.items())
        raise ValueError(f"as many are needed of each, got {given}")


def alike(keys: Sequence[Hashable]) -> list[list[int]]:
    """Places by their key, in the order of the keys' first."""
    groups: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        groups.setdefault(key, []).append(place)
    return list(groups.values())


def waves(places: list[int], users: Sequence[int | None]) -> list[list[int]]:
    """The places in runs without a user twice: everybody's first, then everybody's second, and so on."""
    found: list[list[int]] = []
    seen: dict[int | None, int] = {}
    for place in places:
        number = seen[users[place]] = seen.get(users[place], -1) + 1
        if number == len(found):
            found.append([])
        found[number].append(place)
    return found
