"""What experiments/RESULTS.md says of each policy, so that a policy's page cannot say anything else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from conbandit_torch.configuration.kinds import classes_of


@dataclass(frozen=True)
class Measured:
    """A policy's rows of one table.

    Attributes:
        title: the headings that the table stands under.
        anchor: of the innermost heading.
        header: the table's.
        rows: those of the policy.
        command: what made the table; empty if the section names none.
    """

    title: str
    anchor: str
    header: list[str]
    rows: list[list[str]]
    command: str


def measured(path: Path) -> dict[str, list[Measured]]:
    """The rows of every policy, by the name of its class; tables have a first column `policy`."""
    names = {_plain(name): name for name in classes_of("policies")}
    found: dict[str, list[Measured]] = {}
    for headings, command, header, rows in _tables(path.read_text(encoding="utf-8")):
        own: dict[str, list[list[str]]] = {}
        for row in rows:
            name = names.get(_plain(re.split(r"[,(]", row[0])[0]))
            if name:
                own.setdefault(name, []).append(row)
        for name, some in own.items():
            one = Measured(": ".join(headings), _anchor(headings[-1]), header, some, command)
            found.setdefault(name, []).append(one)
    return found


def _tables(text: str) -> list[tuple[list[str], str, list[str], list[list[str]]]]:
    """(headings, command, header, rows) of every table whose first column is `policy`."""
    found = []
    headings: dict[int, str] = {}
    command, lines = "", text.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("```"):
            end = next(i for i in range(at + 1, len(lines)) if lines[i].startswith("```"))
            command = "\n".join(lines[at + 1 : end]) if line == "```bash" else command
            at = end
        elif heading := re.match(r"(#{2,4}) (.+)", line):
            level = len(heading[1])
            headings = {key: one for key, one in headings.items() if key < level} | {level: heading[2]}
            command = ""
        elif line.startswith("| policy") and headings:
            end = next((i for i in range(at, len(lines)) if not lines[i].startswith("|")), len(lines))
            header, _, *rows = [[cell.strip() for cell in one.strip("|").split("|")] for one in lines[at:end]]
            found.append(([headings[key] for key in sorted(headings)], command, header, rows))
            at = end
        at += 1
    return found


def _plain(name: str) -> str:
    """A policy's name without what papers and classes write differently: Var-LCR, VarLCR."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _anchor(heading: str) -> str:
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())
