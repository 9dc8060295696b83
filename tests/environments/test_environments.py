"""Synthetic and recorded environments, and the feedback they share."""

import copy
from itertools import pairwise

import numpy as np
import pytest
import torch

from conbandit_torch import Arms, Comparison, Context, Question, Recorded, Simulation, Synthetic, Terms
from conbandit_torch.bandits.uniform import Random
from conbandit_torch.core import blocks
from conbandit_torch.core.digests import data_digest
from conbandit_torch.kernels import using
from tests.conftest import ALGEBRA, EXACT, GOLDEN, small_world


def test_synthetic_data_is_drawn_as_in_the_paper():
    """Means and deviations over many draws; each slack is about five standard errors."""
    world = Synthetic(users=400, arms=3000, terms=100, dim=10, spread=0.1, seed=1)
    catalogue = world.catalogue
    assert (catalogue.num_arms, catalogue.num_terms, catalogue.dim) == (3000, 100, 10)
    assert world.theta.abs().max() <= 1
    assert abs(float(world.theta.mean())) < 5 * (1 / 3 / 4000) ** 0.5
    assert float(world.theta.var()) == pytest.approx(1 / 3, rel=0.08)
    edges = catalogue.terms_of(torch.arange(3000))
    counts = torch.bincount(edges.owner)
    assert sorted(counts.unique().tolist()) == [1, 2, 3, 4, 5]
    assert torch.bincount(counts)[1:].double().div(3000).sub(0.2).abs().max() < 5 * (0.2 * 0.8 / 3000) ** 0.5
    torch.testing.assert_close(edges.weight, 1 / counts[edges.owner].double(), **ALGEBRA)
    # Arms with the same single key-term differ by the spread alone.
    single = (counts == 1).nonzero().squeeze(1)
    term = catalogue.terms_of(single).target
    residuals = [catalogue.arm_features[single[term == k]] for k in term.unique() if (term == k).sum() > 1]
    variance = torch.cat([(r - r.mean(0)) * (len(r) / (len(r) - 1)) ** 0.5 for r in residuals]).var()
    assert float(variance) == pytest.approx(0.01, rel=0.12)


@pytest.mark.parametrize("changes", [{}, {"normalise": True, "max_terms": 7}, {"max_terms": 1, "hidden": 2}])
def test_a_world_drawn_in_small_blocks_is_the_same(changes, monkeypatch):
    sizes = {"users": 3, "arms": 61, "terms": 9, "dim": 7, "pool": 5, "seed": 4}
    whole = data_digest(Synthetic(**sizes | changes))
    monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", 800)
    assert data_digest(Synthetic(**sizes | changes)) == whole


def test_pools_are_distinct_arms_and_change_from_round_to_round(world):
    first = world.observe().arms
    assert first.shape == (7, 9)
    assert all(len(set(row)) == 9 for row in first.tolist())
    torch.testing.assert_close(world.observe().arms, first, **EXACT)  # until the round ends
    world.pull(world.observe(), torch.zeros(7, dtype=torch.int64))
    assert not torch.equal(world.observe().arms, first)


def test_drawing_ahead_changes_nothing():
    """Everyone's draws, made for several rounds at once, are those of each user and round by itself."""
    world = small_world()
    everyone = world.observe().users
    for t in (0, 1, 2, 70, 3):
        world.rounds.fill_(t)
        world.rounds[2] = t + 5 if t == 2 else t  # a user who has fallen out of step
        for draw in (world.pools, world.arm_noise, world.term_noise):
            alone = [draw(everyone[[u]], world.rounds[[u]]) for u in range(7)]
            torch.testing.assert_close(draw(everyone, world.rounds), torch.cat(alone), **EXACT)


def test_draws_depend_on_the_rounds_that_are_asked_for():
    world, other = small_world(), small_world()
    everyone = world.observe().users
    world.arm_noise(everyone, world.rounds + 5)  # looking ahead leaves what comes as it is
    for draw in ("pools", "arm_noise", "term_noise"):
        later = getattr(world, draw)(everyone, world.rounds + 3)
        other.rounds.fill_(3)
        assert torch.equal(later, getattr(other, draw)(everyone, other.rounds))
    other.rounds.zero_()
    arm = torch.zeros(7, dtype=torch.int64)
    assert torch.equal(reward_of(world, arm), reward_of(other, arm))


def reward_of(world, arm):
    return world.pull(world.observe(), arm).feedback[0].reward


def test_pools_can_be_made_to_change_every_few_rounds():
    class Weekly(Synthetic):
        def pools(self, users, rounds):
            return super().pools(users, rounds // 7)

    world = Weekly(users=4, arms=60, terms=12, dim=6, pool=9)
    shown = []
    for _ in range(21):
        shown.append(world.observe().arms)
        world.pull(world.observe(), torch.zeros(4, dtype=torch.int64))
    same = [torch.equal(one, other) for one, other in pairwise(shown)]
    assert [number for number, equal in enumerate(same) if not equal] == [6, 13]


def test_users_who_come_by_turns_are_shown_what_they_would_be_alone():
    def untouched(world):
        fresh = small_world()
        fresh.load_state_dict(world.state_dict())
        return fresh

    world = small_world()
    arm = torch.zeros(7, dtype=torch.int64)
    rows = [slice(0, 7), slice(0, 3), torch.tensor([1, 5])]
    for t in torch.from_numpy(np.random.default_rng(0).integers(3, size=60)).tolist():
        context = world.observe()
        assert torch.equal(context.arms, untouched(world).observe().arms)
        some = context.take(rows[t])
        fresh = untouched(world)
        reward = world.pull(some, arm[: len(some)]).feedback[0].reward
        again = fresh.pull(fresh.observe().take(rows[t]), arm[: len(some)]).feedback[0].reward
        assert torch.equal(reward, again)


def test_what_was_drawn_ahead_survives_no_change_of_state_or_precision():
    world, other = small_world(), small_world()
    arm = torch.zeros(7, dtype=torch.int64)
    world.pull(world.observe(), arm)
    saved = {name: value.clone() for name, value in world.state_dict().items()}
    first = world.observe().arms.clone()
    for assign in (False, True):
        for _ in range(3):
            world.pull(world.observe(), arm)
        world.load_state_dict(saved, assign=assign)
        assert torch.equal(copy.deepcopy(world).observe().arms, first)
        assert torch.equal(world.observe().arms, first)
        saved = {name: value.clone() for name, value in saved.items()}
    converted = small_world().float()
    converted.pull(converted.observe(), arm)
    converted.double()
    other.float().double()
    other.pull(other.observe(), arm)
    assert torch.equal(reward_of(converted, arm), reward_of(other, arm))
    with torch.inference_mode():
        assert torch.equal(small_world().observe().arms, small_world().observe().arms)


def test_rewards_answers_and_regret_follow_the_equations(world):
    context = world.observe()
    arm = torch.arange(7)
    eps, eps_term = (f(context.users, world.rounds) for f in (world.arm_noise, world.term_noise))
    means = torch.stack([world.catalogue.arm_features[context.arms[u]] @ world.theta[u] for u in range(7)])
    rows, terms = torch.tensor([5, 2, 0]), torch.tensor([1, 11, 4])
    answer = world.answer(context, Question(rows, Terms(terms))).value
    expected = (world.catalogue.term_features[terms] * world.theta[rows]).sum(1) + eps_term[rows]  # Eq. 4
    torch.testing.assert_close(answer, expected, **ALGEBRA)
    positions = torch.tensor([3, 3, 8])
    answer = world.answer(context, Question(rows, Arms(context.arms[rows, positions]))).value
    torch.testing.assert_close(answer, means[rows, positions] + eps[rows], **ALGEBRA)
    outcome = world.pull(context, arm)
    torch.testing.assert_close(outcome.feedback[0].reward, means[arm, arm] + eps, **ALGEBRA)  # Eq. 2
    torch.testing.assert_close(outcome.regret, means.max(1).values - means[arm, arm], **ALGEBRA)  # Eq. 1


def test_binary_feedback_clips_each_arm_before_averaging():
    """Frequencies over 4,000 users who share one theta; slack of five standard errors."""
    world = small_world(users=4000, feedback="binary", normalise=True)
    world.theta[:] = world.theta[0]
    context = world.observe()
    probability = (world.catalogue.arm_features @ world.theta[0]).clamp(0, 1)  # [N]
    torch.testing.assert_close(world.expected(context), probability[context.arms], **ALGEBRA)
    edges = world.catalogue.arms_of(torch.arange(world.catalogue.num_terms))
    term_probability = torch.zeros(world.catalogue.num_terms).double()
    term_probability.index_add_(0, edges.owner, edges.weight * probability[edges.target])
    unclipped = (world.catalogue.term_features @ world.theta[0]).clamp(0, 1)
    term = int((term_probability - unclipped).abs().argmax())
    assert abs(term_probability[term] - unclipped[term]) > 0.02  # the order of clipping matters here
    answers = world.answer(context, Question(slice(None), Terms(torch.full((4000,), term)))).value
    assert set(answers.tolist()) <= {0.0, 1.0}
    slack = 5 * 0.5 / 4000**0.5
    assert float(answers.mean()) == pytest.approx(float(term_probability[term]), abs=slack)
    outcome = world.pull(context, torch.zeros(4000, dtype=torch.int64))
    assert float(outcome.feedback[0].reward.mean()) == pytest.approx(
        float(probability[context.arms[:, 0]].mean()), abs=slack
    )
    assert outcome.regret.min() >= 0 and outcome.regret.max() <= 1


def test_normalise_gives_unit_lengths():
    world = small_world(normalise=True)
    for rows in (world.theta, world.catalogue.arm_features):
        torch.testing.assert_close(rows.norm(dim=1), torch.ones(len(rows)).double(), **ALGEBRA)


def test_a_seed_redraws_everything_and_data_seed_pins_the_data():
    base, other = small_world(seed=1), small_world(seed=2)
    assert not torch.equal(base.theta, other.theta)
    pinned = [small_world(seed=seed, data_seed=9) for seed in (1, 2)]
    assert torch.equal(pinned[0].theta, pinned[1].theta)
    assert torch.equal(pinned[0].catalogue.arm_features, pinned[1].catalogue.arm_features)
    assert not torch.equal(pinned[0].observe().arms, pinned[1].observe().arms)


def test_visitors_are_distinct_and_all_come_in_time():
    world = small_world(users_per_round=3)
    seen = set()
    for _ in range(30):
        context = world.observe()
        users = context.users.tolist()
        assert len(set(users)) == 3
        seen |= set(users)
        world.pull(context, torch.zeros(3, dtype=torch.int64))
    assert seen == set(range(7))
    assert int(world.rounds.sum()) == 90


def test_a_split_environment_takes_no_features_of_a_contexts_own():
    world = small_world(hidden=2)
    context = world.observe()
    with pytest.raises(ValueError, match="do not see all features, a context's are the catalogue's"):
        world.expected(Context(context.users, context.arms, context.arm_features, rounds=0))


def test_key_terms_that_no_arm_drew_are_left_out():
    world = Synthetic(users=2, arms=10, terms=200, dim=3, pool=2, max_terms=2)
    assert world.catalogue.num_terms < 25
    assert world.catalogue.term_names[0] != "term 0" or world.catalogue.term_names[1] != "term 1"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pool": 61}, "pool must be from 1 to the 60 arms, got 61"),
        ({"pool": 0}, "pool must be from 1 to the 60 arms, got 0"),
        ({"users": 0}, "users must be at least 1, got 0"),
        ({"max_terms": 13}, "max_terms must be at most the 12 terms, got 13"),
        ({"noise": -0.1}, "noise must be a number of at least 0, got -0.1"),
        ({"spread": float("nan")}, "spread must be a number of at least 0, got nan"),
        ({"users_per_round": 8}, "users_per_round must be from 1 to the 7 users, got 8"),
        ({"feedback": "both"}, "feedback must be 'linear', 'binary' or 'logistic', got 'both'"),
    ],
)
def test_bad_arguments_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        small_world(**changes)


def recording(**changes):
    """A small valid recording, with arrays replaced (or left out, if None)."""
    rng = np.random.default_rng(0)
    arrays = {
        "X": rng.normal(size=(8, 3)),
        "W": np.eye(8, 4) + 0.1 * np.roll(np.eye(8, 4), 1, axis=1),
        "theta": rng.normal(size=(2, 3)),
        "pools": np.stack([[rng.permutation(8)[:3] for _ in range(5)] for _ in range(2)]),
        "arm_noise": rng.normal(size=(2, 5)),
        "key_term_noise": rng.normal(size=(2, 5)),
        "budget": np.zeros(5, dtype=np.int64),
    }
    return {key: value for key, value in (arrays | changes).items() if value is not None}


def test_a_recording_plays_its_pools_and_noise(tmp_path):
    arrays = recording()
    np.savez(tmp_path / "trace.npz", **arrays)
    world = Recorded(tmp_path / "trace.npz")
    assert (world.num_users, world.length) == (2, 5)
    for t in range(5):
        context = world.observe()
        np.testing.assert_array_equal(context.arms, arrays["pools"][:, t])
        reward = world.pull(context, torch.tensor([0, 2])).feedback[0].reward
        means = [arrays["X"][arrays["pools"][u, t, a]] @ arrays["theta"][u] for u, a in ((0, 0), (1, 2))]
        np.testing.assert_allclose(reward, means + arrays["arm_noise"][:, t], rtol=1e-9)


def test_a_recording_may_hold_numbers_of_other_types(tmp_path):
    arrays = recording()
    arrays |= {"pools": arrays["pools"].astype(">u2"), "theta": arrays["theta"].astype(">f4")}
    np.savez(tmp_path / "trace.npz", **arrays)
    context = Recorded(tmp_path / "trace.npz").observe()
    np.testing.assert_array_equal(context.arms, arrays["pools"][:, 0])


def test_a_recording_knows_its_policies_and_its_length():
    world = Recorded(GOLDEN / "conucb_trace.npz")
    assert world.recorded_policies == ["LinUCB", "Arm-Con", "ConUCB", "Var-LCR"]
    with pytest.raises(ValueError, match="holds no policy 'Nobody'; it holds LinUCB, Arm-Con"):
        world.decisions("Nobody")
    with pytest.raises(ValueError, match="rounds is 301, but Recorded holds 300"):
        Simulation(Random(world.catalogue, 6), world, rounds=301)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"theta": None, "budget": None}, "theta, budget missing; a recording holds X, W, theta"),
        ({"X": np.ones(3)}, r"X must be \[N, D\], got \[3\]"),
        (
            {"arm_noise": np.ones((2, 4))},
            r"arm_noise must be \[U, T\] with T = 5 as in the arrays before it",
        ),
        ({"pools": np.full((2, 5, 3), 8)}, "pools must hold arm ids from 0 to 7, got 8 to 8"),
        ({"pools": np.ones((2, 5, 3))}, "pools must hold integers, got float64"),
        ({"theta": np.full((2, 3), np.nan)}, "theta holds NaN or infinity"),
        ({"W": -np.ones((8, 4))}, r"weights must be finite and not negative.*weights is W"),
        (
            {"arms/P": np.ones((2, 5)), "regret/P": np.ones((2, 5))},
            r"theta_error/P must be \[U, T\] = \[2, 5\], got nothing",
        ),
        ({"arms/P": np.ones((2, 4))}, r"arms/P must be \[U, T\] = \[2, 5\]"),
        ({"theta": np.ones((0, 3))}, r"theta is empty, \[0, 3\]"),
        ({"X": np.array([["a"]])}, "X must hold floating-point numbers"),
    ],
)
def test_bad_recordings_name_file_and_array(tmp_path, changes, message):
    path = tmp_path / "bad.npz"
    np.savez(path, **recording(**changes))
    with pytest.raises(ValueError, match=message) as caught:
        Recorded(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("content", [b"", b"not a zip", (GOLDEN / "conucb_trace.npz").read_bytes()[:5000]])
def test_unreadable_recordings_are_refused(tmp_path, content):
    path = tmp_path / "broken.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not a readable .npz file"):
        Recorded(path)


def test_a_recording_may_not_carry_code(tmp_path):
    path = tmp_path / "pickle.npz"
    np.savez(path, **recording(extra=np.array([{"a": 1}], dtype=object)))
    with pytest.raises(ValueError, match="not a readable .npz file"):
        Recorded(path)


def test_missing_recording_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"nowhere\.npz: no such file"):
        Recorded(tmp_path / "nowhere.npz")


def test_a_comparison_is_won_by_the_side_whose_noisy_mean_is_larger(world):
    context = world.observe()
    first, second = torch.arange(7), torch.arange(7) + 3
    for number in range(3):  # each question has noise of its own
        answer = world.answer(context, Question(slice(None), Comparison(Terms(first), Terms(second)))).value
        noises = world.side_noise(context.users, torch.full((7,), number))
        sides = [
            (world.catalogue.terms(ids) * world.theta).sum(1) + noise
            for ids, noise in zip((first, second), noises, strict=True)
        ]
        assert torch.equal(answer, (sides[0] > sides[1]).double())
    assert not torch.equal(*noises)


@pytest.mark.parametrize("world", [small_world(), small_world(hidden=2, feedback="binary")])
def test_a_question_that_cannot_be_asked_is_refused_and_counts_nothing(world):
    context, five = world.observe(), torch.arange(5)
    for question, message in (
        (Question(torch.tensor([1, 1]), Terms(five[:2])), "Question.rows must be distinct"),
        (Question(torch.tensor([7]), Terms(five[:1])), "Question.rows must be from 0 to 6"),
        (Question(slice(None), Terms(five)), "must be about 7 things, one per row, got 5"),
        (Question(five, Terms(five - 1)), "key-terms needs ids from 0 to 11, got -1 to 3"),
        (Question(five, Arms(five + 56)), "arms needs ids from 0 to 59, got 56 to 60"),
        (Question(five, Comparison(Terms(five), Terms(five + 8))), "key-terms needs ids from 0 to 11"),
    ):
        with pytest.raises(ValueError, match=message):
            world.answer(context, question)
    assert not world.answered.any()


@pytest.mark.parametrize("kernels", ["torch", "auto"])
@pytest.mark.parametrize("wrong", [-1, 99])
def test_an_arm_that_is_no_position_is_refused_and_nothing_is_played(kernels, wrong):
    """A policy that gives arms' ids would be rewarded, by compiled loops, for whatever lies in that memory."""
    world = small_world()
    context = world.observe()
    arm = torch.zeros(len(context), dtype=torch.int64)
    arm[2] = wrong
    with using(kernels), pytest.raises(ValueError, match=f"positions among the .* got {wrong}; a position"):
        world.pull(context, arm)
    assert not world.rounds.any()
