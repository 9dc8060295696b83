"""Every policy with every representation and every link: it keeps the contract, or says why it cannot."""

import inspect

import pytest

import conbandit_torch
from conbandit_torch import (
    ArmCon,
    ConLinUCBMCR,
    ConUCB,
    GraphConUCB,
    HArmCon,
    HConLinUCB,
    HConUCB,
    Hidden,
    HiddenOnTerms,
    HLinUCB,
    HVarLCR,
    HVarMRC,
    HVarRS,
    Identity,
    LinearBandit,
    LinUCB,
    Logistic,
    Network,
    Observed,
    VarLCR,
    VarMRC,
    VarRS,
)
from conbandit_torch.bandits.aging import AgingBandit
from conbandit_torch.testing import check_policy, decisions
from tests.conftest import small_world

POLICIES = [
    cls
    for cls in (getattr(conbandit_torch, name) for name in conbandit_torch.__all__)
    if inspect.isclass(cls)
    and issubclass(cls, LinearBandit)
    and cls is not LinearBandit
    and not cls.__name__.endswith("Mixin")
]
REPRESENTATIONS = {
    "observed": Observed,
    "hidden per arm": lambda: Hidden(2, refit_every=4),
    "hidden on key-terms": lambda: HiddenOnTerms(2, refit_every=4, steps=10),
    "network": lambda: Network(hidden=4, outputs=2, steps=3, batch=8, refit_every=4),
}
LINKS = {
    "linear": Identity(),
    "clicks at the mean": Logistic(answer="at the mean", refit_every=5),
    "clicks as the mean of items": Logistic(refit_every=5),
}
WHY_NOT = [
    ".* for linear means",
    "its coarse features are a projection of the catalogue's",
    "shifts are in units of the catalogue's features",
    "widths that shrink from phase to phase are of features that stay as they are",
]


def matrix(policies):
    return [
        pytest.param(cls, representation, link, id=f"{cls.__name__}-{representation}-{link}")
        for cls in policies
        for representation in REPRESENTATIONS
        for link in LINKS
    ]


# Others are one of these with other defaults, or (on hidden features) with another representation.
DISTINCT = [c for c in POLICIES if c.__bases__[0] not in POLICIES and not issubclass(c, HLinUCB)]
ON_HIDDEN = {HLinUCB: LinUCB, HArmCon: ArmCon, HConUCB: ConUCB, HConLinUCB: ConLinUCBMCR} | {
    HVarRS: VarRS,
    HVarMRC: VarMRC,
    HVarLCR: VarLCR,
}


def reason(cls, representation, link):
    """Why there is no such policy, as it is told; None: there is one."""
    takes = inspect.signature(cls).parameters
    missing = [name for name in ("representation", "link") if name not in takes]
    if "representation" in missing or (missing and link != "linear"):
        return f"{cls.__name__} has no argument '.*'; (" + "|".join(WHY_NOT) + ")"
    if representation != "observed" and issubclass(cls, GraphConUCB | AgingBandit):
        return "(with weights, which|needs) a representation that (does not learn|learns .* has no log of)"
    if representation.startswith("hidden") and link == "clicks as the mean of items":
        return "every item has a score of its own; use Logistic\\(answer='at the mean'\\)"
    return None


def make(cls, representation, link):
    """A function that builds the policy, as `check_policy` wants it."""
    takes = inspect.signature(cls).parameters
    given = (
        {} if "link" not in takes and link == "linear" else {"link": LINKS[link]}
    )  # some are linear anyway

    def made(catalogue, num_users, **arguments):
        seen = REPRESENTATIONS[representation]()
        return cls(catalogue, num_users, representation=seen, **given, **arguments)

    return made


@pytest.mark.parametrize(("cls", "representation", "link"), matrix(POLICIES))
def test_a_combination_makes_sense_or_is_refused_with_the_reason(cls, representation, link, world):
    build, why = make(cls, representation, link), reason(cls, representation, link)
    if why is None:
        policy = build(world.catalogue, world.num_users)
        context = world.observe()
        assert policy.scores(context).isfinite().all()
    else:
        with pytest.raises((TypeError, ValueError), match=why):
            build(world.catalogue, world.num_users)


@pytest.mark.parametrize(("cls", "plain"), ON_HIDDEN.items(), ids=[cls.__name__ for cls in ON_HIDDEN])
@pytest.mark.parametrize("representation", ["hidden on key-terms", "network"])
def test_a_policy_on_hidden_features_takes_others_as_its_plain_counterpart_does(cls, plain, representation):
    """And so whatever is checked of the counterpart is checked of it."""
    one, other = small_world(), small_world()
    given = {"alpha": 0.3, "link": LINKS["clicks at the mean"]}
    policies = (
        kind(world.catalogue, world.num_users, representation=REPRESENTATIONS[representation](), **given)
        for kind, world in ((cls, one), (plain, other))
    )
    ours, theirs = (decisions(policy, world) for policy, world in zip(policies, (one, other), strict=True))
    assert ours == theirs


@pytest.mark.slow
@pytest.mark.parametrize(("cls", "representation", "link"), matrix(DISTINCT))
def test_a_combination_that_makes_sense_keeps_the_contract(cls, representation, link):
    if reason(cls, representation, link) is None:
        check_policy(make(cls, representation, link))
