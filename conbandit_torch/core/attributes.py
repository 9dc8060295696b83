"""Buffers and submodules that are found at once.

class Counter(nn.Module):
count: Tensor = buffer()  # registered as always, with `register_buffer`
"""

from __future__ import annotations

from typing import Any

from torch import nn


class _Held:
    """Looks where a module keeps the attribute; `nn.Module` looks everywhere else first.

    That takes a microsecond, and a round needs some fifty of them.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, module: nn.Module | None, owner: type) -> Any:
        if module is None:
            return self
        try:
            return module.__dict__[self.kind][self.name]
        except KeyError:
            raise AttributeError(self.name) from None  # then `nn.Module` looks, and says what is missing


def buffer() -> Any:
    """Declare a buffer, as a value in the body of a class."""
    return _Held("_buffers")


def submodule() -> Any:
    """Declare a module within the module, likewise."""
    return _Held("_modules")
