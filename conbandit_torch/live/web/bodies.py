"""What goes over the wire."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from conbandit_torch.live.records import Explanation, Profile
from conbandit_torch.live.visiting import Turn


def _whole(value: object) -> object:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError("Input should be a whole number")
    return value


Id = Annotated[int, Field(ge=0, le=2**53 - 1), BeforeValidator(_whole)]
Value = Annotated[float, Field(ge=0, le=1, strict=True, allow_inf_nan=False)]


class Body(BaseModel):
    """What comes in: nothing but what is named here."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Consent(Body):
    """Somebody agrees to take part."""

    consent: Annotated[bool, Field(strict=True, description="whether the person agrees; it must be true")]
    invitation: Annotated[
        str | None, Field(max_length=200, description="the code of the invitation, where one is needed")
    ] = None


class Next(Body):
    """What comes next is wanted."""

    move_on: Annotated[
        bool, Field(strict=True, description="leave what is shown, with the reactions that it has")
    ] = False


class AnswerGiven(Body):
    """An answer to a question."""

    question: Annotated[Id, Field(description="the id of the question")]
    value: Annotated[
        Value | None, Field(description="0: no, 1: yes, between: a bit; null: the person does not know")
    ]


class Reaction(Body):
    """What an item was worth."""

    decision: Annotated[Id, Field(description="the decision that showed the item")]
    reward: Annotated[Value, Field(description="1: liked, 0: not for me, or between")]


class Problem(BaseModel):
    """Why something was not done."""

    error: str


class Session(BaseModel):
    """Who is here."""

    taking_part: bool
    title: str
    consent: list[str]
    invitation_needed: bool
    items: int


class QuestionOut(BaseModel):
    """A question: about one name, or which of two is liked better."""

    id: int
    kind: Literal["term", "item", "comparison"]
    names: list[str]


class ItemOut(BaseModel):
    """An item on the table."""

    decision: int
    item: str
    terms: list[str]
    details: dict[str, str]
    reward: float | None


class BeliefOut(BaseModel):
    """What is believed of a key-term: `lean` is above 0 if it is liked more than most."""

    term: str
    estimate: float
    lean: float
    sure: float


class State(BaseModel):
    """Everything that the page shows."""

    question: QuestionOut | None
    items: list[ItemOut]
    answered: int
    rated: int
    liked: float
    beliefs: list[BeliefOut]

    @classmethod
    def of(cls, turn: Turn, profile: Profile) -> State:
        """What a person is asked or shown, and what is believed of them."""
        asked = turn.question
        return cls(
            question=None
            if asked is None
            else QuestionOut(id=asked.id, kind=asked.kind, names=list(asked.names)),
            items=[
                ItemOut(
                    decision=offer.decision,
                    item=offer.card.item,
                    terms=list(offer.card.terms),
                    details=dict(offer.card.details),
                    reward=offer.reward,
                )
                for offer in turn.shown
            ],
            answered=turn.answered,
            rated=turn.rated,
            liked=turn.liked,
            beliefs=[
                BeliefOut(
                    term=one.term, estimate=one.estimate, lean=one.estimate - profile.middle, sure=one.sure
                )
                for one in profile.beliefs
            ],
        )


class ReasonOut(BaseModel):
    """An answer or a reaction, and what it adds to the estimate."""

    kind: Literal["reward", "term", "item", "comparison"]
    names: list[str]
    value: float
    effect: float


class Why(BaseModel):
    """Why an item has its score."""

    item: str
    estimate: float | None
    width: float | None
    reasons: list[ReasonOut]

    @classmethod
    def of(cls, explanation: Explanation) -> Why:
        """The same, to be sent."""
        return cls(
            item=explanation.item,
            estimate=explanation.estimate,
            width=explanation.width,
            reasons=[
                ReasonOut(kind=one.kind, names=list(one.names), value=one.value, effect=one.effect)
                for one in explanation.reasons
            ],
        )


class PolicyOut(BaseModel):
    """How the people of one policy fared: means over people, and half-widths of 95 % intervals."""

    policy: str
    people: int
    rated: int
    reward: float | None
    reward_half: float | None
    questions: float | None
    questions_half: float | None


class Summary(BaseModel):
    """The study so far."""

    title: str
    people: int
    policies: list[PolicyOut]
    order: str
    notes: str
