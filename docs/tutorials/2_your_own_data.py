# %% [markdown]
# # Your own data
#
# Two tables are all that is needed: who gave what feedback, and what the items are. Here they are made up, a small
# bookshop; put yours in their place.

# %%
import os
from pathlib import Path

import numpy as np
import pandas as pd

quick = bool(os.environ.get("CONBANDIT_QUICK"))  # small sizes
rng = np.random.default_rng(0)
people, books = (40, 120) if quick else (150, 400)
genres = ["crime", "classic", "science", "travel", "poetry", "history", "comic", "cooking"]

# %%
has = rng.random((books, len(genres))) < 0.25
has[np.arange(books), rng.integers(len(genres), size=books)] = True  # every book has one at least
taste = rng.normal(size=(people, len(genres)))

items = pd.DataFrame(
    {
        "item": [f"b{number}" for number in range(books)],
        "terms": ["|".join(np.array(genres)[row]) for row in has],
        "price": rng.uniform(5, 40, books).round(2),
    }
)
rows = []
for person in range(people):
    for book in rng.choice(books, size=40, replace=False):
        liking = taste[person] @ has[book] / has[book].sum()
        rows.append((f"p{person}", f"b{book}", int(np.clip(np.round(3 + liking + rng.normal()), 1, 5))))
feedback = pd.DataFrame(rows, columns=["user", "item", "value"])

Path("shop").mkdir(exist_ok=True)
items.to_csv("shop/items.csv", index=False)
feedback.to_csv("shop/feedback.csv", index=False)
items.head(3)

# %% [markdown]
# ## Inspect
#
# `conbandit data inspect` recognises the format and counts. It also says what looks wrong. Stars of 4 and 5 count as
# liked here.

# %%
# !conbandit data inspect shop --positive_from 4 --min_user_feedback 10

# %% [markdown]
# ## Play it
#
# `Ratings` fits the preferences of every user to all of their feedback, as the paper does, and plays rounds with real
# items. `Table` reads the two files; the result of the preparation is kept on disk under a digest of their content.

# %%
from functools import partial

from conbandit_torch import ConUCB, Experiment, LinUCB, Ratings, Table

shop = Table("shop", positive_from=4, min_user_feedback=10)
experiment = Experiment(
    environment=partial(Ratings, data=shop, dim=8, pool=20),
    policies={"LinUCB": LinUCB, "ConUCB": ConUCB},
    rounds=60 if quick else 300,
    seeds=range(3),
)
results = experiment.run("shop_results")
results

# %% [markdown]
# The same as a config, which `conbandit run` takes:

# %%
experiment.to_yaml("shop.yaml")
print("".join(Path("shop.yaml").read_text().partition("policies:")[:1]))

# %% [markdown]
# ## What was learned
#
# A question is about a key-term, here a genre. Which ones were asked first?

# %%
from collections import Counter

from conbandit_torch import play_round

world = Ratings(shop, dim=8, pool=20, seed=0)
policy = ConUCB(world.catalogue, world.num_users)
asked = Counter()
for _ in range(10):
    for question, _ in play_round(policy, world).dialogue:
        asked.update(world.catalogue.term_names[term] for term in question.about.ids().flatten().tolist())
pd.Series(dict(asked.most_common())).plot.barh(figsize=(6, 3), xlabel="questions in ten rounds")
None

# %% [markdown]
# Next: a log with times is not played as a world but [replayed](replay_and_its_bias.md). All options of the two tables
# stand in [Real data](../howto/data.md).
