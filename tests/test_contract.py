"""Every exported policy, and a base bandit made here, keeps the contract."""

import inspect

import pytest
import torch

import conbandit_torch
from conbandit_torch import (
    ArmConversationMixin,
    Bandit,
    CoFineUCB,
    ConThompson,
    ConversationMixin,
    EpsilonGreedy,
    Greedy,
    LinearBandit,
    LinThompson,
    LinUCB,
    NoConversation,
    Random,
    play_round,
)
from tests.conftest import ALGEBRA, small_world
from tests.contract import CHECKS, decisions


class Fourier(LinearBandit):
    """A stranger's base bandit: cosines of the features, shrunk towards a centre of its own."""

    def __init__(self, catalogue, num_users, *, ridge=1.0, weight=1.0, seed=0):
        super().__init__(catalogue, num_users, alpha=0.3, ridge=ridge, weight=weight, dim=4, seed=seed)
        self.register_buffer("directions", torch.linspace(-1, 1, 4 * catalogue.dim).view(-1, 4).double())

    def features(self, context):
        return (context.arm_features @ self.directions).cos()

    def term_features(self, terms=slice(None)):
        return (self.catalogue.term_features[terms] @ self.directions).cos()

    def centre(self, who):
        return torch.full_like(self.arm_model.moment[who], 0.1)


class Counting(Bandit):
    """A stranger's bandit without any regression: shows what was shown least."""

    def __init__(self, catalogue, num_users, *, seed=0):
        super().__init__(catalogue, num_users, seed=seed)
        self.register_buffer("shown", torch.zeros(num_users, catalogue.num_arms))

    def scores(self, context):
        return -self.shown[context.who].gather(1, context.arms)

    def learn(self, context, arm, reward):
        self.shown[context.users, context.arms.gather(1, arm[:, None]).squeeze(1)] += 1


class ConFourier(ConversationMixin, Fourier):
    pass


class ArmFourier(ArmConversationMixin, Fourier):
    pass


class ArmCounting(ArmConversationMixin, Counting):
    pass


EXPORTED = [
    value
    for name in conbandit_torch.__all__
    if inspect.isclass(value := getattr(conbandit_torch, name))
    and issubclass(value, Bandit)
    and value not in (Bandit, ArmConversationMixin)
]
STRANGERS = [Fourier, Counting, ConFourier, ArmFourier, ArmCounting]


def test_the_contract_runs_on_all_published_policies():
    names = {policy.__name__ for policy in EXPORTED}
    assert names >= {"Random", "LinUCB", "ArmCon", "ConUCB", "VarRS", "VarMRC", "VarLCR"}
    assert names >= {"HLinUCB", "HArmCon", "HConUCB", "HVarRS", "HVarMRC", "HVarLCR"}
    assert names >= {"Greedy", "EpsilonGreedy", "LinThompson", "ConThompson", "CoFineUCB"}
    assert names >= {"ConLinUCB", "ConLinUCBMCR", "ConLinUCBBS", "ConLinUCBUCB", "HConLinUCB"}


EXPLORE_BY_CHANCE = {Random: {}, EpsilonGreedy: {"epsilon": 1.0}, LinThompson: {}, ConThompson: {}}
WIDTHS = {CoFineUCB: {"alpha": 1.0, "coarse_alpha": 0.0}}  # all others' only width at the start is alpha's


@pytest.mark.parametrize("policy", EXPORTED + STRANGERS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__.removeprefix("check_"))
def test_contract(check, policy):
    check(policy)


@pytest.mark.parametrize("policy", [p for p in EXPORTED if p is not Greedy], ids=lambda c: c.__name__)
def test_a_fresh_policy_explores(policy):
    """Before any feedback, the first arm shown is not the first: with a width, the one of longest features."""
    world = small_world(users=20, pool=30)
    arguments = EXPLORE_BY_CHANCE.get(policy, WIDTHS.get(policy, {"alpha": 1.0}))
    bandit = policy(world.catalogue, world.num_users, **arguments)
    context = world.observe()
    chosen = bandit.choose(context)
    assert len(chosen.unique()) > 5
    if policy not in EXPLORE_BY_CHANCE:
        assert torch.equal(chosen, bandit.features(context).norm(dim=2).argmax(1))


def test_a_strangers_bandit_gains_conversation_by_one_line():
    """With nobody asked it is the base at the arm level's ridge, weight and centre."""
    world, twin = small_world(), small_world()
    silent = ConFourier(world.catalogue, 7, mix=0.5, term_alpha=0.0, schedule=NoConversation())
    base = Fourier(twin.catalogue, 7, ridge=0.5, weight=0.5)
    base.alpha = 0.5 * 0.3
    assert decisions(silent, world) == decisions(base, twin)
    torch.testing.assert_close(silent.coefficients(), base.coefficients(), **ALGEBRA)


def test_term_level_is_shrunk_towards_the_bases_own_centre():
    world = small_world()
    policy = ConFourier(world.catalogue, 7)
    everyone = slice(0, 7)
    torch.testing.assert_close(
        policy.centre(everyone), torch.full((7, 4), 0.1, dtype=torch.float64), **ALGEBRA
    )
    for _ in range(3):
        play_round(policy, world)
    M = policy.term_model.gram
    expected = torch.linalg.solve(M, policy.term_model.moment + 1.0 * 0.1)
    torch.testing.assert_close(policy.centre(everyone), expected, **ALGEBRA)


def test_mixin_on_the_right_is_refused_with_the_two_to_swap():
    with pytest.raises(TypeError, match=r"swap LinUCB and ConversationMixin.*ConversationMixin, LinUCB"):
        type("Wrong", (LinUCB, ConversationMixin), {})
    with pytest.raises(TypeError, match="swap Counting and ArmConversationMixin"):
        type("Wrong", (Counting, ArmConversationMixin), {})


def test_key_term_conversation_needs_a_linear_base():
    with pytest.raises(TypeError, match="Counting is none; ArmConversationMixin works with any Bandit"):
        type("Wrong", (ConversationMixin, Counting), {})


def test_a_bandit_without_scores_cannot_be_built():
    world = small_world()
    with pytest.raises(TypeError, match="abstract class Mute .*scores"):
        type("Mute", (Bandit,), {"learn": lambda *_: None})(world.catalogue, 7)
    with pytest.raises(NotImplementedError, match="LinUCB asks no questions"):
        LinUCB(world.catalogue, 7).listen(world.observe(), None, None)


def test_ties_go_to_the_first_candidate():
    world = small_world()
    greedy = LinearBandit(world.catalogue, 7)
    assert greedy.choose(world.observe()).tolist() == [0] * 7
