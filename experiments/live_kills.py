"""Kills recommenders under load, and looks whether anything that was acknowledged is missing.

    python -m experiments.live_kills --kills 200 --store sqlite --out DIR
    python -m experiments.live_kills --kills 200 --store postgres --out DIR

Every trial forks a process that serves people from four threads, notes every call that has returned, and is
killed with SIGKILL after a random number of notes; in one trial of ten, a random time after its start, which
may be while it opens the store. A second process opens the store again, and checks that

- every event whose call had returned is there, with its value;
- the state that it opens with, from the last snapshot and the events since, equals bit for bit the one that
  is built anew from all events.

The next trial goes on with the same store. Policies take turns: ConUCB, whose users are independent, and
hConUCB with refits, whose users share hidden features. Prints a table, and writes it to
`DIR/live_kills_STORE.md`; the exit code is 1 if anything was missing or different.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg  # noqa: F401 - imported before forking, as the others: a child must not spend its time on it
import safetensors.torch  # noqa: F401
import sqlalchemy.dialects.postgresql
import sqlalchemy.dialects.sqlite  # noqa: F401
import torch
from torch import Tensor

from conbandit_torch import Bandit, ConUCB, HConUCB, LinearSchedule, Recommender, Synthetic
from conbandit_torch.kernels import kernels_for
from experiments.kills import wait
from experiments.postgres import server

kernels_for(torch.empty(0))  # imports them, and runs none: threads do not survive a fork

THREADS, PEOPLE = 4, 5
MISSING, DIFFERENT = 2, 3  # exit codes of a check
SNAPSHOT_EVERY = 60  # often, so that kills meet snapshots


def policies() -> dict[str, Callable[[], Bandit]]:
    """Policies as they are before the first event."""
    catalogue = Synthetic(users=1, arms=120, terms=15, dim=8, pool=10, seed=1).catalogue
    asking = LinearSchedule(questions=2, every=3)
    return {
        "ConUCB": lambda: ConUCB(catalogue, 1, schedule=asking),
        "hConUCB": lambda: HConUCB(catalogue, 1, hidden_dim=2, refit_every=25, schedule=asking),
    }


class Place(NamedTuple):
    """Where a series of trials keeps its events.

    Attributes:
        store: file or URL.
        name: of the tables.
        notes: file of the calls that have returned.
    """

    store: str
    name: str
    notes: Path

    def open(self, policy: Bandit) -> Recommender:
        """A recommender that goes on there."""
        return Recommender(policy, store=self.store, name=self.name, snapshot_every=SNAPSHOT_EVERY)

    def noted(self) -> list[bytes]:
        """A line per call that has returned; the last may be cut off, and is left out then."""
        return self.notes.read_bytes().split(b"\n")[:-1] if self.notes.exists() else []


def serve(policy: Bandit, place: Place) -> None:
    """Serve people until the end; a line per call that has returned."""
    file = os.open(place.notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    recommender = place.open(policy)

    def note(*what: object) -> None:
        os.write(file, (json.dumps(what) + "\n").encode())

    def people(thread: int) -> None:
        draw = random.Random()
        late = []
        while True:
            user = f"{thread}-{draw.randrange(PEOPLE)}"
            while (question := recommender.ask(user)) is not None:
                note("asked", question.id, None)
                value = draw.choice((0.0, 0.5, 1.0, None))
                recommender.answer(user, question, value)
                note("answer", question.id, value)
            slate = recommender.recommend(user, k=2)
            assert isinstance(slate, list)
            note("shown", slate[0].id, None)
            note("shown", slate[1].id, None)
            late.append(draw.choice(slate))
            if len(late) > 3:
                shown, reward = late.pop(draw.randrange(3)), draw.random()
                recommender.feedback(shown, reward)
                note("reward", shown.id, reward)

    for number in range(THREADS):
        threading.Thread(target=people, args=(number,)).start()


def check(policy: Bandit, place: Place) -> int:
    """Compare the notes with the store, and the state with the rebuilt one; gives 0, or what is wrong."""
    with place.open(policy) as recommender:
        found = {
            (event.kind, event.about if event.about is not None else event.id): event.value
            for event in recommender.events()
        }
        for line in place.noted():
            kind, one, value = json.loads(line)
            if found.get((kind, one), "nothing") != value:
                print(f"{place}: {kind} {one} {value} was acknowledged, and is not there", file=sys.stderr)  # noqa: T201
                return MISSING
        before = state_of(recommender)
        recommender.rebuild()
        after = state_of(recommender)
        for name, value in before.items():
            if not torch.equal(value, after[name]):
                print(f"{place}: {name} is not what the events make of it", file=sys.stderr)  # noqa: T201
                return DIFFERENT
    return 0


def state_of(recommender: Recommender) -> dict[str, Tensor]:
    """The whole state, with everybody in it: in a shared store people are loaded on first sight."""
    for user in sorted({event.user for event in recommender.events()}):
        recommender.profile(user)
    return {name: value.clone() for name, value in recommender.state().items()}


def forked(run: Callable[[], int | None]) -> int:
    """A process that runs a function."""
    child = os.fork()
    if child == 0:
        try:
            code = run() or 0
            for thread in threading.enumerate():
                if thread is not threading.current_thread():
                    thread.join()
            os._exit(code)
        except BaseException:  # whatever it is, this process must not go on as its parent
            traceback.print_exc()
            os._exit(1)
    return child


def trial(make: Callable[[], Bandit], place: Place, calls: int, patience: float) -> int:
    """Serve, kill, check; gives 0, or what is wrong.

    Args:
        make: makes the policy.
        place: of the store and the notes.
        calls: how many have returned when the kill comes, at least,
        patience: and how many seconds later that is.
    """
    goal, deadline = len(place.noted()) + calls, time.monotonic() + 60
    child = forked(lambda: serve(make(), place))
    while len(place.noted()) < goal:
        if time.monotonic() > deadline:
            sys.exit("the serving process serves nobody")
        time.sleep(0.002)
    time.sleep(patience)
    os.kill(child, signal.SIGKILL)
    if wait(child) != -signal.SIGKILL:
        sys.exit("the serving process ended by itself")
    code = wait(forked(lambda: check(make(), place)))
    if code not in (0, MISSING, DIFFERENT):
        sys.exit(f"{place}: the check ended with exit code {code}")
    return code


@contextmanager
def stores(kind: str, folder: Path) -> Iterator[Callable[[str], str]]:
    """Gives the store of each series of trials."""
    if kind == "sqlite":
        yield lambda series: str(folder / f"{series}.db")
        return
    with tempfile.TemporaryDirectory(prefix="pg") as own, server(Path(own)) as url:
        yield lambda series: url


def main() -> int:
    """Run all trials."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--fresh", type=int, default=20, help="trials until a new store is begun")
    parser.add_argument(
        "--calls", type=int, default=60, help="that have returned when the kill comes, at most"
    )
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    draw, makes = random.Random(0), policies()
    kills, calls, wrong = Counter[str](), Counter[str](), Counter[tuple[str, int]]()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, stores(options.store, Path(folder)) as store_of:
        for number in range(options.kills):
            name = list(makes)[number % len(makes)]
            series = f"{name}{number // (options.fresh * len(makes))}"
            place = Place(store_of(series), series.lower(), Path(folder) / f"{series}.notes")
            noted = len(place.noted())
            some, patience = draw.randint(1, options.calls), draw.uniform(0, 0.02)
            if number % 20 < len(makes):
                some, patience = 0, draw.uniform(0, 1)
            wrong[name, trial(makes[name], place, some, patience)] += 1
            kills[name] += 1
            calls[name] += len(place.noted()) - noted
    lines = ["| policy | kills | acknowledged calls | missing | state differs |", "|---|--:|--:|--:|--:|"]
    for name in makes:
        figures = (kills[name], calls[name], wrong[name, MISSING], wrong[name, DIFFERENT])
        lines.append(f"| {name} | " + " | ".join(f"{figure:,}" for figure in figures) + " |")
    lines.append(f"\n{options.store}, {time.monotonic() - start:.0f} s")
    print("\n".join(lines))  # noqa: T201
    (options.out / f"live_kills_{options.store}.md").write_text("\n".join(lines) + "\n")
    return int(any(code for (_, code), number in wrong.items() if number))


if __name__ == "__main__":
    sys.exit(main())
