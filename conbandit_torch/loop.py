"""One round, and the loop around it. Start reading here."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import torch
from torch import Tensor, nn

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.callbacks.base import Callback, Callbacks, StoppedError
from conbandit_torch.core.checks import all_finite
from conbandit_torch.core.rounds import Round
from conbandit_torch.core.screen import STRICT, BadFeedback, Screen
from conbandit_torch.environments.base import Environment
from conbandit_torch.kernels import Kernels, using, warm
from conbandit_torch.running.checkpoint import CheckpointError, SavedState
from conbandit_torch.running.metrics import Metrics, records_from_tensor, records_to_tensor
from conbandit_torch.running.processes import Precision, device_of, dtype_of
from conbandit_torch.running.record import Record, early_rounds


def play_round(policy: Bandit, environment: Environment, screen: Screen = STRICT) -> Round:
    """Ask, show, learn: one round of all users that are here. The screen lets only finite feedback pass."""
    context = environment.observe()  # who is here, at which of their rounds, which arms
    dialogue = []
    while (question := policy.ask(context)) is not None:
        answer = screen.answer(context, question, environment.answer(context, question))
        policy.listen(context, question, answer)
        dialogue.append((question, answer))
    arm = policy.choose(context)  # [B]
    outcome = screen.outcome(environment.pull(context, arm))
    for feedback in outcome.feedback:  # this round's, or of earlier ones where rewards are late
        policy.update(feedback.context, feedback.arm, feedback.reward)
    return Round(context, dialogue, arm, outcome)


def _keep_freed_memory() -> None:
    """Have the C library keep work arrays when they are freed, for the next round's.

    As it comes, glibc gives arrays of megabytes back to the system and takes them again, page by page, every
    round, which can take longer than filling them. It keeps sizes up to that of the largest block it has seen
    freed, if that is at most 32 MiB; so here is one, whose pages are never touched.
    """
    torch.empty(2**25 - 2**16, dtype=torch.uint8)


class Simulation:
    """Plays many rounds of one policy in one environment, and tells its callbacks.

    Both are converted, in place, to the precision and moved to the device. When the simulation runs, the
    environment starts at its first round, while a policy that has learned before goes on from there.

    Args:
        policy: who decides.
        environment: who answers.
        rounds: how many rounds to play.
        log_every: rounds between two records of the metrics. Before the first, records are denser (see
            `early_rounds`); the last round is always recorded.
        callbacks: told of the start, every round, every record and the end.
        precision: "32-true", or "64-true" for exact comparison with references.
        accelerator: Lightning's name of the device, for example "cpu", "cuda" or "auto".
        kernels: "torch", "compiled", or "auto": compiled on a CPU where numba is installed. Decisions are the
            same in float64; in float32 last digits differ.
        bad_feedback: what to do about rewards and answers that are NaN or infinite: "stop" with an error, or
            "skip" and count them.
        folder: where callbacks may put their files; None: nowhere.
    """

    def __init__(
        self,
        policy: Bandit,
        environment: Environment,
        *,
        rounds: int,
        log_every: int = 10,
        callbacks: Sequence[Callback] = (),
        precision: Precision = "32-true",
        accelerator: str = "cpu",
        kernels: Kernels = "auto",
        bad_feedback: BadFeedback = "stop",
        folder: Path | None = None,
    ) -> None:
        for name, value in {"rounds": rounds, "log_every": log_every}.items():
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, got {value}")
        for name, given, choices in (
            ("precision", precision, get_args(Precision)),
            ("kernels", kernels, get_args(Kernels)),
            ("bad_feedback", bad_feedback, get_args(BadFeedback)),
        ):
            if given not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {given!r}")
        if environment.length is not None and rounds > environment.length:
            raise ValueError(
                f"rounds is {rounds}, but {type(environment).__name__} holds {environment.length}"
            )
        if environment.num_users != policy.num_users:
            raise ValueError(
                f"the policy was built for {policy.num_users} users, the environment has "
                f"{environment.num_users}"
            )
        known, real = policy.catalogue.arm_features, environment.catalogue.arm_features
        if known is not real and not torch.equal(known, real):
            raise ValueError("the policy was built for another catalogue than the environment's")
        if precision == "64-true" and real.dtype != torch.float64:
            raise ValueError(
                f"precision is 64-true, but the environment's data are {real.dtype} (an earlier simulation "
                "converts them in place): build a new environment and policy"
            )
        self.rounds, self.log_every, self.folder, self.kernels = rounds, log_every, folder, kernels
        self._early = early_rounds(log_every, rounds)
        self.callbacks = Callbacks(callbacks)
        self.processes = environment.processes
        policy.share(self.processes)
        device = device_of(accelerator) if self.processes.size == 1 else self.processes.device
        dtype = dtype_of(precision)
        self.environment, self.policy = environment.to(dtype), policy.to(dtype)
        if not all_finite(policy.catalogue.arm_features):
            raise ValueError(
                f"some of the catalogue's features are too large for {dtype}: scale them, or use 64-true"
            )
        self.environment.to(device)
        self.policy.to(device)
        self.screen = Screen(bad_feedback).to(device)
        self.metrics = Metrics(self.environment, self.screen)
        self.round = 0
        self.records: list[Record] = []
        self._stopping = self._started = self._playing = False
        # Where in the environment this simulation is, while others may play in it; None: at the first round.
        self._place: dict[str, Tensor] | None = None

    def stop(self) -> None:
        """End after the current round, with a `StoppedError`; for signal handlers and other threads.

        Several processes end together, at the next record.
        """
        self._stopping = True

    def state(self) -> SavedState:
        """Everything that another simulation of the same kind needs to go on from here."""
        if not self._playing:
            self._take_place()
        tensors = {"records": records_to_tensor(self.records)}
        for name, module in self._stateful().items():
            tensors |= {f"{name}.{key}": value for key, value in module.state_dict().items()}
        return SavedState(self.round, tensors)

    def restore(self, state: SavedState) -> None:
        """Go on from a state, of a simulation that was built in the same way."""
        for name, module in self._stateful().items():
            prefix = f"{name}."
            own = {k.removeprefix(prefix): v for k, v in state.tensors.items() if k.startswith(prefix)}
            try:
                module.load_state_dict(own, strict=True)
            except RuntimeError as error:
                problem = " ".join(str(error).split())
                raise CheckpointError(
                    "the checkpoint is of another experiment, or of another version of this package: "
                    f"{problem}"
                ) from None
        try:
            records = records_from_tensor(state.tensors["records"])
        except (KeyError, ValueError) as error:
            raise CheckpointError(f"the checkpoint's records are damaged: {error}") from None
        if state.round > self.rounds:
            raise CheckpointError(f"the checkpoint is of round {state.round}, of {self.rounds} to play")
        self.round, self.records = state.round, records
        self._keep_place()

    def _keep_place(self) -> None:
        self._place = {name: value.clone() for name, value in self.environment.state_dict().items()}

    def _take_place(self) -> None:
        """Bring the environment to where this simulation is, whatever was played in it before."""
        self.environment.reset()
        if self._place is not None:
            self.environment.load_state_dict(self._place)

    def _stateful(self) -> dict[str, nn.Module]:
        return {name: getattr(self, name) for name in ("policy", "environment", "metrics", "screen")}

    @torch.no_grad()
    def run(self) -> list[Record]:
        """Play all rounds; returns the records, which `self.records` keeps too."""
        if self._started:
            raise RuntimeError("this simulation has run already: build a new one")
        self._take_place()
        self._started = self._playing = True
        try:
            with using(self.kernels, single_torch_thread=True):
                warm(self.policy.catalogue.arm_features)
                self._play()
        except BaseException as error:
            self.callbacks.on_exception(self, error)
            raise
        finally:
            self._keep_place()
            self._playing = False
        return self.records

    def _play(self) -> None:
        _keep_freed_memory()
        self.callbacks.on_start(self)
        start = time.perf_counter() - (self.records[-1].seconds if self.records else 0.0)
        while self.round < self.rounds:
            played = play_round(self.policy, self.environment, self.screen)
            self.round += 1
            self.metrics.add(played)
            if self._is_recorded():
                record = self.metrics.read(self.round, played, self.policy, self.environment)
                record.seconds = time.perf_counter() - start
                if self.records:
                    self.records[-1].details = {}  # histograms: too much to keep of every record
                self.records.append(record)
                self.callbacks.on_record(self, record)
            self.callbacks.on_round(self, played)
            if self._told_to_stop() and self.round < self.rounds:
                raise StoppedError(f"stopped after round {self.round} of {self.rounds}")
        self.callbacks.on_end(self)

    def _is_recorded(self) -> bool:
        return self.round % self.log_every == 0 or self.round in self._early or self.round == self.rounds

    def _told_to_stop(self) -> bool:
        if self.processes.size == 1:
            return self._stopping
        return self._is_recorded() and self.processes.any(self._stopping)
