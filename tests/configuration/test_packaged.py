"""The configs that come with the package, and the commands around them."""

import re
import shutil
import subprocess
import sys

import pytest

from conbandit_torch.commands.main import main
from conbandit_torch.configuration import packaged
from conbandit_torch.configuration.packaged import find_config, packaged_configs
from conbandit_torch.core.errors import ConfigError
from tests.conftest import REPOSITORY

NAMES = [config.name for config in packaged_configs()]


def test_all_configs_of_the_repository_are_there():
    files = {
        path.relative_to(REPOSITORY / "configs").as_posix()
        for path in (REPOSITORY / "configs").rglob("*.yaml")
        if path.parent.name != "leaderboard"
    }
    assert files == {f"{name}.yaml" for name in NAMES}
    assert {"quickstart", "paper/synthetic"} <= set(NAMES)


@pytest.mark.parametrize("config", packaged_configs(), ids=NAMES)
def test_the_comment_says_what_it_shows_and_how_long_it_takes(config):
    assert len(config.shows) > 10, "a comment at the top says what the config shows"
    assert config.takes, "a line '# Takes about 3 minutes on one core.' ends the comment at the top"


@pytest.mark.parametrize("given", ["quickstart", "quickstart.yaml", "configs/quickstart.yaml"])
def test_a_config_is_found_by_its_name(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_config(given).samefile(REPOSITORY / "configs" / "quickstart.yaml")


def test_a_file_of_ones_own_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quickstart").write_text("rounds: 3")
    assert find_config("quickstart").read_text() == "rounds: 3"


@pytest.mark.parametrize(
    ("given", "meant"), [("quikstart", "quickstart"), ("paper/sinthetic", "paper/synthetic")]
)
def test_the_nearest_name_is_offered(given, meant):
    with pytest.raises(ConfigError, match=f"No such file .*did you mean '{meant}'.*conbandit configs"):
        find_config(given)


def test_a_wheel_has_them_inside(tmp_path, monkeypatch):
    inside = tmp_path / "site-packages" / "conbandit_torch"
    shutil.copytree(REPOSITORY / "configs", inside / "configs")
    monkeypatch.setattr(packaged, "__file__", str(inside / "configuration" / "packaged.py"))
    assert [config.name for config in packaged_configs()] == NAMES
    shutil.rmtree(inside / "configs")
    with pytest.raises(ConfigError, match="configs are missing"):
        packaged_configs()


def test_configs_lists_them(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["configs"]) == 0
    printed = capsys.readouterr().out
    assert re.search(
        r"quickstart +│ A small world in which the conversation pays +│ less than 10 seconds", printed
    )


def test_configs_and_init_wait_for_no_torch(tmp_path):
    code = (
        "import sys\nfrom conbandit_torch.commands.main import main\n"
        f"assert main(['configs']) == 0 and main(['init', {str(tmp_path / 'my.yaml')!r}]) == 0\n"
        "assert 'torch' not in sys.modules and 'jsonargparse' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=60)
    assert done.returncode == 0, done.stderr


def test_init_copies_one_and_never_overwrites(capsys, tmp_path):
    path = tmp_path / "my.yaml"
    assert main(["init", str(path), "--from", "hconucb"]) == 0
    assert path.read_text() == (REPOSITORY / "configs" / "hconucb.yaml").read_text()
    assert main(["init", str(path)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert path.read_text() == (REPOSITORY / "configs" / "hconucb.yaml").read_text()
    assert main(["init", str(tmp_path / "nowhere" / "my.yaml")]) == 2
    assert "there is no folder" in capsys.readouterr().err
