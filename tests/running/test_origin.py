"""Results, and checkpoints, know what they came from; what came from something else is refused or said."""

import json
import shutil
from dataclasses import replace

import pytest

from conbandit_torch.commands.main import main
from conbandit_torch.configuration.load import load
from conbandit_torch.core.seals import sealed, unsealed
from conbandit_torch.core.version import VERSION
from conbandit_torch.kernels import TORCH, name_of
from conbandit_torch.running import origin
from conbandit_torch.running.checkpoint import list_checkpoints
from conbandit_torch.running.job import run_job
from conbandit_torch.running.result import FORMAT, read_result, write_result
from tests.helpers.commands import numbers
from tests.helpers.configs import GOOD, changed, write
from tests.helpers.simulations import StopAt

FILED = """
from pathlib import Path
from conbandit_torch import Synthetic


class Filed(Synthetic):
    def __init__(self, path: str, seed: int = 0) -> None:
        shift = int(Path(path).read_text())
        super().__init__(users=4, arms=40, terms=8, dim=5, pool=6, max_terms=3, seed=seed + shift)
"""


@pytest.fixture
def filed(tmp_path, monkeypatch):
    """A config whose environment reads a file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "filed_world.py").write_text(FILED)
    (tmp_path / "data.txt").write_text("0")
    part = {"class_path": "filed_world.Filed", "init_args": {"path": str(tmp_path / "data.txt")}}
    return write(tmp_path, changed("environment", part))


def test_a_checkpoint_is_not_gone_on_from_with_other_data(filed, tmp_path, capsys):
    out = tmp_path / "out"
    assert run_job(load(filed), out, 1, ("Lin", 0), StopAt(7)).stopped
    (tmp_path / "data.txt").write_text("1000")
    assert "OtherOriginError" in run_job(load(filed), out, 1, ("Lin", 0)).error
    assert main(["run", str(filed), "--out", str(out), "--threads", "1"]) == 2
    said = capsys.readouterr().err.replace("\n", " ")
    assert f"{out}/Lin/seed0: was made from other data (sha256 " in said and "name another folder" in said
    assert not (out / "Con").exists()
    (tmp_path / "data.txt").write_text("0")
    assert main(["run", str(filed), "--out", str(out), "--threads", "1"]) == 0


def test_new_seeds_are_not_run_on_other_data_into_the_same_folder(filed, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["run", str(filed), "--out", str(out)]
    assert main([*words, "--seeds", "0"]) == 0
    (tmp_path / "data.txt").write_text("1000")
    assert main([*words, "--seeds", "1"]) == 2
    assert "was made from other data" in capsys.readouterr().err.replace("\n", " ")
    assert not list(out.glob("*/seed1"))


def test_the_result_the_config_and_the_checkpoint_carry_the_same_digest_of_the_data(filed, tmp_path):
    out = tmp_path / "out"
    run_job(load(filed), out, 1, ("Lin", 0), StopAt(7))
    (checkpoint,) = list_checkpoints(out / "Lin" / "seed0" / "checkpoints")
    about = json.loads((checkpoint / "manifest.json").read_text())["origin"]
    assert about["kernels"] == name_of("cpu") and about["version"] == origin.package_version()
    result = run_job(load(filed), out, 1, ("Lin", 0))
    assert vars(result.origin) == about
    first = (out / "Lin" / "seed0" / "config.yaml").read_text().splitlines()[0]
    assert first.startswith(
        f"# conbandit_torch {about['version']}, data: sha256 {about['data']}, content: sha256 "
    )


def test_another_version_goes_on_and_says_what_may_differ(tmp_path, monkeypatch, caplog):
    config, out = write(tmp_path, GOOD), tmp_path / "out"
    assert main(["run", str(config), "--out", str(out), "--seeds", "0"]) == 0
    run_job(load(config), out, 1, ("Lin", 1), StopAt(7))
    assert "conbandit_torch" not in caplog.text
    monkeypatch.setattr(origin, "VERSION", "99.9")
    assert main(["run", str(config), "--out", str(out)]) == 0
    assert "and this is 99.9: numbers may differ in the last digits" in caplog.text
    assert "seed1/checkpoints/000000007: was made by conbandit_torch" in caplog.text
    result = read_result(out / "Lin" / "seed1")
    assert result.origin.version == f"{VERSION}, then 99.9"
    assert read_result(out / "Con" / "seed1").origin.version == "99.9"
    assert main(["report", str(out)]) == 0
    said = f"several versions of conbandit_torch ({VERSION}: 2; {VERSION}, then 99.9: 1; 99.9: 1)"
    assert said in (out / "report.md").read_text()


def test_what_ran_first_and_what_went_on_are_both_kept_however_often_it_was_stopped():
    one, other = origin.Origin(version="1", kernels="torch"), origin.Origin(version="1", kernels="numba 1")
    twice = other.after(one).after(one)  # stopped and gone on with
    assert twice.version == "1" and other.after(one).kernels == "torch, then numba 1"
    again = other.after(other.after(one))
    assert again.kernels == "torch, then numba 1" and again.last_kernels == "numba 1"
    assert one.after(again).kernels == "torch, then numba 1, then torch"
    assert one.after(origin.Origin()).kernels == "torch"


def test_a_report_says_that_runs_are_of_several_kernels(tmp_path):
    config, out = write(tmp_path, GOOD), tmp_path / "out"
    words = ["run", str(config), "--out", str(out)]
    assert main([*words, "--seeds", "0"]) == 0
    assert main(["report", str(out)]) == 0
    assert "kernels" not in (out / "report.md").read_text()
    path = out / "Lin" / "seed0"
    result = read_result(path)
    write_result(path, replace(result, origin=replace(result.origin, kernels="numba 0.1")))
    assert main(["report", str(out)]) == 0
    said = f"several kernels (numba 0.1: 1; {name_of('cpu')}: 1): last digits"
    assert said in (out / "report.md").read_text()


def test_a_report_refuses_runs_of_one_seed_on_other_data(filed, tmp_path, capsys):
    for name, shift in (("one", "0"), ("other", "1000")):
        (tmp_path / "data.txt").write_text(shift)
        assert main(["run", str(filed), "--out", str(tmp_path / name), "--seeds", "0"]) == 0
    own = tmp_path / "one" / "Lin"
    shutil.rmtree(own)
    shutil.copytree(tmp_path / "other" / "Lin", own)
    assert main(["report", str(tmp_path / "one")]) == 2
    said = capsys.readouterr().err.replace("\n", " ")
    assert f"{own}/seed0: was made from other data than {tmp_path}/one/Con/seed0" in said


@pytest.mark.parametrize("version", [1, FORMAT + 1])
def test_results_of_another_format_are_refused_and_left_alone(tmp_path, capsys, version):
    config, out = write(tmp_path, GOOD), tmp_path / "out"
    assert main(["run", str(config), "--out", str(out)]) == 0
    path = out / "Lin" / "seed0" / "result.json"
    content = '{"users": 4, "summary": {"policy": "Lin"}, "fingerprint": "x"}'  # the first had no checksum
    if version > 1:
        content = sealed(unsealed(path.read_text()) | {"format": version})
    path.write_text(content)
    assert main(["run", str(config), "--out", str(out)]) == 2
    said = capsys.readouterr().err.replace("\n", " ")
    assert f"{path}: format {version}, and this version of conbandit_torch reads format {FORMAT}" in said
    assert path.read_text() == content


def test_a_damaged_config_is_not_read_for_what_differs(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["run", str(write(tmp_path, GOOD)), "--out", str(out), "--seeds", "0"]) == 0
    path = out / "Con" / "seed0" / "config.yaml"
    path.write_text(path.read_text().replace("users: 4", "users: 7"))
    other = changed("environment.init_args.users", 5)
    assert main(["run", str(write(tmp_path, other)), "--out", str(out)]) == 2
    said = capsys.readouterr().err.replace("\n", " ")
    assert f"{path} is missing or damaged, and the results beside it are of another config" in said


def test_another_environment_is_refused_before_anything_runs(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["run", str(write(tmp_path, GOOD)), "--out", str(out)]) == 0
    before = numbers(out)
    other = changed("environment.init_args.users", 5)
    other["policies"] = {"Another": other["policies"]["Lin"]}
    assert main(["run", str(write(tmp_path, other)), "--out", str(out), "--seeds", "7"]) == 2
    said = capsys.readouterr().err.replace("\n", " ")
    assert "differs in environment.init_args.users: 4 there, 5 now" in said
    assert numbers(out) == before and not (out / "Another").exists()


def test_other_arguments_of_a_policy_are_refused_for_new_seeds_too(tmp_path, capsys):
    out = tmp_path / "out"
    config = str(write(tmp_path, GOOD))
    assert main(["run", config, "--out", str(out), "--seeds", "0"]) == 0
    words = ["run", config, "--out", str(out), "--seeds", "1", "--policies.Con.init_args.mix", "0.9"]
    assert main(words) == 2
    assert "policies.Con.init_args.mix: 0.3 there, 0.9 now" in capsys.readouterr().err.replace("\n", " ")


def test_a_resume_goes_on_with_the_kernels_of_its_checkpoint(tmp_path, caplog):
    config, out = write(tmp_path, GOOD), tmp_path / "out"
    assert main(["run", str(config), "--out", str(out), "--seeds", "0", "--kernels", "torch"]) == 0
    assert run_job(load(config, [("kernels", "torch")]), out, 1, ("Lin", 1), StopAt(7)).stopped
    result = run_job(load(config), out, 1, ("Lin", 1))
    assert result.origin.kernels == TORCH and "kernels" not in caplog.text
    assert main(["run", str(config), "--out", str(out)]) == 0
    said = f"{out}: was made with the kernels torch, and these are {name_of('cpu')}: numbers may differ"
    assert (said in caplog.text) == (name_of("cpu") != TORCH)


def test_a_checkpoint_of_kernels_that_are_not_there_is_gone_on_from_with_a_word(
    tmp_path, caplog, monkeypatch
):
    config, out = write(tmp_path, GOOD), tmp_path / "out"
    monkeypatch.setattr("conbandit_torch.running.job.name_of", lambda device: "numba 0.1")
    assert run_job(load(config), out, 1, ("Lin", 0), StopAt(7)).stopped
    monkeypatch.undo()
    kernels = run_job(load(config), out, 1, ("Lin", 0)).origin.kernels
    assert kernels == f"numba 0.1, then {name_of('cpu')}"  # both are part of the result
    assert f"was made with the kernels numba 0.1, and these are {name_of('cpu')}" in caplog.text


def test_an_experiment_that_was_edited_or_damaged_is_not_resumed_and_can_be_run(tmp_path, capsys, caplog):
    config, out = write(tmp_path, GOOD), tmp_path / "out"
    assert main(["run", str(config), "--out", str(out)]) == 0
    path = out / "experiment.yaml"
    path.write_text(path.read_text().replace("rounds: 12", "rounds: 13"))
    assert main(["resume", str(out)]) == 2
    said = capsys.readouterr().err.replace("\n", " ")
    assert f"{path}: is missing, or not what the run wrote" in said
    assert f"`conbandit run CONFIG --out {out}` goes on" in said
    assert main(["run", str(path), "--out", str(tmp_path / "other"), "--seeds", "0"]) == 0
    assert f"{path}: was edited, or damaged, since a run wrote it" in caplog.text


def test_a_config_that_was_edited_runs_and_its_old_results_are_not_reported_as_its_own(tmp_path, capsys):
    config, out = write(tmp_path, GOOD), tmp_path / "out"
    assert main(["run", str(config), "--out", str(out)]) == 0
    path = out / "Con" / "seed0" / "config.yaml"
    path.write_text(path.read_text().replace("mix: 0.3", "mix: 0.4"))
    capsys.readouterr()
    assert main(["report", str(out)]) == 0
    assert f"{path} is damaged, or was edited: it is not what the job wrote" in capsys.readouterr().out
    assert main(["run", str(path), "--out", str(tmp_path / "other")]) == 0
