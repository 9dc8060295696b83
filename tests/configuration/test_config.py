"""Configs: what they resolve to, and one clear message for every mistake."""

import time

import pytest
import torch
import yaml

from conbandit_torch import ConUCB, LogSchedule, Synthetic
from conbandit_torch.configuration.build import build_environment, build_policy
from conbandit_torch.configuration.load import load, parse_seeds
from conbandit_torch.core.errors import ConfigError
from tests.conftest import GOLDEN
from tests.helpers.configs import GOOD, LOG, changed, write


def test_a_config_becomes_objects(tmp_path):
    experiment = load(write(tmp_path, GOOD))
    assert (experiment.rounds, experiment.seeds, experiment.log_every) == (12, [0, 1], 10)
    environment = build_environment(experiment, seed=1)
    assert environment.seed == 1
    policy = build_policy(experiment, "Con", environment, seed=1)
    assert type(policy) is ConUCB and policy.seed == 1
    assert policy.arm_model.weight == 0.3 and policy.alpha == 0.25
    assert type(policy.schedule) is LogSchedule and policy.schedule.questions == 2


def test_overrides_hit_the_named_policy(tmp_path):
    overrides = [
        ("policies.Con.init_args.mix", "0.7"),
        ("environment.init_args.noise", "1e-3"),
        ("rounds", "5"),
    ]
    experiment = load(write(tmp_path, GOOD), overrides)
    assert experiment.policies["Con"]["init_args"]["mix"] == 0.7
    assert experiment.policies["Lin"]["init_args"]["alpha"] == 0.4
    assert experiment.environment["init_args"]["noise"] == 0.001
    assert experiment.rounds == 5


def test_an_override_leaves_policies_that_share_an_anchor_alone(tmp_path):
    text = yaml.safe_dump(GOOD | {"policies": None}).replace(
        "policies: null",
        "policies:\n  A: {class_path: LinUCB, init_args: &shared {alpha: 0.1}}\n"
        "  B: {class_path: LinUCB, init_args: *shared}\n"
        "  C: {class_path: LinUCB, init_args: {<<: *shared, ridge: 2.0}}",
    )
    experiment = load(write(tmp_path, text), [("policies.B.init_args.alpha", "0.9")])
    alphas = {name: part["init_args"]["alpha"] for name, part in experiment.policies.items()}
    assert alphas == {"A": 0.1, "B": 0.9, "C": 0.1}


def test_an_override_may_give_a_part_of_its_own(tmp_path):
    part = "{class_path: LinearSchedule, init_args: {questions: 1, every: 4}}"
    experiment = load(write(tmp_path, GOOD), [("policies.Con.init_args.schedule", part)])
    assert experiment.policies["Con"]["init_args"]["schedule"]["init_args"]["every"] == 4


def test_the_resolved_config_runs_again_to_the_same_experiment(tmp_path):
    experiment = load(write(tmp_path, GOOD))
    again = load(write(tmp_path, experiment.dump("Con", 1)))
    assert again.seeds == [1] and list(again.policies) == ["Con"]
    assert again.policies["Con"] == experiment.policies["Con"]
    assert again.environment == experiment.environment


def test_a_recorded_environment_takes_no_seed(tmp_path):
    environment = {"class_path": "Recorded", "init_args": {"path": str(GOLDEN / "conucb_trace.npz")}}
    experiment = load(write(tmp_path, changed("environment", environment)))
    assert build_environment(experiment, 0).num_users == 6


def test_theory_values_come_from_yaml(tmp_path):
    init_args = {
        "alpha": {"class_path": "Lemma1"},
        "term_alpha": {"class_path": "Lemma3", "init_args": {"norm_bound": 2}},
    }
    experiment = load(write(tmp_path, changed("policies.Con.init_args", init_args)))
    environment = build_environment(experiment, 0)
    policy = build_policy(experiment, "Con", environment, 0)
    assert policy.alpha(policy.arm_model, torch.tensor([1])).shape == (1,)
    assert policy.term_alpha.norm_bound == 2


def test_one_level_comes_from_yaml(tmp_path):
    part = {"class_path": "ConLinUCB", "init_args": {"ridge": 0.2}}
    experiment = load(write(tmp_path, changed("policies.Con", part)))
    policy = build_policy(experiment, "Con", build_environment(experiment, 0), 0)
    assert len(policy.levels()) == 1 and policy.arm_model.ridge == 0.2


def test_a_resolved_config_holds_values_wherever_a_class_has_them(tmp_path):
    text = load(write(tmp_path, GOOD)).dump("Con", 0)
    arguments = yaml.safe_load(text)["policies"]["Con"]["init_args"]
    assert arguments["term_ridge"] == 1.0 and arguments["term_alpha"] == 0.25
    assert arguments["select"]["class_path"].endswith("OptimalTerm")
    assert [name for name, value in arguments.items() if value is None] == ["representation"]


@pytest.mark.parametrize(
    ("value", "seeds"),
    [
        (3, [3]),
        ("4", [4]),
        ("0,1,5", [0, 1, 5]),
        ("0-3", [0, 1, 2, 3]),
        ([1, 2], [1, 2]),
        ("0-1, 7", [0, 1, 7]),
    ],
)
def test_seeds(value, seeds):
    assert parse_seeds(value) == seeds


MISTAKES = {
    "misspelt key": (
        changed("ronds", 3),
        "unknown key 'ronds' (did you mean 'rounds'?); valid: rounds, ",
    ),
    "missing key": (changed("environment", ...), "the key 'environment' is missing"),
    "no policies": (changed("policies", {}), "policies: expected a mapping of names"),
    "rounds of the wrong type": (
        changed("rounds", "many"),
        "rounds: expected a whole number of at least 1, got 'many'",
    ),
    "no rounds at all": (changed("rounds", 0), "rounds: expected a whole number of at least 1, got 0"),
    "precision": (changed("precision", "16"), "precision: expected one of 32-true, 64-true, got '16'"),
    "seeds": (
        changed("seeds", "3-1"),
        "seeds: expected distinct whole numbers like 0,1,2 or 0-9, got '3-1'",
    ),
    "seeds twice": (changed("seeds", "1,1"), "seeds: expected distinct whole numbers"),
    "unknown policy class": (
        changed("policies.Con.class_path", "ConUBC"),
        "policies.Con: unknown class 'ConUBC' (did you mean 'ConUCB'?); valid: ",
    ),
    "class of another kind": (
        changed("policies.Con.class_path", "conbandit_torch.Synthetic"),
        "policies.Con: conbandit_torch.Synthetic is not a kind of Bandit; valid: ",
    ),
    "not a class": (
        changed("policies.Con.class_path", "os.system"),
        "policies.Con: os.system is not a kind of Bandit",
    ),
    "unknown module": (
        changed("policies.Con.class_path", "nowhere.X"),
        "policies.Con.class_path: nowhere.X: ModuleNotFoundError: No module named 'nowhere'",
    ),
    "misspelt argument": (
        changed("policies.Con.init_args.alhpa", 1),
        "policies.Con.init_args: ConUCB has no argument 'alhpa' (did you mean 'alpha'?); valid: mix, term_ridge, alpha, ",
    ),
    "argument of the wrong type": (
        changed("policies.Con.init_args.mix", "half"),
        "policies.Con.init_args.mix: expected float, got half",
    ),
    "argument that is a number or a part": (
        changed("policies.Con.init_args.alpha", "half"),
        "policies.Con.init_args.alpha: expected float, or one of Lemma1, Lemma3; got 'half'",
    ),
    "list for a part": (
        changed("policies.Con.init_args.schedule", [1]),
        "policies.Con.init_args.schedule: expected one of EigenvalueTest, LinearSchedule, LogSchedule, NoConversation, WhileUncertain, WorthAsking; got [1]",
    ),
    "wrong type in a part": (
        changed(
            "policies.Con.init_args.schedule", {"class_path": "LinearSchedule", "init_args": {"every": 1.5}}
        ),
        "policies.Con.init_args.schedule.init_args.every: expected int, got 1.5",
    ),
    "unknown schedule": (
        changed("policies.Con.init_args.schedule", {"class_path": "LogSchedul"}),
        "policies.Con.init_args.schedule: unknown class 'LogSchedul' (did you mean 'LogSchedule'?); valid: ",
    ),
    "misspelt argument of a schedule": (
        changed("policies.Con.init_args.schedule.init_args", {"question": 1}),
        "policies.Con.init_args.schedule.init_args: LogSchedule has no argument 'question' (did you mean 'questions'?)",
    ),
    "missing argument": (
        changed("environment", {"class_path": "Recorded"}),
        "environment.init_args: Recorded needs the argument 'path'",
    ),
    "class_path missing": (
        changed("policies.Con", {"init_args": {}}),
        "policies.Con: the key 'class_path' is missing",
    ),
    "a number for a policy": (
        changed("policies.Con", 3),
        "policies.Con: expected class_path and init_args, got 3",
    ),
    "a policy name that is a path": (
        {**GOOD, "policies": {"../up": GOOD["policies"]["Lin"]}},
        "policies.../up: a policy's name is a folder's name",
    ),
    "not YAML": ("rounds: [1", "not valid YAML"),
    "not a mapping": ("- 1", "expected a mapping with rounds, environment, policies"),
    "a key twice": ("rounds: 1\nrounds: 2", "the key 'rounds' is given twice"),
    "rounds null": (changed("rounds", None), "rounds: expected a whole number of at least 1, got None"),
    "log_every null": (
        changed("log_every", None),
        "log_every: expected a whole number of at least 1, got None",
    ),
    "seeds of an odd form": (changed("seeds", "0-"), "seeds: expected distinct whole numbers"),
    "too many seeds": (changed("seeds", "0-99999999999"), "seeds: expected distinct whole numbers"),
    "abstract policy": (changed("policies.Con.class_path", "Bandit"), "policies.Con: unknown class"),
    "abstract environment": (changed("environment", "Environment"), "environment: unknown class"),
    "abstract mixin": (changed("policies.Con", "ArmConversationMixin"), "policies.Con: unknown class"),
    "abstract rule": (
        changed("policies.Con.init_args.select", "Selection"),
        "policies.Con.init_args.select: unknown class 'Selection'; valid: BarycentricSpanner, ",
    ),
    "number for a schedule": (
        changed("policies.Con.init_args.schedule", 5),
        "policies.Con.init_args.schedule: unknown class '5'; valid: EigenvalueTest, LinearSchedule, LogSchedule, NoConversation",
    ),
    "a choice that is none": (
        changed("environment.init_args.feedback", "x"),
        "environment.init_args.feedback: expected one of 'linear', 'binary', 'logistic', got 'x'",
    ),
    "null for a number": (
        changed("policies.Con.init_args.alpha", None),
        "policies.Con.init_args.alpha: expected a value such as 0.25, got null",
    ),
    "list of arguments": (
        changed("policies.Con.init_args", [1]),
        "policies.Con.init_args: expected arguments by name",
    ),
    "policy named by a number": (
        {**GOOD, "policies": {1: "LinUCB"}},
        "policies.1: a policy's name is a folder's name",
    ),
    "policy named like a file": (
        {**GOOD, "policies": {"summary.csv": "LinUCB"}},
        "policies.summary.csv: a policy's name is a folder's name",
    ),
    "nested too deeply": ("a: " + 5000 * "[", "not valid YAML"),
    "too many users to hold": (
        changed("environment.init_args.users", 10**15),
        "environment: a world of 1,000,000,000,000,000 users and 40 arms with 5 features would need ",
    ),
    # refused by a constructor
    "ridge for two levels": (
        changed("policies.Con.init_args.ridge", 1.0),
        "policies.Con.init_args: ConUCB has no argument 'ridge': with two levels the arm level's ridge is 1 - mix",
    ),
    "an estimator, which earlier versions had": (
        changed("policies.Con.init_args.estimator", "OneLevel"),
        "policies.Con.init_args: ConUCB has no argument 'estimator': the class says where answers go: ConLinUCB",
    ),
    "bad number of a schedule": (
        changed("policies.Con.init_args.schedule.init_args.questions", -1),
        "policies.Con: questions must be a number of at least 0, got -1.0",
    ),
    "missing argument of a theory value": (
        changed("policies.Con.init_args.term_alpha", {"class_path": "Lemma3"}),
        "policies.Con.init_args.term_alpha.init_args: Lemma3 needs the argument 'norm_bound'",
    ),
    "mix out of range": (
        changed("policies.Con.init_args.mix", 1.5),
        "policies.Con: mix must be in (0, 1), got 1.5",
    ),
    "pool too large": (
        changed("environment.init_args.pool", 41),
        "environment: pool must be from 1 to the 40 arms, got 41",
    ),
    "missing recording": (
        changed("environment", {"class_path": "Recorded", "init_args": {"path": "nowhere.npz"}}),
        "environment: nowhere.npz: no such file",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_get_one_line_with_file_and_key(tmp_path, mistake):
    config, message = MISTAKES[mistake]
    path = write(tmp_path, config)
    with pytest.raises(ConfigError) as caught:
        experiment = load(path)
        environment = build_environment(experiment, 0)
        for name in experiment.policies:
            build_policy(experiment, name, environment, 0)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert message in text
    assert "not valid YAML" in text or "RuntimeError" in text or "\n" not in text


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            ("policies.Cno.init_args.mix", "1"),
            "there is no policy 'Cno' (did you mean 'Con'?); valid: Lin, Con",
        ),
        (
            ("policies.Con.class_path.mix", "1"),
            "class_path is 'ConUCB' in the file, not a mapping to set mix in",
        ),
        (("rounds", "["), "'[' is not a YAML value"),
    ],
)
def test_bad_overrides_are_named(tmp_path, override, message):
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path, GOOD), [override])
    assert str(caught.value) == f"--{override[0]}: {message}"


LEGAL_MERGES = """
rounds: 3
environment: &world
  class_path: Synthetic
  init_args: &sizes {users: 4, arms: 40, terms: 8, dim: 5, pool: 6, max_terms: 3}
policies:
  A: &a {class_path: LinUCB, init_args: &first {alpha: 0.1}}
  B: {class_path: LinUCB, init_args: &second {<<: *first, alpha: 0.2, ridge: 2.0}}
  C: {class_path: LinUCB, init_args: {<<: *second, alpha: 0.3}}
  D: {class_path: LinUCB, init_args: {<<: [*second, *first]}}
  E: {<<: *a}
"""


def test_mappings_may_be_merged_into_several_others(tmp_path):
    policies = load(write(tmp_path, LEGAL_MERGES)).policies
    given = {name: part["init_args"] for name, part in policies.items()}
    alphas = {name: arguments["alpha"] for name, arguments in given.items()}
    assert alphas == {"A": 0.1, "B": 0.2, "C": 0.3, "D": 0.2, "E": 0.1}
    assert [given[name]["ridge"] for name in "BCD"] == [2.0, 2.0, 2.0]


def test_mappings_that_merge_one_another_many_times_fill_no_memory(tmp_path):
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 30)]
    start = time.perf_counter()
    with pytest.raises(ConfigError, match="unknown key 'a0'"):
        load(write(tmp_path, "\n".join(lines)))
    assert time.perf_counter() - start < 5  # 10^29 copies of x otherwise


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", None])
def test_unreadable_files_are_named(tmp_path, content):
    path = tmp_path / "bad.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"bad\.yaml: (not a text file|No such file)"):
        load(path)


def test_a_broken_module_of_ones_own_is_told_as_it_is(tmp_path, monkeypatch):
    (tmp_path / "broken_module.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"policies.Con.class_path: broken_module.X: ZeroDivisionError: "):
        load(write(tmp_path, changed("policies.Con.class_path", "broken_module.X")))


def test_an_environment_that_passes_its_arguments_on_gets_the_seed(tmp_path):
    part = {
        "class_path": "tests.configuration.test_config.PassedOn",
        "init_args": GOOD["environment"]["init_args"],
    }
    experiment = load(write(tmp_path, changed("environment", part)))
    assert build_environment(experiment, 7).seed == 7


class PassedOn(Synthetic):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)


def test_all_rounds_are_as_many_as_the_log_holds(tmp_path):
    experiment = load(write(tmp_path, GOOD | {"rounds": "all", "environment": LOG}))
    environment = build_environment(experiment, 0)
    assert experiment.rounds == environment.length > 1
    assert yaml.safe_load(experiment.dump())["rounds"] == environment.length  # results name the number
    assert (
        load(write(tmp_path, GOOD | {"environment": LOG}), [("rounds", "all")]).rounds == environment.length
    )
    with pytest.raises(ConfigError, match="rounds: all, but Synthetic never ends: give a number"):
        load(write(tmp_path, GOOD | {"rounds": "all"}))
