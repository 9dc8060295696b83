"""What `conbandit list` and `conbandit describe` say of the parts of configs."""

import inspect

import pytest
import yaml

import conbandit_torch
from conbandit_torch.commands.main import main
from conbandit_torch.configuration.build import resolve_part
from conbandit_torch.configuration.kinds import KINDS, arguments, classes_of, kind_of, snippet, summary

PARTS = [(kind, name) for kind in KINDS for name in classes_of(kind)]
GIVEN = {"policies": {"catalogue", "num_users", "seed"}, "environments": {"seed"}}


def test_every_public_class_that_configs_can_name_is_listed():
    listed = {name for _, name in PARTS}
    bases = tuple(base for base, _ in KINDS.values())
    public = {name: getattr(conbandit_torch, name) for name in conbandit_torch.__all__}
    named = {
        name
        for name, value in public.items()
        if inspect.isclass(value) and issubclass(value, bases) and not inspect.isabstract(value)
    }
    assert {name for name in named - listed if not name.endswith("Mixin")} <= {"Callback", "Representation"}
    assert {
        "ConUCB",
        "LogSchedule",
        "OptimalTerm",
        "Synthetic",
        "MovieLens",
        "Hidden",
        "FixedDelay",
    } <= listed


@pytest.mark.parametrize(("kind", "name"), PARTS)
def test_a_snippet_is_a_part_that_a_config_takes(kind, name):
    cls = classes_of(kind)[name]
    assert kind_of(cls) == kind and summary(cls)
    assert all(one.meaning for one in arguments(cls)), "the docstring tells of every argument"
    (node,) = yaml.safe_load(yaml.safe_dump(snippet(cls))).values()
    node = node[name] if kind in ("policies", "callbacks") else node
    if "REQUIRED" in yaml.safe_dump(node) or cls is KINDS[kind][0]:  # the latter is only an argument's value
        return
    given = {key: value for key, value in node.get("init_args", {}).items() if value is not None}
    resolved = resolve_part("", node | {"init_args": given}, KINDS[kind][0], GIVEN.get(kind, set()))
    bare = resolve_part("", {"class_path": name}, KINDS[kind][0], GIVEN.get(kind, set()))
    assert resolved == bare, "every value is the default"


def test_describe_prints_rule_arguments_and_snippet(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["describe", "ConUCB"]) == 0
    printed = capsys.readouterr().out
    assert "show argmax_a x^T theta" in printed and "LogSchedule(questions=5)" in printed
    assert "lam~, weight of the key-term level's penalty." in printed
    assert (
        yaml.safe_load(printed[printed.index("policies:\n") :])["policies"]["ConUCB"]["init_args"]["mix"]
        == 0.5
    )


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["describe", "ConUBC"], "ConUBC: no part of this name (did you mean 'ConUCB'?); `conbandit list`"),
        (["describe", "nowhere.Policy"], "nowhere.Policy: ModuleNotFoundError"),
        (["describe", "json.JSONDecoder"], "JSONDecoder is not a part that a config can name"),
        (["list", "polices"], "polices: no kind of part (did you mean 'policies'?)"),
        (["list", "policies", "more"], "unexpected argument 'more'"),
    ],
)
def test_what_is_unknown_is_said(capsys, command, words):
    assert main(command) == 2
    assert words in capsys.readouterr().err


def test_list_shows_one_kind_or_all(capsys):
    assert main(["list", "delays"]) == 0
    only = capsys.readouterr().out
    assert "FixedDelay" in only and "ConUCB" not in only
    assert main(["list"]) == 0
    assert "ConUCB" in capsys.readouterr().out
