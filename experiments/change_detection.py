"""How soon policies notice that a user has changed, and how often they are wrong.

    python -m experiments.change_detection

By setting and policy: alarms per 10,000 rounds where nobody changes; and, where everybody becomes like
somebody else, the share of users whose change is found, after how many rounds, and the regret before and
after it.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import torch

from conbandit_torch import AbruptChange, AskAgainConLinUCB, AskAgainConUCB, RestartingLinUCB, Synthetic
from conbandit_torch.bandits.restarts import RestartMixin
from conbandit_torch.loop import play_round

SMALL = {"arms": 200, "terms": 20, "dim": 6, "pool": 12, "normalise": True}
SETTINGS: dict[str, dict[str, Any]] = {
    "the paper's": {},
    "features and theta of length 1": {"normalise": True},
    "noise 1": {"noise": 1.0},
    "clicks, 6 features": {"feedback": "binary", **SMALL},
}
POLICIES: dict[str, tuple[type[RestartMixin], dict[str, float]]] = {
    "RestartingLinUCB": (RestartingLinUCB, {"alpha": 0.25}),
    "AskAgainConUCB": (AskAgainConUCB, {}),
    "AskAgainConLinUCB": (AskAgainConLinUCB, {"ridge": 0.1, "alpha": 0.1}),
}


def alarms(kind: type[RestartMixin], arguments: dict[str, Any], world: Synthetic, rounds: int) -> float:
    """Alarms per 10,000 rounds of a user."""
    policy = kind(world.catalogue, world.num_users, **arguments)
    for _ in range(rounds):
        play_round(policy, world)
    return 1e4 * float(policy.restarts.double().mean()) / rounds


def found(
    kind: type[RestartMixin], arguments: dict[str, Any], world: Synthetic, at: int
) -> tuple[float, float, float, float]:
    """Share of users whose change is found, mean delay in rounds, regret per user before and after."""
    policy = kind(world.catalogue, world.num_users, **arguments)
    lost = torch.zeros(2)
    delay = torch.full((world.num_users,), -1)
    for number in range(2 * at):
        regret = play_round(policy, world).outcome.regret
        assert regret is not None
        lost[int(number >= at)] += float(regret.mean())
        new = (policy.start >= at) & (delay < 0)
        delay[new] = number - at
    noticed = delay >= 0
    mean = float(delay[noticed].double().mean())
    return float(noticed.double().mean()), mean, float(lost[0]), float(lost[1])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--users", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--at", type=int, default=300)
    given = parser.parse_args()
    torch.set_num_threads(1)
    sys.stdout.write(
        "| setting | policy | alarms per 10,000 rounds, nobody changes | found | after rounds "
        "| regret before | regret after |\n|---|---|--:|--:|--:|--:|--:|\n"
    )
    for setting, how in SETTINGS.items():
        for name, (kind, arguments) in POLICIES.items():
            still = Synthetic(given.users, **how).to(torch.float32)
            changing = Synthetic(given.users, **how, drift=AbruptChange(given.at)).to(torch.float32)
            wrong = alarms(kind, arguments, still, given.rounds)
            share, delay, before, after = found(kind, arguments, changing, given.at)
            numbers = f"{wrong:.2f} | {share:.0%} | {delay:.1f} | {before:.1f} | {after:.1f}"
            sys.stdout.write(f"| {setting} | {name} | {numbers} |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
