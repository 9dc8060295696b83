"""The leaderboard's page: one HTML file that needs no other, and `scores.csv` for programs."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable
from html import escape
from io import StringIO
from math import isnan
from pathlib import Path

from conbandit_torch.core.files import write_atomically
from conbandit_torch.core.version import VERSION
from conbandit_torch.leaderboard.board import ADDED, Board
from conbandit_torch.leaderboard.charts import Point, scatter
from conbandit_torch.leaderboard.play import PUBLISHED, TUNED
from conbandit_torch.leaderboard.standings import (
    Checked,
    Rank,
    Score,
    TaskStandings,
    Verdict,
    check_claims,
    ranks,
    read_standings,
)
from conbandit_torch.running.objective import CTR

PAGE, SCORES = "index.html", "scores.csv"

_SHOWN = 15  # rows of a task's table before the rest is folded
_GROUPS = 8  # colours of the style
_CUT = 3.0  # bars end at so many times the best regret
_WORDS: dict[Verdict, tuple[str, str]] = {
    "holds": ("holds", "holds"),
    "not separated": ("open", "not separated"),
    "reversed": ("reversed", "reversed"),
    "not run": ("none", "not run"),
}
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
    order, checked = ranks(standings), check_claims(board, standings)
    write_atomically(folder / SCORES, _csv(standings))
    write_atomically(folder / PAGE, _Page(board, standings, order, checked).html())
    return folder / PAGE


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


class _Page:
    """The page, section by section.

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
        self.groups = list(dict.fromkeys([*(entry.group for entry in board.entries.values()), ADDED]))

    def html(self) -> str:
        style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
        sections = (
            *(self._head(), self._summary(), self._ranks(), self._claims(), self._questions()),
            *(self._tasks(own=False), self._tasks(own=True), self._failed(), self._how()),
        )
        body = "\n".join(section for section in sections if section)
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>Leaderboard of conversational bandits</title><style>\n{style}</style></head>\n"
            f"<body><main>\n{body}\n</main><script>{_SCRIPT}</script></body></html>\n"
        )

    def _head(self) -> str:
        protocol = self.board.protocol
        every = {score.policy for one in self.standings for score in one.ranked}
        chips = {
            "policies": len(every),
            "tasks": sum(not one.task.paper for one in self.standings),
            "papers' own settings": sum(bool(one.task.paper) for one in self.standings),
            "users": protocol.users,
            "rounds": protocol.rounds,
            "evaluation seeds": len(protocol.seeds),
            "trials per study": f"{protocol.trials} on {len(protocol.tuning_seeds)} other seeds",
        }
        shown = "".join(f'<span class="chip"><b>{value}</b> {what}</span>' for what, value in chips.items())
        return (
            "<header><h1>Leaderboard of conversational bandits</h1>"
            '<p class="soft">Every policy under one protocol: the same rounds, the same budget of tuning on '
            f"other seeds, the same tests. {escape(protocol.about)}</p>"
            f'<div class="chips">{shown}</div></header>\n<nav><a href="#ranks">Ranks</a>'
            '<a href="#claims">Claims</a><a href="#questions">Questions</a><a href="#tasks">Tasks</a>'
            '<a href="#papers">Papers\' own settings</a><a href="#how">How it was made</a></nav>'
        )

    def _summary(self) -> str:
        published = Counter(
            one.verdict(one.claim.own) for one in self.checked if one.claim.own and not self._is_ours(one)
        )
        tuned = Counter(
            one.verdict(task) for one in self.checked if not self._is_ours(one) for task in one.claim.tasks
        )
        tiles = []
        if self.order:
            best = self.order[0]
            tiles.append((escape(best.policy), f"best mean rank over tasks: {best.mean:.1f}"))
        for counts, what in (
            (published, "published claims hold in the paper's own setting, with published parameters"),
            (tuned, "tests of published claims hold with equal tuning"),
        ):
            run = sum(counts.values()) - counts["not run"]
            if run:
                rest = f"{counts['not separated']} not separated, {counts['reversed']} reversed"
                tiles.append((f"{counts['holds']} of {run}", f"{what}; {rest}"))
        return (
            '<div class="tiles">'
            + "".join(
                f'<div class="tile"><div class="big">{big}</div><div class="what">{what}</div></div>'
                for big, what in tiles
            )
            + "</div>"
        )

    @staticmethod
    def _is_ours(one: Checked) -> bool:
        return one.claim.paper == "ours"

    def _group(self, policy: str) -> int:
        entry = self.board.entries.get(policy)
        return self.groups.index(entry.group if entry else ADDED) % _GROUPS

    def _name(self, policy: str) -> str:
        entry = self.board.entries.get(policy)
        source = escape(entry.source if entry else "added")
        return (
            f'<span class="p g{self._group(policy)}" data-p="{escape(policy)}" title="{source}">'
            f"{escape(policy)}</span>"
        )

    def _legend(self) -> str:
        shown = {self._group(score.policy): 0 for one in self.standings for score in one.ranked}
        items = "".join(
            f'<span class="p g{number % _GROUPS}">{escape(group)}</span>'
            for number, group in enumerate(self.groups)
            if number % _GROUPS in shown
        )
        return f'<div class="legend">{items}</div>'

    def _ranks(self) -> str:
        if not self.order:
            return ""
        last = len(self.order)
        tasks = list(self.order[0].by_task)
        head = "".join(f'<th class="heat">{escape(self.titles[task])}</th>' for task in tasks)
        rows = []
        for place, rank in enumerate(self.order, start=1):
            cells = "".join(_heat(rank.by_task[task], last) for task in tasks)
            low, mean, high = (
                100 * (value - 1) / max(last - 1, 1) for value in (rank.low, rank.mean, rank.high)
            )
            track = (
                f'<div class="track g{self._group(rank.policy)}"><i style="left:{low:.1f}%;'
                f'width:{max(high - low, 0.6):.1f}%"></i><b style="left:{mean:.1f}%"></b></div>'
            )
            rows.append(
                f'<tr><td class="rank">{place}</td><td>{self._name(rank.policy)}</td>'
                f'<td class="n"><b>{rank.mean:.1f}</b> <span class="soft">{rank.low:.1f} to {rank.high:.1f}'
                f"</span></td><td>{track}</td>{cells}</tr>"
            )
        return (
            '<h2 id="ranks">Rank over tasks</h2><p>Mean rank with tuned parameters, 1 is best. The band is the '
            "95 % interval over resampled seeds: it says what other seeds would give, not what other tasks "
            "would. A policy that fails on a task is last there.</p>"
            f'{self._legend()}<div class="card"><table><thead><tr><th></th><th>policy</th>'
            f'<th class="n">mean rank</th><th></th>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
        )

    def _claims(self) -> str:
        if not self.checked:
            return ""
        tasks = list(dict.fromkeys(task for one in self.checked for task in one.claim.tasks))
        head = "".join(f"<th>{escape(self.titles[task])}<br>tuned</th>" for task in tasks)
        rows = []
        for one in self.checked:
            claim = one.claim
            cells = [self._cell(one, claim.own)] if claim.own else ["<td></td>"]
            cells += [self._cell(one, task) if task in claim.tasks else "<td></td>" for task in tasks]
            paper = (
                f'<span class="paper" title="{escape(self.board.papers[claim.paper])}">{claim.paper}</span>'
            )
            rows.append(
                f'<tr><td>{paper}</td><td class="says">{escape(claim.says)}</td>{"".join(cells)}</tr>'
            )
        papers = "".join(
            f"<li><b>{escape(name)}</b> {escape(what)}</li>" for name, what in self.board.papers.items()
        )
        return (
            '<h2 id="claims">Which claims hold</h2><p>Paired t tests over the same seeds, corrected by Holm over '
            "all tests of this table, level 5 %. A claim about several policies holds where it holds against all "
            "of them, and is reversed where one of them is better. Point at a verdict for the numbers.</p>"
            f'<div class="card claims"><table><thead><tr><th>paper</th><th>claim</th><th>own setting,<br>'
            f"published</th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
            f"<details><summary>The papers</summary><ul>{papers}</ul></details>"
        )

    def _cell(self, one: Checked, task: str) -> str:
        kind, word = _WORDS[one.verdict(task)]
        tests = one.tests[task]
        if len(tests) > 1 and kind in ("open", "reversed"):
            word = f"{sum(test.verdict == 'holds' for test in tests)} of {len(tests)} hold"
        told = "\n".join(
            f"against {test.worse}: not run"
            if test.verdict == "not run"
            else f"against {test.worse}: better by {test.gain:.3g}, p {_p(test.p)}: {test.verdict}"
            for test in tests
        )
        return f'<td><span class="verdict {kind}" title="{escape(told)}">{word}</span></td>'

    def _questions(self) -> str:
        charts = []
        for one in self.standings:
            if one.task.paper or not one.ranked:
                continue
            name = one.objective.name
            points = [
                Point(
                    score.questions,
                    score.mean,
                    score.policy,
                    self._group(score.policy),
                    f"{score.policy}: {name} {score.mean:.{one.objective.digits}f}, "
                    f"{score.questions:.1f} questions",
                )
                for score in one.ranked
                if not isnan(score.mean) and (one.objective is CTR or score.mean > 0)
            ]
            chart = scatter(
                points, sign=one.objective.sign, x_label="questions per user", y_label=f"{name}, tuned"
            )
            charts.append(f'<div class="card"><h3>{escape(one.task.title)}</h3>{chart}</div>')
        if not charts:
            return ""
        return (
            '<h2 id="questions">Regret against questions</h2><p>Each dot is a policy. The dashed line joins those '
            "that no other one beats with as many questions or fewer. Regret is on a logarithmic axis.</p>"
            f'{self._legend()}<div class="charts">{"".join(charts)}</div>'
        )

    def _tasks(self, *, own: bool) -> str:
        cards = [self._task(one) for one in self.standings if bool(one.task.paper) == own and one.ranked]
        if not cards:
            return ""
        if own:
            intro = (
                '<h2 id="papers">The papers\' own settings</h2><p>Published parameters, no tuning: what a paper '
                "shows, on our data. What was scaled or is our reading is said.</p>"
            )
        else:
            intro = (
                '<h2 id="tasks">Tasks</h2><p>Bars are means over seeds with tuned parameters, with 95 % t '
                "intervals. The thin upright line is the same policy with its published parameters. Green: not "
                "separated from the best (paired tests, Holm). Time is wall-clock on a shared machine, and so "
                "only a hint.</p>"
            )
        return intro + "".join(cards)

    def _task(self, one: TaskStandings) -> str:
        scores, name = one.ranked, one.objective.name
        lower = one.objective.sign > 0
        top = max(score.mean for score in scores)
        top = min(top, _CUT * scores[0].mean) if lower else top
        as_good = one.as_good()
        rows = [
            self._row(one, place, score, top, score.policy in as_good)
            for place, score in enumerate(scores, 1)
        ]
        published = "" if one.task.paper else '<th class="n">published</th><th>tuned parameters</th>'
        head = (
            f"<thead><tr><th></th><th>policy</th><th>{name}, {'less' if lower else 'more'} is better</th>"
            f'<th class="n">{name}</th>{published}<th class="n">asked</th><th class="n">µs</th></tr></thead>'
        )
        first = f"<table>{head}<tbody>{''.join(rows[:_SHOWN])}</tbody></table>"
        rest = rows[_SHOWN:]
        more = (
            f"<details><summary>{len(rest)} more</summary><table>{head}<tbody>{''.join(rest)}</tbody></table></details>"
            if rest
            else ""
        )
        return (
            f'<div class="card"><h3>{escape(one.task.title)}</h3><p class="soft">{escape(one.task.about)}</p>'
            f"{first}{more}</div>"
        )

    def _row(self, one: TaskStandings, place: int, score: Score, top: float, good: bool) -> str:
        digits = one.objective.digits
        share = 100 * min(score.mean / top, 1) if top else 0
        low, high = (100 * min(max((score.mean + end) / top, 0), 1) for end in (-score.half, score.half))
        cut = " cut" if score.mean > top else ""
        other = one.scores.get(PUBLISHED, {}).get(score.policy) if one.main == TUNED else None
        mark = f'<s style="left:{100 * min(other.mean / top, 1):.1f}%"></s>' if other else ""
        whisker = (
            "" if cut or isnan(score.half) else f'<u style="left:{low:.1f}%;width:{high - low:.1f}%"></u>'
        )
        bar = f'<div class="bar g{self._group(score.policy)}{cut}"><i style="width:{share:.1f}%"></i>{whisker}{mark}</div>'
        value = f"{score.mean:.{digits}f}"
        half = "" if isnan(score.half) else f' <span class="soft">± {score.half:.{digits}f}</span>'
        published = ""
        if one.main == TUNED:
            found = one.found.get(score.policy, {})
            told = ", ".join(_parameter(*item) for item in found.get("parameters", {}).items())
            shown = f"{other.mean:.{digits}f}" if other else "-"
            published = f'<td class="n">{shown}</td><td class="soft">{escape(told) or "-"}</td>'
        return (
            f'<tr><td class="rank">{place}</td><td>{self._name(score.policy)}</td><td>{bar}</td>'
            f'<td class="n"><span class="{"best" if good else ""}">{value}</span>{half}</td>{published}'
            f'<td class="n">{score.questions:.1f}</td><td class="n">{score.micros:.1f}</td></tr>'
        )

    def _failed(self) -> str:
        rows = [
            f"<tr><td>{escape(one.task.title)}</td><td>{self._name(policy)}</td>"
            f'<td class="wrap">{escape(reason)}</td></tr>'
            for one in self.standings
            for policy, reason in one.failed.items()
        ]
        missing = [
            f"{one.task.title}: {', '.join(names)}" for one in self.standings if (names := self._missing(one))
        ]
        text = ""
        if rows:
            text += (
                "<h2>Failed</h2><p>These policies cannot play these tasks, and why.</p>"
                f'<div class="card"><table><tbody>{"".join(rows)}</tbody></table></div>'
            )
        if missing:
            items = "".join(f"<li>{escape(line)}</li>" for line in missing)
            text += f"<h2>Not run yet</h2><p>The same command runs them.</p><ul>{items}</ul>"
        return text

    def _missing(self, one: TaskStandings) -> Iterable[str]:
        scores = one.scores.get(one.main, {})
        return [
            name for name in self.board.entries_of(one.task) if name not in scores and name not in one.failed
        ]

    def _how(self) -> str:
        protocol = self.board.protocol
        return (
            '<h2 id="how">How it was made</h2>'
            f"<p>Protocol <b>{escape(protocol.name)}</b>. {escape(protocol.about)} Every policy of a task meets the same "
            f"rounds on seeds {_span(protocol.seeds)}. Tuning has {protocol.trials} trials per policy and task on "
            f"seeds {_span(protocol.tuning_seeds)}, which the evaluation never uses; the first trial has the "
            "published parameters. So few trials favour policies with few parameters, and with good published "
            "ones.</p><p>The command runs what is missing, goes on where it was stopped, and writes this page:</p>"
            f"<pre><code>conbandit leaderboard --protocol {escape(protocol.name)} --out DIR --jobs 2</code></pre>"
            "<p>To add a policy, write it as a part with its search space, and run only its part:</p>"
            "<pre><code># mine.yaml\npolicies:\n  MyPolicy:\n    class_path: my_module.MyPolicy\n"
            "    init_args: {alpha: 0.3}\n    tune: {alpha: {low: 0.01, high: 1.0, log: true}}\n\n"
            "conbandit leaderboard --add mine.yaml --policies MyPolicy --out DIR</code></pre>"
            f"<footer>conbandit_torch {VERSION}. Numbers: <code>{SCORES}</code> beside this page.</footer>"
        )


def _heat(rank: float, last: int) -> str:
    """A rank in its cell: the better, the greener."""
    share = 1 - (rank - 1) / max(last - 1, 1)
    shown = f"{rank:.0f}" if rank == int(rank) else f"{rank:.1f}"
    tint = f"background:color-mix(in srgb, var(--good) {45 * share:.0f}%, transparent)"
    return f'<td class="heat" style="{tint}">{shown}</td>'


def _parameter(name: str, value: object) -> str:
    short = name.rpartition(".")[2]
    short = f"hidden {short}" if name.startswith("representation.") else short
    return f"{short} {value:.3g}" if isinstance(value, float) else f"{short} {value}"


def _p(value: float) -> str:
    return "-" if isnan(value) else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _span(seeds: list[int]) -> str:
    return f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}"
