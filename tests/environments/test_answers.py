"""How people answer: every model, alone and in chains, equals the reference; the default changes nothing."""

import numpy as np
import pytest
import torch

from conbandit_torch import (
    Arms,
    BestItem,
    BestShare,
    Biased,
    Comparison,
    Corrupted,
    Curved,
    DontKnow,
    GeneratedLog,
    Graded,
    ItemMean,
    LogSchedule,
    Question,
    Simulation,
    Stream,
    Terms,
    VarRS,
    YesNo,
    play_round,
)
from conbandit_torch.configuration.build import build_environment
from conbandit_torch.configuration.load import load
from conbandit_torch.core import blocks
from conbandit_torch.environments.answers import AnswerModel
from tests.conftest import ALGEBRA, EXACT, small_world
from tests.reference import answers as reference

MEAN = ("item mean",)
LINEAR = {  # the chain, and what the reference calls it
    "mean": (ItemMean(), MEAN),
    "best share": (BestShare(0.2), ("best share", 0.2)),
    "best half": (BestShare(0.5), ("best share", 0.5)),
    "all of them": (BestShare(1.0), ("best share", 1.0)),
    "best item": (BestItem(), ("best item",)),
    "graded": (Graded(5), ("graded", 5, -1, 1, MEAN)),
    "stars": (Graded(4, low=-2, high=1), ("graded", 4, -2, 1, MEAN)),
    "yes or no": (YesNo(), ("yes or no", -1, 1, MEAN)),
    "yes or no of best": (YesNo(0, 1, of=BestItem()), ("yes or no", 0, 1, ("best item",))),
    "don't know": (DontKnow(0.9, 1.5), ("don't know", 0.9, 1.5, 0, MEAN)),
    "biased": (Biased(0.4, 0.3), ("biased", 0.4, 0.3, MEAN)),
    "corrupted": (Corrupted(2), ("corrupted", 2, 0, MEAN)),
    "chain": (
        DontKnow(0.7, 2.0, 0.3, of=Corrupted(1, of=Graded(3, of=Biased(-0.2, 0.1, of=BestShare(0.4))))),
        (
            "don't know",
            0.7,
            2.0,
            0.3,
            ("corrupted", 1, 0, ("graded", 3, -1, 1, ("biased", -0.2, 0.1, ("best share", 0.4)))),
        ),
    ),
}
BINARY = {
    "mean": LINEAR["mean"],
    "best share": LINEAR["best share"],
    "graded": (Graded(5), ("graded", 5, 0, 1, MEAN)),
    "yes or no": (YesNo(), ("yes or no", 0, 1, MEAN)),
    "don't know": (DontKnow(0.9, 0.4), ("don't know", 0.9, 0.4, 0.5, MEAN)),
    "biased": (Biased(0.4, 0.3), ("biased", 0.4, 0.3, MEAN)),
    "corrupted": (Corrupted(2), ("corrupted", 2, 0.5, MEAN)),
    "chain": (
        Graded(4, of=Corrupted(1, of=Biased(0.1, of=BestItem()))),
        ("graded", 4, 0, 1, ("corrupted", 1, 0.5, ("biased", 0.1, 0.0, ("best item",)))),
    ),
}


def drawing(world, user):
    """The user's random numbers, by purpose and number."""

    def draw(kind, purpose, number):
        stream = Stream(world.seed, f"answers {purpose}")
        return float(getattr(stream, kind)(torch.tensor([user]), number, 1))

    return draw


def expected_answer(world, person, user, term, noise, number):
    """What the reference's person says about the key-term."""
    edges = world._world.arms_of(torch.tensor([term]))
    dots = (world._world.arm_features[edges.target] @ world.theta[user]).numpy()
    means = {
        "linear": lambda: dots,
        "binary": lambda: dots.clip(0, 1),
        "logistic": lambda: 1 / (1 + np.exp(-world.scale * dots)),
    }[world.feedback]()
    binary, draw = world.feedback != "linear", drawing(world, user)
    value = reference.felt(person, edges.weight.numpy(), means, binary, draw)
    return reference.said(person, value, noise, number, binary, draw)


def check(world, person, questions=4):
    """All users are asked several questions in a round; some are left out of some."""
    context = world.observe()
    noise = world.term_noise(context.users, context.rounds)
    asked = [0] * world.num_users
    unknown = 0
    for number in range(questions):
        rows = torch.arange(world.num_users)[number % 2 :]
        terms = (rows * 5 + number) % world.catalogue.num_terms
        answer = world.answer(context, Question(rows, Terms(terms)))
        for place, (user, term) in enumerate(zip(rows.tolist(), terms.tolist(), strict=True)):
            wanted = expected_answer(world, person, user, term, float(noise[user]), asked[user])
            known = answer.known is None or bool(answer.known[place])
            assert known == (wanted is not None)
            if known:
                assert float(answer.value[place]) == pytest.approx(wanted, rel=1e-9, abs=1e-9)
            unknown += not known
            asked[user] += 1
    assert world.answered.tolist() == asked  # a question that nobody could answer counts
    return unknown


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("changes", [{}, {"hidden": 2, "max_terms": 2}])
def test_answers_of_linear_worlds_are_those_of_the_reference(name, changes):
    model, person = LINEAR[name]
    unknown = check(small_world(answers=model, **changes), person)
    assert (unknown > 0) == (name in ("don't know", "chain"))


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("changes", [{"feedback": "binary"}, {"feedback": "logistic", "scale": 2.0}])
def test_answers_of_worlds_of_clicks_are_those_of_the_reference(name, changes):
    model, person = BINARY[name]
    check(small_world(answers=model, **changes), person)


@pytest.mark.parametrize("name", ["best share", "graded", "biased", "corrupted"])
def test_answers_of_other_worlds_are_those_of_the_reference(name):
    model, person = LINEAR[name]
    check(Curved(users=5, arms=40, terms=8, dim=4, units=5, pool=6, seed=2, answers=model), person)
    check(GeneratedLog(users=6, arms=60, terms=8, dim=4, events=60, pool=8, seed=1, answers=model), person)


def test_the_default_is_the_mean_bit_for_bit():
    """By the arithmetic that environments had before answers were a part."""
    for feedback in ("linear", "binary", "logistic"):
        world = small_world(feedback=feedback).float()
        context, terms = world.observe(), torch.arange(7)
        mean = world.mean(context, Terms(terms))
        noise = world.term_noise(context.users, context.rounds)
        wanted = mean + noise.to(mean) if feedback == "linear" else (noise < mean).to(mean)
        answer = world.answer(context, Question(slice(None), Terms(terms)))
        assert answer.known is None
        torch.testing.assert_close(answer.value, wanted, **EXACT)
    linear = small_world().float()
    torch.testing.assert_close(
        linear.mean(context, Terms(terms)),
        (linear.catalogue.term_features[terms] * linear.theta[terms]).sum(1),
        **EXACT,
    )


def test_work_in_small_blocks_is_the_same(monkeypatch):
    world = small_world(answers=BestShare(0.3), feedback="logistic")
    context, terms = world.observe(), Terms(torch.arange(7))
    edges, whole = world.item_means(context, terms)
    monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", 20)
    assert len(edges.owner) > 20
    torch.testing.assert_close(world.item_means(context, terms)[1], whole, **EXACT)


def test_a_question_about_an_arm_has_one_item():
    """The best of it is itself."""
    plain, best = small_world(), small_world(answers=BestShare(0.2))
    context = plain.observe()
    question = Question(slice(None), Arms(context.arms[:, 2]))
    torch.testing.assert_close(
        best.answer(context, question).value, plain.answer(context, question).value, **ALGEBRA
    )


def test_both_sides_of_a_comparison_are_answers():
    """Grades make ties; an offset of the user's own changes no comparison; the first ones are turned."""

    def outcomes(model, times=3):
        world = small_world(users=200, answers=model)
        context, everyone = world.observe(), torch.arange(200)
        about = Comparison(Terms(everyone % 12), Terms((everyone + 5) % 12))
        return [world.answer(context, Question(slice(None), about)) for _ in range(times)]

    plain, biased, turned = (outcomes(m) for m in (ItemMean(), Biased(0.4, 0.3), Corrupted(1)))
    torch.testing.assert_close(biased[0].value, plain[0].value, **EXACT)
    torch.testing.assert_close(turned[0].value, 1 - plain[0].value, **EXACT)
    torch.testing.assert_close(turned[1].value, plain[1].value, **EXACT)
    ties = [float((answer.value == 0.5).double().mean()) for answer in outcomes(YesNo())]
    assert 0.2 < ties[0] < 0.9 and not (plain[0].value == 0.5).any()
    unsure = outcomes(DontKnow(1.0, 1.0))[0]
    assert 0 < int(unsure.known.sum()) < 200
    torch.testing.assert_close(unsure.value[unsure.known], plain[0].value[unsure.known], **EXACT)


def test_dont_know_teaches_nothing_and_counts():
    world = small_world(answers=DontKnow(1.0, 1e9))  # nobody ever knows
    policy = VarRS(world.catalogue, world.num_users, schedule=LogSchedule(3))
    for _ in range(4):
        play_round(policy, world)
    assert policy.asked.tolist() == [3] * 7 and not policy.term_model.moment.any()


def test_offsets_are_the_users_own_and_those_of_every_seed_differ():
    def offsets(seed, rows):
        world = small_world(users=40, noise=0.0, seed=seed, data_seed=1, answers=Biased(0.5, 2.0))
        context = world.observe()
        about = Terms(torch.zeros(len(rows), dtype=torch.int64))
        asked = context.take(rows)
        return world.answer(context, Question(rows, about)).value - world.mean(asked, about)

    everyone = torch.arange(40)
    first = offsets(1, everyone)
    torch.testing.assert_close(offsets(1, everyone[7:20]), first[7:20], **ALGEBRA)
    assert not torch.allclose(offsets(2, everyone), first)
    assert (
        abs(float(first.mean()) - 0.5) < 5 * 2 / 40**0.5 and 1.2 < float(first.std()) < 2.8
    )  # 5 std. errors


def test_a_chain_in_yaml(tmp_path):
    (tmp_path / "people.yaml").write_text("""
rounds: 3
seeds: [0]
environment:
  class_path: Synthetic
  init_args:
    users: 3
    arms: 20
    terms: 5
    dim: 3
    pool: 4
    answers:
      class_path: Graded
      init_args:
        levels: 5
        of: {class_path: DontKnow, init_args: {of: {class_path: BestShare, init_args: {share: 0.3}}}}
policies:
  ConUCB: {class_path: ConUCB}
""")
    world = build_environment(load(tmp_path / "people.yaml"), 0)
    assert world.answers == Graded(5, of=DontKnow(of=BestShare(0.3)))
    policy = VarRS(world.catalogue, world.num_users)
    assert Simulation(policy, world, rounds=3).run()[-1].round == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BestShare(0), r"share must be in \(0, 1\], got 0"),
        (lambda: Graded(1), "levels must be at least 2, got 1"),
        (lambda: Graded(5, low=2), "low must be below high, got 2 and None"),
        (lambda: YesNo(float("nan")), "low must be a finite number, got nan"),
        (lambda: DontKnow(2), r"most must be in \[0, 1\], got 2"),
        (lambda: DontKnow(width=0), "width must be above 0 and finite, got 0"),
        (lambda: DontKnow(middle=float("inf")), "middle must be a finite number, got inf"),
        (lambda: Biased(float("nan")), "offset must be a finite number, got nan"),
        (lambda: Biased(spread=-1), "spread must be a number of at least 0, got -1"),
        (lambda: Corrupted(-1), "first must be at least 0, got -1"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_an_environment_wants_a_model():
    with pytest.raises(TypeError, match="answers must be an AnswerModel, got 'loud'"):
        small_world(answers="loud")


def test_models_of_your_own():
    class Shy(AnswerModel):
        def felt(self, asked):
            return 0.5 * asked.mean()

    plain, shy = small_world(noise=0.0), small_world(noise=0.0, answers=Shy())
    question = Question(slice(None), Terms(torch.arange(7)))
    torch.testing.assert_close(
        shy.answer(shy.observe(), question).value,
        plain.answer(plain.observe(), question).value / 2,
        **ALGEBRA,
    )
