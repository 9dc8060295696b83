"""Policies as folders that are passed on, in the convention of huggingface_hub.

A folder holds `config.json` (the class, its arguments, names, digests) and `model.safetensors` (the policy's
state and its catalogue). Neither can carry code, and reading one imports nothing: a class of your own is
imported by those who read.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor, nn

from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.errors import DataError
from conbandit_torch.core.files import make_folder, write_atomically
from conbandit_torch.core.names import PUBLIC, public
from conbandit_torch.core.parts import Remembers, called_with, node_of, path_of
from conbandit_torch.core.seals import sealed, unsealed
from conbandit_torch.core.state_files import read_tensors, write_tensors
from conbandit_torch.core.version import VERSION

PACKAGE = "conbandit_torch"
CONFIG, MODEL = "config.json", "model.safetensors"
FORMAT = 1
_GIVEN = ("num_users",)  # of the constructor's arguments, what the state says better
_STATE, _CATALOGUE, _ARGUMENT = "policy.", "catalogue.", "argument."

ModuleT = TypeVar("ModuleT", bound=nn.Module)


class Pretrained(nn.Module, Remembers):
    """What a policy has of it: `save_pretrained` and `from_pretrained`."""

    catalogue: Catalogue
    num_rows: int

    def save_pretrained(self, save_directory: Path | str) -> None:
        """Write the policy, with all that it has learned and its catalogue, into a folder.

        Args:
            save_directory: the folder; it is made if it is missing.
        """
        folder = Path(save_directory)
        given = {name: value for name, value in called_with(self).items() if name not in _GIVEN}
        tensors = {f"{_STATE}{name}": value for name, value in self.state_dict().items()}
        tensors |= {f"{_CATALOGUE}{name}": value for name, value in self.catalogue.named_buffers()}
        tensors |= {f"{_ARGUMENT}{name}": one for name, one in given.items() if isinstance(one, Tensor)}
        where = type(self).__name__
        arguments = {
            name: node_of(value, f"{where}.{name}")
            for name, value in given.items()
            if not isinstance(value, Tensor)
        }
        make_folder(folder)
        digest = write_tensors(folder / MODEL, tensors, {"library": f"conbandit_torch {VERSION}"})
        config = {
            "library_name": PACKAGE,
            "format": FORMAT,
            "version": VERSION,
            "class_path": path_of(type(self)),
            "init_args": arguments,
            "num_users": self.num_rows,
            "precision": str(self.catalogue.arm_features.dtype).removeprefix("torch."),
            "arm_names": list(self.catalogue.arm_names),
            "term_names": list(self.catalogue.term_names),
            "model": digest,
        }
        write_atomically(folder / CONFIG, sealed(config))

    @classmethod
    def from_pretrained(cls: type[ModuleT], pretrained_model_name_or_path: Path | str) -> ModuleT:
        """The policy of a folder that `save_pretrained` wrote, of this class or of one derived from it.

        Args:
            pretrained_model_name_or_path: the folder. Nothing is fetched: huggingface_hub's
                `snapshot_download` gives a folder.

        Raises:
            DataError: if a file is missing or damaged, or holds something else; says which.
        """
        folder = Path(pretrained_model_name_or_path)
        config = _read_config(folder / CONFIG)
        tensors, _ = read_tensors(folder / MODEL, config["model"])
        found = _imported(config["class_path"], folder / CONFIG)
        if not issubclass(found, cls):
            raise DataError(
                f"{folder / CONFIG}: holds a {found.__name__}, which is not a kind of {cls.__name__}"
            )
        catalogue = Catalogue.from_tensors(
            _under(_CATALOGUE, tensors), config["arm_names"], config["term_names"]
        )
        given = {name: _made(node, folder / CONFIG) for name, node in config["init_args"].items()}
        given |= _under(_ARGUMENT, tensors)
        try:
            policy: ModuleT = found(catalogue, config["num_users"], **given)
            policy.load_state_dict(_under(_STATE, tensors))
        except (TypeError, ValueError, RuntimeError) as error:
            problem = " ".join(str(error).split())
            raise DataError(
                f"{folder}: does not fit this version of {found.__name__} (it was written by conbandit_torch "
                f"{config['version']}, and this is {VERSION}): {problem}"
            ) from None
        return policy


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = unsealed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}; `save_pretrained` writes one") from None
    except ValueError as error:
        raise DataError(f"{path} is damaged: {error}") from None
    if config.get("format") != FORMAT:
        raise DataError(f"{path}: format {config.get('format')}, and this version reads format {FORMAT}")
    return config


def _imported(class_path: str, where: Path) -> Any:
    """The class of this name: a public one of this package, or one derived from it that is imported already.

    Whoever wrote the file could otherwise have any class of any library called.
    """
    module, _, name = class_path.rpartition(".")
    if module == PACKAGE and name in PUBLIC:
        found = public(name)
    else:
        found = getattr(sys.modules.get(module), name, None)
    if not isinstance(found, type):
        raise DataError(
            f"{where}: names {class_path}, which is not imported: import {module}, if you trust it"
        )
    if not any(base.__module__.partition(".")[0] == PACKAGE for base in found.__mro__):
        raise DataError(f"{where}: names {class_path}, which is not a part of a policy")
    return found


def _made(node: Any, where: Path) -> Any:
    """A value, or the part that a node describes."""
    if isinstance(node, list):
        return [_made(one, where) for one in node]
    if not isinstance(node, dict):
        return node
    if "class_path" not in node:
        return {key: _made(one, where) for key, one in node.items()}
    given = {name: _made(one, where) for name, one in node["init_args"].items()}
    return _imported(node["class_path"], where)(**given)


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): one for name, one in tensors.items() if name.startswith(prefix)}
