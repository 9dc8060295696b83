"""How one person answers one question, line by line: plain Python and NumPy, no cleverness.

A person is a chain such as `("graded", 5, -1, 1, ("best share", 0.2))`. `draw(kind, purpose, number)` gives
the user's random number of that purpose; `number` counts the user's questions, from 0.
"""

from __future__ import annotations

import math

import numpy as np


def felt(person, shares, means, binary, draw):
    """What is felt about a key-term whose items have such shares and expected rewards."""
    kind, *rest = person
    if kind == "item mean":
        return float(np.dot(shares, means))
    if kind in ("best share", "best item"):
        number = math.ceil(round(rest[0] * len(means), 6)) if kind == "best share" else 1
        best = sorted(range(len(means)), key=lambda a: -means[a])[:number]
        return sum(shares[a] * means[a] for a in best) / sum(shares[a] for a in best)
    value = felt(rest[-1], shares, means, binary, draw)
    if kind == "biased":
        value += rest[0] + rest[1] * draw("normal", "offset", 0)
        if binary:
            value = min(max(value, 0.0), 1.0)
    return value


def said(person, value, noise, number, binary, draw, *, toss=True):
    """The answer of a person who feels `value`; None: "don't know"."""
    kind, *rest = person
    if kind in ("item mean", "best share", "best item"):
        if not binary:
            return value + noise
        return float(noise < value) if toss else value
    inner = rest[-1]
    answer = said(inner, value, noise, number, binary, draw, toss=toss and kind != "graded")
    if answer is None or kind == "biased":
        return answer
    if kind == "graded":
        levels, low, high, _ = rest
        grades = [low + (high - low) * level / (levels - 1) for level in range(levels)]
        return min(grades, key=lambda grade: abs(grade - answer))
    if kind == "yes or no":
        low, high, _ = rest
        return high if answer > (low + high) / 2 else low
    if kind == "don't know":
        most, width, middle, _ = rest
        chance = most * max(0.0, 1 - abs(value - middle) / width)
        return None if draw("uniform", "don't know", number) < chance else answer
    if kind == "corrupted":
        first, middle, _ = rest
        return 2 * middle - answer if number < first else answer
    raise AssertionError(kind)
