"""Answers that spread over similar key-terms."""

import pytest
import torch

from conbandit_torch import ConUCB, GraphConUCB, GraphMixin, HLinUCB, LinUCB, OneLevelMixin, Terms, play_round
from conbandit_torch.testing import check_policy
from tests.conftest import small_world


class OneLevelGraph(GraphMixin, OneLevelMixin, LinUCB):
    pass


@pytest.mark.parametrize("as_released", [False, True], ids=["weighted", "as released"])
def test_an_answer_is_learned_of_every_similar_key_term(as_released):
    world = small_world(users=2)
    size = world.catalogue.num_terms
    similarity = torch.eye(size).double()
    similarity[0, 1], similarity[0, 2], similarity[3, 4] = 0.5, 0.25, 1.0
    policy = GraphConUCB(world.catalogue, 2, similarity=similarity, as_released=as_released)
    policy.learn_answer(world.observe(), Terms(torch.tensor([0, 3])), torch.tensor([0.8, -0.6]).double())
    x = policy.catalogue.terms()
    for user, (asked, answer) in enumerate([(0, 0.8), (3, -0.6)]):
        M, b = torch.eye(x.shape[1]).double(), torch.zeros(x.shape[1]).double()
        for term in range(size):
            S = similarity[asked, term]
            if S > 0:
                M += (1 if as_released else S) * torch.outer(x[term], x[term])
                b += S * answer * x[term]
        torch.testing.assert_close(policy.term_model.gram[user], M)
        torch.testing.assert_close(policy.term_model.moment[user], b)


def test_without_similar_key_terms_it_is_conucb():
    world, same = small_world(), small_world()
    alone = torch.eye(world.catalogue.num_terms)
    graph = GraphConUCB(world.catalogue, world.num_users, similarity=alone)
    plain = ConUCB(same.catalogue, same.num_users)
    for _ in range(25):
        assert torch.equal(play_round(graph, world).arm, play_round(plain, same).arm)


@pytest.mark.parametrize("policy", [GraphConUCB, OneLevelGraph])
def test_it_keeps_the_contract(policy):
    check_policy(policy)


def test_what_makes_no_sense_is_refused(world):
    size = world.catalogue.num_terms
    with pytest.raises(ValueError, match=rf"similarity must be \[K, K\] = \[{size}, {size}\], got \[2, 2\]"):
        GraphConUCB(world.catalogue, world.num_users, similarity=torch.eye(2))
    with pytest.raises(ValueError, match="from 0 to 1, and 1 of a key-term with itself"):
        GraphConUCB(world.catalogue, world.num_users, similarity=torch.zeros(size, size))

    class Hidden(GraphMixin, OneLevelMixin, HLinUCB):
        pass

    with pytest.raises(ValueError, match="a representation that learns"):
        Hidden(world.catalogue, world.num_users)
