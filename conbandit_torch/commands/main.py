"""The command line: conbandit run | resume | tune | report | plot | data."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from conbandit_torch.commands import data as data_command

if TYPE_CHECKING:
    from conbandit_torch.running.plan import Experiment


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
        command.add_argument("config", type=Path, metavar="CONFIG", help="YAML file")
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
    report = commands.add_parser("report", help="compare the policies of a results folder")
    report.add_argument("folder", type=Path, metavar="DIR", help="results of `conbandit run`")
    plot = commands.add_parser("plot", help="draw the curves of a results folder, as PNG and PDF")
    plot.add_argument("folder", type=Path, metavar="DIR", help="results of `conbandit run`")
    for command in (report, plot):
        command.add_argument(
            "--baseline", metavar="NAME", help="compare with this policy (default: the first)"
        )
    data_command.add_commands(commands)
    options, rest = parser.parse_known_args(arguments)

    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    try:
        return _command(options, rest, console)
    except KeyboardInterrupt:
        console.print("conbandit: interrupted; what had finished is kept", style="red")
        return 130


def _command(options: argparse.Namespace, rest: list[str], console: Console) -> int:
    # Imported here, so that --help does not wait for torch.
    from conbandit_torch.configuration.errors import ConfigError
    from conbandit_torch.core.checks import printable
    from conbandit_torch.datasets.base import DataError

    try:
        if options.command in ("run", "tune"):
            _check_how(options)
            sys.path.insert(0, str(Path.cwd()))  # so that a config can name a class in a file beside it
            overrides = _overrides(rest)
            if options.rounds is not None:
                overrides.append(("rounds", options.rounds))
            return {"run": _run, "tune": _tune}[options.command](options, overrides, console)
        if options.command == "resume":
            _check_how(options)
            if rest:
                raise ConfigError(f"unexpected argument {rest[0]!r}: a resumed experiment cannot be changed")
            return _resume(options, console)
        if options.command == "data":
            sys.path.insert(0, str(Path.cwd()))
            return data_command.run(options, _overrides(rest), _output())
        if rest:
            raise ConfigError(f"unexpected argument {rest[0]!r}")
        return {"report": _report, "plot": _plot}[options.command](options)
    except (ConfigError, DataError) as error:
        problem = str(error)
    except OSError as error:
        problem = f"{error.filename or 'results'}: {error.strerror or error}"
    console.print(printable(f"conbandit: {problem}"), style="red", soft_wrap=True)
    return 2


def _run(options: argparse.Namespace, overrides: list[tuple[str, str]], console: Console) -> int:
    from conbandit_torch.configuration.load import load
    from conbandit_torch.running.runner import results_folder

    if options.seeds is not None:
        overrides.append(("seeds", options.seeds))
    experiment = load(options.config, overrides)
    how = {key: getattr(options, key) for key in ("jobs", "threads", "backend", "devices", "num_nodes")}
    return _run_into(experiment, lambda: results_folder(options.out, options.config), console, **how)


def _resume(options: argparse.Namespace, console: Console) -> int:
    from conbandit_torch.configuration.load import load
    from conbandit_torch.running.folder import EXPERIMENT
    from conbandit_torch.running.runner import how_it_ran

    how = how_it_ran(options.folder)
    how |= {key: value for key in how if (value := getattr(options, key)) is not None}
    sys.path.insert(0, str(Path.cwd()))
    return _run_into(load(options.folder / EXPERIMENT), lambda: options.folder, console, **how)


def _run_into(
    experiment: Experiment,
    folder_of: Callable[[], Path],
    console: Console,
    *,
    devices: int,
    num_nodes: int,
    **how: Any,
) -> int:
    from conbandit_torch.configuration.errors import ConfigError
    from conbandit_torch.core.checks import printable
    from conbandit_torch.results.tables import summary_table
    from conbandit_torch.running.folder import SUMMARY
    from conbandit_torch.running.job import describe
    from conbandit_torch.running.processes import launch
    from conbandit_torch.running.runner import run

    if devices * num_nodes > 1 and (how["jobs"] > 1 or how["backend"] != "local"):
        raise ConfigError(
            "--devices splits one job's users over processes, --jobs and --backend run several jobs at once: "
            "use one or the other"
        )
    processes = launch(experiment.accelerator, devices, num_nodes)
    folder = processes.broadcast(folder_of())  # the first names it, since its name may hold the time
    results = run(experiment, folder, console, processes=processes, **how)
    failed = [result for result in results if result.error]
    if not failed:
        processes.leave()
    if not processes.is_first:
        for result in results:
            line = printable(f"process {processes.rank}: {describe(result)}")
            console.print(line, style="red", soft_wrap=True)
        return int(bool(results))
    if len(results) < len(experiment.jobs()) or any(result.stopped for result in results):
        line = printable(f"conbandit: stopped; to go on: conbandit resume {folder}")
        console.print(line, style="red", soft_wrap=True)
        return 130
    output = _output()
    output.print(summary_table(results, experiment))
    for result in failed:
        output.print(printable(f"FAILED: {result.policy} seed {result.seed}: {result.error}"), soft_wrap=True)
    where = f"Results: {folder / SUMMARY}\nCurves:  tensorboard --logdir {folder}"
    output.print(printable(where), soft_wrap=True)
    return 1 if failed else 0


def _tune(options: argparse.Namespace, overrides: list[tuple[str, str]], console: Console) -> int:
    from conbandit_torch.configuration.errors import ConfigError
    from conbandit_torch.configuration.load import read
    from conbandit_torch.results.tables import trials_table
    from conbandit_torch.running.runner import results_folder

    if find_spec("optuna") is None:
        raise ConfigError("conbandit tune needs Optuna: pip install optuna")
    from conbandit_torch.tuning.search_space import at_the_edge, read_tunings
    from conbandit_torch.tuning.tune import finished, open_study, tune, write_tuned

    config = read(options.config, overrides)
    tunings = read_tunings(config, options.config, options.policy, options.seeds)
    folder = results_folder(options.out, Path(f"tune-{options.config.stem}"))
    how = {"jobs": options.jobs, "threads": options.threads or 1, "backend": options.backend}
    output = _output()
    for tuning in tunings:
        best = tune(tuning, folder, console, trials=options.trials, **how)
        output.print(trials_table(tuning.policy, finished(open_study(tuning, folder))))
        for name in at_the_edge(tuning, best.params):
            output.print(f"{name} is at an end of its range: a better value may lie beyond", soft_wrap=True)
    # With the policies that earlier commands tuned in this folder, and as many rounds as the config has.
    evaluated = read(options.config, [(key, value) for key, value in overrides if key != "rounds"])
    tuned = write_tuned(read_tunings(config, options.config, None, options.seeds), evaluated, folder)
    output.print(f"Evaluate: conbandit run {tuned}", soft_wrap=True)
    return 0


def _check_how(options: argparse.Namespace) -> None:
    from conbandit_torch.configuration.errors import ConfigError

    for name in ("jobs", "threads", "trials", "devices", "num_nodes"):
        if (value := getattr(options, name, None)) is not None and value < 1:
            raise ConfigError(f"--{name.replace('_', '-')} must be at least 1, got {value}")
    if options.backend == "ray" and find_spec("ray") is None:
        raise ConfigError("--backend ray needs Ray: pip install ray")


def _report(options: argparse.Namespace) -> int:
    from conbandit_torch.results.read import read_results
    from conbandit_torch.results.report import compare
    from conbandit_torch.running.folder import REPORT

    report = compare(read_results(options.folder), options.baseline)
    path = options.folder / REPORT
    path.write_text(report.markdown(), encoding="utf-8")
    output = _output()
    output.print(report.table())
    output.print(f"{report.order}\n\n{report.notes}\nReport: {path}", soft_wrap=True)
    return 0


def _plot(options: argparse.Namespace) -> int:
    from conbandit_torch.configuration.errors import ConfigError
    from conbandit_torch.results.plots import draw_all
    from conbandit_torch.results.read import read_results
    from conbandit_torch.running.folder import PLOTS

    if find_spec("matplotlib") is None:
        raise ConfigError("conbandit plot needs matplotlib: pip install matplotlib")
    for path in draw_all(read_results(options.folder), options.folder / PLOTS, options.baseline):
        _output().print(str(path), soft_wrap=True)
    return 0


def _output() -> Console:
    return Console(markup=False, emoji=False, highlight=False)


def _overrides(rest: list[str]) -> list[tuple[str, str]]:
    """Dotted `--a.b value` or `--a.b=value` arguments as pairs."""
    from conbandit_torch.configuration.errors import ConfigError

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
