"""A base that adds an extra of its own to its scores: what was shown seldom is worth a look."""

import torch

from conbandit_torch import ConversationMixin, LinUCB, NoConversation, Synthetic, play_round
from conbandit_torch.testing import check_policy, decisions


class Novelty(LinUCB):
    """LinUCB with `novelty / sqrt(1 + times the user was shown the arm)` added to every score."""

    def __init__(self, catalogue, num_users, *, novelty: float = 0.3, alpha: float = 0.25, seed: int = 0):
        super().__init__(catalogue, num_users, alpha=alpha, seed=seed)
        self.novelty = novelty
        self.register_rows("times", torch.zeros(catalogue.num_arms).to(catalogue.arm_features))

    def extra(self, context, theta):
        return self.novelty / (1 + self.times[context.who].gather(1, context.arms)).sqrt()

    def learn(self, context, arm, reward):
        super().learn(context, arm, reward)
        shown = context.pick(arm).arms.squeeze(1)
        one = self.times.new_ones(len(shown))
        self.times.index_put_((context.rows, shown), one, accumulate=True)


class ConNovelty(ConversationMixin, Novelty):
    pass


def world(**changes):
    sizes = {"users": 20, "arms": 30, "terms": 8, "dim": 5, "pool": 10, "seed": 4}
    return Synthetic(**(sizes | changes))


def distinct_arms(policy, rounds=30, **arguments):
    here = world()
    made = policy(here.catalogue, here.num_users, **arguments)
    shown = torch.stack([play_round(made, here).arm_ids for _ in range(rounds)])  # [T, U]
    return sum(len(own.unique()) for own in shown.T) / here.num_users


def test_an_extra_is_added_to_every_score():
    plain, curious = distinct_arms(Novelty, novelty=0.0), distinct_arms(Novelty, novelty=3.0)
    assert curious > 1.2 * plain


def test_it_converses_by_one_line_and_keeps_its_extra():
    plain, curious = distinct_arms(ConNovelty, novelty=0.0), distinct_arms(ConNovelty, novelty=3.0)
    assert curious > 1.2 * plain


def test_without_questions_it_is_the_base_at_the_arm_levels_prior():
    one, other = world(), world()
    silent = ConNovelty(one.catalogue, 20, mix=0.4, term_alpha=0.0, schedule=NoConversation())
    base = Novelty(other.catalogue, 20)
    base.arm_model.set_prior(ridge=0.6, weight=0.4)
    assert decisions(silent, one) == decisions(base, other)


def test_it_keeps_the_contract():
    check_policy(Novelty)
    check_policy(ConNovelty, novelty=0.5, mix=0.7)
