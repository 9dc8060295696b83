"""Questions that compare two key-terms, learned as the winner, as both, or as their difference."""

import pytest
import torch

from conbandit_torch import (
    Comparison,
    ConversationMixin,
    HLinUCB,
    LinUCB,
    Synthetic,
    Terms,
    play_round,
)
from conbandit_torch.testing import check_policy


class Comparing(ConversationMixin):
    """Asks which of two key-terms is liked better: the best by Eq. 8, and the best of the others."""

    learns_as = "difference"

    def question(self, asking):
        first, second = self.select.scores(asking).topk(2, dim=1).indices.T  # [Q] each, of [Q, K]
        return Comparison(Terms(first), Terms(second))

    def learn_answer(self, context, about, value):
        first, second = about.first.of, about.second.of
        winner = torch.where(value > 0.5, first, second)
        loser = torch.where(value > 0.5, second, first)
        if self.learns_as == "difference":
            super().learn_answer(context, Comparison(Terms(winner), Terms(loser)), torch.ones_like(value))
            return
        super().learn_answer(context, Terms(winner), torch.ones_like(value))
        if self.learns_as == "both":
            super().learn_answer(context, Terms(loser), torch.zeros_like(value))


KINDS = ("winner", "both", "difference")
RELATIVE = {kind: type(f"Relative_{kind}", (Comparing, LinUCB), {"learns_as": kind}) for kind in KINDS}
HIDDEN = {kind: type(f"Hidden_{kind}", (Comparing, HLinUCB), {"learns_as": kind}) for kind in KINDS}


def played(policy, rounds=60, **arguments):
    here = Synthetic(users=30, arms=200, terms=15, dim=6, pool=15, hidden=1, seed=5)
    made = policy(here.catalogue, here.num_users, **arguments)
    return made, [play_round(made, here) for _ in range(rounds)]


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_compared_is_what_is_learned(kind):
    policy, rounds = played(RELATIVE[kind], 3)  # five questions in the third
    dialogue = rounds[-1].dialogue
    assert [set(answer.value.tolist()) for _, answer in dialogue] == 5 * [{0.0, 1.0}]
    M, b = torch.eye(5).double().repeat(30, 1, 1), torch.zeros(30, 5).double()
    terms = policy.catalogue.terms()
    for question, answer in dialogue:
        first, second = (terms[side.of] for side in question.about.sides())
        won = (answer.value > 0.5)[:, None]
        winner, loser = torch.where(won, first, second), torch.where(won, second, first)
        x = winner - loser if kind == "difference" else winner
        M, b = M + x[:, :, None] * x[:, None], b + x
        if kind == "both":
            M = M + loser[:, :, None] * loser[:, None]
    torch.testing.assert_close(policy.term_model.gram, M, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(policy.term_model.moment, b, rtol=1e-9, atol=1e-9)


def test_hidden_features_learn_from_comparisons_too():
    for kind in KINDS:
        policy, rounds = played(HIDDEN[kind], refit_every=20)
        assert policy.predict(rounds[0].context).isfinite().all()


@pytest.mark.parametrize("kind", KINDS)
def test_it_keeps_the_contract(kind):
    check_policy(RELATIVE[kind])
    check_policy(HIDDEN[kind], refit_every=5)
