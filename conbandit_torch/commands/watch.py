"""conbandit watch: TensorBoard on a results folder, opened on the regret curves."""

from __future__ import annotations

import argparse
import json
import threading
import time
import urllib.request
import webbrowser
from pathlib import Path
from urllib.parse import quote, urlencode

from conbandit_torch.commands.ports import check_port
from conbandit_torch.commands.terminal import Terminal
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.running.folder import EVENTS
from conbandit_torch.running.objective import CTR, REGRET

_HOST = "127.0.0.1"  # curves are for who sits at this machine
_PATIENCE = 60.0  # seconds for TensorBoard to read the files, before its address is given all the same
_BY_POLICY = r"regex:^(.*?)(?:/seed\d+)?$"  # the part in brackets has a colour of its own
_NO_SEEDS = r"^(?!.*/seed\d+$)"


def main(options: argparse.Namespace, overrides: list[tuple[str, str]], console: Terminal) -> int:
    """Run the command; returns the exit code."""
    runs = _runs(options.folder)
    server = _serve(options.folder, options.port)
    tags = _tags(server, runs)
    output = Terminal()
    address = address_of_curves(server, tags)
    output.print(f"Curves: {address}", soft_wrap=True)
    if any(objective.tags_over_seeds[0] in tags for objective in (REGRET, CTR)):
        output.print(f"Bands:  {address_of_bands(server)}", soft_wrap=True)
    output.print("Ctrl-C ends TensorBoard.")
    if not options.no_browser:
        webbrowser.open(address)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return 0
    return 0


def address_of_curves(server: str, tags: set[str]) -> str:
    """Time Series with what policies are judged by pinned, as it was recorded, in one colour per policy."""
    objective = CTR if CTR.tag in tags else REGRET
    pinned = [{"plugin": "scalars", "tag": tag} for tag in (objective.tags_over_seeds[0], objective.tag)]
    query = {
        "pinnedCards": json.dumps(pinned, separators=(",", ":")),
        "smoothing": 0,
        "runColorGroup": _BY_POLICY,
    }
    return f"{server}?{urlencode(query, quote_via=quote)}#timeseries"


def address_of_bands(server: str) -> str:
    """Custom Scalars without the seeds' runs: of more than 40 runs, it would select none."""
    return f"{server}#custom_scalars&regexInput={quote(_NO_SEEDS, safe='')}"


def _runs(folder: Path) -> set[str]:
    """The runs that TensorBoard finds in the folder, by name."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder; `conbandit run CONFIG --out {folder}` makes it")
    runs = {path.parent.relative_to(folder).as_posix() for path in folder.rglob(f"{EVENTS}*")}
    if not runs:
        raise ConfigError(f"{folder}: holds no curves; `conbandit run CONFIG --out {folder}` makes some")
    return runs


def _serve(folder: Path, port: int | None) -> str:
    """Start TensorBoard in a thread of this process; returns its address, which ends in `/`."""
    if port is not None:
        check_port(_HOST, port)
    from tensorboard import program

    board = program.TensorBoard()
    where = ["--logdir", str(folder), "--host", _HOST, "--reload_interval", "5"]
    where += [] if port is None else ["--port", str(port)]  # None: 6006, or the next that is free
    board.configure(("conbandit watch", *where))
    try:
        address: str = board.launch()
    except program.TensorBoardServerException as error:
        raise ConfigError(f"TensorBoard does not start: {str(error).strip()}") from None
    return address


def _tags(server: str, runs: set[str]) -> set[str]:
    """The scalars' tags, as soon as TensorBoard knows all runs: a page that is opened before stays empty."""
    until = time.monotonic() + _PATIENCE
    while True:
        with urllib.request.urlopen(f"{server}data/plugin/scalars/tags", timeout=_PATIENCE) as answer:
            found: dict[str, dict[str, object]] = json.load(answer)
        if runs <= set(found) or time.monotonic() > until:
            return {tag for tags in found.values() for tag in tags}
        time.sleep(0.2)
