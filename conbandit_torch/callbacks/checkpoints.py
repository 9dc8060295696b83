"""Checkpoints while a simulation runs."""

from __future__ import annotations

from pathlib import Path

from conbandit_torch.callbacks.base import Callback, SimulationView, StoppedError
from conbandit_torch.core.rounds import Round
from conbandit_torch.running.checkpoint import write_checkpoint
from conbandit_torch.running.origin import Origin


class Checkpoint(Callback):
    """Writes a checkpoint every so many rounds, and when the run is told to stop.

    It should be the last of a simulation's callbacks, so that a checkpoint knows of what the others have
    written.

    Args:
        folder: where checkpoints go.
        every: rounds between two.
        origin: what the state comes from, to be kept in the checkpoint; None: nothing is known of it.
    """

    def __init__(self, folder: Path, every: int, origin: Origin | None = None) -> None:
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every}")
        self.folder, self.every, self.origin = folder, every, origin

    def on_round(self, simulation: SimulationView, played: Round) -> None:
        """Write, if it is time; after the last round there are results instead."""
        if simulation.round % self.every == 0 and simulation.round < simulation.rounds:
            simulation.callbacks.on_checkpoint(simulation)
            self._write(simulation)

    def on_exception(self, simulation: SimulationView, error: BaseException) -> None:
        """Write, if the run was told to stop; the other callbacks have closed their files by now."""
        if isinstance(error, StoppedError) and simulation.round % self.every:
            self._write(simulation)

    def _write(self, simulation: SimulationView) -> None:
        write_checkpoint(self.folder, simulation.state(), simulation.processes, self.origin)
