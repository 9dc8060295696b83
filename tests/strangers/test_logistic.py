"""A logistic base: a Newton step per observation, for rewards and, conversing by one line, for answers."""

import torch

from conbandit_torch import Answer, Arms, ConversationMixin, LinUCB, OneLevelMixin, Synthetic, play_round
from conbandit_torch.testing import CHECKS


class Logistic(LinUCB):
    """Clicks with probability sigmoid(x^T theta); the score is LinUCB's, as the sigmoid is monotone."""

    def learn(self, context, arm, reward):
        arms = context.pick(arm).arms.squeeze(1)
        self.newton(context, Arms(arms), reward, self.thetas(context.who)[0], self.arm_model)

    def learn_answer(self, context, about, value):
        level = self.answer_level
        self.newton(context, about, value, self.thetas(context.who)[level], self.levels()[level].model)

    def newton(self, context, about, value, theta, model):
        """Regress on the gradient of the mean over weights p on arms: m = sum p mu, g = sum p mu' x."""
        edges = about.edges(self.catalogue)
        x = self.representation.arms(edges.target)  # [E, D]
        mu = torch.sigmoid((x * theta[edges.owner]).sum(1))  # [E]
        steep = (mu * (1 - mu)).clamp_min(0.01)
        mean = value.new_zeros(len(value)).index_add_(0, edges.owner, edges.weight * mu)
        gradient = torch.zeros_like(theta).index_add_(0, edges.owner, (edges.weight * steep)[:, None] * x)
        target = value - mean + (gradient * theta).sum(1)
        certainty = 1 / (mean * (1 - mean)).clamp_min(0.01)
        model.update(self.models_of(context.who), gradient, target, weight=certainty)

    def predict(self, context):
        return torch.sigmoid(super().predict(context))


class ConLogistic(ConversationMixin, Logistic):
    pass


class OneLevelLogistic(OneLevelMixin, Logistic):
    pass


class Clicks(Synthetic):
    """Users who click with probability sigmoid(3 x^T theta), and can tell how often they would."""

    def arm_mean(self, context):
        logits = (context.arm_features * self.theta[context.who][:, None]).sum(2)
        return torch.sigmoid(3 * logits)

    def answer(self, context, question):
        about, context = question.about, context.take(question.rows)
        edges = about.edges(self.catalogue)
        logits = (self.catalogue.arms(edges.target) * self.theta[context.who][edges.owner]).sum(1)
        total = logits.new_zeros(len(about))
        return Answer(total.index_add_(0, edges.owner, edges.weight * torch.sigmoid(3 * logits)))


def regret(policy, rounds=300, **arguments):
    world = Clicks(users=40, arms=300, terms=30, dim=8, pool=20, feedback="binary", seed=2)
    made = policy(world.catalogue, world.num_users, **arguments)
    return sum(float(play_round(made, world).outcome.regret.mean()) for _ in range(rounds))


def test_clicks_are_learned_faster_than_by_a_linear_model_and_faster_still_by_asking():
    linear, plain = regret(LinUCB, alpha=0.25), regret(Logistic, alpha=0.25)
    assert plain < 0.8 * linear
    assert regret(ConLogistic, alpha=0.25) < plain
    assert regret(OneLevelLogistic, alpha=0.25) < plain


def test_it_keeps_the_contract_but_for_the_order_of_rewards():
    for check in CHECKS:  # a Newton step depends on where it starts
        if check.__name__ != "check_the_order_of_rewards_does_not_matter":
            check(Logistic)
            check(ConLogistic)
