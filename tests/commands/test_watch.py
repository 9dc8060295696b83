"""conbandit watch, and what a person sees of TensorBoard before the first click."""

import json
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import pytest

from conbandit_torch.commands.main import main
from conbandit_torch.commands.watch import address_of_bands, address_of_curves
from conbandit_torch.running.objective import CTR, REGRET
from tests.helpers.browser import chromium
from tests.helpers.configs import GOOD, write

MEAN, CURVE = "Regret/average over seeds", "Regret/cumulative"


def test_a_folder_without_curves_is_refused(tmp_path, capsys):
    assert main(["watch", str(tmp_path / "nowhere")]) == 2
    assert "nowhere: no such folder; `conbandit run CONFIG --out " in capsys.readouterr().err
    (tmp_path / "notes.txt").touch()
    assert main(["watch", str(tmp_path)]) == 2
    assert "holds no curves; `conbandit run CONFIG --out " in capsys.readouterr().err


@pytest.mark.parametrize("port", ["-1", "65536"])
def test_a_port_that_cannot_be_is_refused(port, tmp_path, capsys):
    (tmp_path / "events.out.tfevents.1").touch()
    assert main(["watch", str(tmp_path), "--port", port]) == 2
    assert f"--port {port}: expected a number from 0" in capsys.readouterr().err


def test_a_port_that_is_taken_is_refused(tmp_path, capsys):
    (tmp_path / "events.out.tfevents.1").touch()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert main(["watch", str(tmp_path), "--port", port]) == 2
    assert f"--port {port}: Address already in use; name another port, or none" in capsys.readouterr().err


@pytest.mark.parametrize("objective", [REGRET, CTR])
def test_the_address_pins_what_policies_are_judged_by(objective):
    address = urlsplit(address_of_curves("http://127.0.0.1:6006/", {objective.tag, "error/theta"}))
    query = {key: value for key, (value,) in parse_qs(address.query).items()}
    tags = [objective.tags_over_seeds[0], objective.tag]
    assert json.loads(query["pinnedCards"]) == [{"plugin": "scalars", "tag": tag} for tag in tags]
    assert query["smoothing"] == "0" and address.fragment == "timeseries"
    colour = re.compile(query["runColorGroup"].removeprefix("regex:"))
    names = ["ConUCB", "ConUCB/seed0", "ConUCB/seed12", "old/ConUCB/seed0", "My seed1/seed2"]
    found = [colour.match(name)[1] for name in names]
    assert found == ["ConUCB", "ConUCB", "ConUCB", "old/ConUCB", "My seed1"]


def test_tensorboard_shows_the_objectives_groups_first():
    """By the rule of its page: by character, but a slash before all others; capital letters before small."""
    for objective in (REGRET, CTR):
        mean, low, high = objective.tags_over_seeds
        others = ["error/theta", "over seeds/reward", "feedback/skipped", objective.tag, low, mean, high]
        ranked = sorted(others, key=lambda tag: tag.replace("/", "\0"))
        assert ranked[:4] == [mean, objective.tag, high, low]


TWO = GOOD | {"rounds": 40, "seeds": "0", "log_every": 5}
SIX = GOOD | {
    "rounds": 40,
    "seeds": "0-9",
    "log_every": 5,
    "policies": {name: {"class_path": name} for name in ("LinUCB", "ArmCon", "VarRS", "VarMRC", "VarLCR", "ConUCB")},
}  # fmt: skip


@contextmanager
def running(*command):
    """A process, and the first address that it prints; it is ended by Ctrl-C."""
    process = subprocess.Popen(
        [sys.executable, "-m", *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said = ""
        while (found := re.search(r"(?<!issues at )(http://\S+)\s", said)) is None:
            line = process.stdout.readline()
            assert line, f"ended, having said: {said}"
            said += line
        yield found[1], process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


@pytest.mark.slow
@pytest.mark.parametrize(("config", "policies", "seeds"), [(TWO, 2, 1), (SIX, 6, 10)], ids=["two", "six"])
def test_the_first_screenful_shows_the_regret_curves(config, policies, seeds, tmp_path):
    with chromium() as look:
        out = tmp_path / "out"
        assert main(["run", str(write(tmp_path, config)), "--out", str(out)]) == 0
        names = list(config["policies"])
        judged = names if seeds > 1 else [f"{name}/seed0" for name in names]
        first = MEAN if seeds > 1 else CURVE
        with running("tensorboard.main", "--logdir", out, "--host", "127.0.0.1", "--port", "0") as (
            address,
            _,
        ):
            plain = look(address, first, tmp_path / "plain.png")
        assert plain.cards[0].tag == first and not plain.cards[0].pinned
        assert {card.tag for card in plain.cards} >= ({MEAN, CURVE} if seeds > 1 else {CURVE})
        assert len({plain.colours[name] for name in judged}) == policies
        for name in judged:
            assert plain.cards[0].pixels(plain.colours[name]) > 20, f"no curve of {name}"

        with running("conbandit_torch", "watch", out, "--no-browser", "--port", "0") as (address, process):
            watched = look(address, first, tmp_path / "watch.png")
            if seeds > 1:  # although TensorBoard selects none of so many runs by itself
                look.for_text(address_of_bands(address.partition("?")[0]), f"Matches ({policies})")
        assert process.returncode == 0  # Ctrl-C is how it ends
        pinned = [card for card in watched.cards if card.pinned]
        assert [card.tag for card in pinned] == ([MEAN, CURVE] if seeds > 1 else [CURVE])
        assert watched.smoothing == "0"
        assert len({watched.colours[name] for name in judged}) == policies
        for run, colour in watched.colours.items():  # of the rows that are on the screen
            assert colour == watched.colours[run if run in judged else run.partition("/")[0]]
        for card in pinned:
            for name in judged:
                assert card.pixels(watched.colours[name]) > 20, f"no curve of {name} in {card.tag}"
