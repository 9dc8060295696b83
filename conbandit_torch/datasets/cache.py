"""Prepared data on disk, under a key of all that they depend on: never stale, and damage is noticed."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock

from conbandit_torch.core.digests import fingerprint
from conbandit_torch.core.errors import DataError
from conbandit_torch.core.files import replacing
from conbandit_torch.core.seals import file_digest
from conbandit_torch.datasets.base import Prepared, Reader
from conbandit_torch.datasets.events import LoggedEvents
from conbandit_torch.datasets.reading.files import expand

FORMAT = 3  # to be raised with a change, outside this folder, of what is prepared
_NAMES = ("user_names", "item_names", "term_names", "feature_names")
# As small as they can be: the large ones are of the length of the feedback.
_STORED = {"users": torch.int32, "items": torch.int32, "clicks": torch.bool, "item_terms": torch.int32}
_USED = {"users": torch.int64, "items": torch.int64, "clicks": torch.float64, "item_terms": torch.int64}
_TENSORS = ("features", "item_terms", "theta", "users", "items", "clicks", "times")
_EVENTS = "events."  # before the names of the tensors of a log's events
_log = logging.getLogger(__name__)


def cache_folder(given: str | Path | None = None) -> Path:
    """Where prepared data are kept."""
    return expand(given or os.environ.get("CONBANDIT_CACHE") or "~/.cache/conbandit_torch")


def cache_path(reader: Reader, parameters: dict[str, Any], cache: str | Path | None = None) -> Path:
    """The file that holds, or would hold, the reader's data prepared with the parameters."""
    return cache_folder(cache) / f"{type(reader).__name__}-{_key(reader, parameters)}.safetensors"


def cached(
    reader: Reader, parameters: dict[str, Any], cache: str | Path | None, make: Callable[[], Prepared]
) -> Prepared:
    """What the cache holds, or else what `make` gives, kept for the next time.

    Args:
        reader: where the data come from.
        parameters: all that the preparation depends on besides.
        cache: the folder; None: the usual one.
        make: reads and prepares.
    """
    path = cache_path(reader, parameters, cache)
    lock = FileLock(path.with_suffix(".lock"))
    with _told(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()  # of several jobs one prepares, and the others wait
    try:
        prepared = _read(path) if path.exists() else None
        if prepared is None:
            prepared = make()
            if cache_path(reader, parameters, cache) != path:
                raise DataError(f"{reader.path}: its files were changed while they were read")
            with _told(path.parent):
                _write(path, prepared)
    finally:
        lock.release()
    return prepared


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{folder}: the cache of prepared data cannot be used ({error.strerror or error}); "
            "CONBANDIT_CACHE names another folder"
        ) from None


def _key(reader: Reader, parameters: dict[str, Any]) -> str:
    """A digest of the files' content, the reader's class, its code and attributes, and the parameters."""
    kind = type(reader)
    modules = [sys.modules.get(base.__module__) for base in kind.__mro__]
    code = {Path(file) for module in modules if (file := getattr(module, "__file__", None))}
    about = {
        "format": FORMAT,
        "class": f"{kind.__module__}.{kind.__qualname__}",
        "code": sorted(_digest(path) for path in code | {*Path(__file__).parent.glob("*.py")}),
        "reader": {name: value for name, value in vars(reader).items() if name != "path"},
        "positive_from": reader.positive_from,
        "has_negatives": reader.has_negatives,
        "files": [(path.name, _digest(path)) for path in reader.files()],
        **parameters,
    }
    return hashlib.sha256(json.dumps(about, sort_keys=True, default=_whole).encode()).hexdigest()[:32]


def _whole(value: Any) -> str:
    """An attribute as text that leaves nothing out, as large arrays' own text does."""
    try:
        return pickle.dumps(value).hex()
    except (pickle.PicklingError, AttributeError, TypeError):  # a function, a handle
        return repr(value)


def _digest(path: Path) -> str:
    try:
        return file_digest(path)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None


def _write(path: Path, prepared: Prepared) -> None:
    from safetensors.torch import save_file

    kept: dict[str, Any] = {name: getattr(prepared, name) for name in _NAMES}
    tensors = {name: getattr(prepared, name) for name in _TENSORS}
    tensors = {name: tensor.to(_STORED.get(name, tensor.dtype)) for name, tensor in tensors.items()}
    if prepared.events is not None:
        kept["context_names"] = list(prepared.events.context_names)
        own = prepared.events.tensors().items()
        tensors |= {_EVENTS + name: tensor.clone() for name, tensor in own}  # two may be one and the same
    names = json.dumps(kept).encode()
    tensors["names"] = torch.frombuffer(bytearray(names), dtype=torch.uint8)
    tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    with replacing(path) as unfinished:  # nobody else's: the lock is ours
        save_file(tensors, unfinished, metadata={"fingerprint": fingerprint(tensors)})


def _read(path: Path) -> Prepared | None:
    """What a file holds; None, and a warning, if it is damaged."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if (file.metadata() or {}).get("fingerprint") != fingerprint(tensors):
                raise ValueError("its checksum is another")
        names = json.loads(bytes(tensors.pop("names").numpy()))
        used = {name: tensors[name].to(_USED.get(name, tensors[name].dtype)) for name in _TENSORS}
        logged = {k.removeprefix(_EVENTS): v for k, v in tensors.items() if k.startswith(_EVENTS)}
        context_names = names.pop("context_names", ())
        events = LoggedEvents(**logged, context_names=context_names) if logged else None
        return Prepared(**used, **names, events=events)
    except (SafetensorError, OSError, ValueError, RuntimeError, TypeError, KeyError) as error:
        _log.warning("%s is damaged (%s) and will be made anew", path, error)
        return None
