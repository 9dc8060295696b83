"""Simulated people who like some key-terms of a catalogue."""

import pytest
import torch

from conbandit_torch import Tastes


def test_a_person_likes_items_by_their_key_terms():
    world = Tastes(users=40, liked=3, seed=5)
    assert ((world.theta > 0).sum(1) == 3).all()
    assert (world.theta[:, world.catalogue.num_terms :] == 0).all()  # no decade is liked
    context = world.observe()
    features = world.catalogue.arm_features[context.arms]  # [U, A, D]
    liked = (features * world.theta[:, None]).sum(2).clamp(0, 1)
    torch.testing.assert_close(world.expected(context), liked)
    assert 0.05 < float(liked.mean()) < 0.3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [({"liked": 0}, "liked must be from 1 to the"), ({"users": 0}, "users"), ({"strength": 0.0}, "strength")],
)
def test_bad_arguments_are_refused(arguments, said):
    with pytest.raises(ValueError, match=said):
        Tastes(**arguments)
