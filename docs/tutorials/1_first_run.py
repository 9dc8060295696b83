# %% [markdown]
# # First run, and reading TensorBoard
#
# You run two policies on the same simulated users, look at the table, and read what a run leaves behind.

# %%
import os
from functools import partial

from conbandit_torch import ConUCB, Experiment, LinUCB, Synthetic

quick = bool(os.environ.get("CONBANDIT_QUICK"))  # small sizes

# %% [markdown]
# An experiment is one world, several policies, a number of rounds, and seeds. `Synthetic` draws users and items as
# the paper does. Each job (one policy with one seed) builds its own world and its own policy, so both are given as
# classes, or as `partial(Class, ...)`.

# %%
experiment = Experiment(
    environment=partial(Synthetic, users=100, arms=2000, terms=200, dim=30, pool=40),
    policies={"LinUCB": LinUCB, "ConUCB": partial(ConUCB, mix=0.5)},
    rounds=100 if quick else 500,
    seeds=range(3),
)
results = experiment.run("DIR")
results

# %% [markdown]
# Regret per user: what was lost by not showing the best candidate, summed over the rounds. The interval is over the
# seeds. Both policies met the same candidates and the same noise, so the difference is compared seed by seed, which
# separates policies whose intervals overlap.
#
# ## Every number
#
# `frame()` has a line per policy, seed and recorded round.

# %%
columns = ["policy", "seed", "round", "cumulative_regret", "theta_error", "questions"]
results.frame()[columns].tail(3)

# %% [markdown]
# ConUCB asks five questions whenever floor(log t) grows: early and often, then seldom.

# %%
one = results.frame().query("policy == 'ConUCB' and seed == 0")
questions = one.set_index("round")["questions"]
questions.plot(drawstyle="steps-post", ylabel="questions per user", logx=True, figsize=(6, 3))
None

# %% [markdown]
# The learned preferences come closer to the true ones:

# %%
results.plot("theta_error")

# %% [markdown]
# ## What a run leaves

# %%
from pathlib import Path

for path in sorted(Path("DIR").rglob("*")):
    if path.is_file() and not {"seed1", "seed2"} & set(path.parts):
        print(path)

# %% [markdown]
# `config.yaml` of a job runs again by itself. `policy.safetensors` is the whole state of the policy: `load_policy`
# gives it back, bit for bit.

# %%
from conbandit_torch import load_policy

policy = load_policy("DIR", "ConUCB", seed=0)
policy.coefficients()[0, :5]  # the first user's theta

# %% [markdown]
# ## TensorBoard
#
# `conbandit watch DIR` opens TensorBoard on the regret curves, also while a run goes on:
#
# ![TensorBoard, as conbandit watch opens it](../tensorboard.png)
#
# The same events, read from Python: every tag is a curve. The run `ConUCB` holds means over seeds, `ConUCB/seed0` one
# seed.

# %%
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator("DIR/ConUCB/seed0").Reload()
print("\n".join(events.Tags()["scalars"]))

# %% [markdown]
# Three curves to look at first:
#
# - `Regret/cumulative` should bend: a policy that has learned loses less and less.
# - `width/arm` and `width/term` fall as users become known. If they stay high, there is more exploration than needed:
#   lower `alpha`.
# - `questions/effective_terms` says over how many key-terms the questions are spread. If it is far below the number of
#   key-terms, the rule asks the same few again and again.

# %%
first, *_, last = events.Scalars("width/arm")
for one in (first, last):
    print(f"mean width of an arm in round {one.step}: {one.value:.3f}")
