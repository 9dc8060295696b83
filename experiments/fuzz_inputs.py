"""What `experiments.fuzz` feeds to the package: Hypothesis strategies that change something in a good input.

Each kind of input has a strategy `inputs`, which draws an `Input`; a method `use`, which does with its files
what a user would; and `refusal`, the one error with which the package may refuse it.
"""

from __future__ import annotations

import copy
import gzip
import hashlib
import io
import json
import pickle
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
import yaml
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from conbandit_torch import ConUCB, DataError, HConUCB, Recorded, Simulation, Synthetic, prepare
from conbandit_torch.configuration.build import build_environment, build_policy
from conbandit_torch.configuration.load import load, read
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.core.seals import sealed, unsealed
from conbandit_torch.running.checkpoint import CheckpointError, read_checkpoint, write_checkpoint
from conbandit_torch.tuning.search_space import read_tunings
from experiments.small_sources import small_sources

REPOSITORY = Path(__file__).resolve().parent.parent
NOTHING = "nothing"  # was changed: that must be accepted

SequenceT = TypeVar("SequenceT", bytes, list[str])
Draw = Any  # of `st.composite`: gives a value of a strategy


class Input(NamedTuple):
    """Files of an input, by name (None: a folder in the file's place), and what was changed in them."""

    change: str
    files: dict[str, bytes | None]


class Kind(Protocol):
    """A kind of input."""

    refusal: type[Exception]
    inputs: st.SearchStrategy[Input]

    def use(self, folder: Path) -> None:
        """Do with the files of the folder what a user would."""


class Bomb:
    """An object whose unpickling leaves a file behind."""

    def __init__(self, exploded: Path) -> None:
        self.exploded = exploded

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.exploded), "w")


def drawn_by(function: Callable[[Draw], Input]) -> st.SearchStrategy[Input]:
    """The strategy of what the function draws."""
    return st.composite(lambda draw: function(draw))()


def weighted(**weights: int) -> st.SearchStrategy[str]:
    """One of the names, each as often as its weight says; blanks are written as underscores."""
    return st.sampled_from(
        [name.replace("_", " ") for name, weight in weights.items() for _ in range(weight)]
    )


SOME = st.sampled_from((1, 1, 1, 1, 2, 4))  # changes of an input
EXTREMES = st.sampled_from((0, 1, -1, 2, 7, 2**31, 2**63, 2**64, 10**30, 10**400, 1.5, 1e-320, 1e308))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | EXTREMES | st.text(max_size=9)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def spliced(draw: Draw, whole: SequenceT, new: st.SearchStrategy[SequenceT]) -> SequenceT:
    """Bytes or lines in which some pieces are replaced: by nothing, by new ones, or by other pieces."""
    for _ in range(draw(SOME)):
        at, start = (draw(st.integers(0, len(whole))) for _ in range(2))
        span, length = (draw(st.sampled_from((0, 1, 1, 1, 2, 8, 64))) for _ in range(2))
        own = whole[start : start + length]
        until = len(whole) if draw(st.integers(0, 19)) == 0 else at + span
        whole = whole[:at] + draw(new | new | st.just(own) | st.just(whole[:0])) + whole[until:]
    return whole


def edited(content: bytes, alphabet: bytes = b"") -> st.SearchStrategy[bytes]:
    """The bytes with some replaced by any, by zeros, or by those of the alphabet."""
    one, zeros = st.binary(min_size=1, max_size=1), st.sampled_from((1, 8, 64)).map(bytes)
    new = one | one | st.binary(min_size=1, max_size=16) | zeros
    likely = st.lists(st.sampled_from(alphabet), min_size=1, max_size=2).map(bytes) if alphabet else new
    return spliced(content, new | likely | likely)


@st.composite
def changed_arrays(draw: Draw, arrays: dict[str, np.ndarray], names: tuple[str, ...], kinds: Any) -> Any:
    """The arrays with some missing, renamed, or with other numbers, shapes or types."""
    arrays = dict(arrays)
    for _ in range(draw(SOME)):
        name = draw(st.sampled_from(sorted(arrays)))
        array = arrays.pop(name)
        change = draw(weighted(number=4, shape=4, type=2, other=2, missing=1, renamed=1, twice=1))
        if change == "missing" and arrays:
            continue
        if change == "twice":
            arrays[name] = array
        if change in ("renamed", "twice"):
            name = draw(st.sampled_from(names) | st.text(min_size=1, max_size=5))
        shapes = [(), (array.size,), (0,), (1, *array.shape), (*array.shape, 1), array.shape[::-1]]
        if array.ndim:
            first, last = array.shape[0], array.shape[-1]
            shapes += [(n, *array.shape[1:]) for n in (0, 1, max(first - 1, 0), 2 * first)]
            shapes += [(*array.shape[:-1], n) for n in (0, max(last - 1, 0), last + 1)]
        shape = draw(st.sampled_from(shapes))
        if change == "shape":
            array = np.resize(array, shape)
        elif change == "type" and array.dtype.kind in "fiub":
            with np.errstate(all="ignore"):
                array = array.astype(draw(kinds))
        elif change == "number" and array.size and array.dtype.kind in "fiub":
            array = array.copy()
            where = draw(st.just(slice(None)) | st.integers(0, array.size - 1))
            likely = st.sampled_from(
                (0, 1, 12, 100) if array.dtype.kind in "iu" else (-1.0, 0.0, np.nan, np.inf)
            )
            array.reshape(-1)[where] = draw(hnp.from_dtype(array.dtype) | likely)
        elif change == "other":
            array = draw(hnp.arrays(draw(kinds), shape, fill=st.nothing() if np.prod(shape) < 9 else None))
        arrays[name] = array
    return arrays


# Configs.

SMALL = {"users": 4, "arms": 40, "terms": 8, "dim": 8, "pool": 6, "rounds": 12, "events": 40}
SIZES = ("users", "arms", "terms", "dim", "pool", "hidden_dim", "events")
YAML_BYTES = b"{}[]&*!|>'\"%@`:,-#?~<=\t\n \\\0\x07\x85\xff\xc3\xe2019.eE+_xo"
CLASS_PATHS = [
    *("os.system", "os:system", "subprocess.Popen", "builtins.eval", "builtins.exec", "builtins.object"),
    *("typing.Any", "torch.nn.Module", "nonexistent", "nonexistent.module", "conbandit_torch.Bandit"),
    *("conbandit_torch.Synthetic", "conbandit_torch.nothing", "conbandit_torch..Bandit", ".", ":"),
    *("conbandit_torch.__main__.main", "LogSchedule", "Lemma1", "LinUCB", "Recorded"),
]
# What YAML reads in a way of its own, and what comes close to a part of a config; `|` stands between them.
NASTY = r"""~|.nan|-.inf|1e400|08|0o17|1_0|1:30|0-3|3-1|0-99999999|2001-12-14|2001-99-99|*|&|!|%|''|'.'
'@config'|'/dev/zero'|"\0"|"\ud800"|"\x85\u2028"|many words here|{1: 2}|{null: null}|{[a]: b}|{? [a] : b}
{<<: 1}|{<<: [1]}|{<<: {a: 1}}|*nowhere|&a [*a]|&a {b: *a}|&a {<<: *a}|!!binary aGk=|!!binary '%'
!!set {a, b}|!!omap [a: 1]|!!pairs [a: 1]|!!int x|!!int 0x|!!float x|!!bool x|!!null x|!!timestamp x|!!str 1
!!map [1]|!!seq {a: 1}|!unknown x|!!python/object/apply:os.system [touch EXPLODED]
!!python/object/new:os.system [touch EXPLODED]
!!python/name:os.system ''|!!python/module:os ''|!!python/tuple [1]|{init_args: {}}|{class_path: [os.system]}
{class_path: Lemma1, init_args: {sigma: 2}}|{class_path: Lemma1, init_args: null}|{class_path: OneLevel}
{class_path: LinearSchedule, init_args: {every: 3}}|{class_path: TwoLevels, init_args: {mix: 0.2}}
cpu|skip|binary|64-true|[0.1, 0.5]|LogSchedule|LinUCB|{low: 0.1, high: 0.5}"""
LONG = ("-" + "9" * 400, "9" * 5000, "0x" + "f" * 5000, "0." + "1" * 5000, "'" + "long " * 4000 + "'")
DEEP = (300 * "[" + 300 * "]", 300 * "{a: " + 300 * "}", 2000 * "[")
# Aliases of aliases: 10^8 items in a few hundred characters.
LAUGHS = "[" + ", ".join(["&l0 [x]", *(f"&l{n + 1} [{10 * f'*l{n}, '}]" for n in range(8))]) + "]"


def yaml_values(exploded: Path) -> st.SearchStrategy[str]:
    """Values as YAML writes them on one line."""
    nasty = [
        value.replace("EXPLODED", str(exploded)) for line in NASTY.splitlines() for value in line.split("|")
    ]
    bomb = f"{{command: touch {exploded}, args: [touch, {exploded}]}}"
    classes = [
        f"{{class_path: '{path}', init_args: {args}}}" for path in CLASS_PATHS for args in ("{}", bomb)
    ]
    space = st.fixed_dictionaries(
        {"low": SCALARS, "high": SCALARS}, optional={"step": SCALARS, "log": st.booleans() | SCALARS}
    )
    plain = (JSON | space).map(lambda value: yaml.safe_dump(value, default_flow_style=True, width=10**6))
    chosen = st.sampled_from([*nasty, *LONG, *DEEP, LAUGHS, "|", *CLASS_PATHS, *classes])
    numbers = st.sampled_from(("1", "2", "3", "0.3", "0.9", "1e-3"))
    return chosen | plain.map(lambda text: text.removesuffix("\n...\n").strip()) | numbers


class _Plain(yaml.SafeDumper):
    """YAML without anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """(mapping or list, key or position) of everything below the node."""
    for key in list(node) if isinstance(node, dict) else range(len(node) if isinstance(node, list) else 0):
        yield node, key
        yield from _places(node[key])


class Configs:
    """The files of `configs`, made small: bytes, lines, values, keys."""

    refusal = ConfigError

    def __init__(self, exploded: Path) -> None:
        self.values = yaml_values(exploded)
        self.whole: list[str] = []  # with comments, anchors and merge keys
        self.parts: list[dict[str, Any]] = []  # with one policy each, because classes take time to check
        for path in sorted((REPOSITORY / "configs").rglob("*.yaml")):
            text = path.read_text(encoding="utf-8")
            for name, size in SMALL.items():
                text = re.sub(rf"^( *{name}): \d+", rf"\1: {size}", text, flags=re.MULTILINE)
            config = yaml.safe_load(text)
            if "data" in config["environment"]["init_args"]:
                continue  # it needs files that are not there
            config["seeds"] = "0-9"  # the file's own loader would not take it for a number
            if len(config["policies"]) <= 3:
                self.whole.append(text)
            tune = config.pop("tune", {"space": {}})
            for name, policy in config["policies"].items():
                part = {**config, "policies": {name: policy}}
                if name in tune["space"]:
                    part["tune"] = {"seeds": "100-101", "space": {name: tune["space"][name]}}
                    if name in tune.get("start", {}):
                        part["tune"]["start"] = {name: tune["start"][name]}
                self.parts.append(part)
        self.inputs = drawn_by(self._input)

    def _input(self, draw: Draw) -> Input:
        change = draw(weighted(bytes=3, lines=3, keys=3, values=10, both=2, nothing=1))
        part = draw(st.sampled_from(self.parts))
        text = draw(st.sampled_from([self._dump(part)] * 4 + [draw(st.sampled_from(self.whole))]))
        if change in ("values", "keys", "both"):
            text = self._with_values(draw, copy.deepcopy(part), keys=change == "keys")
        if change == "lines":
            lines = text.splitlines(keepends=True)
            moved = st.sampled_from(lines).flatmap(
                lambda line: st.sampled_from((f"  {line}", line[2:], line))
            )
            text = "".join(draw(spliced(lines, moved.map(lambda line: [line]))))
        content = text.encode(errors="surrogatepass")
        if change in ("bytes", "both"):
            content = draw(edited(content, YAML_BYTES))
        return Input(change, {"config.yaml": content})

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
            return
        parts = (experiment.environment, *experiment.policies.values())
        given = [part["init_args"].get(size) for part in parts for size in SIZES]
        if all(not isinstance(size, int) or size <= 50 for size in given):
            environment = build_environment(experiment, job[1])
            for name in experiment.policies:
                build_policy(experiment, name, environment, job[1])

    @staticmethod
    def _dump(config: dict[str, Any]) -> str:
        text: str = yaml.dump(config, Dumper=_Plain, sort_keys=False)
        return text

    def _with_values(self, draw: Draw, config: dict[str, Any], keys: bool) -> str:
        """The config with some of its values, or keys, replaced."""
        inserted: list[str] = []
        for _ in range(draw(SOME)):
            places = list(_places(config))
            holder, key = places[draw(st.integers(0, len(places) - 1))]
            paths = st.sampled_from(CLASS_PATHS)
            inserted.append(draw(paths | paths | self.values if key == "class_path" else self.values))
            mark = f"@{len(inserted) - 1}@"
            if keys and isinstance(holder, dict):
                holder[mark] = holder[key] if draw(st.booleans()) else holder.pop(key)
            else:
                holder[key] = mark
        text = self._dump(config)
        for number, value in enumerate(inserted):
            text = text.replace(f"'@{number}@'", value)
        return text


# Recordings.


class Recordings:
    """A small recording: the archive's bytes, its members' bytes, and its arrays."""

    refusal = ValueError
    kinds = hnp.scalar_dtypes() | hnp.byte_string_dtypes() | hnp.unicode_string_dtypes() | st.just("i4,f4")

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
        self.inputs = drawn_by(self._input)

    def _input(self, draw: Draw) -> Input:
        change = draw(weighted(bytes=3, files=2, members=6, arrays=10, nothing=1))
        if change == "files":
            return Input(change, {"trace.npz": draw(self._other_files())})
        arrays = dict(self.arrays)
        if change == "arrays":
            names = ("arms/", "arms/x", "regret/x", "x", "X/X", "..", "a" * 300)
            arrays = draw(changed_arrays(arrays, names, self.kinds))
            if draw(st.integers(0, 9)) == 0:
                arrays[draw(st.sampled_from(sorted(arrays)))] = np.full(2, self.bomb, dtype=object)
        members = {name: _npy(array) for name, array in arrays.items()}
        if change == "members":  # with a right checksum: in the header, or anywhere
            name = draw(st.sampled_from(sorted(members)))
            end = draw(st.sampled_from((128, len(members[name]))))
            spoilt = edited(members[name][:end], b"0123456789()<>|,' fiOSUbTF")
            members[name] = draw(spoilt) + members[name][end:]
        content = _zip({f"{name}.npy": member for name, member in members.items()}, draw(st.booleans()))
        return Input(change, {"trace.npz": draw(edited(content)) if change == "bytes" else content})

    def _other_files(self) -> st.SearchStrategy[bytes]:
        """A file of another sort, or with something before or after it."""
        whole = _zip({f"{name}.npy": _npy(array) for name, array in self.arrays.items()}, False)
        bomb = np.array([self.bomb], dtype=object)
        files = [
            _npy(self.arrays["X"]),
            _npy(bomb),
            pickle.dumps(self.bomb),
            b"",
            b"PK\x03\x04",
            b"\x93NUMPY",
        ]
        noise = st.binary(max_size=64)
        foreign = st.builds(
            lambda name, inside: _zip({name: inside}, False),
            st.sampled_from(("X", "X.npy", "../X.npy", "X/")),
            noise,
        )
        around = st.tuples(noise, noise).map(lambda ends: ends[0] + whole + ends[1])
        return st.sampled_from(files) | foreign | around | noise

    def use(self, folder: Path) -> None:
        """Open it, and look at what it holds."""
        environment = Recorded(folder / "trace.npz")
        for name in environment.recorded_policies:
            environment.decisions(name)
        environment.reset()
        environment.expected(environment.observe())


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=True)
    return file.getvalue()


def _zip(members: dict[str, bytes], packed: bool) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


# Checkpoints.

ROUNDS = 20


def _simulation(name: str) -> Simulation:
    world = Synthetic(users=4, arms=30, terms=8, dim=5, pool=6, max_terms=3)
    more: dict[str, Any] = {"hidden_dim": 2, "refit_every": 5} if name == "hConUCB" else {}
    policy = (HConUCB if more else ConUCB)(world.catalogue, world.num_users, **more)
    return Simulation(policy, world, rounds=ROUNDS, log_every=3)


class Checkpoints:
    """A checkpoint of a small simulation: its files' bytes, with and without the checksum, and forgeries."""

    refusal = CheckpointError
    kinds = st.sampled_from(("f8", "f4", "f2", "i8", "i4", "i1", "u1", "?"))
    forgeries = ("forged bytes", "header", "tensors")  # with a right checksum

    def __init__(self, exploded: Path) -> None:
        self.bomb = Bomb(exploded)
        self.saved: dict[str, tuple[bytes, bytes]] = {}
        for name in ("ConUCB", "hConUCB"):
            simulation = _simulation(name)
            simulation.rounds = ROUNDS // 2  # the second half is left to play
            simulation.run()
            with tempfile.TemporaryDirectory() as good:
                folder = write_checkpoint(Path(good), simulation.state())
                _simulation(name).restore(read_checkpoint(folder))
                files = [(folder / file).read_bytes() for file in ("manifest.json", "state.safetensors")]
            self.saved[name] = files[0], files[1]
        self.inputs = drawn_by(self._input)

    def _input(self, draw: Draw) -> Input:
        name = draw(st.sampled_from(sorted(self.saved)))
        document, tensors = self.saved[name]
        manifest = unsealed(document.decode())
        ours = {"manifest_bytes": 2, "manifest": 3, "state_bytes": 2, "files": 2, "nothing": 1}
        change = draw(weighted(**ours, forged_bytes=3, header=3, tensors=10))
        if change == "manifest bytes":
            document = draw(edited(document, b'{}[]":,0123456789.eE-+NaInfty\\u'))
        elif change == "manifest":
            document = self._forged_manifest(draw, manifest)
        elif change in ("state bytes", "forged bytes"):
            tensors = draw(edited(tensors))
        elif change == "header":
            tensors = self._forged_header(draw, tensors)
        elif change == "tensors":
            names = ("x", "policy.", "policy.x", "records", "environment", "metrics._sums.x")
            tensors = save_tensors(
                {
                    key: np.array(array, order="C")
                    for key, array in draw(changed_arrays(load_tensors(tensors), names, self.kinds)).items()
                }
            )
        files: dict[str, bytes | None] = {"manifest.json": document, "state.safetensors": tensors}
        if change == "files":
            file = draw(st.sampled_from(sorted(files)))
            files[file] = draw(
                st.sampled_from((None, b"", b"[" * 100_000, pickle.dumps(self.bomb), self._saved_bomb()))
            )
            tensors = files["state.safetensors"] or b""
        if change in self.forgeries or (change == "files" and files["manifest.json"] == document):
            manifest["states"] = [hashlib.sha256(tensors).hexdigest()]
            if draw(st.integers(0, 4)) == 0:
                rounds = st.sampled_from((0, 1, ROUNDS, ROUNDS + 1, 10**9, 2**63, 10**400))
                manifest["round"] = draw(rounds | JSON)
            files["manifest.json"] = sealed(manifest).encode()
        return Input(change, files | {"policy": name.encode()})

    def use(self, folder: Path) -> None:
        """Go on from it."""
        simulation = _simulation((folder / "policy").read_text())
        simulation.restore(read_checkpoint(folder))

    def _saved_bomb(self) -> bytes:
        file = io.BytesIO()
        torch.save({"records": torch.zeros(1), "x": self.bomb}, file)
        return file.getvalue()

    @staticmethod
    def _forged_manifest(draw: Draw, manifest: dict[str, Any]) -> bytes:
        whole = draw(st.integers(0, 4))
        if whole == 0:
            return json.dumps(draw(JSON | st.just([manifest]))).encode()
        if whole == 1:
            return bytes(draw(st.sampled_from((b"[" * 100_000, b"", b"\xff", b"9" * 5000))))
        for _ in range(draw(SOME)):
            key = draw(st.sampled_from(sorted(manifest) or ["more"]))
            if draw(st.integers(0, 3)) == 0:
                manifest.pop(key, None)
            else:
                manifest[draw(st.sampled_from((key, key, key, "more")))] = draw(JSON | st.just(ROUNDS + 1))
        return sealed(manifest).encode()

    @staticmethod
    def _forged_header(draw: Draw, tensors: bytes) -> bytes:
        """Another description of the same bytes."""
        size = int.from_bytes(tensors[:8], "little")
        header, data = json.loads(tensors[8 : 8 + size]), tensors[8 + size :]
        tensor_names = st.sampled_from(sorted(set(header) - {"__metadata__"}))
        name, other = draw(tensor_names), draw(tensor_names)
        about = header[name]
        change = draw(weighted(dtype=2, shape=3, data_offsets=2, swapped=1, named=1, missing=1))
        numbers = st.lists(EXTREMES | st.none(), max_size=4)
        if change == "dtype":
            about["dtype"] = draw(
                st.sampled_from(("F64", "F16", "BF16", "I64", "U8", "BOOL", "F8_E4M3", "X", None))
            )
        elif change == "shape":
            shape = about["shape"]
            about["shape"] = draw(st.sampled_from((shape[::-1], [*shape, 1])) | numbers)
        elif change == "data offsets":
            about["data_offsets"] = draw(numbers)
        elif change == "swapped":
            header[name], header[other] = header[other], about
        elif change == "named":
            header[
                draw(st.sampled_from(("", "x", "policy.", "records", "__metadata__", "policy.rounds")))
            ] = about
        else:
            del about[draw(st.sampled_from(sorted(about)))]
        text = json.dumps(header).encode()
        length = draw(st.sampled_from((*5 * [len(text)], 0, 2**40, 2**64 - 1)))
        return int(length).to_bytes(8, "little") + text + data


# Real data.


class Sources:
    """Small data in every format: the bytes of one of the files."""

    refusal = DataError

    def __init__(self, exploded: Path) -> None:
        self.sources = small_sources()
        for (
            name,
            source,
        ) in self.sources.items():  # imports what reading needs: its seconds are not an input's
            with tempfile.TemporaryDirectory() as good:
                source.write(Path(good))
                (Path(good) / "format").write_text(name)
                self.use(Path(good))
        self.inputs = drawn_by(self._input)

    def _input(self, draw: Draw) -> Input:
        change = draw(weighted(bytes=6, digits=4, unzipped=3, files=1, nothing=1))
        name = draw(st.sampled_from(sorted(self.sources)))
        files: dict[str, bytes | None] = {**self.sources[name].files, "format": name.encode()}
        file = draw(st.sampled_from(sorted(self.sources[name].files)))
        content = self.sources[name].files[file]
        if change == "files":
            del files[file]
            if draw(st.booleans()):
                files[file] = draw(
                    st.sampled_from((b"", b"\n", b"\xff\xfe", b"\x1f\x8b", content[:1], b"PAR1"))
                )
        elif change == "unzipped" and file.endswith(".gz"):
            files[file] = gzip.compress(draw(edited(gzip.decompress(content))))
        elif change != NOTHING:
            files[file] = draw(edited(content, b'0123456789.,:|-\t"\n{}[]eE' if change == "digits" else b""))
        return Input(change, files)

    def use(self, folder: Path) -> None:
        """Read and prepare it."""
        source = self.sources[(folder / "format").read_text()]
        prepare(source.reader(folder), dim=2, cache=folder / "cache").catalogue()


KINDS = {"configs": Configs, "recordings": Recordings, "checkpoints": Checkpoints, "data": Sources}
