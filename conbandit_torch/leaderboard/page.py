"""The leaderboard's page: one HTML file that needs no other, and `scores.csv` for programs."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

from conbandit_torch.core.files import write_atomically
from conbandit_torch.leaderboard.board import Board
from conbandit_torch.leaderboard.sections import claims, head, questions, ranks, summary
from conbandit_torch.leaderboard.shown import Shown
from conbandit_torch.leaderboard.standings import TaskStandings, check_claims, rank_policies, read_standings
from conbandit_torch.leaderboard.task_tables import SCORES, failed, how, tasks

PAGE = "index.html"

_SCRIPT = """
document.addEventListener("click", event => {
  const name = event.target.closest("[data-p]")?.dataset.p;
  if (name === undefined) return;
  for (const one of document.querySelectorAll("[data-p]"))
    if (one.dataset.p === name) (one.closest("tr") ?? one).classList.toggle("on");
});
"""


def write_page(board: Board, folder: Path) -> Path:
    """Write the page and `scores.csv` from what the folder holds; returns the page's path."""
    standings = read_standings(board, folder)
    shown = Shown(board, standings, rank_policies(standings), check_claims(board, standings))
    write_atomically(folder / SCORES, _csv(standings))
    write_atomically(folder / PAGE, _html(shown))
    return folder / PAGE


def _html(shown: Shown) -> str:
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    sections = (
        *(head(shown), summary(shown), ranks(shown), claims(shown), questions(shown)),
        *(tasks(shown, own=False), tasks(shown, own=True), failed(shown), how(shown)),
    )
    body = "\n".join(section for section in sections if section)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Leaderboard of conversational bandits</title><style>\n{style}</style></head>\n"
        f"<body><main>\n{body}\n</main><script>{_SCRIPT}</script></body></html>\n"
    )


def _csv(standings: list[TaskStandings]) -> str:
    """A line per task, parameters and policy."""
    text = StringIO(newline="")
    lines = csv.writer(text, lineterminator="\n")
    heading = ("task", "parameters", "rank", "policy", "objective", "mean", "half", "seeds", "questions")
    lines.writerow((*heading, "us_per_user_round", "failed"))
    for one in standings:
        for parameters, scores in one.scores.items():
            for rank, score in enumerate(scores.values(), start=1):
                numbers = (f"{number:.6g}" for number in (score.mean, score.half))
                row = (one.task.name, parameters, rank, score.policy, one.objective.name, *numbers)
                lines.writerow((*row, len(score.values), f"{score.questions:.4g}", f"{score.micros:.4g}", ""))
        for name, reason in one.failed.items():
            lines.writerow((one.task.name, "", "", name, "", "", "", "", "", "", reason))
    return text.getvalue()
