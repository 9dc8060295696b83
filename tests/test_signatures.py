"""`help()` of every exported class shows its arguments, with types and real defaults."""

import dataclasses
import inspect
import re

import pytest

import conbandit_torch

CLASSES = {
    name: value
    for name in conbandit_torch.__all__
    if inspect.isclass(value := getattr(conbandit_torch, name)) and not issubclass(value, Exception)
}
OVER_ANY_BASE = {
    *("ArmConversationMixin", "ComparisonMixin", "ConversationMixin", "GraphMixin"),
    *("KeyTermMixin", "OneLevelMixin", "RestartMixin"),
}
FORWARDING = [name for name in CLASSES if name not in OVER_ANY_BASE]


def parameters(name):
    return list(inspect.signature(CLASSES[name]).parameters.values())


@pytest.mark.parametrize("name", FORWARDING)
def test_no_argument_hides_behind_others(name):
    hidden = [p for p in parameters(name) if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    assert not hidden or CLASSES[name].__init__ is object.__init__


@pytest.mark.parametrize("name", sorted(OVER_ANY_BASE))
def test_mixins_forward_only_what_is_the_bases(name):
    assert [p.name for p in parameters(name) if p.kind is p.VAR_KEYWORD] == ["base"]


@pytest.mark.parametrize("name", CLASSES)
def test_every_argument_has_a_type(name):
    if CLASSES[name].__init__ is object.__init__:
        return
    assert [p.name for p in parameters(name) if p.annotation is p.empty] == []


@pytest.mark.parametrize("name", FORWARDING)
def test_the_documentation_tells_of_every_argument(name):
    cls = CLASSES[name]
    if not parameters(name) or issubclass(cls, tuple):
        return
    text = inspect.getdoc(cls) or ""
    told = set(
        re.findall(r"^    (\w+): ", text.partition("Args:")[2] or text.partition("Attributes:")[2], re.M)
    )
    assert {p.name for p in parameters(name) if not p.name.startswith("_")} <= told | {"args", "kwargs"}


@pytest.mark.parametrize("name", [n for n, c in CLASSES.items() if issubclass(c, conbandit_torch.Bandit)])
def test_no_default_of_a_policy_is_a_none_that_means_a_number(name):
    for parameter in parameters(name):
        if parameter.default is None:
            assert parameter.name in (
                "representation",
                "refit_every",
                "projection",
                "coarse_dim",
                "similarity",
            )


@pytest.mark.parametrize("name", [n for n, c in CLASSES.items() if dataclasses.is_dataclass(c)])
def test_parts_are_frozen(name):
    if issubclass(
        CLASSES[name], conbandit_torch.Schedule | conbandit_torch.Selection | conbandit_torch.Confidence
    ):
        assert CLASSES[name].__dataclass_params__.frozen
