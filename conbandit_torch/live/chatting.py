"""A person at a terminal: questions, items, likes, and what is believed of them."""

from __future__ import annotations

import re
from collections.abc import Callable

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from conbandit_torch.core.errors import printable
from conbandit_torch.live.records import Asked, Explanation, Profile
from conbandit_torch.live.study import Study
from conbandit_torch.live.visiting import Card, Offer
from conbandit_torch.live.visitors import Visitor

ANSWERS: dict[str, tuple[str, float | None]] = {
    "y": ("yes", 1.0),
    "n": ("no", 0.0),
    "b": ("a bit", 0.5),
    "d": ("don't know", None),
}
"""What a person can say to a question, by the key they press."""
COMPARISONS: dict[str, tuple[str, float | None]] = {
    "1": ("the first", 1.0),
    "2": ("the second", 0.0),
    "b": ("both alike", 0.5),
    "d": ("don't know", None),
}
"""The same, for a question that compares two."""

_BAR = 24  # characters of a full bar
_FULL = 0.5  # what a full bar stands for, on the scale of rewards, unless something is liked even more
_LEAST_SURE = 0.05  # of what less is known, nothing is said
_HELP = "? what I believe so far · w NUMBER why I show it · q leave (everything is kept)"


class Chat:
    """A conversation with one person.

    Args:
        study: whose policies speak.
        visitor: the person.
        console: where it is shown.
        read: gives the person's next line after a prompt; raises EOFError when they have left.
    """

    def __init__(
        self, study: Study, visitor: Visitor, console: Console, read: Callable[[Text], str] | None = None
    ) -> None:
        self._study, self._visitor, self._console = study, visitor, console
        self._read = read or console.input
        self._offers: tuple[Offer, ...] = ()

    def run(self) -> None:
        """Talk until the person leaves."""
        turn = self._study.turn(self._visitor)
        if turn.answered or turn.rated:
            self._say(f"Welcome back: {turn.answered} answers and {turn.rated} rated items are kept.")
            self._show_profile()
        self._say(_HELP, style="dim")
        try:
            while True:
                if turn.question is not None:
                    self._offers = ()
                    self._ask(turn.question)
                    turn = self._study.turn(self._visitor)
                else:
                    self._offers = turn.shown
                    self._offer()
                    self._show_profile()
                    turn = self._study.turn(self._visitor, move_on=True)
        except _LeftError:
            return

    def _ask(self, question: Asked) -> None:
        if question.kind == "comparison":
            first, second = question.names
            text, meanings = f"Which do you like better: 1 {first}, or 2 {second}?", COMPARISONS
        else:
            text, meanings = f"Do you like {question.names[0]}?", ANSWERS
        choices = " · ".join(f"{key} {meaning}" for key, (meaning, _) in meanings.items())
        known = {key: value for key, (meaning, value) in meanings.items()}
        known |= dict(meanings.values())
        while True:
            line = self._line(f"\n{text}", f"  [{choices}] ").lower()
            if line in known:
                self._study.answer(self._visitor, question.id, known[line])
                return
            self._say(f"Please answer with one of: {', '.join(meanings)}.", style="yellow")

    def _offer(self) -> None:
        self._say("\nI would show you:")
        self._console.print(Padding(_table_of(self._offers), (0, 0, 0, 2)))
        open_ = [offer for offer in self._offers if offer.reward is None]
        while open_:
            line = self._line(
                "Which do you like?", "  [numbers such as 1 3 · Enter: none of them · s skip] "
            ).lower()
            if line in ("s", "skip"):
                return
            picked = {int(word) for word in re.findall(r"\d+", line)}
            if re.fullmatch(r"[\d\s,]*|none|n", line) and picked <= set(range(1, len(self._offers) + 1)):
                for number, offer in enumerate(self._offers, 1):
                    if offer.reward is None:
                        self._study.react(self._visitor, offer.decision, float(number in picked))
                return
            self._say(f"Please give numbers from 1 to {len(self._offers)}, Enter or s.", style="yellow")

    def _line(self, text: str, choices: str) -> str:
        """The person's next line that is no command."""
        while True:
            prompt = Text.assemble((printable(text), "bold"), (printable(choices), "dim"))
            try:
                line = self._read(prompt).strip()
            except (EOFError, KeyboardInterrupt):
                raise _LeftError from None
            why = re.fullmatch(r"w(?:hy)?\s*(\d+)", line.lower())
            if line.lower() in ("q", "quit", "exit"):
                raise _LeftError
            if line == "?":
                self._show_profile()
            elif why is not None and 1 <= int(why[1]) <= len(self._offers):
                self._explain(self._offers[int(why[1]) - 1].card)
            elif why is not None:
                self._say("There is no such item on the table.", style="yellow")
            else:
                return line

    def _explain(self, card: Card) -> None:
        self._say(f"\nWhy {card.item}?", style="bold")
        for sentence in sentences(self._study.explain(self._visitor, card.item)):
            self._say(f"  {sentence}")

    def _show_profile(self) -> None:
        bars = profile_bars(self._study.profile(self._visitor))
        if bars is None:
            self._say("I keep no picture of your taste.", style="dim")
        else:
            self._console.print(bars)

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Text(printable(text), style=style), soft_wrap=True)


class _LeftError(Exception):
    """The person has left."""


def details_of(card: Card) -> str:
    """A year, a director and so on, in one line."""
    return ", ".join(card.details.values())


def _table_of(offers: tuple[Offer, ...]) -> Table:
    table = Table.grid(padding=(0, 2))
    for number, offer in enumerate(offers, 1):
        table.add_row(
            Text(str(number), style="bold cyan"),
            Text.assemble((printable(offer.card.item), "bold"), f"\n{printable(details_of(offer.card))}"),
            Text(printable(", ".join(offer.card.terms)), style="dim"),
        )
    return table


def profile_bars(profile: Profile, most: int = 5) -> Table | None:
    """The key-terms liked best and least, as bars: the fuller, the surer the policy is."""
    liked = [belief for belief in profile.liked(most) if belief.sure >= _LEAST_SURE]
    disliked = [belief for belief in profile.disliked(3) if belief.sure >= _LEAST_SURE]
    if not profile.beliefs:
        return None
    largest = max(abs(belief.estimate - profile.middle) for belief in profile.beliefs)
    table = Table.grid(padding=(0, 1))
    table.title = "What I believe so far"
    table.title_justify, table.title_style = "left", "dim"
    for belief in [*liked, *reversed(disliked)]:
        value = belief.estimate - profile.middle
        length = max(1, round(_BAR * abs(value) / max(_FULL, largest)))
        solid = round(length * belief.sure)
        colour = "green" if value > 0 else "red"
        bar = Text.assemble(("█" * solid, colour), ("░" * (length - solid), colour))
        table.add_row("+" if value > 0 else "-", Text(printable(belief.term)), bar, f"{belief.sure:.0%} sure")
    return table


def sentences(explanation: Explanation) -> list[str]:
    """Why an item has its score, in words."""
    found = []
    if explanation.estimate is None:
        return ["It was drawn at random."]
    chance = max(0.0, min(1.0, explanation.estimate))
    unsure = "" if explanation.width is None else f", give or take {explanation.width:.2f}"
    found.append(f"I expect that you like it with {chance:.2f} of 1{unsure}.")
    for reason in explanation.reasons:
        if abs(reason.effect) < 0.005:
            continue
        what = " or ".join(reason.names)
        if reason.kind == "reward":
            did = f"you liked {what}" if reason.value >= 0.5 else f"{what} was not for you"
        elif reason.kind == "comparison":
            preferred = reason.names[0] if reason.value > 0.5 else reason.names[-1]
            did = (
                f"between {what} you chose {preferred}" if reason.value != 0.5 else f"{what} are alike to you"
            )
        else:
            did = {1.0: f"you like {what}", 0.0: f"you do not like {what}"}.get(
                reason.value, f"you like {what} a bit"
            )
        found.append(f"{reason.effect:+.2f} because {did}")
    if len(found) == 1:
        found.append("Nothing you said speaks for or against it yet: I want to find out.")
    return found
