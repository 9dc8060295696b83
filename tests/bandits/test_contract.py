"""Every exported policy, and a base bandit made here, keeps the contract; who breaks it is told how."""

import inspect

import pytest
import torch

import conbandit_torch
from conbandit_torch import (
    ArmConversationMixin,
    Bandit,
    CoFineUCB,
    ConversationMixin,
    EpsilonGreedy,
    Greedy,
    LinearBandit,
    LinThompson,
    LinUCB,
    NoConversation,
    Observed,
    Question,
    Random,
    Representation,
    Terms,
    play_round,
)
from conbandit_torch.testing import CHECKS, ContractError, check_policy, decisions
from tests.conftest import ALGEBRA, small_world


class Cosines(Representation):
    """What a stranger's model sees of the arms: cosines of their features."""

    def build(self, seed):
        self.dim = 4
        directions = torch.linspace(-1, 1, 4 * self.catalogue.dim).view(-1, 4)
        self.register_buffer("directions", directions.to(self.catalogue.arm_features))

    def encode(self, x, arms):
        return (x @ self.directions).cos()


class Fourier(LinearBandit):
    """A stranger's base bandit: cosines of the features, shrunk towards a centre of its own."""

    def __init__(self, catalogue, num_users, *, ridge=1.0, seed=0):
        super().__init__(catalogue, num_users, alpha=0.3, ridge=ridge, representation=Cosines(), seed=seed)

    def centre(self, who):
        return torch.full_like(self.arm_model.moment[who], 0.1)


class Counting(Bandit):
    """A stranger's bandit without any regression: shows what was shown least."""

    def __init__(self, catalogue, num_users, *, seed=0):
        super().__init__(catalogue, num_users, seed=seed)
        self.register_rows("shown", torch.zeros(catalogue.num_arms))

    def scores(self, context):
        return -self.shown[context.who].gather(1, context.arms)

    def learn(self, context, arm, reward):
        shown = context.arms.gather(1, arm[:, None]).squeeze(1)
        self.shown.index_put_((context.users, shown), torch.ones(len(context)), accumulate=True)


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
    and not inspect.isabstract(value)
]
STRANGERS = [Fourier, Counting, ConFourier, ArmFourier, ArmCounting]


def test_the_contract_runs_on_all_published_policies():
    names = {policy.__name__ for policy in EXPORTED}
    assert names >= {"Random", "LinUCB", "ArmCon", "ConUCB", "VarRS", "VarMRC", "VarLCR"}
    assert names >= {"HLinUCB", "HArmCon", "HConUCB", "HVarRS", "HVarMRC", "HVarLCR"}
    assert names >= {"Greedy", "EpsilonGreedy", "LinThompson", "ConThompson", "CoFineUCB"}
    assert names >= {"ConLinUCB", "ConLinUCBMCR", "ConLinUCBBS", "ConLinUCBUCB", "HConLinUCB"}


EXPLORE_BY_CHANCE = {Random: {}, EpsilonGreedy: {"epsilon": 1.0}} | {
    policy: {} for policy in EXPORTED if issubclass(policy, LinThompson)
}
WIDTHS = {CoFineUCB: {"alpha": 1.0, "coarse_alpha": 0.0}}  # all others' only width at the start is alpha's


@pytest.mark.parametrize("policy", EXPORTED + STRANGERS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__.removeprefix("check_"))
def test_contract(check, policy):
    check(policy)


@pytest.mark.parametrize("policy", EXPORTED, ids=lambda c: c.__name__)
def test_truth_is_out_of_reach(policy):
    """Nothing that a policy is handed, or keeps, holds the users' true parameters."""
    environment = small_world(hidden=2)
    bandit = policy(environment.catalogue, environment.num_users)
    truth = {environment.theta.data_ptr(), environment._world.arm_features.data_ptr()}
    seen, todo = set(), [bandit, environment.observe()]
    while todo:
        item = todo.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        assert item is not environment
        if isinstance(item, torch.Tensor):
            assert item.data_ptr() not in truth
        elif isinstance(item, dict):
            todo.extend(item.values())
        elif isinstance(item, list | tuple | set):
            todo.extend(item)
        elif type(item).__module__.startswith("conbandit_torch"):
            todo.extend(vars(item).values())


class Broken(Counting):
    """Keeps every promise but one, in each of the classes below."""


class Forgetful(Broken):
    def __init__(self, catalogue, num_users, *, seed=0):
        super().__init__(catalogue, num_users, seed=seed)
        self.times = [[0] * catalogue.num_arms for _ in range(num_users)]

    def scores(self, context):
        counts = [[self.times[u][a] for a in arms] for u, arms in self._rows(context)]
        return -torch.tensor(counts, dtype=torch.float64)

    def learn(self, context, arm, reward):
        for (user, arms), position in zip(self._rows(context), arm.tolist(), strict=True):
            self.times[user][arms[position]] += 1

    def _rows(self, context):
        return zip(context.users.tolist(), context.arms.tolist(), strict=True)


class Unseeded(Broken):
    def __init__(self, catalogue, num_users):
        super().__init__(catalogue, num_users)


class Dicing(Broken):
    def scores(self, context):
        return torch.rand(context.arms.shape)


class Infinite(Broken):
    def scores(self, context):
        return super().scores(context) - torch.inf * (context.arms % 2)


class Flat(Broken):
    def scores(self, context):
        return super().scores(context).flatten()


class Crowded(Broken):
    def scores(self, context):
        return super().scores(context) * len(context) + context.arms % (1 + len(context))


class Everybody(Broken):
    def learn(self, context, arm, reward):
        self.shown += 1


class Greying(Broken):
    def learn(self, context, arm, reward):
        self.catalogue.arm_features.mul_(0.9)


class Deaf(Observed):
    def of(self, context):
        own = super().of(context)
        return own + 1 if context.has_own_features else own


class Stubborn(LinearBandit):
    def __init__(self, catalogue, num_users, *, seed=0):
        super().__init__(catalogue, num_users, representation=Deaf(), alpha=0.1, seed=seed)


class Needy(Broken):
    def learn(self, context, arm, reward):
        super().learn(context, arm, reward)
        assert reward.max() < 100


class Scaled(Representation):
    def build(self, seed):
        self.dim = self.catalogue.dim
        self.scales = torch.ones(self.dim).double()

    def encode(self, x, arms):
        return x * self.scales


class Double(LinearBandit):
    def __init__(self, catalogue, num_users, *, seed=0):
        super().__init__(catalogue, num_users, representation=Scaled(), seed=seed)


class Undeclared(Broken):
    def __init__(self, catalogue, num_users, *, seed=0):
        super().__init__(catalogue, num_users, seed=seed)
        self.register_buffer("visits", torch.zeros(num_users))

    def learn(self, context, arm, reward):
        super().learn(context, arm, reward)
        self.visits[context.users] += 1


class Drawing(Broken):
    def choose(self, context):
        self.shown[context.who] += 1
        return super().choose(context)


class Gullible(Broken):
    """Learns from an answer that was not known."""

    def __init__(self, catalogue, num_users, *, seed=0):
        super().__init__(catalogue, num_users, seed=seed)
        self.register_rows("heard", torch.zeros(()))

    def ask(self, context):
        if (self.heard[context.who] < 1).all():
            return Question(slice(None), Terms(torch.zeros(len(context), dtype=torch.int64)))
        return None

    def listen(self, context, question, answer):
        self.heard[context.who] += 1
        self.shown[context.who] -= torch.arange(self.shown.shape[1])


class Impatient(Broken):
    """Believes what came last."""

    def learn(self, context, arm, reward):
        self.shown[context.who] = torch.arange(self.shown.shape[1]) * reward.float()[:, None]


BROKEN = {
    Forgetful: "`state_dict` is the whole policy.*; expected the loaded policy to go on .*: arms .* in round 1",
    Unseeded: "Unseeded breaks its promise: .*TypeError: Unseeded has no argument .seed.; it has catalogue, num_users",
    Dicing: r"the first highest is shown.*; expected choose to give int64 positions \[.*, got \[",
    Infinite: "Scores are finite.*; expected finite scores, got .*-inf",
    Flat: r"Scores are finite, \[B, A\].*; expected scores \[7, 9\], got \[63\]",
    Crowded: "whichever other users are in the batch; expected user 0 alone .*users_are_independent = False",
    Everybody: "users who are not there are left alone; expected shown of absent users as it was, got a change in shown",
    Greying: "Neither the catalogue nor .*; expected the catalogue as it was, got a change of arm_features",
    Stubborn: "A context with features of its own is scored by them.*AssertionError",
    Needy: "A round in which no reward is seen .*(RuntimeError|IndexError): max",
    Double: "Double breaks its promise: .*float32, as simulations do .*; ValueError: Scaled.encode must give "
    "torch.float32, got torch.float64",
    Undeclared: "A policy that grows decides as one that was built for all users.*IndexError",
    Drawing: "A user may have several decisions open.*; expected no change of state by a decision, got a change",
    Gullible: "An answer of .don't know. counts as a question.*; expected the scores as they were",
    Impatient: "Rewards of three open decisions give the same beliefs in any order.*not close",
}


@pytest.mark.parametrize("policy", BROKEN, ids=lambda c: c.__name__)
def test_a_broken_promise_is_told_with_class_expectation_and_what_came(policy):
    with pytest.raises(ContractError, match=BROKEN[policy]) as raised:
        check_policy(policy)
    assert str(raised.value).startswith(policy.__name__)


def test_a_function_that_builds_the_policy_and_its_arguments_will_do():
    def make(catalogue, num_users, **arguments):
        return Fourier(catalogue, num_users, **arguments)

    check_policy(make, ridge=0.5)
    with pytest.raises(
        ContractError, match="make .*expected a Bandit, got str|str .*expected a Bandit, got str"
    ):
        check_policy(lambda catalogue, num_users, seed: "a policy")
    with pytest.raises(ContractError, match="ridge must be above 0"):
        check_policy(make, ridge=-1.0)


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
        assert torch.equal(chosen, bandit.representation.of(context).norm(dim=2).argmax(1))


def test_a_strangers_bandit_gains_conversation_by_one_line():
    """With nobody asked it is the base at the arm level's ridge, weight and centre."""
    world, twin = small_world(), small_world()
    silent = ConFourier(world.catalogue, 7, mix=0.5, term_alpha=0.0, schedule=NoConversation())
    base = Fourier(twin.catalogue, 7)
    base.arm_model.set_prior(ridge=0.5, weight=0.5)
    assert decisions(silent, world) == decisions(base, twin)
    torch.testing.assert_close(silent.coefficients(), base.coefficients(), **ALGEBRA)


def test_term_level_is_shrunk_towards_the_bases_own_centre():
    world = small_world()
    policy = ConFourier(world.catalogue, 7)
    everyone = slice(0, 7)
    torch.testing.assert_close(
        policy.thetas(everyone)[1], torch.full((7, 4), 0.1, dtype=torch.float64), **ALGEBRA
    )
    for _ in range(3):
        play_round(policy, world)
    M = policy.term_model.gram
    expected = torch.linalg.solve(M, policy.term_model.moment + 1.0 * 0.1)
    torch.testing.assert_close(policy.thetas(everyone)[1], expected, **ALGEBRA)


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
