"""What the leaderboard's page shows, and how policies look on it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from html import escape

from conbandit_torch.leaderboard.board import Board
from conbandit_torch.leaderboard.read_board import ADDED
from conbandit_torch.leaderboard.standings import Checked, Rank, TaskStandings

_COLOURS = 8  # of the style


class Shown:
    """Everything that the page shows.

    Args:
        board: what was compared.
        standings: of every task.
        order: ranks over tasks.
        checked: the claims.
    """

    def __init__(
        self, board: Board, standings: list[TaskStandings], order: list[Rank], checked: list[Checked]
    ) -> None:
        self.board, self.order, self.checked = board, order, checked
        self.standings = [one for one in standings if one.scores or one.failed]
        self.titles = {one.task.name: one.task.title for one in standings}

    @cached_property
    def groups(self) -> list[str]:
        """The groups of policies, in the board's order."""
        return list(dict.fromkeys([*(entry.group for entry in self.board.entries.values()), ADDED]))

    def group(self, policy: str) -> int:
        """The number of a policy's colour."""
        entry = self.board.entries.get(policy)
        return self.groups.index(entry.group if entry else ADDED) % _COLOURS

    def name(self, policy: str) -> str:
        """A policy's name in its colour, which can be clicked."""
        entry = self.board.entries.get(policy)
        source = escape(entry.source if entry else ADDED)
        return (
            f'<span class="p g{self.group(policy)}" data-p="{escape(policy)}" title="{source}">'
            f"{escape(policy)}</span>"
        )

    def legend(self) -> str:
        """The colours of the groups that are shown."""
        shown = {self.group(score.policy) for one in self.standings for score in one.ranked}
        items = "".join(
            f'<span class="p g{number % _COLOURS}">{escape(group)}</span>'
            for number, group in enumerate(self.groups)
            if number % _COLOURS in shown
        )
        return f'<div class="legend">{items}</div>'


def table(headings: Iterable[str], rows: Iterable[str]) -> str:
    """A table of cells that are HTML already; a heading that ends in | is of numbers."""
    cells = "".join(
        f'<th class="n">{one[:-1]}</th>' if one.endswith("|") else f"<th>{one}</th>" for one in headings
    )
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
