"""Buffers with a row per user, or per arm, which are declared as such and so can grow and be reset."""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor, nn

from conbandit_torch.core.blocks import Index
from conbandit_torch.core.checks import expect_memory

Per = Literal["user", "arm"]


class Rows(nn.Module):
    """A module that declares which of its buffers have one row per user (or per arm).

    Growing, resetting one user, the contract's check that absent users are left alone and the capacity page
    follow from the declaration.

    Attributes:
        per: what a row belongs to.
        num_rows: how many rows there are.
    """

    per: Per = "user"

    def __init__(self, num_rows: int) -> None:
        super().__init__()
        self.num_rows = num_rows
        self._initial: dict[str, str] = {}  # row buffers, and the buffers that hold what a new row holds
        self._reserve: dict[str, Tensor] = {}  # [capacity, ...] of which a row buffer is the first part

    def register_rows(self, name: str, initial: Tensor, *, persistent: bool = True) -> None:
        """A buffer `name` [rows, ...] whose rows start as `initial` [...]; saved, if it is `persistent`."""
        what = f"{type(self).__name__}.{name} of {self.num_rows:,} {self.per}s"
        expect_memory(what, self.num_rows * initial.nbytes)
        self._initial[name] = f"_initial_{name}"
        self.register_buffer(self._initial[name], initial, persistent=False)
        self.register_buffer(name, initial.repeat(self.num_rows, *[1] * initial.ndim), persistent=persistent)

    def row_buffers(self) -> list[str]:
        """The names of the buffers with a row each."""
        return list(self._initial)

    def set_initial(self, name: str, initial: Tensor) -> None:
        """Have new rows, and those that are reset, hold something else from now on."""
        setattr(self, self._initial[name], initial)

    def reset_rows(self, rows: Index) -> None:
        """Let the rows hold what new ones hold."""
        for name, initial in self._initial.items():
            self.get_buffer(name)[rows] = self.get_buffer(initial)

    def grow_rows(self, number: int) -> None:
        """Have `number` rows, the new ones at the end; time is linear in the new ones, on average."""
        if number < self.num_rows:
            raise ValueError(f"{self.num_rows} rows cannot shrink to {number}")
        old, self.num_rows = self.num_rows, number
        for name, initial in self._initial.items():
            rows, new = self.get_buffer(name), self.get_buffer(initial)
            reserve = self._reserve.get(name)
            if reserve is None or reserve.data_ptr() != rows.data_ptr() or len(reserve) < number:
                reserve = rows.new_empty(max(number, 2 * old), *rows.shape[1:])
                reserve[:old] = rows
            reserve[old:number] = new
            self._reserve[name] = reserve
            setattr(self, name, reserve[:number])

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        self._reserve.clear()  # of another precision, or on another device
        return super()._apply(*args, **kwargs)  # type: ignore[no-untyped-call]

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in self._reserve:  # without the reserve, which a saved view would bring along
            if prefix + name in destination:
                destination[prefix + name] = destination[prefix + name].clone()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        saved = [state_dict.get(prefix + name) for name in self._initial]
        numbers = {len(tensor) for tensor in saved if tensor is not None and tensor.ndim}
        if len(numbers) == 1 and (number := numbers.pop()) > self.num_rows:  # saved after it had grown
            self.grow_rows(number)
        super()._load_from_state_dict(state_dict, prefix, *args)


def row_buffers(module: nn.Module, per: Per) -> dict[str, Tensor]:
    """All buffers with a row per user (or arm) in a module and its parts, by their names in `state_dict`."""
    return {
        f"{prefix}.{name}".removeprefix("."): part.get_buffer(name)
        for prefix, part in module.named_modules()
        if isinstance(part, Rows) and part.per == per
        for name in part.row_buffers()
    }


def all_rows(module: nn.Module, per: Per) -> list[Rows]:
    """The parts of a module, itself included, that have rows per user (or arm)."""
    return [part for part in module.modules() if isinstance(part, Rows) and part.per == per]
