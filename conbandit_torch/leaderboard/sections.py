"""The sections of the leaderboard's page that look over all tasks: ranks, claims, questions."""

from __future__ import annotations

from collections import Counter
from html import escape
from math import isnan

from conbandit_torch.leaderboard.charts import Point, scatter
from conbandit_torch.leaderboard.shown import Shown, table
from conbandit_torch.leaderboard.standings import Checked, Verdict
from conbandit_torch.running.objective import CTR

_WORDS: dict[Verdict, tuple[str, str]] = {
    "holds": ("holds", "holds"),
    "not separated": ("open", "open"),
    "reversed": ("reversed", "reversed"),
    "not run": ("none", "not run"),
}
_PHRASES: dict[Verdict, str] = {
    "holds": "holds",
    "not separated": "is not separated",
    "reversed": "is reversed",
}


def head(shown: Shown) -> str:
    """The title, the protocol in a line, and where to find what."""
    protocol = shown.board.protocol
    every = {score.policy for one in shown.standings for score in one.ranked}
    chips = {
        "policies": len(every),
        "tasks": sum(not one.task.paper for one in shown.standings),
        "papers' own settings": sum(bool(one.task.paper) for one in shown.standings),
        "users": protocol.users,
        "rounds": protocol.rounds,
        "evaluation seeds": len(protocol.seeds),
        f"trials per study on {len(protocol.tuning_seeds)} other seeds": protocol.trials,
    }
    told = "".join(f'<span class="chip"><b>{value}</b> {what}</span>' for what, value in chips.items())
    return (
        "<header><h1>Leaderboard of conversational bandits</h1>"
        '<p class="soft">Every policy under one protocol: the same rounds, the same budget of tuning on '
        f"other seeds, the same tests. {escape(protocol.about)}</p>"
        f'<div class="chips">{told}</div></header>\n<nav><a href="#ranks">Ranks</a>'
        '<a href="#claims">Claims</a><a href="#questions">Questions</a><a href="#tasks">Tasks</a>'
        '<a href="#papers">Papers\' own settings</a><a href="#how">How it was made</a></nav>'
    )


def summary(shown: Shown) -> str:
    """The few numbers that sum it all up."""
    published = Counter(
        one.verdict(one.claim.own) for one in shown.checked if one.claim.own and not _is_ours(one)
    )
    tuned = Counter(
        one.verdict(task) for one in shown.checked if not _is_ours(one) for task in one.claim.tasks
    )
    tiles = []
    if shown.order:
        best = shown.order[0]
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


def _is_ours(one: Checked) -> bool:
    return one.claim.paper == "ours"


def ranks(shown: Shown) -> str:
    """Ranks over tasks, with their intervals."""
    if not shown.order:
        return ""
    last = len(shown.order)
    tasks = list(shown.order[0].by_task)
    headings = ("", "policy", "mean rank|", "", *(escape(shown.titles[task]) for task in tasks))
    rows = []
    for place, rank in enumerate(shown.order, start=1):
        cells = "".join(_heat(rank.by_task[task], last) for task in tasks)
        low, mean, high = (100 * (value - 1) / max(last - 1, 1) for value in (rank.low, rank.mean, rank.high))
        track = (
            f'<div class="track g{shown.group(rank.policy)}"><i style="left:{low:.1f}%;'
            f'width:{max(high - low, 0.6):.1f}%"></i><b style="left:{mean:.1f}%"></b></div>'
        )
        rows.append(
            f'<tr><td class="rank">{place}</td><td>{shown.name(rank.policy)}</td>'
            f'<td class="n"><b>{rank.mean:.1f}</b> <span class="soft">{rank.low:.1f} to {rank.high:.1f}'
            f"</span></td><td>{track}</td>{cells}</tr>"
        )
    return (
        '<h2 id="ranks">Rank over tasks</h2><p>Mean rank with tuned parameters, 1 is best. The band is the '
        "95 % interval over resampled seeds: it says what other seeds would give, not what other tasks "
        "would. A policy that fails on a task is last there. Ranks are among those that have played all of "
        "these tasks.</p>"
        f'{shown.legend()}<div class="card">{table(headings, rows)}</div>'
    )


def claims(shown: Shown) -> str:
    """Which claims of which paper hold, and where."""
    if not shown.checked:
        return ""
    tasks = list(dict.fromkeys(task for one in shown.checked for task in one.claim.tasks))
    headings = ["paper", "claim", "own setting,<br>published"]
    headings += [f"{escape(shown.titles[task])}<br>tuned" for task in tasks]
    rows = []
    for one in shown.checked:
        claim = one.claim
        cells = [_cell(shown, one, claim.own)] if claim.own else ["<td></td>"]
        cells += [_cell(shown, one, task) if task in claim.tasks else "<td></td>" for task in tasks]
        paper = f'<span class="paper" title="{escape(shown.board.papers[claim.paper])}">{claim.paper}</span>'
        rows.append(f'<tr><td>{paper}</td><td class="says">{escape(claim.says)}</td>{"".join(cells)}</tr>')
    papers = "".join(
        f"<li><b>{escape(name)}</b> {escape(what)}</li>" for name, what in shown.board.papers.items()
    )
    return (
        '<h2 id="claims">Which claims hold</h2><p>Paired t tests over the same seeds, corrected by Holm over '
        "all tests of this table, level 5 %. A claim about several policies holds where it holds against all "
        "of them, and is reversed where one of them is better. Open: the seeds do not separate them. "
        "Point at a verdict for the numbers.</p>"
        f'<div class="card claims">{table(headings, rows)}</div>'
        f"<h3>In words</h3><ul>{_in_words(shown)}</ul>"
        f"<details><summary>The papers</summary><ul>{papers}</ul></details>"
    )


def _in_words(shown: Shown) -> str:
    """Every claim that was tested, as a sentence about where it holds."""
    items = []
    for one in shown.checked:
        where: dict[Verdict, list[str]] = {}
        for task in one.claim.tasks:
            where.setdefault(one.verdict(task), []).append(shown.titles[task])
        told = [
            f"{phrase} on {_list(where[verdict])}"
            for verdict, phrase in _PHRASES.items()
            if verdict in where and verdict != "not run"
        ]
        parts = [f"with equal tuning it {_list(told)}"] if told else []
        own = one.verdict(one.claim.own) if one.claim.own else "not run"
        if own != "not run":
            parts = [f"in its own setting it {_PHRASES[own]}", *parts]
        if parts:
            verdict = "; ".join(parts)
            items.append(
                f"<li><b>{escape(one.claim.paper)}</b>: {escape(one.claim.says)} "
                f'<span class="soft">{escape(verdict[0].upper() + verdict[1:])}.</span></li>'
            )
    return "".join(items)


def _list(words: list[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _cell(shown: Shown, one: Checked, task: str) -> str:
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


def questions(shown: Shown) -> str:
    """What policies are judged by against the questions that they ask, task by task."""
    charts = []
    for one in shown.standings:
        if one.task.paper or not one.ranked:
            continue
        name = one.objective.name
        points = [
            Point(
                score.questions,
                score.mean,
                score.policy,
                shown.group(score.policy),
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
        '<h2 id="questions">Regret against questions</h2><p>Each dot is a policy. The dashed line joins '
        "those that no other one beats with as many questions or fewer. Regret is on a logarithmic axis.</p>"
        f'{shown.legend()}<div class="charts">{"".join(charts)}</div>'
    )


def _heat(rank: float, last: int) -> str:
    """A rank in its cell: the better, the greener."""
    share = 1 - (rank - 1) / max(last - 1, 1)
    shown = f"{rank:.0f}" if rank == int(rank) else f"{rank:.1f}"
    tint = f"background:color-mix(in srgb, var(--good) {45 * share:.0f}%, transparent)"
    return f'<td class="heat" style="{tint}">{shown}</td>'


def _p(value: float) -> str:
    return "-" if isnan(value) else "< 0.001" if value < 0.001 else f"{value:.3f}"
