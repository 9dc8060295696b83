# %% [markdown]
# # Hidden features
#
# Rewards depend on features that nobody measured. A policy that sees the others only cannot tell two items apart that
# differ in a hidden one. The h-policies learn a vector $v$ per item, shared by all users, beside $\theta$ per user.

# %%
import os
from functools import partial

from conbandit_torch import Experiment, HConUCB, HLinUCB, LinUCB, Synthetic

quick = bool(os.environ.get("CONBANDIT_QUICK"))  # small sizes
world = partial(Synthetic, users=100, arms=400, terms=60, dim=12, pool=20)

# %% [markdown]
# ## What is lost
#
# The same world, with all 12 features and with 3 of them hidden:

# %%
rounds, seeds = (60, range(2)) if quick else (300, range(3))
for hidden in (0, 3):
    seen = Experiment(
        environment=partial(world, hidden=hidden), policies={"LinUCB": LinUCB}, rounds=rounds, seeds=seeds
    )
    print(hidden, "hidden:", seen.run(f"lost{hidden}").final("LinUCB"))

# %% [markdown]
# ## Learn them back
#
# `HLinUCB` learns $v$ and $\theta$ in turn. Its sums keep every observation frozen at the values it was made with.
# `refit_every` rebuilds them from the log of all observations, with current values.

# %%
results = Experiment(
    environment=partial(world, hidden=3),
    policies={
        "LinUCB": LinUCB,
        "hLinUCB": partial(HLinUCB, hidden_dim=3),
        "hLinUCB + refit": partial(HLinUCB, hidden_dim=3, refit_every=20),
        "hConUCB + refit": partial(HConUCB, hidden_dim=3, refit_every=20),
    },
    rounds=rounds,
    seeds=seeds,
).run("hidden")
results

# %% [markdown]
# Hidden parameters can be learned in any rotation, so there is no error of theta to look at. Compare predictions:

# %%
results.plot("prediction_error")

# %% [markdown]
# With a refit the error goes on falling where the frozen sums stop. An answer about a key-term teaches $v$ of all its
# items at once; that step is ours, for the paper prints none. [Hidden features](../howto/hidden.md) has the details,
# [HLinUCB](../algorithms/hlinucb.md) and [HConUCB](../algorithms/hconucb.md) the rules.
