"""YAML files as people write them. Whatever is wrong with one is a `ConfigError` that names it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from conbandit_torch.core.errors import ConfigError
from conbandit_torch.core.seals import is_as_sealed

_MOST_VALUES = 100_000
_MERGE = "tag:yaml.org,2002:merge"

_log = logging.getLogger(__name__)


class _Loader(yaml.SafeLoader):
    """YAML as people write it: 1e-3 is a number, and a key given twice is an error."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """A mapping as it is written: this is called once for each, before anything is merged into it."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if key.tag == _MERGE or not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} is given twice", key.start_mark
                )
            seen.add(key.value)
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merge what `<<` names; of several values of a key the last counts, and alone is kept.

        PyYAML keeps all of them: mappings that merge one another ten times each would fill the memory.
        """
        super().flatten_mapping(node)
        last = {(key.tag, key.value): (key, value) for key, value in node.value if _is_scalar(key)}
        node.value = [*last.values(), *(pair for pair in node.value if not _is_scalar(pair[0]))]


def _is_scalar(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+"),
    list("-+0123456789."),
)


def read_yaml(path: Path, keys: Iterable[str]) -> dict[str, Any]:
    """The mapping that the file holds; where it holds none, the error names the `keys` to give."""
    try:
        text = path.read_text(encoding="utf-8")
        config = yaml.load(text, _Loader)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not a text file in UTF-8 ({error.reason})") from None
    except RecursionError:
        raise ConfigError(f"{path}: not valid YAML: nested too deeply") from None
    except Exception as error:  # PyYAML's constructors let KeyError, AttributeError and more through
        raise ConfigError(f"{path}: not valid YAML: {error}") from None
    if is_as_sealed(text) is False:
        _log.warning("%s: was edited, or damaged, since a run wrote it (see its first line)", path)
    if not isinstance(config, dict):
        raise ConfigError(f"{path}: expected a mapping with {', '.join(keys)}")
    try:
        unshared: dict[str, Any] = _unshared(config, iter(range(_MOST_VALUES)))
    except (StopIteration, RecursionError):
        raise ConfigError(
            f"{path}: nested too deeply, or more than {_MOST_VALUES} values (an alias of itself?)"
        ) from None
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    return unshared


def value_of(text: str) -> Any:
    """The value that is written so in YAML; whatever is wrong with it is some exception."""
    return _unshared(yaml.load(text, _Loader), iter(range(_MOST_VALUES)))


def _unshared(node: Any, left: Iterator[int]) -> Any:
    """A copy in which aliases (`*name`) are mappings of their own, so that an override hits only one."""
    next(left)
    if isinstance(node, dict):
        copied = {}
        for key, value in node.items():
            copied[_checked(key)] = _unshared(value, left)
        return copied
    if isinstance(node, list):
        copies = []
        for value in node:  # no generator: its StopIteration would become a RuntimeError
            copies.append(_unshared(value, left))
        return copies
    return _checked(node)


def _checked(value: Any) -> Any:
    """The value, if it can be shown: Python refuses to write whole numbers of more than 4300 digits."""
    if isinstance(value, int) and value.bit_length() > 4096:
        raise ValueError(f"a whole number of {value.bit_length()} bits")
    return value
