"""The sections of the leaderboard's page about one task each, about failures, and about how it was made."""

from __future__ import annotations

from html import escape
from math import isnan

from conbandit_torch.core.version import VERSION
from conbandit_torch.leaderboard.play import PUBLISHED, TUNED
from conbandit_torch.leaderboard.shown import Shown, table
from conbandit_torch.leaderboard.standings import Score, TaskStandings

SCORES = "scores.csv"

_SHOWN = 15  # rows of a task's table before the rest is folded


def tasks(shown: Shown, *, own: bool) -> str:
    """A table with bars of every task; or, with `own`, of every paper's own setting."""
    cards = [_task(shown, one) for one in shown.standings if bool(one.task.paper) == own and one.ranked]
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


def _task(shown: Shown, one: TaskStandings) -> str:
    scores, name = one.ranked, one.objective.name
    lower = one.objective.sign > 0
    top = max(score.mean + (score.half if score.half > 0 else 0) for score in scores[:_SHOWN]) or 1.0
    as_good = one.as_good()
    rows = [
        _row(shown, one, place, score, top, score.policy in as_good) for place, score in enumerate(scores, 1)
    ]
    headings = ["", "policy", f"{name}, {'less' if lower else 'more'} is better", f"{name}|"]
    headings += [] if one.task.paper else ["published|"]
    headings += ["asked|", "µs|"]
    more = f"<details><summary>{len(rows) - _SHOWN} more</summary>{table(headings, rows[_SHOWN:])}</details>"
    return (
        f'<div class="card"><h3>{escape(one.task.title)}</h3><p class="soft">{escape(one.task.about)}</p>'
        f"{table(headings, rows[:_SHOWN])}{more if rows[_SHOWN:] else ''}{_parameters(shown, one)}</div>"
    )


def _row(shown: Shown, one: TaskStandings, place: int, score: Score, top: float, good: bool) -> str:
    digits = one.objective.digits
    low, mean, high = (
        100 * min(max((score.mean + end) / top, 0), 1) for end in (-score.half, 0.0, score.half)
    )
    cut = " cut" if score.mean > top else ""
    whisker = "" if cut or isnan(score.half) else f'<u style="left:{low:.1f}%;width:{high - low:.1f}%"></u>'
    mark = beside = ""
    if one.main == TUNED:
        other = one.scores.get(PUBLISHED, {}).get(score.policy)
        mark = f'<s style="left:{100 * min(other.mean / top, 1):.1f}%"></s>' if other else ""
        beside = f'<td class="n soft">{f"{other.mean:.{digits}f}" if other else "-"}</td>'
    half = "" if isnan(score.half) else f' <span class="soft">± {score.half:.{digits}f}</span>'
    return (
        f'<tr><td class="rank">{place}</td><td>{shown.name(score.policy)}</td>'
        f'<td class="wide"><div class="bar g{shown.group(score.policy)}{cut}">'
        f'<i style="width:{mean:.1f}%"></i>{whisker}{mark}</div></td>'
        f'<td class="n"><span class="{"best" if good else ""}">{score.mean:.{digits}f}</span>{half}</td>'
        f"{beside}"
        f'<td class="n">{score.questions:.1f}</td><td class="n">{score.micros:.1f}</td></tr>'
    )


def _parameters(shown: Shown, one: TaskStandings) -> str:
    """Published parameters beside tuned ones, folded."""
    rows = []
    for score in one.ranked:
        if found := one.found.get(score.policy):
            tuned = ", ".join(_parameter(*item) for item in found["parameters"].items())
            own = ", ".join(_parameter(*item) for item in found["published"].items())
            rows.append(
                f'<tr><td>{shown.name(score.policy)}</td><td class="wrap">{escape(own)}</td>'
                f'<td class="wrap">{escape(tuned)}</td><td class="n">{found["trials"]}</td></tr>'
            )
    if one.task.paper or not rows:
        return ""
    headings = ("policy", "published, or the default", "tuned", "trials|")
    return f"<details><summary>Parameters</summary>{table(headings, rows)}</details>"


def failed(shown: Shown) -> str:
    """Which policies failed where, and why; and what has not been run."""
    rows = [
        f"<tr><td>{escape(one.task.title)}</td><td>{shown.name(policy)}</td>"
        f'<td class="wrap">{escape(reason)}</td></tr>'
        for one in shown.standings
        for policy, reason in one.failed.items()
    ]
    missing = [
        f"{one.task.title}: {', '.join(names)}" for one in shown.standings if (names := _missing(shown, one))
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


def _missing(shown: Shown, one: TaskStandings) -> list[str]:
    scores = one.scores.get(one.main, {})
    return [
        name for name in shown.board.entries_of(one.task) if name not in scores and name not in one.failed
    ]


def how(shown: Shown) -> str:
    """How the page was made, and how to add to it."""
    protocol = shown.board.protocol
    return (
        '<h2 id="how">How it was made</h2>'
        f"<p>Protocol <b>{escape(protocol.name)}</b>. {escape(protocol.about)} Every policy of a task meets "
        f"the same rounds on seeds {_span(protocol.seeds)}. Tuning has {protocol.trials} trials per policy "
        f"and task on seeds {_span(protocol.tuning_seeds)}, which the evaluation never uses; the first "
        "trial has the published parameters. Few trials favour policies with few parameters, and with good "
        "published ones.</p><p>The command runs what is missing, goes on where it was stopped, and writes "
        "this page:</p>"
        f"<pre><code>conbandit leaderboard --protocol {escape(protocol.name)} --out DIR --jobs 2</code></pre>"
        "<p>To add a policy, write it as a part with its search space, and run only its part:</p>"
        "<pre><code># mine.yaml\npolicies:\n  MyPolicy:\n    class_path: my_module.MyPolicy\n"
        "    init_args: {alpha: 0.3}\n    tune: {alpha: {low: 0.01, high: 1.0, log: true}}\n\n"
        "conbandit leaderboard --add mine.yaml --policies MyPolicy --out DIR</code></pre>"
        f"<footer>conbandit_torch {VERSION}. Numbers: <code>{SCORES}</code> beside this page.</footer>"
    )


def _parameter(name: str, value: object) -> str:
    short = name.rpartition(".")[2]
    short = f"hidden {short}" if name.startswith("representation.") else short
    return f"{short} {value:.3g}" if isinstance(value, float) else f"{short} {value}"


def _span(seeds: list[int]) -> str:
    return f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}"
