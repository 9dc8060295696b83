"""A network trained by autograd is a representation, on which any linear bandit stands and converses."""

import torch

from conbandit_torch import ConUCB, LinUCB, Representation, Stream, Synthetic, play_round
from conbandit_torch.testing import check_policy


class Network(Representation):
    """(x, two layers of relu), trained on the log every 50 rounds with the users' theta held."""

    learns = True

    def __init__(self, width: int = 16, steps: int = 100, refit_every: int = 50):
        super().__init__()
        self.width, self.steps, self.refit_every = width, steps, refit_every

    def build(self, seed):
        like, D = self.catalogue.arm_features, self.catalogue.dim
        self.dim = D + self.width
        first = Stream(seed, "first").normal(torch.arange(D), 0, self.width) / D**0.5
        second = Stream(seed, "second").normal(torch.arange(self.width), 0, self.width) / self.width**0.5
        self.first = torch.nn.Parameter(first.to(like))
        self.second = torch.nn.Parameter(second.to(like))

    def encode(self, x, arms):
        return torch.cat((x, ((x @ self.first).relu() @ self.second).relu() / 4), dim=-1)

    @torch.enable_grad()
    def refit(self, refit):
        rewards = refit.observations[0]
        theta, x = rewards.theta(rewards.users), self.catalogue.arms(rewards.about.of)
        optimiser = torch.optim.Adam(self.parameters(), lr=0.01)
        for _ in range(self.steps):
            optimiser.zero_grad()
            error = (self.encode(x, rewards.about.of) * theta).sum(1) - rewards.values
            error.square().mean().backward()
            optimiser.step()
        self.changed()
        refit.rebuild()


class Curved(Synthetic):
    """Rewards are linear in cosines of the features, which policies do not know."""

    def arm_mean(self, context):
        x = context.arm_features
        waves = Stream(1, "waves").normal(torch.arange(x.shape[2]), 0, x.shape[2]).to(x)
        return (torch.cos(2 * x @ waves) * self.theta[context.who][:, None]).sum(-1)


def regret(policy, rounds=300, **arguments):
    world = Curved(users=20, arms=200, terms=20, dim=6, pool=20, noise=0.05, seed=1)
    made = policy(world.catalogue, world.num_users, **arguments)
    with torch.no_grad():
        return sum(float(play_round(made, world).outcome.regret.mean()) for _ in range(rounds))


def test_a_bandit_on_a_network_learns_what_a_linear_one_cannot():
    assert regret(LinUCB, representation=Network()) < 0.8 * regret(LinUCB)


def test_it_converses_by_one_line():
    assert regret(ConUCB, representation=Network()) < 0.8 * regret(ConUCB)


def test_it_keeps_the_contract():
    check_policy(lambda *args, seed: LinUCB(*args, representation=Network(steps=3, refit_every=5), seed=seed))
    check_policy(lambda *args, seed: ConUCB(*args, representation=Network(steps=3, refit_every=5), seed=seed))
