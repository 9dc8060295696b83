"""LinUCB's rounds written out by hand: about the least that PyTorch, operation by operation, takes for them.

Nothing is checked, nobody is absent, no inverse is mended and only the regret is summed up; candidates and
noise lie ready.
What `LinUCB` in a `Simulation` takes beyond this is the framework's own.
"""

from __future__ import annotations

import time

import torch
from torch import Tensor
from torch.linalg import vecdot

from conbandit_torch import Synthetic

DRAWN = 10  # rounds drawn at once, off the clock


@torch.no_grad()
def play(environment: Synthetic, rounds: int, *, alpha: float, ridge: float) -> tuple[float, Tensor]:
    """Seconds that the rounds took, and the arms shown [rounds, U]."""
    table, truth = environment.catalogue.arm_features, environment.theta  # [N, D], [U, D]
    users, dim = truth.shape
    everyone = torch.arange(users)
    inverse = (torch.eye(dim) / ridge).to(table).repeat(users, 1, 1)  # [U, D, D] M^-1
    gram = (torch.eye(dim) * ridge).to(table).repeat(users, 1, 1)  # [U, D, D] M
    theta, moment = torch.zeros_like(truth), torch.zeros_like(truth)  # [U, D] M^-1 b, b
    total, shown, seconds = torch.zeros((), dtype=torch.float64), [], 0.0
    for first in range(0, rounds, DRAWN):
        numbers = [torch.full_like(everyone, t) for t in range(first, min(first + DRAWN, rounds))]
        drawn = [(environment.pools(everyone, t), environment.arm_noise(everyone, t)) for t in numbers]
        start = time.perf_counter()
        for arms, noise in drawn:  # [U, A], [U]
            x = table.index_select(0, arms.reshape(-1)).view(*arms.shape, dim)
            width = torch.bmm(x, inverse).mul_(x).sum(2).clamp_min_(0).sqrt_()
            scores = torch.bmm(theta.unsqueeze(1), x.mT).squeeze(1).add_(width, alpha=alpha)
            best = scores.max(1).indices.unsqueeze(1)
            means = torch.bmm(truth.unsqueeze(1), x.mT).squeeze(1)
            mean = means.gather(1, best).squeeze(1)
            total += (means.amax(1) - mean).sum()
            arm, reward = arms.gather(1, best).squeeze(1), mean + noise
            own = table.index_select(0, arm)
            direction = torch.bmm(own.unsqueeze(1), inverse).squeeze(1)
            gain = vecdot(own, direction).add_(1)
            surprise = (reward - vecdot(own, theta)).div_(gain).unsqueeze_(1)
            step = direction * gain.rsqrt_().unsqueeze_(1)
            inverse.addcmul_(step.unsqueeze(2), step.unsqueeze(1), value=-1)
            theta.addcmul_(direction, surprise)
            gram.addcmul_(own.unsqueeze(2), own.unsqueeze(1))
            moment.addcmul_(own, reward.unsqueeze(1))
            shown.append(arm)
        seconds += time.perf_counter() - start
    return seconds, torch.stack(shown)
