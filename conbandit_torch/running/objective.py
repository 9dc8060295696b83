"""What runs are judged by: regret or, where a log is replayed, the click-through rate.

This is the one place where the two are told apart. It imports no torch, since results are read without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from conbandit_torch.running.record import Record


@dataclass(frozen=True)
class Objective:
    """A metric that policies are ranked by.

    Attributes:
        name: what it is called.
        column: which metric of a record, and which column of files, it is.
        group: TensorBoard's group of its curves. Groups are shown by name, capital letters first, and the
            first two are open: so this one has a capital letter, and all others have none.
        label: what it is called on an axis.
        per: of whom it is, for headings; or empty.
        digits: shown after the point.
        sign: 1 if less is better, -1 if more is.
        sentence: how a run went, with a `{value}` and a `{record}`.
        meaning: for the notes of a report.
    """

    name: str
    column: str
    group: str
    label: str
    per: str
    digits: int
    sign: int
    sentence: str
    meaning: str

    @property
    def tag(self) -> str:
        """What the curve of one run is called in TensorBoard."""
        return f"{self.group}/cumulative"

    @property
    def tags_over_seeds(self) -> tuple[str, str, str]:
        """What the mean over seeds is called, which comes before `tag`, and the ends of its interval."""
        group = f"{self.group} over seeds"
        return f"{self.group}/average over seeds", f"{group}/95 % low", f"{group}/95 % high"

    @property
    def heading(self) -> str:
        """What stands over a column, in two lines at most."""
        return f"{self.name}\n{self.per}".strip()

    @property
    def beats(self) -> str:
        """What stands between a better and a worse policy."""
        return "<" if self.sign > 0 else ">"

    @property
    def difference(self) -> str:
        """What a better policy has, in comparison with another."""
        return "less than" if self.sign > 0 else "more than"

    def value(self, record: Record) -> float:
        """The record's value; NaN as long as there is none."""
        value = getattr(record, self.column)
        return float("nan") if value is None else float(value)

    def describe(self, record: Record) -> str:
        """How a run went, in a few words."""
        if getattr(record, self.column) is None:
            return "no event has counted"
        return self.sentence.format(value=self.value(record), record=record)


REGRET = Objective(
    name="regret",
    column="cumulative_regret",
    group="Regret",
    label="cumulative regret per user",
    per="per user",
    digits=2,
    sign=1,
    sentence="regret {value:.2f} per user",
    meaning="Regret: per user at the last round",
)
CTR = Objective(
    name="CTR",
    column="ctr",
    group="CTR",
    label="CTR of all counted events",
    per="",
    digits=4,
    sign=-1,
    sentence="CTR {value:.4f} of {record.counted:,} events",
    meaning="CTR: clicks per counted event of the replayed log (of random: relative to the log's own, which "
    "is what picking at random earns)",
)


def objective_of(records: Iterable[Record]) -> Objective:
    """What these records are judged by: replay of a log knows no regret."""
    return CTR if any(record.cumulative_regret is None for record in records) else REGRET
