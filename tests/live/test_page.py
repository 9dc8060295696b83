"""People at the page, in a real Chromium, and fifty of them at once over REST."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from conbandit_torch.configuration.load import load
from conbandit_torch.configuration.packaged import find_config
from conbandit_torch.live.study import Study
from tests.helpers.browser import opened
from tests.helpers.person import PEOPLE

uvicorn = pytest.importorskip("uvicorn", reason="needs uvicorn: pip install 'conbandit-torch[serve]'")
pytest.importorskip("fastapi", reason="needs fastapi: pip install 'conbandit-torch[serve]'")
httpx = pytest.importorskip("httpx", reason="needs httpx, to call the server")
from conbandit_torch.live.web.app import Settings, create_app  # noqa: E402

pytestmark = pytest.mark.slow
TOKEN = "a token of the tests"


@contextmanager
def served(folder, *overrides, **settings):
    """The address of a study that a real server serves."""
    how = {name: settings.pop(name) for name in ("curves", "slate") if name in settings}
    study = Study(load(find_config("live/films"), overrides), folder, **how)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    app = create_app(study, Settings(token=TOKEN, **settings))
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until = time.monotonic() + 30
        while not server.started:
            assert time.monotonic() < until
            time.sleep(0.01)
        yield study, f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
        study.close()


def settled(page):
    page.wait_for_selector("#stage[aria-busy=false] h2")


def play(page, person, rounds):
    """Answer and react for so many slates; gives the films shown."""
    shown = []
    while rounds:
        settled(page)
        if page.locator(".question").count():
            answer = "Yes" if person.answers(page.locator(".question em").inner_text()) else "No"
            page.get_by_role("button", name=answer, exact=True).click()
            page.wait_for_function("() => !document.querySelector('#stage[aria-busy=true]')")
            continue
        films = page.locator(".item h3").all_inner_texts()
        for place, film in enumerate(films):
            page.locator(".item").nth(place).locator(".like" if person.likes(film) else ".dislike").click()
            page.wait_for_selector(f".item:nth-child({place + 1}):not([data-state=open])")
            settled(page)
        shown += films
        rounds -= 1
        page.locator("[data-next]").click()
        page.wait_for_function(
            "(first) => document.querySelector('.item h3')?.textContent !== first", arg=films[0]
        )
    settled(page)
    return shown


def test_a_person_at_the_page_is_shown_what_they_like(tmp_path):
    person = PEOPLE[2]
    with served(tmp_path, rate=1000.0) as (study, address), opened() as browser:
        study.join("somebody else", "ConUCB")
        for policy in ("ConLinUCB", "LinUCB", "Random"):  # so that the next is given ConUCB
            study.join(f"one of {policy}", policy)
            study.join(f"another of {policy}", policy)
        page = browser.new_page()
        problems = []
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(address)
        page.get_by_role("button", name="I agree").click()
        shown = play(page, person, 30)
        assert study.tally.by_policy()[0].rated == 90  # it was ConUCB
        assert sum(map(person.likes, shown)) / len(shown) >= 2 * person.share
        liked = page.locator(".belief.more .term").all_inner_texts()
        assert set(liked[:3]) == set(person.terms)
        before = page.locator("#counts").inner_text()
        page.reload()
        settled(page)
        assert page.locator("#counts").inner_text() == before  # it goes on where it was
        page.get_by_role("button", name="Leave, and delete").click()
        page.get_by_role("button", name="Yes, delete all").click()
        page.get_by_role("button", name="I agree").wait_for()
        assert study.tally.by_policy()[0].rated == 0
        assert problems == []


def test_the_page_works_by_keyboard_and_says_what_is_new(tmp_path):
    with served(tmp_path, rate=1000.0) as (study, address), opened() as browser:
        for policy in ("ConLinUCB", "LinUCB", "Random"):
            study.join(policy, policy)
        page = browser.new_page()
        page.goto(address)
        page.get_by_role("button", name="I agree").wait_for()
        for _ in range(10):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.matches('[data-agree]')"):
                break
        page.keyboard.press("Enter")
        page.wait_for_selector(".question h2:focus")
        question = page.locator(".question h2").inner_text()
        assert question in page.locator("[aria-live=polite]").inner_text()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")  # yes
        page.wait_for_selector(".slate h2:focus")
        page.keyboard.press("Tab")
        page.keyboard.press("Space")  # like the first
        page.wait_for_selector(".item:nth-child(1)[data-state=liked]")
        page.wait_for_selector(".item:nth-child(2) .like:focus")
        assert study.tally.by_policy()[0].rated == 1
        names = page.locator("button, summary, a, input").evaluate_all(
            "all => all.filter(one => one.checkVisibility()).map(one => one.textContent.trim())"
        )
        assert names and all(names)


def test_names_from_data_files_are_never_markup(tmp_path):
    evil = "<img src=x onerror=alert(1)>"
    items = tmp_path / "items.csv"
    rows = [f'"{evil} {number}",<b>term</b>|</script><script>alert(2)</script>' for number in range(4)]
    items.write_text("item,terms\n" + "\n".join(rows) + "\n", encoding="utf-8")
    override = ("environment.init_args", f"{{items: {items}, users: 1, liked: 1, pool: 2}}")
    with served(tmp_path / "out", override, rate=1000.0) as (study, address), opened() as browser:
        for policy in ("ConLinUCB", "LinUCB", "Random"):
            study.join(policy, policy)
        page = browser.new_page()
        page.on("dialog", lambda dialog: pytest.fail("a name was run as a script"))
        page.goto(address)
        page.get_by_role("button", name="I agree").click()
        page.wait_for_selector(".question em")
        assert page.locator(".question em").inner_text() in (
            "<b>term</b>",
            "</script><script>alert(2)</script>",
        )
        page.get_by_role("button", name="Yes", exact=True).click()
        page.wait_for_selector(".item h3")
        assert evil in page.locator(".item h3").first.inner_text()
        assert page.locator("main img, main b, main script").count() == 0


def test_the_admin_page_shows_numbers_to_who_has_the_token(tmp_path):
    with served(tmp_path) as (_, address), opened() as browser:
        page = browser.new_page()
        page.goto(f"{address}/admin")
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Show").click()
        page.get_by_text("the token is wrong or missing").wait_for()
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Show").click()
        page.wait_for_selector("#rows tr")
        assert page.locator("#rows th").all_inner_texts() == ["ConUCB", "ConLinUCB", "LinUCB", "Random"]


def visit(address, person):
    """One person's thirty rounds over REST; gives the share of films that they liked."""
    with httpx.Client(base_url=address, timeout=120) as client:
        state = client.post("/api/visits", json={"consent": True}).json()
        shown = []
        while len(shown) < 30:
            if state["question"] is not None:
                value = person.answers(state["question"]["names"][0])
                body = {"question": state["question"]["id"], "value": value}
                state = client.post("/api/answers", json=body).raise_for_status().json()
                continue
            for item in state["items"]:
                shown.append(person.likes(item["item"]))
                body = {"decision": item["decision"], "reward": float(shown[-1])}
                client.post("/api/reactions", json=body).raise_for_status()
            state = client.post("/api/turns", json={"move_on": True}).raise_for_status().json()
        return sum(shown) / len(shown)


def test_fifty_people_at_once_over_rest(tmp_path):
    """Each meets one of four policies; those that learn show more than twice what random shows."""
    people = [PEOPLE[number % len(PEOPLE)] for number in range(50)]
    with served(tmp_path, rate=1000.0, slate=1, curves=True) as (study, address):
        with ThreadPoolExecutor(50) as pool:
            shares = list(pool.map(visit, [address] * 50, people))
        found = {own.policy: own for own in study.tally.by_policy()}
        kept = sum(event.kind == "reward" for one in study.recommenders.values() for event in one.events())
    assert sorted(own.people for own in found.values()) == [12, 12, 13, 13]
    assert kept == sum(own.rated for own in found.values()) == 50 * 30
    at_random = max(person.share for person in PEOPLE)
    assert sum(share * 30 for share in shares) == pytest.approx(
        sum(own.rewards.sum() * 30 for own in found.values())
    )
    for policy in ("ConUCB", "ConLinUCB", "LinUCB"):
        assert found[policy].mean >= 2 * max(at_random, found["Random"].mean), policy
    assert any(path.name.startswith("events.out") for path in (tmp_path / "ConUCB").iterdir())
