# %% [markdown]
# # Talk to it
#
# Until now users were simulated. `Recommender` serves people: they have names, appear when they appear, and answer
# when they like. Any policy can stand behind it.

# %%
from conbandit_torch import ConUCB, Recommender, Tastes, WhileUncertain

films = Tastes(items="films", users=1)  # comes with the package
catalogue = films.catalogue
print(catalogue.num_arms, "films,", catalogue.num_terms, "key-terms:")
print(", ".join(catalogue.term_names[:7]), "...")

# %%
policy = ConUCB(
    catalogue,
    1,
    term_ridge=0.3,
    schedule=WhileUncertain(threshold=0.3, questions=15, per_round=1),
)
recommender = Recommender(policy, store="people.db")

# %% [markdown]
# Ann likes suspense and has no time for love stories. At a terminal these would be her own words
# (`conbandit chat`); here a function answers for her.

# %%
import torch

LIKED = {"thrillers", "crime stories", "mysteries", "heists", "Film-Noir", "spy stories"}
DISLIKED = {"love stories", "musicals", "family stories", "horror"}


def ann_says(terms):
    """How much Ann likes something, from its key-terms: 1, 0, or in between."""
    likes, dislikes = len(LIKED & set(terms)), len(DISLIKED & set(terms))
    return (0.4 + likes) / (1 + likes + dislikes)


def terms_of(film):
    """The key-terms of a film."""
    arm = torch.tensor([recommender.items.index(film)])
    return [recommender.terms[term] for term in catalogue.terms_of(arm).target.tolist()]


# %%
unseen = list(recommender.items)
for _ in range(8):
    question = recommender.ask("ann", unseen)
    if question is not None:
        value = ann_says(question.names)
        recommender.answer("ann", question, value)  # None would be: she does not know
        print(f"Do you like {question.names[0]}? {value:.1f}")
    shown = recommender.recommend("ann", unseen)
    unseen.remove(shown.item)
    stars = ann_says(terms_of(shown.item))
    recommender.feedback(shown, stars)
    print(f"    Watch {shown.item}! {stars:.1f}")

# %% [markdown]
# ## Why?
#
# Every answer and every reward has a share in a score, and the shares sum up to the estimate.

# %%
shown = recommender.recommend("ann", unseen)
why = recommender.explain("ann", shown.item)
print(f"{shown.item}: {why.estimate:.2f} expected, width {why.width:.2f}")
for reason in why.reasons:
    print(f"{reason.effect:+.3f}  {reason.kind}: {', '.join(reason.names)} {reason.value:.1f}")

# %%
profile = recommender.profile("ann")
print("liked:   ", ", ".join(belief.term for belief in profile.liked(4)))

# %% [markdown]
# ## Nothing is lost
#
# Every call returns when what it did is on the disk. Opened again, the store gives the same state:

# %%
before = recommender.policy.coefficients().clone()
recommender.close()
recommender = Recommender(policy, store="people.db")
print("the same theta:", bool((recommender.policy.coefficients() == before).all()))

# %% [markdown]
# `forget` deletes a person's events and name; what remains is the state of the others' events.

# %%
recommender.forget("ann")
print(recommender.users)
recommender.close()
