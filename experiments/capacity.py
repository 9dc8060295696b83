"""Bytes per user and per arm take, by policy, and what follows for machines and for very many users.

    python -m experiments.capacity

writes the tables of `docs/capacity.md` anew. A test holds the formulae against the policies' `state_dict`s,
and the page against this file: a change of what a policy stores is made here too, and this is run again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from experiments.measuring import markdown

PAGE = Path(__file__).parent.parent / "docs" / "capacity.md"
GIB = 2**30
REGRESSION = "s (2 n² + 2 n + 2) + 8"  # what `regression_bytes` computes, for the page


def regression_bytes(n: int, s: int) -> int:
    """One model of a `RidgeRegression` of n features: M, M^-1, b, M^-1 b, log det, a bound, the count."""
    return s * (2 * n * n + 2 * n + 2) + 8


@dataclass(frozen=True)
class State:
    """What a policy stores.

    Attributes:
        regressions: dimension of each regression that a user has: D, D+L or m.
        counters: whole numbers of 8 bytes that a user has: questions asked.
        per_arm: whether an arm has L hidden features, kept in one row with its D others, and a regression.
        roots: whether the regressions keep a root of M^-1.
    """

    regressions: tuple[str, ...]
    counters: int
    per_arm: bool = False
    roots: bool = False

    def user_bytes(self, dim: int, *, hidden: int = 5, coarse: int = 5, s: int = 4) -> int:
        """Bytes a user."""
        sizes = {"D": dim, "D+L": dim + hidden, "m": coarse}
        roots = s * sum(sizes[n] ** 2 for n in self.regressions) if self.roots else 0
        return sum(regression_bytes(sizes[n], s) for n in self.regressions) + roots + 8 * self.counters

    def arm_bytes(self, dim: int, *, hidden: int = 5, s: int = 4) -> int:
        """Bytes an arm, beside the catalogue's."""
        return regression_bytes(hidden, s) + s * (dim + hidden) if self.per_arm else 0

    def user_formula(self) -> str:
        """`user_bytes`, for the page."""
        terms = [f"(R({n}) + s {n}²)" if self.roots else f"R({n})" for n in dict.fromkeys(self.regressions)]
        if len(self.regressions) > len(terms):
            terms = [f"{len(self.regressions)} {terms[0]}"]
        return " + ".join([*terms, str(8 * self.counters)] if self.counters else terms)

    def arm_formula(self) -> str:
        """`arm_bytes`, for the page."""
        return "R(L) + s (D + L)" if self.per_arm else "0"


_PLAIN, _ONE_LEVEL, _TWO_LEVELS = State(("D",), 0), State(("D",), 1), State(("D", "D"), 1)
_HIDDEN_ONE, _HIDDEN_TWO = State(("D+L",), 1, True), State(("D+L", "D+L"), 1, True)

STATES: dict[str, State] = {
    **dict.fromkeys(("LinUCB", "Greedy", "EpsilonGreedy"), _PLAIN),
    "LinThompson": State(("D",), 0, roots=True),
    **dict.fromkeys(
        ("Arm-Con", "ConLinUCB", "ConLinUCB-MCR", "ConLinUCB-UCB", "ConLinUCB-BS"),
        _ONE_LEVEL,
    ),
    **dict.fromkeys(("ConUCB", "Var-RS", "Var-MRC", "Var-LCR"), _TWO_LEVELS),
    "ConThompson": State(("D", "D"), 1, roots=True),
    "CoFineUCB": State(("D", "m"), 0),
    "hLinUCB": State(("D+L",), 0, True),
    **dict.fromkeys(("hArm-Con", "hConLinUCB"), _HIDDEN_ONE),
    **dict.fromkeys(("hConUCB", "hVar-RS", "hVar-MRC", "hVar-LCR"), _HIDDEN_TWO),
}

# The paper's sizes: 50 features, of which the hidden-feature family sees 45 and learns 5.
OBSERVED = {False: 50, True: 45}
MACHINES = {"64 GB": 64e9, "512 GB": 512e9, "GPU of 80 GB": 80e9}
USABLE = 0.8  # of a machine's memory: the rest is the system, the catalogue and work arrays
MANY = 100_000_000


def by_policy() -> str:
    """Bytes per user and per arm."""
    groups: dict[State, list[str]] = {}
    for name, state in STATES.items():
        groups.setdefault(state, []).append(name)
    rows = []
    for state, names in groups.items():
        dim = OBSERVED[state.per_arm]
        sizes = [state.user_bytes(dim), state.user_bytes(dim, s=8)]
        per_gib = [f"{GIB // size:,}" for size in sizes]
        arm = f"{state.arm_bytes(dim):,}"
        user = [state.user_formula(), f"{sizes[0]:,}", per_gib[0], per_gib[1]]
        rows.append([", ".join(names), *user, state.arm_formula(), arm])
    headings = ["policy", "bytes per user", "d = 50, float32", "users per GiB", "users per GiB, float64"]
    return markdown([*headings, "bytes per arm", "L = 5, float32"], rows)


def by_machine() -> str:
    """Users that a machine holds."""
    shown = ("LinUCB", "ConUCB", "hConUCB")
    rows = []
    for dim in (10, 25, 50, 100, 200):
        for name in shown:
            state = STATES[name]
            size = state.user_bytes(dim - 5 if state.per_arm else dim)
            held = [f"{USABLE * memory / size:,.0f}" for memory in MACHINES.values()]
            rows.append([str(dim), name, f"{size:,}", *held, f"{MANY * size / 1e12:.2f} TB"])
    return markdown(["d", "policy", "bytes per user", *MACHINES, "100 million users"], rows)


def by_remedy() -> str:
    """What 100 million users of ConUCB would need, if less were stored."""

    def diagonal(n: int, s: int) -> int:
        return s * (2 * n + 2)

    kinds: dict[str, Callable[[], int]] = {
        "as it is, float64": lambda: STATES["ConUCB"].user_bytes(50, s=8),
        "as it is, float32": lambda: STATES["ConUCB"].user_bytes(50),
        "without M, only M^-1": lambda: 2 * 4 * (50 * 50 + 50),
        "without M, half of the symmetric M^-1": lambda: 2 * 4 * (50 * 51 // 2 + 50),
        "the same, M^-1 in bfloat16": lambda: 2 * (2 * 50 * 51 // 2 + 4 * 50),
        "d = 20 (projected features), as it is": lambda: STATES["ConUCB"].user_bytes(20),
        "M^-1 as the ridge less 8 directions": lambda: 2 * 4 * (8 * 50 + 50),
        "diagonal M": lambda: 2 * diagonal(50, 4),
    }
    rows = [
        [name, f"{size():,}", f"{MANY * size() / 1e12:.2f} TB", f"{MANY * size() / (USABLE * 512e9):,.1f}"]
        for name, size in kinds.items()
    ]
    return markdown(["ConUCB, d = 50", "bytes per user", "100 million users", "machines of 512 GB"], rows)


TABLES = {"policy": by_policy, "machine": by_machine, "remedy": by_remedy}


def with_tables(text: str) -> str:
    """The page's text with its tables made anew, each between its two marks."""
    for name, table in TABLES.items():
        begin, end = f"<!-- {name}: python -m experiments.capacity -->\n", f"<!-- end of {name} -->"
        if begin not in text or end not in text:
            raise ValueError(f"{PAGE} must hold the lines {begin.strip()} and {end}")
        before, _, rest = text.partition(begin)
        text = before + begin + table() + end + rest.partition(end)[2]
    return text


def main() -> None:
    """Write the page's tables anew."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
