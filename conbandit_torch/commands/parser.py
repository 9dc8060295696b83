"""The command line's arguments. This module imports nothing heavy: `conbandit --help` answers at once."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from conbandit_torch import __version__


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands; `command` names the module beside this one that runs it."""
    parser = argparse.ArgumentParser(prog="conbandit", description="Conversational contextual bandits.")
    parser.add_argument("--version", action="version", version=f"conbandit {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser(
        "run",
        help="run an experiment from a YAML config",
        description="Run every policy of a config on the same rounds, and compare them.",
        epilog="Any other value of the config is overridden by its dotted key, for example "
        "--policies.ConUCB.init_args.alpha 0.1",
        allow_abbrev=False,
    )
    run.add_argument("--seeds", metavar="S", help="for example 0,1,2 or 0-9")
    tune = commands.add_parser(
        "tune",
        help="look for good parameters of policies, on seeds of their own",
        description="Search the space in the section `tune` of a config with Optuna. The same command "
        "continues; several commands at once share the work.",
        epilog="Any other value of the config is overridden by its dotted key.",
        allow_abbrev=False,
    )
    tune.add_argument(
        "--policy",
        action="append",
        metavar="NAME",
        help="tune this policy (may be repeated; default: all with a search space)",
    )
    tune.add_argument("--trials", type=int, default=30, metavar="N", help="finished trials (default: 30)")
    tune.add_argument("--seeds", metavar="S", help="seeds of the trials, none of them the evaluation's")
    resume = commands.add_parser(
        "resume",
        help="finish what a killed or stopped run has left",
        description="Continue all unfinished jobs of a results folder exactly, with the config it holds, "
        "which is trusted as `run` trusts a config.",
    )
    resume.add_argument("folder", type=Path, metavar="DIR", help="results of `conbandit run`")
    for command in (run, tune):
        command.add_argument(
            "config", type=Path, metavar="CONFIG", help="YAML file, or the name of one of `conbandit configs`"
        )
        command.add_argument("--rounds", metavar="N", help="rounds to play")
        command.add_argument(
            "--out", type=Path, metavar="DIR", help="folder for results (default: a new one)"
        )
    for command in (run, tune, resume):
        usual: dict[str, Any] = {} if command is resume else {"jobs": 1, "backend": "local"}
        command.set_defaults(**usual)
        command.add_argument("--jobs", type=int, metavar="J", help="how many at the same time (default: 1)")
        command.add_argument(
            "--threads",
            type=int,
            metavar="T",
            help="threads of torch in a job (default: 1 if there are several, else torch's)",
        )
        command.add_argument(
            "--backend",
            choices=("local", "ray"),
            help="where jobs run: on this machine, or on the Ray cluster at RAY_ADDRESS (none: a local one)",
        )
    for command in (run, resume):
        command.set_defaults(**({} if command is resume else {"devices": 1, "num_nodes": 1}))
        command.add_argument(
            "--devices", type=int, metavar="N", help="split users over N processes of a machine (default: 1)"
        )
        command.add_argument("--num-nodes", type=int, metavar="M", help="on M machines (default: 1)")
    _add_leaderboard(commands)
    watch = commands.add_parser(
        "watch",
        help="open TensorBoard on the regret curves of a results folder",
        description="Start TensorBoard for this machine alone, and open it on the regret curves: pinned, "
        "not smoothed, in one colour per policy. Works while a run goes on.",
    )
    watch.add_argument("folder", type=Path, metavar="DIR", help="results of `conbandit run`")
    watch.add_argument("--port", type=int, metavar="P", help="default: 6006, or the next that is free")
    watch.add_argument("--no-browser", action="store_true", help="print the address, and open nothing")
    report = commands.add_parser("report", help="compare the policies of a results folder")
    report.add_argument(
        "folder", type=Path, metavar="DIR", help="results of `conbandit run`, or a study with people"
    )
    report.add_argument("--store", metavar="URL", help="the database of a study whose events are not in DIR")
    plot = commands.add_parser("plot", help="draw the curves of a results folder, as PNG and PDF")
    plot.add_argument("folder", type=Path, metavar="DIR", help="results of `conbandit run`")
    plot.add_argument("--log-x", action="store_true", help="rounds on a logarithmic axis")
    for command in (report, plot):
        command.add_argument(
            "--baseline", metavar="NAME", help="compare with this policy (default: the first)"
        )
    _add_first_steps(commands)
    _add_people(commands)
    _add_data(commands)
    return parser


def _add_leaderboard(commands: Any) -> None:
    board = commands.add_parser(
        "leaderboard",
        help="every policy, one protocol: run what is missing, and write one page",
        description="Tune and evaluate every policy on every task with equal budgets, and write the page: "
        "ranks, claims, tables. What the folder holds is kept; a command that was stopped goes on.",
        allow_abbrev=False,
    )
    board.add_argument(
        "board", type=Path, nargs="?", metavar="BOARD", help="folder of a board (default: the package's)"
    )
    board.add_argument("--protocol", metavar="NAME", help="how large (default: the board's first)")
    board.add_argument(
        "--add", type=Path, nargs="+", default=[], metavar="FILE", help="more policies, like policies.yaml"
    )
    board.add_argument("--policies", nargs="+", metavar="NAME", help="run these alone (default: all)")
    board.add_argument("--tasks", nargs="+", metavar="NAME", help="run these alone (default: all)")
    both = ("tuned", "published")
    board.add_argument(
        "--parameters",
        nargs="+",
        choices=both,
        default=both,
        help="evaluate with these alone (default: both)",
    )
    board.add_argument("--page-only", action="store_true", help="run nothing, and write the page")
    board.add_argument("--out", type=Path, metavar="DIR", help="default: runs/leaderboard-PROTOCOL")
    board.add_argument("--jobs", type=int, default=1, metavar="J", help="how many at a time (default: 1)")
    board.add_argument("--backend", choices=("local", "ray"), default="local", help="where jobs run")


def _add_first_steps(commands: Any) -> None:
    commands.add_parser("configs", help="list the configs that come with this package")
    init = commands.add_parser("init", help="copy a config of this package, to change it")
    init.add_argument("path", type=Path, metavar="FILE", help="where to write it, for example my.yaml")
    init.add_argument(
        "--from",
        dest="source",
        default="quickstart",
        metavar="NAME",
        help="which one (default: quickstart; `conbandit configs` lists them)",
    )
    every = commands.add_parser("list", help="list the policies, environments and other parts of configs")
    every.add_argument("kind", nargs="?", metavar="KIND", help="only these, for example policies")
    describe = commands.add_parser(
        "describe", help="a part's rule, arguments, defaults and lines of a config"
    )
    describe.add_argument("name", metavar="NAME", help="for example ConUCB, or module.Class of your own")


def _add_people(commands: Any) -> None:
    chat = commands.add_parser(
        "chat",
        help="let a policy ask you and recommend to you, at this terminal",
        description="A policy of a config asks you what you like, shows items and learns from your likes. "
        "Everything is kept; the same command goes on.",
        epilog="Any value of the config is overridden by its dotted key, for example "
        "--policies.ConUCB.init_args.alpha=0.1",
        allow_abbrev=False,
    )
    chat.add_argument(
        "config",
        type=Path,
        nargs="?",
        default=Path("live/films"),
        metavar="CONFIG",
        help="YAML file, or the name of one of `conbandit configs` (default: live/films)",
    )
    chat.add_argument("--policy", metavar="NAME", help="who recommends (default: the config's first)")
    chat.add_argument("--user", metavar="NAME", help="who you are (default: your login)")
    serve = commands.add_parser(
        "serve",
        help="the same in a browser and as REST: a study with many people",
        description="Serve a page and a REST interface. Every visitor is given one of the config's policies "
        "at random. Only this machine reaches it, unless --host says otherwise; then it needs a token.",
        epilog="Any value of the config is overridden by its dotted key, as in `conbandit run`.",
        allow_abbrev=False,
    )
    serve.add_argument(
        "config", type=Path, metavar="CONFIG", help="YAML file, or the name of one of `conbandit configs`"
    )
    serve.add_argument("--host", default="127.0.0.1", metavar="H", help="default: this machine alone")
    serve.add_argument("--port", type=int, default=8000, metavar="P", help="default: 8000")
    serve.add_argument(
        "--token", metavar="T", help="of the admin page (default: CONBANDIT_TOKEN, or a new one)"
    )
    serve.add_argument("--title", default="What do you like?", metavar="TEXT", help="over the page")
    serve.add_argument("--consent", type=Path, metavar="FILE", help="a text that visitors agree to")
    serve.add_argument(
        "--rate", type=float, default=20.0, metavar="R", help="requests per second of a visitor (default: 20)"
    )
    serve.add_argument(
        "--joins", type=int, default=60, metavar="N", help="visitors per minute of an address (default: 60)"
    )
    serve.add_argument("--https", action="store_true", help="people reach it by https alone, through a proxy")
    export = commands.add_parser(
        "export",
        help="write what people did as tables that the reader Table and Replay read",
        description="Write feedback.csv, items.csv and answers.csv of a study with people.",
    )
    export.add_argument("folder", type=Path, metavar="DIR", help="of `conbandit serve` or `conbandit chat`")
    export.add_argument("to", type=Path, metavar="OUT", help="a new folder")
    export.add_argument("--store", metavar="URL", help="the database of the events, if they are not in DIR")
    for command in (chat, serve):
        command.add_argument("--items", type=int, default=3, metavar="K", help="shown at a time (default: 3)")
        command.add_argument(
            "--out",
            type=Path,
            metavar="DIR",
            help="where all is kept (default: people/ and the config's name)",
        )
        command.add_argument(
            "--store", metavar="URL", help="a PostgreSQL database for the events (default: SQLite in DIR)"
        )


def _add_data(commands: Any) -> None:
    data = commands.add_parser("data", help="look at, or prepare, a folder of real data")
    kinds = data.add_subparsers(dest="data_command", required=True)
    more = (
        "Any other argument is a parameter of the reader, for example --min_user_feedback 20 "
        "(a reader's docstring lists them)."
    )
    inspect = kinds.add_parser(
        "inspect",
        help="recognise the format, and count",
        description="Say which format a folder has, what is in it, and what the thresholds leave.",
        epilog=more,
        allow_abbrev=False,
    )
    prepare = kinds.add_parser(
        "prepare",
        help="make features, clicks and preferences, and keep them for runs",
        description="Prepare a folder of real data for runs, and print the lines of a config that use it.",
        epilog=more,
        allow_abbrev=False,
    )
    prepare.add_argument(
        "--dim",
        type=_whole_number_or_null,
        default=50,
        metavar="D",
        help="features per item (default: 50); null: the side features themselves",
    )
    prepare.add_argument("--ridge", type=float, default=1.0, metavar="R", help="of preferences (default: 1)")
    prepare.add_argument("--seed", type=int, default=0, metavar="S", help="of drawn negatives (default: 0)")
    prepare.add_argument(
        "--cache", metavar="DIR", help="default: $CONBANDIT_CACHE, or else ~/.cache/conbandit_torch"
    )
    for command in (inspect, prepare):
        command.add_argument("path", metavar="PATH", help="folder of the data, or one of its files")
        command.add_argument(
            "--reader", metavar="CLASS", help="instead of recognising it: Yelp, or my_file.MyReader"
        )


def _whole_number_or_null(text: str) -> int | None:
    return None if text == "null" else int(text)
