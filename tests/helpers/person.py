"""A scripted person with a known taste, who likes about one film in six."""

from dataclasses import dataclass

from conbandit_torch.datasets.items import read_items

FILMS = read_items("films")


@dataclass(frozen=True)
class Person:
    """Likes a film if it has one of some key-terms, and says so when asked."""

    terms: tuple[str, ...]

    def likes(self, item):
        return bool(set(self.terms) & set(FILMS.terms[FILMS.names.index(item)]))

    def answers(self, term):
        return float(term in self.terms)

    @property
    def share(self):
        """The share of films that they like, which is what showing films at random earns."""
        return sum(map(self.likes, FILMS.names)) / len(FILMS.names)


PEOPLE = [
    Person(("Film-Noir", "stories set in space", "courtroom dramas")),
    Person(("animation", "horror", "stories at sea")),
    Person(("war films", "westerns", "spy stories")),
    Person(("musicals", "films about music", "family stories")),
]
