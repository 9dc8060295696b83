"""A study: the policies of a config, each with a store of its own, and the people who meet them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from conbandit_torch.configuration.build import build_environment, build_policy_for
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.errors import ConfigError, choices
from conbandit_torch.core.files import make_folder, write_atomically
from conbandit_torch.live.curves import Curve
from conbandit_torch.live.folder import (
    ITEMS,
    TERMS,
    events_of,
    items_table,
    table_name,
    terms_table,
    visitors_of,
)
from conbandit_torch.live.recommender import Recommender
from conbandit_torch.live.records import Explanation, Profile
from conbandit_torch.live.tally import Tally
from conbandit_torch.live.visiting import Card, Turn, Visits
from conbandit_torch.live.visitors import Visitor, Visitors
from conbandit_torch.running.folder import STUDY
from conbandit_torch.running.plan import Plan, first_difference


class Study:
    """The policies of a config, and the people who meet them. Calls may come from several threads.

    The config's environment gives the items and key-terms; the people are real.

    Args:
        plan: the config, resolved.
        folder: where everything is kept; a study that is there goes on.
        store: SQLAlchemy URL of a PostgreSQL database for the events; None: SQLite files in the folder.
        slate: items that are shown at a time.
        curves: whether TensorBoard is told how the policies fare.
    """

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        *,
        store: str | None = None,
        slate: int = 3,
        curves: bool = False,
    ) -> None:
        if slate < 1:
            raise ConfigError(f"expected at least 1 item at a time, got {slate}")
        self.plan, self.folder = plan, folder
        environment = build_environment(plan, plan.seeds[0])
        catalogue = environment.catalogue
        if slate > catalogue.num_arms:
            raise ConfigError(f"{plan.source}: there are {catalogue.num_arms} items, fewer than {slate}")
        names = distinct(catalogue.arm_names)
        self.cards = _cards(catalogue, names, environment.details)
        self._keep_config()
        terms = distinct(catalogue.term_names)
        write_atomically(folder / ITEMS, items_table(self.cards.values()))
        write_atomically(folder / TERMS, terms_table(terms))
        self.recommenders: dict[str, Recommender] = {}
        self._curves: dict[str, Curve] = {}
        try:
            self.visitors = Visitors(visitors_of(folder, store), list(plan.policies), plan.seeds[0])
            for policy in plan.policies:
                make_folder(folder / policy)
                self.recommenders[policy] = Recommender(
                    build_policy_for(plan, policy, catalogue, 1, plan.seeds[0]),
                    names,
                    terms,
                    store=events_of(folder, policy, store),
                    name=table_name(list(plan.policies), policy),
                    alone=True,
                )
            self.tally = Tally(list(plan.policies), self.visitors.all())
            for policy, recommender in self.recommenders.items():
                if curves:
                    self._curves[policy] = Curve(folder / policy)
                for happened in recommender.events():
                    self.tally.note(happened)
                    if curves:
                        self._curves[policy].note(happened)
        except BaseException:
            self.close()
            raise
        self.visits = Visits(self.cards, slate, plan.seeds[0])

    def _keep_config(self) -> None:
        """Write down what this study is, or refuse another one's folder."""
        make_folder(self.folder)
        path = self.folder / STUDY
        if path.is_file():
            known, now = (
                {key: config[key] for key in ("environment", "policies", "seeds")}
                for config in (yaml.safe_load(path.read_text("utf-8")), yaml.safe_load(self.plan.dump()))
            )
            if known != now:
                raise ConfigError(
                    f"{path}: this folder is of another study ({first_difference(known, now)}): give another "
                    "with --out"
                )
            return
        write_atomically(path, self.plan.dump())

    def join(self, user: str, policy: str | None = None) -> Visitor:
        """Let somebody take part, with a policy of theirs or the least used one."""
        if policy is not None and policy not in self.recommenders:
            raise ConfigError(f"there is no policy {policy!r}{choices(policy, self.recommenders)}")
        visitor = self.visitors.join(user, policy)
        self.tally.join(visitor)
        return visitor

    def turn(self, visitor: Visitor, *, move_on: bool = False) -> Turn:
        """What the person is to be asked or shown now: the same until they answer, react or move on.

        Args:
            visitor: who.
            move_on: leave what is shown now, with the reactions that it has.
        """
        with self._with(visitor) as recommender:
            return self.visits.turn(recommender, visitor, move_on=move_on)

    def answer(self, visitor: Visitor, question: int, value: float | None) -> None:
        """Learn an answer to a question of `turn`; None: they do not know."""
        with self._with(visitor) as recommender:
            self.visits.answer(recommender, visitor, question, value)
            self.tally.answered(visitor)
            if visitor.policy in self._curves:
                self._curves[visitor.policy].answered(visitor.user)

    def react(self, visitor: Visitor, decision: int, reward: float) -> None:
        """Learn what an item of `turn` was worth to the person."""
        with self._with(visitor) as recommender:
            self.visits.react(recommender, visitor, decision, reward)
            self.tally.rated(visitor, reward)
            if visitor.policy in self._curves:
                self._curves[visitor.policy].rewarded(visitor.user, reward)

    def profile(self, visitor: Visitor) -> Profile:
        """What is believed of the person's taste."""
        return self.recommenders[visitor.policy].profile(visitor.user)

    def explain(self, visitor: Visitor, item: str) -> Explanation:
        """Why an item has its score for the person."""
        return self.recommenders[visitor.policy].explain(visitor.user, item)

    def forget(self, visitor: Visitor) -> None:
        """Delete all that there is of a person; the policy is then what the others have taught it."""
        with self._with(visitor) as recommender:
            if visitor.user in recommender.users:
                recommender.forget(visitor.user)
            self.visitors.leave(visitor.user)
            self.tally.leave(visitor)
            self.visits.drop(visitor)

    @contextmanager
    def _with(self, visitor: Visitor) -> Iterator[Recommender]:
        """The person's recommender, for one call at a time; who was forgotten does not come back."""
        recommender = self.recommenders[visitor.policy]
        with self.visits.of(recommender, visitor).lock:
            if not self.tally.knows(visitor):
                self.visits.drop(visitor)
                raise ValueError("this person has left the study")
            yield recommender

    def close(self) -> None:
        """Keep everything, and let other processes have it."""
        for recommender in self.recommenders.values():
            recommender.close()
        for curve in self._curves.values():
            curve.close()
        if hasattr(self, "visitors"):
            self.visitors.close()


def distinct(names: Sequence[str]) -> list[str]:
    """The names, those that come again with a number: people must be able to tell them apart."""
    counts: Counter[str] = Counter()
    found = []
    for name in names:
        counts[name] += 1
        found.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    return found if len(set(found)) == len(found) else [f"{name} #{n}" for n, name in enumerate(names)]


def _cards(
    catalogue: Catalogue, names: Sequence[str], details: Sequence[Mapping[str, str]] | None
) -> dict[str, Card]:
    """What people see of every item, by its name."""
    edges, terms = catalogue.terms_of(catalogue.all_arms), distinct(catalogue.term_names)
    own: list[list[str]] = [[] for _ in names]
    for arm, term in zip(edges.owner.tolist(), edges.target.tolist(), strict=True):
        own[arm].append(terms[term])
    return {
        name: Card(name, tuple(own[arm]), dict(details[arm]) if details is not None else {})
        for arm, name in enumerate(names)
    }
