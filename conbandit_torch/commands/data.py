"""conbandit data inspect | prepare: what is in a folder of real data, and preparing it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import rich.table
import yaml

from conbandit_torch.commands.terminal import Terminal
from conbandit_torch.configuration.build import build_part
from conbandit_torch.configuration.yaml_files import value_of
from conbandit_torch.core.errors import ConfigError, DataError
from conbandit_torch.datasets.base import Dataset, Reader
from conbandit_torch.datasets.cache import cache_path
from conbandit_torch.datasets.doubts import doubts
from conbandit_torch.datasets.prepare import prepare
from conbandit_torch.datasets.readers.coat import Coat
from conbandit_torch.datasets.readers.json_reviews import JsonReviews
from conbandit_torch.datasets.readers.kuai import Kuai
from conbandit_torch.datasets.readers.lastfm import LastFM
from conbandit_torch.datasets.readers.mind import MIND
from conbandit_torch.datasets.readers.movielens import MovieLens
from conbandit_torch.datasets.readers.open_bandit import OpenBandit
from conbandit_torch.datasets.readers.table import Table
from conbandit_torch.datasets.readers.yelp import Yelp
from conbandit_torch.datasets.reading.files import expand, need_libraries, require


def main(options: argparse.Namespace, parameters: list[tuple[str, str]], console: Terminal) -> int:
    """Run the command; returns the exit code."""
    need_libraries()
    output = Terminal()
    reader, part = _reader(options.path, options.reader, parameters)
    output.print(f"{options.path}: {type(reader).__name__}", soft_wrap=True)
    for path in reader.files():
        output.print(f"  {path.name}  {_size(path)}", soft_wrap=True)
    if options.data_command == "inspect":
        data = reader.read()
        output.print(_table(data, reader))
        for doubt in doubts(data, reader.positive_from, reader.has_negatives):
            output.print(f"Looks wrong: {doubt}", soft_wrap=True, markup=False)
        return 0
    _prepare(options, reader, part, output)
    return 0


def _prepare(options: argparse.Namespace, reader: Reader, part: dict[str, Any], output: Terminal) -> None:
    how = {"dim": options.dim, "ridge": options.ridge, "seed": options.seed, "use_feedback_columns": True}
    try:
        prepared = prepare(reader, **how, cache=options.cache)
    except DataError:
        raise
    except ValueError as error:  # of the options
        raise ConfigError(f"--{error}") from None
    path = cache_path(reader, how, options.cache)
    drawn = "" if reader.has_negatives else " (drawn negatives included)"
    output.print(
        f"Prepared {len(prepared.theta):,} users, {len(prepared.features):,} items, "
        f"{len(prepared.term_names):,} key-terms, {len(prepared.users):,} events{drawn}, "
        f"{prepared.features.shape[1]} features.\n"
        f"Kept in {path} ({_size(path)}).\nTo run on it:\n",
        soft_wrap=True,
    )
    given = {"data": part, "dim": options.dim}
    given |= {"ridge": options.ridge} if options.ridge != 1 else {}
    given |= {"data_seed": options.seed} if options.seed else {}
    given |= {"cache": options.cache} if options.cache else {}
    environment = {"environment": {"class_path": "Ratings", "init_args": given}}
    output.print(yaml.safe_dump(environment, sort_keys=False), end="", soft_wrap=True)


def _reader(path: str, name: str | None, parameters: list[tuple[str, str]]) -> tuple[Reader, dict[str, Any]]:
    """The reader, and how a config would name it."""
    # A config may be run from elsewhere.
    given: dict[str, Any] = {"path": path if path[:1] in ("~", "$") else str(Path(path).absolute())}
    for key, text in parameters:
        try:
            given[key] = value_of(text)
        except Exception:
            raise ConfigError(f"--{key}: {text!r} is not a YAML value") from None
    name = name or recognise(Path(path))
    part = {"class_path": name, "init_args": given}
    reader: Reader = build_part(name, part, Reader)
    return reader, part


def recognise(path: Path) -> str:
    """The name of the reader whose files are there."""
    require(expand(path))
    reasons = []
    readers: tuple[type[Reader], ...] = (
        MovieLens,
        LastFM,
        MIND,
        Yelp,
        OpenBandit,
        Coat,
        Kuai,
        JsonReviews,
        Table,
    )
    for kind in readers:
        try:
            kind(path).files()  # type: ignore[call-arg]
        except DataError as error:
            reasons.append(f"  not {kind.__name__}: {str(error).removeprefix(f'{path}: ')}")
        else:
            return kind.__name__
    raise DataError("\n".join([f"{path}: no known format", *reasons]))


def _table(data: Dataset, reader: Reader) -> rich.table.Table:
    """What was read, and what is left."""
    table = rich.table.Table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    for name, count in data.counts.items():
        table.add_row(name, f"{count:,}")
    table.add_section()
    terms = np.diff(data.item_terms.indptr)
    left = {
        "users left": len(data.users),
        "items left": len(data.items),
        "feedback left": len(data.feedback.users),
        "key-terms": len(data.terms),
        "side features": len(data.side_names),
    }
    for name, count in left.items():
        table.add_row(name, f"{count:,}")
    if data.events is not None:
        sizes = data.events.sizes[data.events.offers]
        table.add_row("events with candidates of their own", f"{len(data.events.users):,}")
        table.add_row("candidates of an event (least / most)", f"{int(sizes.min()):,} / {int(sizes.max()):,}")
    spread = f"{terms.mean():.2f} / {np.median(terms):g} / {terms.max()}"
    table.add_row("key-terms per item (mean / median / max)", spread)
    if reader.has_negatives:
        share = f"{(data.feedback.values >= reader.positive_from).mean():.1%}"
        table.add_row(f"positive (at least {reader.positive_from:g})", share)
    else:
        table.add_row("positive", "all; negatives are drawn")
    return table


def _size(path: Path) -> str:
    size = float(path.stat().st_size)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.4g} {unit}"
        size /= 1000
    return f"{size:.4g} GB"
