# %% [markdown]
# # Replay and its bias
#
# A log tells what came of the items that were served, and nothing of the others. Replay (Li et al. 2011) counts only
# the events in which a policy picks what was served. When is that the truth? Here the log is generated, so the truth is
# known.

# %%
import os

import pandas as pd

from conbandit_torch import Callback, ConUCB, GeneratedEvents, LinUCB, Random, Simulation

quick = bool(os.environ.get("CONBANDIT_QUICK"))  # small sizes
sizes = {"users": 100, "arms": 300, "terms": 50, "dim": 10, "pool": 5, "events": 120 if quick else 1000}

# %% [markdown]
# `GeneratedEvents` serves items uniformly at random, unless its argument `skew` says otherwise. The callback adds up
# what replay counts, and what the policy's choices were truly worth.


# %%
class Ledger(Callback):
    """What replay counts, and what is true."""

    def __init__(self):
        self.counted, self.clicks, self.shown, self.worth = 0, 0.0, 0, 0.0

    def on_round(self, simulation, played):
        clicks = played.outcome.feedback[0].reward
        self.counted, self.clicks = self.counted + len(clicks), self.clicks + float(clicks.sum())
        true = simulation.environment.expected(played.context).gather(1, played.arm[:, None])
        self.shown, self.worth = self.shown + len(true), self.worth + float(true.sum())


def replay(policy):
    """A line of the table: what a policy earns in the log, and in truth."""
    world = GeneratedEvents(**sizes)
    ledger = Ledger()
    bandit = policy(world.catalogue, world.num_users)
    Simulation(bandit, world, rounds=world.length, log_every=world.length, callbacks=[ledger]).run()
    replayed, true = ledger.clicks / ledger.counted, ledger.worth / ledger.shown
    error = (true * (1 - true) / ledger.counted) ** 0.5
    return {
        "policy": policy.__name__,
        "counted": ledger.counted,
        "replayed": round(replayed, 4),
        "true": round(true, 4),
        "standard errors off": round((replayed - true) / error, 1),
    }


pd.DataFrame([replay(policy) for policy in (Random, LinUCB, ConUCB)])

# %% [markdown]
# Items served uniformly: replay is unbiased, for policies that learn too. What it gets wrong is noise, about one
# standard error.
#
# ## Items that were not served uniformly
#
# A log of three items. Its policy showed the first one most; mine would show the third. Replay counts the events in
# which both agree, and so counts the first item far more often than my policy shows it.

# %%
import numpy as np

from conbandit_torch import LoggedDecisions, off_policy

rng = np.random.default_rng(0)
events = 20_000
likes = np.array([0.1, 0.2, 0.5])  # how often each of three items is clicked
served = np.array([0.6, 0.3, 0.1])  # how often the log's policy showed each
mine = np.array([0.1, 0.1, 0.8])  # how often mine would
shown = rng.choice(3, size=events, p=served)
log = LoggedDecisions(
    reward=(rng.random(events) < likes[shown]).astype(float),
    propensity=served[shown],
    probability=mine[shown],
    user=rng.integers(0, 500, events),
)
agrees = rng.random(events) < mine[shown]  # my policy picks what was served
print(f"true value: {mine @ likes:.3f}")
print(f"replay:     {log.reward[agrees].mean():.3f}")
print(off_policy(log))

# %% [markdown]
# Replay is far off, and more events do not help: the error is not noise. Weighting every event by how unlikely it was
# repairs it. `conbandit report` does so wherever a log says its propensities; `off_policy` does it for decisions made
# anywhere.
#
# Read the advice, not only the numbers: where the effective sample is small, an unbiased estimate is no good either.
# [Replay a log](../howto/replay.md) says what `conbandit report` shows of real logs.
