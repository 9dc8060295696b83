"""Simulations that stop, and records that can be compared."""

from conbandit_torch import Callback


class StopAt(Callback):
    """Stops a simulation after a round."""

    def __init__(self, number: int):
        self.number = number

    def on_round(self, simulation, played):
        if simulation.round == self.number:
            simulation.stop()


def comparable(records):
    """The records without times and details."""
    return [{k: v for k, v in vars(r).items() if k not in ("seconds", "details")} for r in records]
