"""A PostgreSQL server for the tests that need one."""

import tempfile
from pathlib import Path

import pytest

from experiments.postgres import binaries, server


@pytest.fixture(scope="session")
def postgres():
    """The URL of a server of our own; it is the same for all tests of a worker."""
    if binaries() is None:
        pytest.skip("there is no PostgreSQL on this machine")
    with tempfile.TemporaryDirectory(prefix="pg") as folder, server(Path(folder)) as url:
        yield url
