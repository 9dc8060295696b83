"""Inputs that nobody thought of: mutated files for the package, and arbitrary numbers for its algebra."""

import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from conbandit_torch import Catalogue, RidgeRegression
from conbandit_torch.configuration.load import parse_seeds
from conbandit_torch.core.digests import fingerprint
from conbandit_torch.core.questions import Arms
from conbandit_torch.core.randomness import Stream
from conbandit_torch.models.history import History
from conbandit_torch.running.checkpoint import SavedState, read_checkpoint, write_checkpoint
from conbandit_torch.running.metrics import records_from_tensor, records_to_tensor
from conbandit_torch.running.record import Record
from tests.conftest import ALGEBRA, REPOSITORY

# Every run has these same examples, and leaves no files behind.
arbitrary = settings(max_examples=50, deadline=None, derandomize=True, database=None)


@pytest.mark.slow
def test_mutated_inputs_are_accepted_or_refused_and_nothing_else(tmp_path):
    command = [sys.executable, "-m", "experiments.fuzz", "--inputs", "240", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, cwd=REPOSITORY)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == (tmp_path / "fuzz.md").read_text()
    for kind in ("configs", "recordings", "checkpoints", "data"):
        found = re.search(rf"^\| {kind} \| 60 \| (\d+) \| (\d+) \| 0 \|$", done.stdout, re.MULTILINE)
        assert found is not None, done.stdout
        accepted, refused = map(int, found.groups())
        assert accepted > 0 and refused > 0 and accepted + refused == 60
    assert not (tmp_path / "failed").exists() and not (tmp_path / "exploded").exists()


@arbitrary
@given(st.lists(st.integers(0, 2**70), min_size=1, unique=True))
def test_seeds_written_one_by_one_come_back(seeds):
    for written in (seeds, list(map(str, seeds)), ",".join(map(str, seeds)), ", ".join(map(str, seeds))):
        assert parse_seeds(written) == seeds
    if len(seeds) == 1:
        assert parse_seeds(seeds[0]) == seeds


@arbitrary
@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(0, 20)), min_size=1, max_size=5))
def test_seeds_written_as_ranges_come_back(gaps_and_lengths):
    parts, seeds, start = [], [], 0
    for gap, length in gaps_and_lengths:  # one after the other, so that none overlap
        start += gap
        parts.append(f"{start}-{start + length}" if length else f"{start}")
        seeds += range(start, start + length + 1)
        start += length
    assert parse_seeds(",".join(parts)) == parse_seeds(parts) == seeds


@st.composite
def graphs(draw):
    """Features [N, D] and weights [N, K] with an arm for every key-term; some arms may have no key-term."""
    size, dim, terms = draw(st.integers(1, 8)), draw(st.integers(1, 4)), draw(st.integers(1, 6))
    weight = st.one_of(st.just(0.0), st.floats(1e-3, 1e3))
    weights = draw(arrays(np.float64, (size, terms), elements=weight))
    for term in np.flatnonzero(~weights.any(0)):
        weights[draw(st.integers(0, size - 1)), term] = 1.0
    return draw(arrays(np.float64, (size, dim), elements=st.floats(-100, 100))), weights


@arbitrary
@given(graphs(), st.booleans())
def test_key_terms_average_their_arms_whatever_the_weights(graph, sparse):
    features, weights = graph
    given_weights = torch.from_numpy(weights).to_sparse() if sparse else weights
    catalogue = Catalogue(features, given_weights)
    sums = weights.sum(1, keepdims=True)
    scaled = np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)
    shares = scaled / scaled.sum(0)
    expected = torch.from_numpy(shares.T @ features)
    torch.testing.assert_close(catalogue.term_features, expected, **ALGEBRA)
    some = torch.arange(catalogue.num_terms).flip(0)
    torch.testing.assert_close(
        catalogue.average(torch.from_numpy(features), some), expected.flip(0), **ALGEBRA
    )


@arbitrary
@given(st.data())
def test_a_regression_solves_its_normal_equations_whatever_it_is_fed(data):
    models, dim, count = (data.draw(st.integers(1, most)) for most in (4, 5, 25))
    ridge, weight = data.draw(st.floats(0.1, 10)), data.draw(st.floats(0.1, 10))
    model = RidgeRegression(
        models, dim, ridge, weight, refresh_every=data.draw(st.integers(1, 30)), like=torch.empty(0).double()
    )
    number = st.floats(-5, 5)
    M, b = np.tile(ridge * np.eye(dim), (models, 1, 1)), np.zeros((models, dim))
    for _ in range(count):
        who = data.draw(st.lists(st.integers(0, models - 1), min_size=1, unique=True))
        x = data.draw(arrays(np.float64, (len(who), dim), elements=number))
        y = data.draw(arrays(np.float64, len(who), elements=number))
        model.update(torch.tensor(who), torch.from_numpy(x), torch.from_numpy(y))
        M[who] += weight * x[:, :, None] * x[:, None, :]
        b[who] += weight * y[:, None] * x
    centre = data.draw(arrays(np.float64, (models, dim), elements=number))
    expected = np.linalg.solve(M, (b + ridge * centre)[:, :, None])[:, :, 0]
    theta = model.coefficients(centre=torch.from_numpy(centre))
    torch.testing.assert_close(theta, torch.from_numpy(expected), **ALGEBRA)
    log_det = torch.from_numpy(np.linalg.slogdet(M).logabsdet - dim * np.log(ridge))
    torch.testing.assert_close(model.log_det, log_det, **ALGEBRA)


@arbitrary
@given(st.data())
def test_subsets_are_distinct_whatever_their_size(data):
    population = data.draw(st.integers(1, 3000) | st.integers(1, 40) | st.just(10**9))
    count = data.draw(st.integers(1, min(population, 300)) | st.just(min(population, 300)))
    stream = Stream(data.draw(st.integers(-(2**70), 2**70)), data.draw(st.text(max_size=5)))
    users = torch.tensor(data.draw(st.lists(st.integers(0, 2**62), min_size=1, max_size=4)))
    drawn = stream.subsets(users, data.draw(st.integers(0, 2**62)), count, population)
    assert drawn.shape == (len(users), count)
    assert 0 <= drawn.min() and drawn.max() < population
    assert all(len(set(row)) == count for row in drawn.tolist())


@arbitrary
@given(st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99), st.floats(-9, 9)), max_size=7)))
def test_a_log_holds_what_was_appended_and_is_saved_so(pieces):
    def log():
        return History(torch.empty(0).double())

    history = log()
    for piece in pieces:
        columns = list(zip(*piece, strict=True)) or [(), (), ()]
        kinds = (torch.int64, torch.int64, torch.float64)
        users, arms, values = (torch.tensor(c, dtype=kind) for c, kind in zip(columns, kinds, strict=True))
        history.append(users, Arms(arms), values)
    restored = log()
    restored.load_state_dict(history.state_dict())
    everything = [entry for piece in pieces for entry in piece]
    for one in (history, restored):
        found = [
            (user, arm, value)
            for users, about, values in one.entries()
            for user, (arm,), value in zip(users.tolist(), about.ids().tolist(), values.tolist(), strict=True)
        ]
        assert found == everything


@arbitrary
@given(st.lists(st.tuples(st.integers(1, 2**50), *4 * [st.floats(-1e300, 1e300) | st.none()]), max_size=6))
def test_records_are_saved_exactly(rows):
    records = [
        Record(number, 1.5, -0.0, 1e-300, theta_error, prediction_error, 2.0, terms, abs(seconds or 0.0))
        for number, theta_error, prediction_error, terms, seconds in rows
    ]
    assert records_from_tensor(records_to_tensor(records)) == records


@settings(arbitrary, max_examples=20)  # each waits for the disk
@given(
    number=st.integers(0, 2**60),
    contents=st.dictionaries(
        st.text("abc._é ", min_size=1, max_size=9), st.lists(st.floats(width=32), max_size=5)
    ),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.int64, torch.bool]),
)
def test_a_checkpoint_holds_any_tensors(tmp_path_factory, number, contents, dtype):
    tensors = {name: torch.tensor(values).nan_to_num(0, 0, 0).to(dtype) for name, values in contents.items()}
    state = SavedState(number, tensors)
    read = read_checkpoint(write_checkpoint(tmp_path_factory.mktemp("checkpoints"), state))
    assert read.round == number and fingerprint(read.tensors) == fingerprint(tensors)
