"""The application: a study as REST, and its pages."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from starlette.exceptions import HTTPException

from conbandit_torch.core.version import VERSION
from conbandit_torch.live.store import StoreError
from conbandit_torch.live.study import Study
from conbandit_torch.live.visitors import Visitor
from conbandit_torch.live.web.bodies import (
    AnswerGiven,
    Consent,
    Next,
    PolicyOut,
    Problem,
    Reaction,
    Session,
    State,
    Summary,
    Why,
)
from conbandit_torch.live.web.safety import Buckets, Guard, equal, invitation_of
from conbandit_torch.results.people import compare_people

COOKIE = "conbandit_visitor"
_STATIC = Path(__file__).parent / "static"
_FILES = {
    "page.css": "text/css",
    "page.js": "text/javascript",
    "admin.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
_DAYS = 180  # for which a visitor is known again
CONSENT = (
    "You will be asked what you like and shown items. Your answers and reactions are kept under a random "
    "number, to compare ways of recommending. No name, address or anything else is kept.",
    "You can leave at any time, and have all that is yours deleted.",
)


@dataclass(frozen=True)
class Settings:
    """How a study is served.

    Attributes:
        token: what the admin page asks for.
        needs_invitation: whether visitors must come with an invitation.
        hosts: names by which the server may be called; None: any.
        title: over the page.
        consent: paragraphs that people agree to.
        rate: requests per second of one visitor.
        joins: people per minute who may join from one address.
        https: whether people reach the server by https alone.
    """

    token: str
    needs_invitation: bool = False
    hosts: tuple[str, ...] | None = ("localhost", "127.0.0.1", "::1")
    title: str = "What do you like?"
    consent: tuple[str, ...] = CONSENT
    rate: float = 20.0
    joins: int = 60
    https: bool = False


def create_app(study: Study, settings: Settings) -> FastAPI:
    """A study as an application.

    Args:
        study: whose.
        settings: how it is served.
    """
    app = FastAPI(
        title="conbandit",
        version=VERSION,
        description="A conversational bandit and people. A visitor is known by a cookie.",
        docs_url=None,  # it would load scripts from elsewhere
        redoc_url=None,
    )
    app.state.study, app.state.settings = study, settings
    app.state.visits = Buckets(settings.rate, int(2 * settings.rate))
    app.state.joins = Buckets(settings.joins / 60, settings.joins)
    app.include_router(_pages, include_in_schema=False)
    app.include_router(_api)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(StoreError, _broken)
    app.add_middleware(Guard, hosts=settings.hosts, rate=20 * settings.rate)
    return app


_pages = APIRouter()


@_pages.get("/")
def page() -> FileResponse:
    """The page of visitors."""
    return FileResponse(_STATIC / "index.html", media_type="text/html")


@_pages.get("/admin")
def admin_page() -> FileResponse:
    """The page of who runs the study; its numbers need the token."""
    return FileResponse(_STATIC / "admin.html", media_type="text/html")


@_pages.get("/static/{name}")
def static(name: str) -> FileResponse:
    """A script, a style sheet or a picture."""
    if name not in _FILES:
        raise HTTPException(404, "there is no such file")
    return FileResponse(_STATIC / name, media_type=_FILES[name], headers={"cache-control": "no-cache"})


def _study(request: Request) -> Study:
    study: Study = request.app.state.study
    return study


def _settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


def _known(request: Request) -> Visitor | None:
    """Whom the cookie names, if anybody."""
    cookie = request.cookies.get(COOKIE)
    return None if cookie is None else _study(request).visitors.find(user_of(cookie))


def _visitor(request: Request) -> Visitor:
    """Who is here; others are refused, and so is who comes too often."""
    visitor = _known(request)
    if visitor is None:
        raise HTTPException(401, "you are not taking part yet: POST /api/visits first, and keep the cookie")
    _limit(request.app.state.visits, visitor.user)
    return visitor


def _admin(request: Request) -> None:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not equal(given.strip(), _settings(request).token):
        raise HTTPException(401, "the token is wrong or missing", {"www-authenticate": "Bearer"})


Here = Annotated[Visitor, Depends(_visitor)]
Whole = Annotated[Study, Depends(_study)]


def _problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": Problem} for code in (400, 413, 422, 429, 503, *codes)}


_api = APIRouter(prefix="/api", responses=_problems())


@_api.get("/session")
def session(request: Request) -> Session:
    """Whether the caller takes part, and what they would agree to."""
    settings = _settings(request)
    return Session(
        taking_part=_known(request) is not None,
        title=settings.title,
        consent=list(settings.consent),
        invitation_needed=settings.needs_invitation,
        items=len(_study(request).cards),
    )


@_api.post("/visits", status_code=201, responses=_problems(403))
def join(body: Consent, request: Request, response: Response) -> State:
    """Take part: sets the cookie by which the visitor is known."""
    settings, study = _settings(request), _study(request)
    if not body.consent:
        raise HTTPException(403, "nobody takes part without agreeing to it")
    if settings.needs_invitation and not equal(body.invitation or "", invitation_of(settings.token)):
        raise HTTPException(403, "this study needs an invitation: open the link that you were sent")
    visitor = _known(request)
    if visitor is None:
        _limit(request.app.state.joins, request.client.host if request.client else "?")
        cookie = secrets.token_urlsafe(32)
        visitor = study.join(user_of(cookie))
        response.set_cookie(
            COOKIE,
            cookie,
            max_age=_DAYS * 86_400,
            httponly=True,
            samesite="strict",
            secure=settings.https,
        )
    return _state(study, visitor)


@_api.delete("/visits/me", status_code=204, responses=_problems(401))
def leave(visitor: Here, study: Whole, response: Response) -> None:
    """Leave, and have everything deleted."""
    study.forget(visitor)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")


@_api.post("/turns", responses=_problems(401))
def turn(body: Next, visitor: Here, study: Whole) -> State:
    """What is asked or shown now: the same until the visitor answers, or moves on."""
    return _state(study, visitor, move_on=body.move_on)


@_api.post("/answers", responses=_problems(401, 409))
def answer(body: AnswerGiven, visitor: Here, study: Whole) -> State:
    """Answer the open question; then comes what is next."""
    with _refusing():
        study.answer(visitor, body.question, body.value)
    return _state(study, visitor)


@_api.post("/reactions", responses=_problems(401, 409))
def react(body: Reaction, visitor: Here, study: Whole) -> State:
    """Say what an item was worth; it stays on the table."""
    with _refusing():
        study.react(visitor, body.decision, body.reward)
    return _state(study, visitor)


@_api.get("/reasons", responses=_problems(401, 409))
def reasons(item: Annotated[str, Query(min_length=1, max_length=500)], visitor: Here, study: Whole) -> Why:
    """Why an item has its score for the visitor."""
    with _refusing():
        return Why.of(study.explain(visitor, item))


@_api.get("/admin/summary", responses=_problems(401), dependencies=[Depends(_admin)])
def summary(request: Request, study: Whole) -> Summary:
    """How the policies fare: visitors, rewards and questions, with intervals. Needs the token."""
    policies = list(study.plan.policies)
    report = compare_people(study.tally.people(), policies)
    found = study.tally.by_policy()
    return Summary(
        title=_settings(request).title,
        people=sum(own.people for own in found),
        policies=[
            PolicyOut(
                policy=own.policy,
                people=own.people,
                rated=own.rated,
                reward=own.mean,
                reward_half=own.half,
                questions=float(own.questions.mean()) if own.people else None,
                questions_half=own.questions_half,
            )
            for own in found
        ],
        order=report.order,
        notes=report.notes,
    )


def user_of(cookie: str) -> str:
    """A visitor's name in the stores: it follows from the cookie, and the cookie does not follow from it."""
    return f"visitor-{sha256(cookie.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


def _state(study: Study, visitor: Visitor, *, move_on: bool = False) -> State:
    return State.of(study.turn(visitor, move_on=move_on), study.profile(visitor))


def _limit(buckets: Buckets, key: str) -> None:
    wait = buckets.wait(key)
    if wait > 0:
        raise HTTPException(
            429, f"too often: try again in {wait:.1f} seconds", {"retry-after": str(int(wait) + 1)}
        )


def _said(status: int, error: str, headers: Any = None) -> JSONResponse:
    return JSONResponse({"error": error}, status, headers)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # which it handles
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body")
    return _said(422, f"{where or 'body'}: {first['msg']}")


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # which it handles
    return _said(error.status_code, str(error.detail), error.headers)


@contextmanager
def _refusing() -> Iterator[None]:
    """Tell the caller what a recommender refuses: a question never asked, an item rewarded twice."""
    try:
        yield
    except ValueError as error:
        raise HTTPException(409, str(error)) from None


async def _broken(request: Request, error: Exception) -> JSONResponse:
    return _said(503, "what you sent could not be kept: try again later")
