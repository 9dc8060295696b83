"""Feeds mutated configs, recordings, checkpoints and data to the package, and counts what becomes of them.

    python -m experiments.fuzz --inputs 10000 --seed 0 --out DIR

A quarter each: config files (load, read the search space, build what is small), recordings (`Recorded`),
checkpoints (read and restore) and real data (read and prepare). Whatever comes in, it is accepted or it is
refused with the one error that the package promises: `ConfigError`, `ValueError`, `CheckpointError`,
`DataError`. Any other exception, ten seconds (of the
processor) without an end, and code of an input that was run are failures. Prints a table, and writes it to
`DIR/fuzz.md`; of every sort of failure the first few inputs are kept in `DIR/failed`. The exit code is 1 if
there are any.

An input depends on its seed, kind and number alone, so that a failure comes again.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gzip
import hashlib
import io
import json
import logging
import pickle
import random
import re
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import optuna.distributions  # noqa: F401 - imported before the first input: its seconds are counted
import torch
import yaml
from safetensors.torch import save

import conbandit_torch
from conbandit_torch import ConUCB, DataError, HConUCB, Recorded, Simulation, Synthetic, prepare
from conbandit_torch.configuration.build import build_environment, build_policy
from conbandit_torch.configuration.load import load, read
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.core.seals import sealed, unsealed
from conbandit_torch.running.checkpoint import CheckpointError, SavedState, read_checkpoint, write_checkpoint
from conbandit_torch.running.plan import Plan
from conbandit_torch.tuning.search_space import read_tunings
from experiments.small_sources import Small, small_sources

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGE = f"{Path(conbandit_torch.__file__).parent}/"
SECONDS = 10  # of patience with one input, in time of the processor: the machine may be busy
HEADROOM = 4 * 2**30  # bytes that an input may take
KEPT = 3  # inputs of each sort of failure
NOTHING = "nothing"  # was changed: that must be accepted


class HangError(BaseException):
    """An input took too long; no Exception, so that nobody catches it on the way."""


class Kind(Protocol):
    """A kind of input: how to make one, how the package takes it, and how it may refuse it."""

    refusal: type[Exception]
    mutations: dict[str, int]  # what can be done to an input, and how often

    def write(self, mutation: str, generator: random.Random, folder: Path) -> None:
        """Write an input into the empty folder."""

    def use(self, folder: Path) -> None:
        """Do with it what a user would."""


class Bomb:
    """An object whose unpickling leaves a file behind."""

    def __init__(self, exploded: Path) -> None:
        self.exploded = exploded

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.exploded), "w")


def edited(generator: random.Random, content: bytes, alphabet: bytes = bytes(range(256))) -> bytes:
    """The bytes after one to six random edits."""
    data = bytearray(content)
    for _ in range(generator.choice((1, 1, 1, 2, 3, 6))):
        at = generator.randrange(len(data) + 1)
        span = slice(at, at + generator.choice((1, 1, 2, 8, 64)))
        edit = generator.choice((0, 0, 0, 1, 1, 1, 2, 3, 4, 5, 6))
        if edit == 0:
            data[at : at + 1] = (byte ^ 1 << generator.randrange(8) for byte in data[at : at + 1])
        elif edit == 1:
            data[at : at + 1] = [generator.choice(alphabet)]
        elif edit == 2:
            del data[span]
        elif edit == 3:
            data[at:at] = bytes(generator.choices(alphabet, k=generator.choice((1, 2, 16))))
        elif edit == 4:  # a piece of it once more, somewhere
            to = generator.randrange(len(data) + 1)
            data[to:to] = data[span]
        elif edit == 5:
            data[span] = bytes(len(data[span]))
        else:
            del data[at:]
    return bytes(data)


# Configs.

SMALL = {"users": 4, "arms": 40, "terms": 8, "dim": 8, "pool": 6, "rounds": 12, "events": 40}
SIZES = ("users", "arms", "terms", "dim", "pool", "hidden_dim", "events")
YAML_BYTES = b"{}[]&*!|>'\"%@`:,-#?~<=\t\n \\\0\x07\x85\xff\xc3\xe2019.eE+_xo"
CLASS_PATHS = """\
os.system
os:system
subprocess.Popen
builtins.eval
builtins.exec
builtins.object
typing.Any
torch.nn.Module
nonexistent
nonexistent.module
conbandit_torch.Bandit
conbandit_torch.Synthetic
conbandit_torch.nothing
conbandit_torch..Bandit
conbandit_torch.__main__.main
LogSchedule
Lemma1
LinUCB
Recorded
.
:\
""".splitlines()
NASTY = r"""
null
~
.nan
.inf
-.inf
-1
0
1
1.5
-0.0
1e400
-1e400
1e-320
true
08
0o17
1_0
1:30
0-3
3-1
0-99999999
2001-12-14
2001-99-99
*
&
!
|
%
''
' '
'.'
'{}'
'@config'
'/dev/zero'
'😀'
"\0"
"\ud800"
"\x85\u2028"
many words here
[]
[[]]
[null]
[1, 2, 3]
{}
{a: 1}
{1: 2}
{null: null}
{'': ''}
{[a]: b}
{? [a] : b}
{<<: 1}
{<<: [1]}
{<<: {a: 1}}
*nowhere
&a [*a]
&a {b: *a}
&a {<<: *a}
!!binary aGk=
!!binary '%'
!!set {a, b}
!!omap [a: 1]
!!pairs [a: 1]
!!int x
!!int 0x
!!float x
!!bool x
!!null x
!!timestamp x
!!str 1
!!map [1]
!!seq {a: 1}
!unknown x
!!python/object/apply:os.system [touch EXPLODED]
!!python/object/new:os.system [touch EXPLODED]
!!python/name:os.system ''
!!python/module:os ''
!!python/tuple [1]
{init_args: {}}
{class_path: [os.system]}
{class_path: Lemma1, init_args: {sigma: 2}}
{class_path: Lemma1, init_args: null}
{class_path: OneLevel}
{low: a}
{low: a, high: b}
{low: [], high: {}}
{low: 0, high: 1}
{low: 1, high: 0}
{low: .nan, high: 1}
{low: 0, high: .inf}
{low: 0, high: 1, log: true}
{low: 0, high: 1, step: 0}
{low: 0, high: 9, step: -1}
{low: 0, high: 9, step: .nan}
{low: 0, high: 1e308, step: 1e-308}
{low: 1, high: 2, log: perhaps}
{low: 1, high: 9, step: 2, log: true}
{low: 0, high: 99999999999999999999999, step: 1}
""".strip().splitlines()
NUMBERS = ("1", "2", "3", "0.3", "0.9", "1e-3")
MILD = """\
cpu
skip
binary
64-true
[0.1, 0.5]
{low: 0.1, high: 0.5}
OneLevel
LogSchedule
LinUCB
{class_path: Lemma1}
{class_path: LinearSchedule, init_args: {every: 3}}
{class_path: TwoLevels, init_args: {mix: 0.2}}\
""".splitlines()
LONG = (
    "9" * 30,
    "-" + "9" * 400,
    "9" * 5000,
    "0x" + "f" * 5000,
    "0." + "1" * 5000,
    "'" + "long " * 4000 + "'",
)
DEEP = (300 * "[" + 300 * "]", 300 * "{a: " + 300 * "}", 2000 * "[")


def laughs(levels: int) -> str:
    """Aliases of aliases: ten to the number of levels, in a few hundred characters."""
    anchors = ["&l0 [x]", *(f"&l{n + 1} [{', '.join(10 * [f'*l{n}'])}]" for n in range(levels))]
    return f"[{', '.join(anchors)}]"


def nasty_values(exploded: Path) -> list[str]:
    """Pieces of YAML, each on one line, that no config wants."""
    values = [value.replace("EXPLODED", str(exploded)) for value in NASTY]
    values += [*LONG, *DEEP, laughs(8), *CLASS_PATHS]
    for path in CLASS_PATHS:
        bomb = f"{{command: touch {exploded}, args: [touch, {exploded}]}}"
        values += [f"{{class_path: '{path}'}}", f"{{class_path: '{path}', init_args: {bomb}}}"]
    return values


class Configs:
    """The files of `configs`, made small: bytes, lines, values, keys."""

    refusal = ConfigError
    mutations = {"bytes": 3, "lines": 3, "keys": 3, "values": 10, "both": 2, NOTHING: 1}  # noqa: RUF012

    def __init__(self, exploded: Path) -> None:
        self.values = nasty_values(exploded)
        self.whole: list[str] = []  # with comments, anchors and merge keys
        self.parts: list[dict[str, Any]] = []  # with one policy each, because classes take time to check
        for path in sorted((REPOSITORY / "configs").rglob("*.yaml")):
            text = path.read_text(encoding="utf-8")
            for name, size in SMALL.items():
                text = re.sub(rf"^( *{name}): \d+", rf"\1: {size}", text, flags=re.MULTILINE)
            config = yaml.safe_load(text)
            if "environment" not in config:
                continue  # a part of the leaderboard, which has a reader of its own
            if "data" in config["environment"]["init_args"]:
                continue  # it needs files that are not there
            config["seeds"] = "0-9"  # the file's own loader would not take it for a number
            if len(config["policies"]) <= 3:
                self.whole.append(text)
            for name, policy in config["policies"].items():
                tune = config.get("tune", {"space": {}})
                part = {**config, "policies": {name: policy}}
                part.pop("tune", None)
                if name in tune["space"]:
                    part["tune"] = {"seeds": "100-101", "space": {name: tune["space"][name]}}
                    if name in tune.get("start", {}):
                        part["tune"]["start"] = {name: tune["start"][name]}
                self.parts.append(part)

    def write(self, mutation: str, generator: random.Random, folder: Path) -> None:
        """Write `config.yaml`."""
        part = generator.choice(self.parts)
        text = generator.choice(self.whole) if generator.random() < 0.2 else self._dump(part)
        if mutation in ("values", "keys", "both"):
            text = self._with_values(generator, part, keys=mutation == "keys")
        if mutation == "lines":
            text = self._with_lines(generator, text)
        content = text.encode(errors="surrogatepass")
        if mutation in ("bytes", "both"):
            content = edited(generator, content, YAML_BYTES)
        (folder / "config.yaml").write_bytes(content)

    def use(self, folder: Path) -> None:
        """Load it, and build what is small enough or read the search space."""
        path = folder / "config.yaml"
        experiment = load(path)
        experiment.dump()
        job = experiment.jobs()[0]
        experiment.hparams(*job)
        content = read(path)
        if "tune" in content:
            for tuning in read_tunings(content, path):
                tuning.current()
        elif self._is_small(experiment):
            environment = build_environment(experiment, job[1])
            for name in experiment.policies:
                build_policy(experiment, name, environment, job[1])

    @staticmethod
    def _is_small(experiment: Plan) -> bool:
        parts = (experiment.environment, *experiment.policies.values())
        given = [part["init_args"].get(size) for part in parts for size in SIZES]
        return all(not isinstance(size, int) or size <= 50 for size in given)

    @staticmethod
    def _dump(config: dict[str, Any]) -> str:
        text: str = yaml.dump(config, Dumper=_Plain, sort_keys=False)
        return text

    def _with_values(self, generator: random.Random, config: dict[str, Any], keys: bool) -> str:
        """The config with one to three of its values, or keys, replaced."""
        config = json.loads(json.dumps(config))
        inserted = []
        for _ in range(generator.choice((1, 1, 1, 2, 3))):
            holder, key = generator.choice(list(_places(config)))
            mark = f"@{len(inserted)}@"
            value = generator.choice(self.values)
            if generator.random() < 0.3:
                value = generator.choice(NUMBERS if isinstance(holder[key], int | float) else MILD)
            if key == "class_path" and generator.random() < 0.8:
                value = generator.choice(CLASS_PATHS)
            inserted.append(value)
            if keys and isinstance(holder, dict):
                keep = generator.random() < 0.3  # one more, or another in its place
                holder[mark] = holder[key] if keep else holder.pop(key)
            else:
                holder[key] = mark
        text = self._dump(config)
        for number, value in enumerate(inserted):
            text = text.replace(f"'@{number}@'", value)
        return text

    @staticmethod
    def _with_lines(generator: random.Random, text: str) -> str:
        """The text with some lines deleted, doubled, moved or indented."""
        lines = text.splitlines(keepends=True)
        for _ in range(generator.choice((1, 1, 2, 4))):
            at, to = generator.randrange(len(lines)), generator.randrange(len(lines))
            edit = generator.randrange(4)
            if edit == 0 and len(lines) > 1:
                del lines[at]
            elif edit == 1:
                lines.insert(to, lines[at])
            elif edit == 2:
                lines[at], lines[to] = lines[to], lines[at]
            else:
                lines[at] = "  " + lines[at] if generator.random() < 0.5 else lines[at].removeprefix("  ")
        return "".join(lines)


class _Plain(yaml.SafeDumper):
    """YAML without anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """(mapping or list, key or position) of everything below the node."""
    for key in list(node) if isinstance(node, dict) else range(len(node) if isinstance(node, list) else 0):
        yield node, key
        yield from _places(node[key])


# Recordings.

DTYPES = ("f2", "f4", "g", ">f8", "i1", "i8", ">i4", "u8", "?", "c16", "S3", "U3", "M8[D]", "V4", "i4,f4")


class Traces:
    """A small recording: the archive's bytes, its members' bytes, and its arrays."""

    refusal = ValueError
    mutations = {"bytes": 3, "files": 2, "members": 6, "arrays": 10, NOTHING: 1}  # noqa: RUF012

    def __init__(self, exploded: Path) -> None:
        self.bomb = Bomb(exploded)
        rng = np.random.default_rng(0)
        N, D, K, U, T, A = 12, 3, 4, 2, 5, 3
        weights = rng.random((N, K)) * (rng.random((N, K)) < 0.5)
        weights[:K] += np.eye(K)
        self.arrays = {
            "X": rng.normal(size=(N, D)),
            "W": weights,
            "theta": rng.normal(size=(U, D)),
            "pools": rng.integers(0, N, (U, T, A)),
            "arm_noise": rng.normal(size=(U, T)),
            "key_term_noise": rng.normal(size=(U, T)),
            "budget": np.arange(T),
            "arms/ConUCB": rng.integers(0, N, (U, T)),
            "regret/ConUCB": rng.random((U, T)),
            "theta_error/ConUCB": rng.random((U, T)),
            "asked/ConUCB": rng.integers(0, K, (U, T - 1)),
        }

    def write(self, mutation: str, generator: random.Random, folder: Path) -> None:
        """Write `trace.npz`."""
        path = folder / "trace.npz"
        if mutation == "files":
            path.write_bytes(self._another_file(generator))
            return
        arrays = dict(self.arrays)
        if mutation == "arrays":
            for _ in range(generator.choice((1, 1, 1, 2, 4))):
                self._change(generator, arrays)
        method = generator.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        spoilt = generator.choice(list(arrays)) if mutation == "members" else ""
        with zipfile.ZipFile(path, "w", method) as archive:
            for name, array in arrays.items():
                content = _npy(array)
                if name == spoilt:  # with a right checksum: in the header, or anywhere
                    end = generator.choice((128, len(content)))
                    digits = b"0123456789()<>|,' fiOSUbTF"
                    content = edited(generator, content[:end], digits) + content[end:]
                archive.writestr(f"{name}.npy", content)
        if mutation == "bytes":
            path.write_bytes(edited(generator, path.read_bytes()))

    def use(self, folder: Path) -> None:
        """Open it, and look at what it holds."""
        environment = Recorded(folder / "trace.npz")
        for name in environment.recorded_policies:
            environment.decisions(name)
        environment.reset()
        environment.expected(environment.observe())

    def _another_file(self, generator: random.Random) -> bytes:
        """A file of another sort, or with something before or after it."""
        whole, foreign = io.BytesIO(), io.BytesIO()
        np.savez(whole, **self.arrays)
        noise = generator.randbytes(64)
        with zipfile.ZipFile(foreign, "w") as archive:
            name = generator.choice(("X", "X.npy", "../X.npy", "X/"))
            archive.writestr(name, generator.choice((b"", b"1,2,3", noise)))
        bomb = np.array([self.bomb], dtype=object)
        files = [_npy(self.arrays["X"]), _npy(bomb), pickle.dumps(self.bomb), foreign.getvalue()]
        files += [whole.getvalue() + noise, noise + whole.getvalue()]
        return generator.choice([*files, noise, b"", b"X,W\n1,2\n", b"PK\x03\x04", b"\x93NUMPY"])

    def _change(self, generator: random.Random, arrays: dict[str, np.ndarray]) -> None:
        """Do something to one of the arrays."""
        name = generator.choice(list(arrays))
        array = arrays.pop(name)
        change = generator.choice(("shape", "dtype", "value", "value", "other", "missing", "name"))
        if change == "missing" and arrays:
            return
        if change == "name":
            name = generator.choice(("arms/", "arms/x", "regret/x", "x", "é", "X/X", "..", "a" * 300))
        elif change == "shape" and array.ndim:
            forms = [array[None], array[:-1], array[:0], array.T, array.repeat(2, 0), array.reshape(-1)]
            array = generator.choice([*forms, array[..., None]])
        elif change == "dtype" and array.dtype != object:
            with contextlib.suppress(ValueError, TypeError):
                array = array.astype(generator.choice(DTYPES))
        elif change == "value" and array.size and array.dtype.kind in "fiu":
            array = array.copy()
            real = array.dtype.kind == "f"
            top = (np.finfo if real else np.iinfo)(array.dtype).max
            numbers = (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e-320, top) if real else (0, 12, 100, top)
            everywhere = generator.random() < 0.2
            where = slice(None) if everywhere else generator.randrange(array.size)
            array.reshape(-1)[where] = generator.choice(
                numbers if array.dtype.kind != "i" else (*numbers, -1)
            )
        elif change == "other":
            bombs = np.full(array.shape, self.bomb, dtype=object)
            array = generator.choice([bombs, np.array(1.0), np.array("text"), np.array(None)])
        arrays[name] = array


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=True)
    return file.getvalue()


# Checkpoints.

ROUNDS = 20


class Checkpoints:
    """A checkpoint of a small simulation: its files' bytes, with and without the checksum, and forgeries."""

    refusal = CheckpointError
    forgeries = {"forged bytes": 3, "header": 3, "tensors": 10}  # noqa: RUF012 - with a right checksum
    mutations = {"manifest bytes": 2, "manifest": 3, "state bytes": 2, "files": 2, NOTHING: 1} | forgeries

    def __init__(self, exploded: Path) -> None:
        self.bomb = Bomb(exploded)
        self.saved: dict[str, tuple[SavedState, dict[str, bytes]]] = {}
        for name in ("ConUCB", "hConUCB"):
            simulation = _simulation(name)
            simulation.rounds = ROUNDS // 2  # the second half is left to play
            simulation.run()
            state = simulation.state()
            folder = write_checkpoint(exploded.parent / "good", state)
            self.saved[name] = state, {file.name: file.read_bytes() for file in folder.iterdir()}
            _simulation(name).restore(read_checkpoint(folder))
        shutil.rmtree(exploded.parent / "good")

    def write(self, mutation: str, generator: random.Random, folder: Path) -> None:
        """Write a checkpoint's two files, and whose it is."""
        name = generator.choice(list(self.saved))
        state, files = self.saved[name]
        manifest, tensors = unsealed(files["manifest.json"].decode()), files["state.safetensors"]
        document = files["manifest.json"]
        if mutation == "manifest bytes":
            document = edited(generator, document, b'{}[]":,0123456789.eE-+NaInfty\\u')
        elif mutation == "manifest":
            document = self._forged_manifest(generator, manifest)
        elif mutation in ("state bytes", "forged bytes"):
            tensors = edited(generator, tensors)
        elif mutation == "header":
            tensors = self._forged_header(generator, tensors)
        elif mutation == "tensors":
            tensors = self._forged_tensors(generator, state)
        if mutation in self.forgeries:
            manifest["states"] = [hashlib.sha256(tensors).hexdigest()]
            if generator.random() < 0.2:
                manifest["round"] = generator.choice((0, 1, ROUNDS, ROUNDS + 1, 10**9, 2**63, 10**400))
            document = sealed(manifest).encode()
        (folder / "manifest.json").write_bytes(document)
        (folder / "state.safetensors").write_bytes(tensors)
        (folder / "policy").write_text(name)
        if mutation == "files":
            self._spoil_files(generator, folder, manifest)

    def use(self, folder: Path) -> None:
        """Go on from it."""
        simulation = _simulation((folder / "policy").read_text())
        simulation.restore(read_checkpoint(folder))

    @staticmethod
    def _forged_manifest(generator: random.Random, manifest: dict[str, Any]) -> bytes:
        nasty = [None, True, False, -1, 0, 1, 2, 1.5, float("nan"), float("inf"), 10**30, 10**400, ROUNDS + 1]
        nasty += ["", "1", "x" * 10000, "\ud800", [], [1], {}, {"a": 1}]
        change = generator.randrange(5)
        if change == 0:
            return json.dumps(generator.choice([*nasty, list(manifest), [manifest]])).encode()
        if change == 1:
            return generator.choice((b"[" * 100_000, b"", b"\xff", b"9" * 5000, b'{"format":' + b"9" * 5000))
        for _ in range(generator.choice((1, 1, 2))):
            key = generator.choice(list(manifest))
            if change == 2:
                del manifest[key]
            else:
                manifest[generator.choice((key, key, key, "more"))] = generator.choice(nasty)
        return sealed(manifest).encode()

    @staticmethod
    def _forged_header(generator: random.Random, tensors: bytes) -> bytes:
        """Another description of the same bytes."""
        size = int.from_bytes(tensors[:8], "little")
        header, data = json.loads(tensors[8 : 8 + size]), tensors[8 + size :]
        name, other = (generator.choice([key for key in header if key != "__metadata__"]) for _ in range(2))
        about = header[name]
        change = generator.randrange(7)
        if change == 0:
            about["dtype"] = generator.choice(
                ("F64", "F16", "BF16", "I64", "U8", "BOOL", "F8_E4M3", "X", None)
            )
        elif change == 1:
            numbers = (0, 1, -1, 7, 2**31, 2**63, 2**64, 1.5, None)
            about["shape"] = generator.choices(numbers, k=generator.randrange(4))
        elif change == 2:
            about["shape"] = about["shape"][::-1] if generator.random() < 0.5 else [*about["shape"], 1]
        elif change == 3:
            about["data_offsets"] = generator.choice(([0, 0], [0, 8], [8, 0], [0, 2**63], [-1, 8], [], None))
        elif change == 4:
            header[name], header[other] = header[other], about
        elif change == 5:
            header[generator.choice(("", "x", "policy.", "records", "__metadata__", "policy.rounds"))] = about
        else:
            del about[generator.choice(list(about))]
        text = json.dumps(header).encode()
        length = generator.choice((*5 * [len(text)], 0, 2**40, 2**64 - 1))
        return length.to_bytes(8, "little") + text + data

    @staticmethod
    def _forged_tensors(generator: random.Random, state: SavedState) -> bytes:
        """A file without any fault of form, of tensors that no simulation has."""
        tensors = dict(state.tensors)
        for _ in range(generator.choice((1, 1, 1, 2, 4))):
            # The records and the logs, which may have any length, are read by code of our own.
            special = [key for key in tensors if key == "records" or ".rewards." in key or ".answers." in key]
            name = generator.choice(special if special and generator.random() < 0.5 else list(tensors))
            tensor = tensors.pop(name)
            flat = tensor.reshape(-1)
            change = generator.choice(("shape", "shape", "dtype", "number", "missing", "name", "more"))
            if change == "missing" and tensors:
                continue
            if change == "shape":
                forms = [
                    tensor[None],
                    tensor[..., None],
                    flat,
                    flat[:0],
                    torch.cat((flat, flat)),
                    tensor.sum(),
                ]
                if tensor.ndim:
                    forms += [tensor[:-1], tensor[:0], tensor[..., :-1], tensor[..., :0], *tensor[:1]]
                    forms += [torch.cat((tensor, tensor)), tensor.transpose(0, -1)]
                tensor = generator.choice(forms)
            elif change == "dtype":
                kinds = (torch.float64, torch.float16, torch.int64, torch.int8, torch.bool, torch.complex64)
                tensor = tensor.to(generator.choice(kinds))
            elif change == "number" and len(flat):
                filled = flat.clone() if flat.is_floating_point() else flat.double()
                where = generator.choice((slice(None), generator.randrange(len(flat)), 0))
                filled[where] = generator.choice((float("nan"), float("inf"), -float("inf"), -1.0, 1e30, 0.0))
                tensor = filled.reshape(tensor.shape)
            elif change in ("name", "more"):
                if change == "more":
                    tensors[name] = tensor
                name = generator.choice(
                    ("", "x", "policy.", "policy.x", "records", "environment", "metrics._sums.x")
                )
            tensors[name] = tensor
        return save({name: tensor.clone().contiguous() for name, tensor in tensors.items()})

    def _spoil_files(self, generator: random.Random, folder: Path, manifest: dict[str, Any]) -> None:
        """A file missing, a folder in its place, or something else inside."""
        path = folder / generator.choice(("manifest.json", "state.safetensors"))
        change = generator.randrange(4)
        path.unlink()
        if change == 1:
            path.mkdir()
        elif change == 2:
            path.write_bytes(b"")
        elif change == 3:
            content = pickle.dumps(self.bomb)
            if generator.random() < 0.5:
                file = io.BytesIO()
                torch.save({"records": torch.zeros(1), "x": self.bomb}, file)
                content = file.getvalue()
            (folder / "state.safetensors").write_bytes(content)
            manifest["states"] = [hashlib.sha256(content).hexdigest()]
            (folder / "manifest.json").write_text(sealed(manifest))


def _simulation(name: str) -> Simulation:
    world = Synthetic(users=4, arms=30, terms=8, dim=5, pool=6, max_terms=3)
    more: dict[str, Any] = {"hidden_dim": 2, "refit_every": 5} if name == "hConUCB" else {}
    policy = (HConUCB if more else ConUCB)(world.catalogue, world.num_users, **more)
    return Simulation(policy, world, rounds=ROUNDS, log_every=3)


# Real data.


class Sources:
    """Small data in every format: the bytes of one of the files."""

    refusal = DataError
    mutations = {"bytes": 6, "digits": 4, "unzipped": 3, "files": 1, NOTHING: 1}  # noqa: RUF012

    def __init__(self, exploded: Path) -> None:
        self.sources = small_sources()
        folder = exploded.parent / "good"
        for source in self.sources.values():  # imports what reading needs: its seconds are not an input's
            folder.mkdir()
            _use_source(source, source.write(folder))
            shutil.rmtree(folder)

    def write(self, mutation: str, generator: random.Random, folder: Path) -> None:
        """Write the files, and which format they are of."""
        name = generator.choice(list(self.sources))
        (folder / "format").write_text(name)
        self.sources[name].write(folder)
        path = folder / generator.choice(list(self.sources[name].files))
        content = path.read_bytes()
        if mutation == "files":
            path.unlink()
            if generator.random() < 0.5:
                path.write_bytes(
                    generator.choice((b"", b"\n", b"\xff\xfe", b"\x1f\x8b", content[:1], b"PAR1"))
                )
        elif mutation == "unzipped" and path.suffix == ".gz":
            path.write_bytes(gzip.compress(edited(generator, gzip.decompress(content))))
        elif mutation != NOTHING:
            alphabet = b'0123456789.,:|-\t"\n{}[]eE' if mutation == "digits" else bytes(range(256))
            path.write_bytes(edited(generator, content, alphabet))

    def use(self, folder: Path) -> None:
        """Read and prepare it."""
        _use_source(self.sources[(folder / "format").read_text()], folder)


def _use_source(source: Small, folder: Path) -> None:
    prepare(source.reader(folder), dim=2, cache=folder / "cache").catalogue()


# The loop.


def outcome(kind: Kind, folder: Path) -> BaseException | bool:
    """Whether the input was accepted, or what went wrong."""
    try:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        # What sleeps, or never comes back to Python, hears no alarm: then the program ends, with a traceback.
        faulthandler.dump_traceback_later(20 * SECONDS, exit=True)
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            kind.use(folder)
    except kind.refusal:
        return False
    except (Exception, HangError, SystemExit) as error:
        return error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
    return True


def sort_of(error: BaseException) -> str:
    """The exception and the last line of the package that it came through."""
    name = type(error).__name__
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(PACKAGE):
            path = frame.filename.removeprefix(PACKAGE)
            return f"{name} in {path}, {frame.name}, line {frame.lineno}"
    return name


def hang(*_: Any) -> None:
    """What the alarm does."""
    raise HangError(f"no end after {SECONDS} s")


def limit_memory() -> None:
    """An input that asks for more than there is gets a MemoryError, not the machine."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    if pages:
        held = pages * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + HEADROOM, resource.getrlimit(resource.RLIMIT_AS)[1]))


def table(title: str, counts: dict[str, Counter[str]]) -> list[str]:
    """One line for each key of the counts."""
    columns = ("inputs", "accepted", "refused", "failed")
    lines = [f"| {title} | " + " | ".join(columns) + " |", "|---|---:|---:|---:|---:|"]
    for name, count in counts.items():
        numbers = [count.total(), *(count[column] for column in columns[1:])]
        lines.append(f"| {name} | " + " | ".join(map(str, numbers)) + " |")
    return lines


def main() -> int:
    """Try all inputs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    out = options.out.resolve()
    shutil.rmtree(out / "failed", ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    exploded = out / "exploded"
    exploded.unlink(missing_ok=True)
    logging.disable()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    sys.argv = ["fuzz"]  # should an input import a program
    makers: dict[str, Callable[[Path], Kind]] = {
        "configs": Configs,
        "recordings": Traces,
        "checkpoints": Checkpoints,
        "data": Sources,
    }
    kinds = {name: make(exploded) for name, make in makers.items()}
    limit_memory()
    signal.signal(signal.SIGPROF, hang)
    began = time.monotonic()
    by_kind: dict[str, Counter[str]] = defaultdict(Counter)
    by_mutation: dict[str, Counter[str]] = defaultdict(Counter)
    failures: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    folder = out / "input"
    for number in range(options.inputs):
        name = list(kinds)[number % len(kinds)]
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        generator = random.Random(f"{options.seed} {name} {number}")
        mutation = generator.choices(list(kinds[name].mutations), list(kinds[name].mutations.values()))[0]
        kinds[name].write(mutation, generator, folder)
        start = time.monotonic()
        result = outcome(kinds[name], folder)
        seconds[name] += time.monotonic() - start
        if mutation == NOTHING and not result:
            result = RuntimeError("a good input was refused")
        if exploded.exists():
            exploded.unlink()
            result = RuntimeError("code of the input was run")
        word = "failed" if isinstance(result, BaseException) else "accepted" if result else "refused"
        by_kind[name][word] += 1
        by_mutation[f"{name}: {mutation}"][word] += 1
        if isinstance(result, BaseException):
            sort = f"{name}: {sort_of(result)}"
            failures[sort] += 1
            sys.stderr.write(f"input {number} ({mutation}): {sort}\n")
            if failures[sort] <= KEPT:
                kept = out / "failed" / f"{number:06d}"
                shutil.copytree(folder, kept)
                (kept / "error.txt").write_text("".join(traceback.format_exception(result)), errors="replace")
    shutil.rmtree(folder, ignore_errors=True)
    by_kind["all"] = sum(by_kind.values(), Counter())
    lines = [*table("kind", by_kind), "", *table("what was changed", dict(sorted(by_mutation.items())))]
    if failures:
        lines += ["", "| failure | inputs |", "|---|---:|"]
        lines += [f"| {sort} | {count} |" for sort, count in failures.most_common()]
    each = ", ".join(
        f"{name} {1e3 * seconds[name] / by_kind[name].total():.0f}" for name in kinds if by_kind[name]
    )
    spent = f"{options.inputs} inputs in {time.monotonic() - began:.0f} s (milliseconds an input: {each})"
    lines += ["", f"{spent}, seed {options.seed}: {by_kind['all']['failed']} failures."]
    text = "\n".join(lines)
    (out / "fuzz.md").write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
