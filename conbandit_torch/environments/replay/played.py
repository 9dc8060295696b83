"""What all replays of logs share: who counts, what is answered, and what nobody knows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.context import Context
from conbandit_torch.core.processes import Processes
from conbandit_torch.core.randomness import Stream
from conbandit_torch.core.serving import Serving
from conbandit_torch.environments.answers import AnswerModel
from conbandit_torch.environments.base import Environment
from conbandit_torch.environments.simulated import AnswerKind, Simulated


class PlayedLog(Simulated):
    """A log that is played again; questions are answered by parameters fitted to its first part.

    Args:
        catalogue: arms and key-terms, with all features.
        theta: [U, D] the fitted parameters.
        feedback: of answers: "linear", or "binary" for answers of 0 and 1.
        answers: how people answer questions.
        noise: standard deviation of linear answers' noise.
        hidden: how many features policies do not see, or the names of which.
        hidden_seed: seed of the draw of those features.
        balance_hidden: whether their share of `|x|^2` is to be close to their share of the features.
        seed: seed of candidates and noise.

    Attributes:
        serving: how the log's items were chosen.
    """

    counted: Tensor  # [U] events of each user that counted
    serving: Serving = "unknown"

    def __init__(
        self,
        catalogue: Catalogue,
        theta: Tensor,
        feedback: AnswerKind,
        answers: AnswerModel,
        noise: float,
        hidden: int | Sequence[str],
        hidden_seed: int,
        balance_hidden: bool,
        seed: int,
    ) -> None:
        if not 0 <= noise < float("inf"):
            raise ValueError(f"noise must be a number of at least 0, got {noise}")
        super().__init__(catalogue, theta, feedback, hidden, hidden_seed, balance_hidden, answers=answers)
        self.register_buffer("counted", torch.zeros_like(self.rounds))
        self.noise, self.seed = noise, seed

    def split(self, processes: Processes) -> None:
        """Not possible: windows are of counted events of all users, in their order."""
        Environment.split(self, processes)

    def reset(self) -> None:
        """Back to the first event of every user."""
        super().reset()
        self.counted.zero_()

    def clock(self, context: Context) -> Tensor:
        """[B] the users' events so far; a policy's clock stands still where its arm was not served."""
        return self.rounds[context.who]

    def expected(self, context: Context) -> Tensor | None:
        """None: the fitted parameters are no truth to measure policies by."""
        return None

    def preferences(self) -> Tensor | None:
        """None, for the same reason."""
        return None

    def arm_noise(self, users: Tensor, rounds: Tensor) -> Tensor:
        """[B] of answers about arms."""
        return self._draw_noise("replay arm noise", users, rounds)

    def term_noise(self, users: Tensor, rounds: Tensor) -> Tensor:
        """[B] of answers about key-terms."""
        return self._draw_noise("replay term noise", users, rounds)

    def _draw_noise(self, purpose: str, users: Tensor, rounds: Tensor) -> Tensor:
        stream = Stream(self.seed, purpose)
        if self.feedback == "binary":
            return stream.uniform(users, rounds, 1).squeeze(1)
        return self.noise * stream.normal(users, rounds, 1).squeeze(1)
