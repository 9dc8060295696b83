"""Users who share a model: an index from users to models is all it takes."""

import torch

from conbandit_torch import ConversationMixin, LinUCB, OneLevelMixin, Synthetic, play_round


class Clustered(LinUCB):
    """LinUCB with one regression per cluster of users."""

    def __init__(self, catalogue, num_users, *, clusters: int = 3, alpha: float = 0.25, seed: int = 0):
        super().__init__(catalogue, num_users, alpha=alpha, seed=seed)
        self.register_rows("cluster", torch.zeros((), dtype=torch.int64))
        self.cluster.copy_(torch.arange(num_users) % clusters)

    def models_of(self, who):
        return self.cluster[who]


class ConClustered(ConversationMixin, Clustered):
    pass


class OneLevelClustered(OneLevelMixin, Clustered):
    pass


class Alike(Synthetic):
    """Users of a cluster have the same taste."""

    def __init__(self, **sizes):
        super().__init__(**sizes)
        self.theta.copy_(self.theta[torch.arange(self.num_users) % 3])


def world():
    return Alike(users=31, arms=200, terms=20, dim=8, pool=15, seed=6)


def played(policy, rounds=60):
    here = world()
    made = policy(here.catalogue, here.num_users)
    return made, [play_round(made, here) for _ in range(rounds)]


def test_a_clusters_regression_is_the_sum_of_its_users():
    policy, rounds = played(Clustered, 40)
    x = torch.stack([r.context.pick(r.arm).arm_features.squeeze(1) for r in rounds])  # [T, U, D]
    y = torch.stack([r.outcome.feedback[0].reward for r in rounds])  # [T, U]
    for cluster in range(3):
        own = policy.cluster == cluster
        M = torch.eye(8).double() + torch.einsum("tud,tue->de", x[:, own], x[:, own])
        b = torch.einsum("tud,tu->d", x[:, own], y[:, own])
        torch.testing.assert_close(policy.arm_model.gram[cluster], M, rtol=1e-9, atol=1e-9)
        theta = policy.coefficients()[own]
        expected = torch.linalg.solve(M, b).expand_as(theta)
        torch.testing.assert_close(theta, expected, rtol=1e-9, atol=1e-9)


def test_users_who_share_learn_faster_and_converse_by_one_line():
    def regret(policy):
        return sum(float(r.outcome.regret.mean()) for r in played(policy)[1])

    alone = regret(LinUCB)
    for policy in (Clustered, ConClustered, OneLevelClustered):
        assert regret(policy) < 0.7 * alone
