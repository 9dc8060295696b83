"""The command line: conbandit run | report | plot."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code: 0 done, 1 some runs failed, 2 bad input, 130 interrupted."""
    parser = argparse.ArgumentParser(prog="conbandit", description="Conversational contextual bandits.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser(
        "run",
        help="run an experiment from a YAML config",
        description="Run every policy of a config on the same rounds, and compare them.",
        epilog="Any other value of the config is overridden by its dotted key, for example "
        "--policies.ConUCB.init_args.alpha 0.1",
        allow_abbrev=False,
    )
    run.add_argument("config", type=Path, metavar="CONFIG", help="YAML file")
    run.add_argument("--rounds", metavar="N", help="rounds to play")
    run.add_argument("--seeds", metavar="S", help="for example 0,1,2 or 0-9")
    run.add_argument("--jobs", type=int, default=1, metavar="J", help="runs at the same time (default: 1)")
    run.add_argument(
        "--threads",
        type=int,
        metavar="T",
        help="threads of torch in a run (default: 1 if J > 1, else torch's)",
    )
    run.add_argument("--out", type=Path, metavar="DIR", help="folder for the results (default: a new one)")
    report = commands.add_parser("report", help="compare the policies of a results folder")
    report.add_argument("folder", type=Path, metavar="DIR", help="results of `conbandit run`")
    report.add_argument("--baseline", metavar="NAME", help="compare with this policy (default: the first)")
    plot = commands.add_parser("plot", help="draw the curves of a results folder, as PNG and PDF")
    plot.add_argument("folder", type=Path, metavar="DIR", help="results of `conbandit run`")
    options, rest = parser.parse_known_args(arguments)

    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    try:
        return _command(options, rest, console)
    except KeyboardInterrupt:
        console.print("conbandit: interrupted; what had finished is kept", style="red")
        return 130


def _command(options: argparse.Namespace, rest: list[str], console: Console) -> int:
    # Imported here, so that --help does not wait for torch.
    from conbandit_torch.config_errors import ConfigError

    try:
        if options.command == "run":
            return _run(options, _overrides(rest), console)
        if rest:
            raise ConfigError(f"unexpected argument {rest[0]!r}")
        return {"report": _report, "plot": _plot}[options.command](options)
    except ConfigError as error:
        problem = str(error)
    except OSError as error:
        problem = f"{error.filename or 'results'}: {error.strerror or error}"
    console.print(f"conbandit: {problem}", style="red", soft_wrap=True)
    return 2


def _run(options: argparse.Namespace, overrides: list[tuple[str, str]], console: Console) -> int:
    from conbandit_torch.config import load
    from conbandit_torch.config_errors import ConfigError
    from conbandit_torch.runner import results_folder, run
    from conbandit_torch.tables import summary_table

    sys.path.insert(0, str(Path.cwd()))  # so that a config can name a class in a file beside it
    for name in ("rounds", "seeds"):
        if getattr(options, name) is not None:
            overrides.append((name, getattr(options, name)))
    for name in ("jobs", "threads"):
        if (value := getattr(options, name)) is not None and value < 1:
            raise ConfigError(f"--{name} must be at least 1, got {value}")
    experiment = load(options.config, overrides)
    folder = results_folder(options.out, options.config)
    rows = run(experiment, folder, console, jobs=options.jobs, threads=options.threads)
    output = _output()
    output.print(summary_table(rows, experiment))
    failed = [row for row in rows if "error" in row]
    for row in failed:
        output.print(f"FAILED: {row['policy']} seed {row['seed']}: {row['error']}", soft_wrap=True)
    output.print(f"Results: {folder}/summary.csv\nCurves:  tensorboard --logdir {folder}", soft_wrap=True)
    return 1 if failed else 0


def _report(options: argparse.Namespace) -> int:
    from conbandit_torch.report import compare
    from conbandit_torch.results import read_results

    report = compare(read_results(options.folder), options.baseline)
    path = options.folder / "report.md"
    path.write_text(report.markdown(), encoding="utf-8")
    output = _output()
    output.print(report.table())
    output.print(f"{report.order}\n\n{report.notes}\nReport: {path}", soft_wrap=True)
    return 0


def _plot(options: argparse.Namespace) -> int:
    from conbandit_torch.config_errors import ConfigError
    from conbandit_torch.plots import draw_all
    from conbandit_torch.results import read_results

    if find_spec("matplotlib") is None:
        raise ConfigError("conbandit plot needs matplotlib: pip install matplotlib")
    for path in draw_all(read_results(options.folder), options.folder / "plots"):
        _output().print(str(path), soft_wrap=True)
    return 0


def _output() -> Console:
    return Console(markup=False, emoji=False, highlight=False)


def _overrides(rest: list[str]) -> list[tuple[str, str]]:
    """Dotted `--a.b value` or `--a.b=value` arguments as pairs."""
    from conbandit_torch.config_errors import ConfigError

    pairs, words = [], iter(rest)
    for word in words:
        key, equals, value = word.partition("=")
        if not key.startswith("--"):
            raise ConfigError(f"unexpected argument {word!r}; overrides are written --key value")
        if not equals:
            value = next(words, "")
            if not value:
                raise ConfigError(f"{key}: a value is missing")
        pairs.append((key.removeprefix("--"), value))
    return pairs
