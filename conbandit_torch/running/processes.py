"""Starting the processes over which users are split."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import distributed as dist

from conbandit_torch.core.processes import ALONE, Processes

if TYPE_CHECKING:
    pass


def launch(accelerator: str, devices: int, num_nodes: int) -> Processes:
    """Start the other processes, by running this command again for each, or join those of `torchrun`."""
    if dist.is_torchelastic_launched():
        from os import environ

        devices = int(environ["LOCAL_WORLD_SIZE"])
        num_nodes = int(environ["WORLD_SIZE"]) // devices
    if devices * num_nodes == 1:
        return ALONE
    from lightning.fabric import Fabric

    fabric = Fabric(accelerator=accelerator, devices=devices, num_nodes=num_nodes, strategy="ddp")
    fabric.launch()
    return Processes(fabric.global_rank, fabric.world_size, num_nodes, fabric)
