"""A recorded interaction, to be played again decision by decision."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.environments.simulated import Simulated

_SHAPES = {  # the file's arrays; letters as everywhere, T rounds
    "X": "ND",
    "W": "NK",
    "theta": "UD",
    "pools": "UTA",
    "arm_noise": "UT",
    "key_term_noise": "UT",
    "budget": "T",
}
_OPTIONAL = {"first_noise": "UQ", "second_noise": "UQ"}  # of comparisons, Q = b(T) questions
_WHOLE = ("pools", "budget")


@dataclass(frozen=True)
class Decisions:
    """What a recorded policy did.

    Attributes:
        arms: [U, T] catalogue ids of the arms shown.
        regret: [U, T] regrets.
        theta_error: [U, T] `|theta - theta_*|` after each round's update.
        asked: [U, b(T)] key-terms (or arms) asked, in order, or [U, b(T), 2] the two compared; None if
            the policy asked nothing.
        first_wins: [U, b(T)] whether the first of two compared was liked better; None: nothing was compared.
    """

    arms: np.ndarray
    regret: np.ndarray
    theta_error: np.ndarray
    asked: np.ndarray | None
    first_wins: np.ndarray | None


class Recorded(Simulated):
    """Plays a recorded file, so that anyone can check a policy decision by decision.

    The file is an `.npz` with `X [N, D]`, `W [N, K]`, `theta [U, D]`, `pools [U, T, A]`,
    `arm_noise [U, T]`, `key_term_noise [U, T]` and `budget [T]` (questions per round), and, for each
    policy recorded, `arms/<name>`, `regret/<name>`, `theta_error/<name>` (all [U, T]) and
    `asked/<name> [U, b(T)]`. Comparisons need `first_noise [U, b(T)]` and `second_noise [U, b(T)]`, by the
    user's question, and have `asked/<name> [U, b(T), 2]` and `first_wins/<name> [U, b(T)]`. Every user is
    present in every round.

    Args:
        path: the file.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        arrays = self._read()
        shapes = _SHAPES | {name: letters for name, letters in _OPTIONAL.items() if name in arrays}
        kinds = {name: np.int64 if name in _WHOLE else np.float64 for name in shapes}
        numbers = {name: torch.from_numpy(arrays[name].astype(kind)) for name, kind in kinds.items()}
        try:
            catalogue = Catalogue(numbers["X"], numbers["W"])
        except ValueError as error:
            raise ValueError(f"{self.path}: {error} (arm_features is X, weights is W)") from None
        super().__init__(catalogue, numbers["theta"])
        self.length = numbers["pools"].shape[1]
        for name in shapes.keys() - {"X", "W", "theta"}:
            self.register_buffer(f"_{name}", numbers[name], persistent=False)
        self._recorded = {k: v for k, v in arrays.items() if k not in shapes}

    @property
    def recorded_policies(self) -> list[str]:
        """Names of the policies whose decisions the file holds."""
        return [key.removeprefix("arms/") for key in self._recorded if key.startswith("arms/")]

    @property
    def budget(self) -> Tensor:
        """[T] questions the recorded policies asked in each round."""
        return self.get_buffer("_budget")

    def decisions(self, name: str) -> Decisions:
        """What the recorded policy `name` did."""
        if name not in self.recorded_policies:
            raise ValueError(
                f"{self.path} holds no policy {name!r}; it holds {', '.join(self.recorded_policies)}"
            )
        get = self._recorded.get
        arms, regret, error = (self._recorded[f"{k}/{name}"] for k in ("arms", "regret", "theta_error"))
        return Decisions(arms, regret, error, get(f"asked/{name}"), get(f"first_wins/{name}"))

    def pools(self, users: Tensor, rounds: Tensor) -> Tensor:
        """[B, A] as recorded."""
        return self.get_buffer("_pools")[users, rounds]

    def arm_noise(self, users: Tensor, rounds: Tensor) -> Tensor:
        """[B] as recorded."""
        return self.get_buffer("_arm_noise")[users, rounds]

    def term_noise(self, users: Tensor, rounds: Tensor) -> Tensor:
        """[B] as recorded."""
        return self.get_buffer("_key_term_noise")[users, rounds]

    def side_noise(self, users: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """[B] each: noise of both sides of a comparison, as recorded."""
        sides = [dict(self.named_buffers()).get(f"_{name}") for name in _OPTIONAL]
        if sides[0] is None or sides[1] is None:
            raise ValueError(f"{self.path}: holds no noise of comparisons ({', '.join(_OPTIONAL)})")
        return sides[0][users, numbers], sides[1][users, numbers]

    def _read(self) -> dict[str, np.ndarray]:
        """The arrays, after every check of the schema."""
        if not self.path.is_file():
            raise ValueError(f"{self.path}: no such file")
        try:
            with self.path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except Exception as error:  # zip, zlib and NumPy's header each have errors of their own
            raise ValueError(f"{self.path}: not a readable .npz file ({error})") from None
        foreign = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
        if foreign:
            raise ValueError(f"{self.path}: {', '.join(foreign)}: no array")
        missing = [name for name in _SHAPES if name not in arrays]
        if missing:
            raise ValueError(
                f"{self.path}: {', '.join(missing)} missing; a recording holds {', '.join(_SHAPES)}"
            )
        sizes: dict[str, int] = {}
        given = {name: letters for name, letters in _OPTIONAL.items() if name in arrays}
        for name, letters in (_SHAPES | given).items():
            array = arrays[name]
            if array.ndim != len(letters):
                raise ValueError(
                    f"{self.path}: {name} must be [{', '.join(letters)}], got {list(array.shape)}"
                )
            for letter, size in zip(letters, array.shape, strict=True):
                if sizes.setdefault(letter, size) != size:
                    raise ValueError(
                        f"{self.path}: {name} must be [{', '.join(letters)}] with {letter} = "
                        f"{sizes[letter]} as in the arrays before it, got {list(array.shape)}"
                    )
            whole = name in _WHOLE
            if 0 in array.shape:
                raise ValueError(f"{self.path}: {name} is empty, {list(array.shape)}")
            kind = "integers" if whole else "floating-point numbers"
            if not np.issubdtype(array.dtype, np.integer if whole else np.floating):
                raise ValueError(f"{self.path}: {name} must hold {kind}, got {array.dtype}")
            if not whole and not np.isfinite(array).all():
                raise ValueError(f"{self.path}: {name} holds NaN or infinity")
        pools = arrays["pools"]
        if pools.min() < 0 or pools.max() >= sizes["N"]:
            raise ValueError(
                f"{self.path}: pools must hold arm ids from 0 to {sizes['N'] - 1}, got "
                f"{pools.min()} to {pools.max()}"
            )
        shown = (sizes["U"], sizes["T"])
        for name in [key.removeprefix("arms/") for key in arrays if key.startswith("arms/")]:
            for kind in ("arms", "regret", "theta_error"):
                shape = arrays[f"{kind}/{name}"].shape if f"{kind}/{name}" in arrays else "nothing"
                if shape != shown:
                    raise ValueError(
                        f"{self.path}: {kind}/{name} must be [U, T] = {list(shown)}, got {shape}"
                    )
        return arrays
