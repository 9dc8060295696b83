"""Where a simulation computes: its device, its precision, and the processes over which users are split.

Lightning's Fabric finds devices and starts processes. It takes seconds to import, so it is imported only
where a device other than the CPU, or several processes, are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import environ
from typing import TYPE_CHECKING, Literal, TypeVar

import torch
from torch import Tensor
from torch import distributed as dist

from conbandit_torch.core.processes import ALONE, Processes

if TYPE_CHECKING:
    from lightning.fabric import Fabric

Precision = Literal["32-true", "64-true"]

ValueT = TypeVar("ValueT")


def device_of(accelerator: str) -> torch.device:
    """The device that Lightning's name of an accelerator, such as "cpu", "cuda" or "auto", stands for."""
    if accelerator == "cpu":
        return torch.device("cpu")
    from lightning.fabric import Fabric

    return Fabric(accelerator=accelerator, devices=1).device


def dtype_of(precision: Precision) -> torch.dtype:
    """What numbers are in a precision."""
    return torch.float64 if precision == "64-true" else torch.float32


@dataclass(frozen=True)
class FabricProcesses(Processes):
    """Processes that Fabric has started.

    Attributes:
        fabric: what started them.
    """

    fabric: Fabric | None = None

    @property
    def device(self) -> torch.device:
        """Where tensors to be exchanged must be."""
        return self._fabric.device

    @property
    def _fabric(self) -> Fabric:
        if self.fabric is None:
            raise ValueError("FabricProcesses needs the Fabric that started the processes")
        return self.fabric

    def sum(self, values: Tensor) -> Tensor:
        """The sum of all processes' values, which are of one shape."""
        total = values.clone()
        dist.all_reduce(total)
        return total

    def broadcast(self, value: ValueT) -> ValueT:
        """The first process's value, for all."""
        said: ValueT = self._fabric.broadcast(value)
        return said

    def wait(self) -> None:
        """Wait until all processes are here."""
        self._fabric.barrier()

    def leave(self) -> None:
        """End the exchange."""
        dist.destroy_process_group()

    def _collect(self, values: Tensor) -> Tensor:
        parts = [torch.empty_like(values) for _ in range(self.size)]
        dist.all_gather(parts, values)
        return torch.stack(parts)


def launch(accelerator: str, devices: int, num_nodes: int) -> Processes:
    """Start the other processes, by running this command again for each, or join those of `torchrun`."""
    if dist.is_torchelastic_launched():
        devices = int(environ["LOCAL_WORLD_SIZE"])
        num_nodes = int(environ["WORLD_SIZE"]) // devices
    if devices * num_nodes == 1:
        return ALONE
    from lightning.fabric import Fabric

    fabric = Fabric(accelerator=accelerator, devices=devices, num_nodes=num_nodes, strategy="ddp")
    fabric.launch()
    return FabricProcesses(fabric.global_rank, fabric.world_size, num_nodes, fabric)
