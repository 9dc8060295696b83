"""The wheel alone: what is in it, and that it runs without the clone."""

import os
import subprocess
import sys
import zipfile

import pytest

from tests.conftest import REPOSITORY

pytestmark = pytest.mark.slow


def called(*command, folder, **environment):
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        cwd=folder,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"} | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    called("-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(REPOSITORY), folder=folder)
    (path,) = folder.glob("*.whl")
    return path


def test_it_carries_the_configs_and_says_that_it_is_typed(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for path in (REPOSITORY / "configs").rglob("*.yaml"):
        assert f"conbandit_torch/configs/{path.relative_to(REPOSITORY / 'configs').as_posix()}" in names
    for path in (REPOSITORY / "conbandit_torch").rglob("*.*"):
        if path.suffix in (".py", ".csv", ".html", ".css", ".js", ".svg"):
            assert path.relative_to(REPOSITORY).as_posix() in names
    assert "conbandit_torch/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "experiments/", "configs/"))]


def test_it_runs_without_the_clone(wheel, tmp_path):
    site = tmp_path / "site"
    called("-m", "pip", "install", "-q", "--no-deps", "--target", str(site), str(wheel), folder=tmp_path)

    def conbandit(*arguments):
        return called("-m", "conbandit_torch", *arguments, folder=tmp_path, PYTHONPATH=str(site))

    where = "import conbandit_torch; print(conbandit_torch.__file__)"
    assert str(site) in called("-c", where, folder=tmp_path, PYTHONPATH=str(site))
    assert "quickstart" in conbandit("configs")
    conbandit("init", "my.yaml", "--from", "hconucb")
    assert (tmp_path / "my.yaml").read_text() == (REPOSITORY / "configs" / "hconucb.yaml").read_text()
    printed = conbandit(
        "run", "quickstart", "--rounds", "20", "--seeds", "0", "--threads", "1", "--out", "out"
    )
    assert "After 20 rounds" in printed
    assert (tmp_path / "out" / "ConUCB" / "seed0" / "policy.safetensors").is_file()
