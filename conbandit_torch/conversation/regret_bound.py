"""The regret bound of Theorem 4."""

from __future__ import annotations

import math

from conbandit_torch.models.confidence import positive, probability


def regret_bound(
    rounds: int,
    dim: int,
    *,
    questions: float,
    mix: float,
    term_ridge: float,
    norm_bound: float,
    sigma: float = 0.05,
) -> float:
    """The bound on ConUCB's regret after `rounds` rounds, Theorem 4.

    It holds for mix in (0, 0.5] and term_ridge >= 2 (1-mix) / (mix (1 - sqrt(mix))^2), and is vacuous
    at the paper's sizes.

    Args:
        rounds: T.
        dim: d.
        questions: b(T).
        mix: lam.
        term_ridge: lam~, here only checked against the theorem's condition.
        norm_bound: S, a bound on `|theta_*|`.
        sigma: probability with which the bound may fail.
    """
    if not 0 < mix <= 0.5:
        raise ValueError(f"Theorem 4 needs mix in (0, 0.5], got {mix}")
    least = 2 * (1 - mix) / (mix * (1 - math.sqrt(mix)) ** 2)
    if not least <= term_ridge < math.inf:
        raise ValueError(f"Theorem 4 needs term_ridge >= {least:.4g} at mix {mix}, got {term_ridge}")
    if rounds < 1 or dim < 1 or questions <= 0:
        raise ValueError("Theorem 4 needs rounds >= 1, dim >= 1 and questions > 0")
    probability(sigma)
    positive("norm_bound", norm_bound)
    root = math.sqrt(mix)
    growth = 1 + mix * rounds / ((1 - mix) * dim)
    arm_level = root * math.sqrt(dim * math.log(growth / sigma))
    bias = 2 * math.sqrt((1 - mix) / mix) * norm_bound
    term_level = (1 - root) * math.sqrt(dim * math.log(6) + math.log(2 * questions / sigma))
    return 2 * (arm_level + bias + term_level) * math.sqrt(rounds * dim * math.log(growth))
