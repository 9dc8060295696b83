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
print(", ".join(catalogue.term_names[:12]), "...")

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
    """How much Ann likes something, from its key-terms; None: she does not know."""
    likes, dislikes = len(LIKED & set(terms)), len(DISLIKED & set(terms))
    return likes / (likes + dislikes) if likes + dislikes else None


def terms_of(film):
    """The key-terms of a film."""
    arm = torch.tensor([recommender.items.index(film)])
    return [recommender.terms[term] for term in catalogue.terms_of(arm).target.tolist()]


# %%
for _ in range(8):
    question = recommender.ask("ann")
    if question is not None:
        value = ann_says(question.names)
        recommender.answer("ann", question, value)
        says = "don't know" if value is None else f"{value:.1f}"
        print(f"Do you like {question.names[0]}? {says}")
    shown = recommender.recommend("ann")
    liked = ann_says(terms_of(shown.item))
    recommender.feedback(shown, 0.3 if liked is None else liked)
    print(f"    Watch {shown.item}! {'Hm.' if not liked else 'I liked it.'}")

# %% [markdown]
# ## Why?
#
# Every answer and every reward has a share in a score, and the shares sum up to the estimate.

# %%
shown = recommender.recommend("ann")
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
