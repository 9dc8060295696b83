"""A study over HTTP: consent, turns, limits, tokens, and what is refused."""

import dataclasses
import re
from collections import Counter

import pytest

from conbandit_torch.configuration.load import load
from conbandit_torch.configuration.packaged import find_config
from conbandit_torch.live.study import Study
from conbandit_torch.live.visitors import Visitors
from tests.conftest import REPOSITORY

pytest.importorskip("fastapi", reason="needs fastapi: pip install 'conbandit-torch[serve]'")
pytest.importorskip("httpx", reason="needs httpx, to call the application")
from fastapi.testclient import TestClient

from conbandit_torch.live.web.app import COOKIE, Settings, create_app, user_of
from conbandit_torch.live.web.safety import HEADERS, LARGEST_BODY, Buckets, invitation_of, is_loopback

TOKEN = "a token of the tests"
SETTINGS = Settings(token=TOKEN, hosts=("testserver",), rate=1e6, joins=10**6)
STATIC = REPOSITORY / "conbandit_torch" / "live" / "web" / "static"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    found = Study(load(find_config("live/films")), tmp_path_factory.mktemp("study"))
    yield found
    found.close()


@pytest.fixture
def visit(study):
    """A function that gives a new visitor, as a client with a cookie."""

    def joined(settings=SETTINGS, policy=None):
        client = TestClient(create_app(study, settings))
        if policy is not None:
            client.cookies.set(COOKIE, f"cookie of {policy} {len(study.visitors.all())}")
            study.join(user_of(client.cookies[COOKIE]), policy)
        response = client.post("/api/visits", json={"consent": True})
        assert response.status_code == 201, response.text
        return client

    return joined


def events(study):
    return [event for recommender in study.recommenders.values() for event in recommender.events()]


def to_items(client):
    """Answer questions until items are shown."""
    state = client.post("/api/turns", json={}).json()
    while state["question"] is not None:
        state = client.post("/api/answers", json={"question": state["question"]["id"], "value": 0.5}).json()
    return state


def test_nobody_takes_part_without_consent(study):
    client = TestClient(create_app(study, SETTINGS))
    assert client.get("/api/session").json()["taking_part"] is False
    before = len(study.visitors.all())
    refused = client.post("/api/visits", json={"consent": False})
    assert refused.status_code == 403 and "without agreeing" in refused.json()["error"]
    assert client.post("/api/turns", json={}).status_code == 401
    assert len(study.visitors.all()) == before and not client.cookies


def test_the_cookie_is_the_visitors_own_and_sticky(study):
    client = TestClient(create_app(study, SETTINGS))
    response = client.post("/api/visits", json={"consent": True})
    (cookie,) = response.headers.get_list("set-cookie")
    assert cookie.startswith(f"{COOKIE}=") and "HttpOnly" in cookie and "SameSite=strict" in cookie
    visitor = study.visitors.find(user_of(client.cookies[COOKIE]))
    assert client.cookies[COOKIE] not in visitor.user  # a store that leaks gives no cookie away
    again = client.post("/api/visits", json={"consent": True})
    assert "set-cookie" not in again.headers and client.get("/api/session").json()["taking_part"]
    assert study.visitors.find(visitor.user) == visitor


def test_visitors_are_spread_evenly_and_at_random():
    policies = ["A", "B", "C", "D"]
    visitors = Visitors(None, policies)
    joined = [visitors.join(f"visitor {number}").policy for number in range(40)]
    blocks = [tuple(joined[start : start + 4]) for start in range(0, 40, 4)]
    assert (
        all(sorted(block) == policies for block in blocks) and len(set(blocks)) > 4
    )  # in another order each
    assert visitors.join("visitor 7").policy == joined[7]  # and stay there
    number = visitors.find("visitor 39").number
    visitors.leave("visitor 39")
    back = visitors.join("visitor 39")
    assert (back.policy, back.number) == (joined[39], number + 1)  # the one that has the fewest again
    visitors.close()


def test_a_turn_asks_then_shows_and_learns(study, visit):
    client = visit(policy="ConUCB")
    state = client.post("/api/turns", json={}).json()
    assert state["question"]["kind"] == "term" and state["items"] == []
    assert client.post("/api/turns", json={}).json() == state  # the same until it is answered
    term = state["question"]["names"][0]
    state = client.post("/api/answers", json={"question": state["question"]["id"], "value": 1}).json()
    assert state["answered"] == 1 and len(state["items"]) == 3
    belief = next(one for one in state["beliefs"] if one["term"] == term)
    assert belief["lean"] > 0 and belief["sure"] > 0.05
    first = state["items"][0]
    state = client.post("/api/reactions", json={"decision": first["decision"], "reward": 1}).json()
    assert [item["reward"] for item in state["items"]] == [1.0, None, None] and state["liked"] == 1
    why = client.get("/api/reasons", params={"item": first["item"]}).json()
    assert {reason["kind"] for reason in why["reasons"]} == {"term", "reward"}
    moved = client.post("/api/turns", json={"move_on": True}).json()
    assert moved["question"] is not None and moved["items"] == []


def test_what_cannot_be_is_refused_and_nothing_written(study, visit):
    client, other = visit(policy="LinUCB"), visit(policy="LinUCB")
    item = to_items(client)["items"][0]
    foreign = to_items(other)["items"][0]
    assert client.post("/api/reactions", json={"decision": item["decision"], "reward": 1}).status_code == 200
    before = events(study)
    for path, body, said in [
        ("/api/reactions", {"decision": item["decision"], "reward": 1}, "already"),
        ("/api/reactions", {"decision": foreign["decision"], "reward": 1}, "is not one of user"),
        ("/api/reactions", {"decision": 2**52, "reward": 1}, "was never made"),
        ("/api/answers", {"question": item["decision"], "value": 1}, "was never asked"),
        ("/api/answers", {"question": 12345678, "value": None}, "was never asked"),
    ]:
        refused = client.post(path, json=body)
        assert refused.status_code == 409 and said in refused.json()["error"], refused.text
    unknown = client.get("/api/reasons", params={"item": "Casblanca"})
    assert unknown.status_code == 409 and "did you mean 'Casablanca'" in unknown.json()["error"]
    assert events(study) == before


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"decision": 1, "reward": 1.5}', "reward: Input should be less than or equal to 1"),
        ('{"decision": 1, "reward": NaN}', "reward"),
        ('{"decision": 1, "reward": "1"}', "reward: Input should be a valid number"),
        ('{"decision": 1e400, "reward": 1}', "decision"),
        ('{"decision": 99999999999999999999, "reward": 1}', "decision"),
        ('{"decision": true, "reward": 1}', "decision"),
        ('{"decision": 1, "reward": 1, "user": "x"}', "user: Extra inputs are not permitted"),
        ('{"decision": 1', "JSON"),
        ("[" * 2000, ""),
        ("", "Field required"),
        ("\xff\xfe", ""),
    ],
)
def test_a_bad_body_is_answered_with_a_sentence(study, visit, body, said):
    client = visit()
    before = events(study)
    refused = client.post(
        "/api/reactions", content=body.encode("latin-1"), headers={"content-type": "application/json"}
    )
    assert refused.status_code in (400, 422) and said in refused.json()["error"]
    assert set(refused.json()) == {"error"} and events(study) == before


def test_large_bodies_are_not_read(visit):
    client = visit()
    large = b'{"move_on": false, "x": "' + b"x" * LARGEST_BODY + b'"}'
    assert client.post("/api/turns", content=large).status_code == 413
    pieces = (large[start : start + 100] for start in range(0, len(large), 100))  # its length is not said
    assert client.post("/api/turns", content=pieces).status_code == 413


def test_the_admin_needs_the_token(visit):
    client = visit()
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {TOKEN}"}):
        refused = client.get("/api/admin/summary", headers=headers)
        assert refused.status_code == 401 and refused.json() == {"error": "the token is wrong or missing"}
    summary = client.get("/api/admin/summary", headers={"authorization": f"Bearer {TOKEN}"}).json()
    assert [one["policy"] for one in summary["policies"]] == ["ConUCB", "ConLinUCB", "LinUCB", "Random"]
    assert summary["people"] == sum(one["people"] for one in summary["policies"]) > 0


def test_who_reaches_more_than_this_machine_needs_an_invitation(study):
    settings = dataclasses.replace(SETTINGS, needs_invitation=True)
    client = TestClient(create_app(study, settings))
    for invitation in (None, "wrong", TOKEN):
        body = {"consent": True, "invitation": invitation}
        assert client.post("/api/visits", json=body).status_code == 403
    body = {"consent": True, "invitation": invitation_of(TOKEN)}
    assert client.post("/api/visits", json=body).status_code == 201
    assert TOKEN not in invitation_of(TOKEN)
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")] == [
        *[True] * 3,
        *[False] * 2,
    ]


def test_calls_by_other_names_and_from_other_pages_are_refused(visit):
    client = visit()
    renamed = client.get("/api/session", headers={"host": "evil.example"})
    assert renamed.status_code == 400 and "not called 'evil.example'" in renamed.json()["error"]
    foreign = client.post("/api/turns", json={}, headers={"origin": "https://evil.example"})
    assert foreign.status_code == 403
    assert client.post("/api/turns", json={}, headers={"origin": "http://testserver"}).status_code == 200


def test_who_comes_too_often_waits(study, visit):
    client = visit(dataclasses.replace(SETTINGS, rate=1.0))
    codes = [client.post("/api/turns", json={}).status_code for _ in range(4)]
    assert codes.count(429) >= 1
    few = TestClient(create_app(study, dataclasses.replace(SETTINGS, joins=2)))
    joined = []
    for _ in range(3):
        few.cookies.clear()
        joined.append(few.post("/api/visits", json={"consent": True}))
    assert [one.status_code for one in joined] == [201, 201, 429] and int(
        joined[2].headers["retry-after"]
    ) > 0


def test_a_bucket_fills_with_time():
    now = [0.0]
    bucket = Buckets(rate=2.0, burst=2, clock=lambda: now[0])
    assert [bucket.wait("a"), bucket.wait("a"), bucket.wait("b")] == [0, 0, 0]
    assert bucket.wait("a") == pytest.approx(0.5)
    now[0] = 0.5
    assert bucket.wait("a") == 0 and bucket.wait("a") > 0


def test_everything_is_served_with_a_strict_policy(visit):
    client = visit()
    paths = [
        "/",
        "/admin",
        "/static/page.js",
        "/static/page.css",
        "/openapi.json",
        "/api/session",
        "/nowhere",
    ]
    for path in [*paths, "/static/../app.py", "/static/%2e%2e/app.py"]:
        response = client.get(path)
        assert response.headers["content-security-policy"] == HEADERS["content-security-policy"]
        assert response.headers["x-content-type-options"] == "nosniff"
    assert client.get("/static/%2e%2e/app.py").status_code == 404
    assert "unsafe" not in HEADERS["content-security-policy"]


def test_pages_have_nothing_inline_and_nothing_from_elsewhere():
    for path in STATIC.iterdir():
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text), path
        assert not re.search(r"(?:src|href|url\()\s*=?\s*[\"']?(?:https?:)?//", text), path
        if path.suffix == ".html":
            assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*src=)", text), path


def test_leaving_deletes_everything_and_the_rest_is_as_if_one_had_never_come(tmp_path):
    plan = load(find_config("live/films"))

    def stay_and(leave, folder):
        study = Study(plan, folder)
        people = [study.join(name, "ConUCB") for name in ("stays", *(["leaves"] if leave else []))]
        for _ in range(2):
            for person in people:
                turn = study.turn(person, move_on=True)
                while turn.question is not None:
                    study.answer(person, turn.question.id, 1.0)
                    turn = study.turn(person)
                for offer in turn.shown:
                    study.react(person, offer.decision, float("k" in offer.card.item))
        if leave:
            study.forget(people[1])
            with pytest.raises(ValueError, match="has left the study"):
                study.turn(people[1])
        found = (
            study.profile(people[0]).beliefs,
            [(event.kind, event.names, event.value) for event in events(study)],
            {person.user for person in study.tally.people()},
        )
        study.close()
        return found

    with_one = stay_and(True, tmp_path / "with")
    without = stay_and(False, tmp_path / "without")
    assert with_one == without
    files = [path for path in (tmp_path / "with").rglob("*") if path.is_file()]
    assert b"stays" in b"".join(path.read_bytes() for path in files)
    assert b"leaves" not in b"".join(path.read_bytes() for path in files)  # not in what SQLite freed either


def test_a_deleted_visitor_is_out_over_http(study, visit):
    client = visit()
    user = user_of(client.cookies[COOKIE])
    to_items(client)
    assert client.delete("/api/visits/me").status_code == 204
    assert study.visitors.find(user) is None and all(event.user != user for event in events(study))
    assert client.post("/api/turns", json={}).status_code == 401


@pytest.mark.parametrize("examples", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_no_input_that_the_schema_describes_is_a_server_error(study, visit, examples):
    schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis, to make up requests")
    import hypothesis

    client = visit(policy="ConUCB")
    schema = schemathesis.openapi.from_asgi("/openapi.json", client.app)
    seen = Counter()
    for result in schema.get_all_operations():
        operation = result.ok()

        @hypothesis.settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(case=operation.as_strategy())
        def sent(case):
            headers = {"authorization": f"Bearer {TOKEN}", "host": "testserver"}
            if case.method.upper() == "DELETE":  # or the others would have no visitor
                headers["authorization"] = "none"
                response = case.call(headers=headers)
            else:
                response = case.call(headers=headers, cookies={COOKIE: client.cookies[COOKIE]})
            seen[response.status_code] += 1
            case.validate_response(response)

        sent()
    assert seen[200] > 0 and not [status for status in seen if status >= 500]
