"""Checkpoints while a simulation runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from conbandit_torch.callbacks.base import Callback, StoppedError
from conbandit_torch.running.checkpoint import write_checkpoint

if TYPE_CHECKING:
    from conbandit_torch.core.rounds import Round
    from conbandit_torch.loop import Simulation


class Checkpoint(Callback):
    """Writes a checkpoint every so many rounds, and when the run is told to stop.

    It should be the last of a simulation's callbacks, so that a checkpoint knows of what the others have
    written.

    Args:
        folder: where checkpoints go.
        every: rounds between two.
    """

    def __init__(self, folder: Path, every: int) -> None:
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every}")
        self.folder, self.every = folder, every

    def on_round(self, simulation: Simulation, played: Round) -> None:
        """Write, if it is time; after the last round there are results instead."""
        if simulation.round % self.every == 0 and simulation.round < simulation.rounds:
            for callback in simulation.callbacks:
                callback.on_checkpoint(simulation)
            write_checkpoint(self.folder, simulation.state(), simulation.processes)

    def on_exception(self, simulation: Simulation, error: BaseException) -> None:
        """Write, if the run was told to stop; the other callbacks have closed their files by now."""
        if isinstance(error, StoppedError) and simulation.round % self.every:
            write_checkpoint(self.folder, simulation.state(), simulation.processes)
