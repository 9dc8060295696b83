# %% [markdown]
# # Write a bandit and let it converse
#
# A bandit of your own is a class in your own file. This one is LinUCB that gives arms a user has not seen yet the
# benefit of the doubt. Then one line lets it ask questions.

# %%
import os

import torch

from conbandit_torch import LinUCB

quick = bool(os.environ.get("CONBANDIT_QUICK"))  # small sizes


class Novelty(LinUCB):
    """LinUCB that adds something to the score of arms that the user has not seen."""

    def __init__(self, catalogue, num_users, *, novelty: float = 0.05, alpha: float = 0.2, seed: int = 0):
        super().__init__(catalogue, num_users, alpha=alpha, seed=seed)
        self.novelty = novelty
        nothing = torch.zeros(catalogue.num_arms).to(catalogue.arm_features)
        self.register_rows("seen", nothing)  # [U, N]

    def extra(self, context, theta):  # [B, A]: added to every candidate's score
        return self.novelty * (1 - self.seen[context.who].gather(1, context.arms))

    def learn(self, context, arm, reward):
        super().learn(context, arm, reward)
        self.seen[context.rows, context.pick(arm).arms.squeeze(1)] = 1


# %% [markdown]
# Three things to note:
#
# - All users are stepped at once: `B` rows of a round, `A` candidates per row. There is no loop over users.
# - State with a row per user is declared with `register_rows`. So it is saved, moved to the device, grown for new
#   users, and split over processes.
# - `extra` is one of the [hooks](../extending.md#a-bandit) of a linear bandit. Estimates and widths are inherited.
#
# ## Does it keep the contract?
#
# `check_policy` plays small worlds and fails with the promise that was broken.

# %%
from conbandit_torch.testing import check_policy

for promise in check_policy(Novelty):
    print("kept:", promise)

# %% [markdown]
# A class that breaks one is told so. This one keeps its memory where no checkpoint finds it:

# %%
from conbandit_torch.testing import ContractError


class Forgetful(LinUCB):
    """Keeps what it learns in a plain attribute."""

    def __init__(self, catalogue, num_users, *, seed: int = 0):
        super().__init__(catalogue, num_users, seed=seed)
        nothing = torch.zeros(num_users, catalogue.num_arms)
        self.times = nothing.to(catalogue.arm_features)

    def extra(self, context, theta):
        return -0.1 * self.times[context.who].gather(1, context.arms)

    def learn(self, context, arm, reward):
        super().learn(context, arm, reward)
        self.times[context.rows, context.pick(arm).arms.squeeze(1)] += 1


try:
    check_policy(Forgetful)
except ContractError as error:
    print(error)

# %% [markdown]
# ## Let it converse
#
# One line. The mixin inserts a level for answers into the chain of regressions that a score rests on (Eq. 6 and 7 of
# the paper), and asks by Eq. 8.

# %%
from conbandit_torch import ConversationMixin


class ConNovelty(ConversationMixin, Novelty):
    """Novelty that also asks about key-terms."""


check_policy(ConNovelty, mix=0.5)
None

# %%
from functools import partial

from conbandit_torch import ConUCB, Experiment, Synthetic

experiment = Experiment(
    environment=partial(Synthetic, users=60, arms=1000, terms=100, dim=20, pool=30),
    policies={
        "LinUCB": LinUCB,
        "Novelty": Novelty,
        "ConUCB": ConUCB,
        "ConNovelty": ConNovelty,
    },
    rounds=60 if quick else 400,
    seeds=range(2 if quick else 5),
)
results = experiment.run("mine")
results

# %% [markdown]
# Novelty changes little here: in this world rewards do not depend on what was seen before. The conversation helps both.
# That is a result too: now change the world.
#
# From YAML the class is named by its file: `class_path: my_file.ConNovelty`. [Extend](../extending.md) has a whole file
# each for a rule of what to ask, a schedule of when, an environment and a callback.
