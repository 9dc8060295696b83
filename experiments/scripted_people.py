"""Scripted people with known tastes meet the policies of `live/films` as real ones would, through a `Study`.

    python -m experiments.scripted_people --people 8

Each likes three key-terms, drawn so that about one film in six has one of them. They answer truthfully and
like a film exactly if it has one of their key-terms. Thirty rounds of three films each; nothing comes twice.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import torch

from conbandit_torch import Stream
from conbandit_torch.configuration.load import load
from conbandit_torch.configuration.packaged import find_config
from conbandit_torch.datasets.items import read_items
from conbandit_torch.live.study import Study

ROUNDS = 30


def tastes(number: int) -> list[set[str]]:
    """Three key-terms each, that 1 in 7 to 1 in 5 films have."""
    films = read_items("films")
    terms = sorted({term for own in films.terms for term in own})
    found: list[set[str]] = []
    draw = 0
    while len(found) < number:
        picked = Stream(0, "scripted people").subsets(torch.tensor([draw]), 0, 3, len(terms))[0].tolist()
        liked, draw = {terms[term] for term in picked}, draw + 1
        if 1 / 7 <= sum(bool(liked & set(own)) for own in films.terms) / len(films.terms) <= 1 / 5:
            found.append(liked)
    return found


def main() -> None:
    """Play, and print a line per policy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--people", type=int, default=8, help="per policy")
    people = tastes(parser.parse_args().people)
    plan = load(find_config("live/films"))
    out = sys.stdout.write
    out("| policy | liked of 90 shown | least of a person | their key-terms named first | questions |\n")
    out("|---|---:|---:|---:|---:|\n")
    with tempfile.TemporaryDirectory() as folder:
        study = Study(plan, Path(folder))
        for policy in plan.policies:
            shares, named, questions = [], 0, 0
            for number, liked in enumerate(people):
                visitor = study.join(f"{policy} {number}", policy)
                for _ in range(ROUNDS):
                    turn = study.turn(visitor, move_on=True)
                    while turn.question is not None:
                        study.answer(visitor, turn.question.id, float(turn.question.names[0] in liked))
                        turn = study.turn(visitor)
                    for offer in turn.shown:
                        study.react(visitor, offer.decision, float(bool(liked & set(offer.card.terms))))
                turn = study.turn(visitor)
                shares.append(turn.liked / turn.rated)
                questions += turn.answered
                named += len(liked & {belief.term for belief in study.profile(visitor).liked(3)})
            of = 3 * len(people)
            out(
                f"| {policy} | {sum(shares) / len(shares):.1%} | {min(shares):.1%} | {named} of {of} | "
                f"{questions / len(people):.1f} |\n"
            )
        study.close()


if __name__ == "__main__":
    main()
