"""The site: it builds strictly, fetches nothing, all its links lead somewhere, and every public name has a page."""

import os
import re
import subprocess
import sys
import zlib
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote, urlsplit

import pytest
from filelock import FileLock

from conbandit_torch.configuration.kinds import classes_of
from conbandit_torch.core.names import PUBLIC
from tests.conftest import REPOSITORY
from tests.helpers.browser import CHROMIUM

pytest.importorskip("mkdocs", reason="needs the extra `docs`")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site; processes that run tests side by side share one."""
    own = (
        tmp_path_factory.getbasetemp()
    )  # of this process; beside it are those of the others, if there are any
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "site"
    with FileLock(f"{shared}.lock"):
        if not shared.exists():
            done = subprocess.run(
                [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(shared)],
                capture_output=True,
                encoding="utf-8",
                cwd=REPOSITORY,
                env=os.environ | {"CONBANDIT_QUICK": "1", "NO_MKDOCS_2_WARNING": "1"},
                timeout=600,
            )
            assert done.returncode == 0, done.stderr
    return shared


class Page(HTMLParser):
    """The links, the anchors and the resources of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.resources = [], set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in ("canonical", "next", "prev"):
            self.resources.append(given["href"])
        elif given.get("src"):
            self.resources.append(given["src"])


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in site.rglob("*.html")}


def target(page, link, site):
    path = unquote(urlsplit(link).path)
    found = (
        (site / path.lstrip("/") if path.startswith("/") else page.parent / path).resolve() if path else page
    )
    return found / "index.html" if found.is_dir() else found


def test_links_and_anchors_lead_somewhere(site, pages):
    assert len(pages) > 80
    lost = []
    for path, page in pages.items():
        for link in page.links:
            if path.name == "404.html" or urlsplit(link).scheme in ("http", "https", "mailto"):
                continue
            found, anchor = target(path, link, site), unquote(urlsplit(link).fragment)
            known = found in pages and (anchor in pages[found].anchors or anchor in ("", "__top"))
            if not (known or (found.exists() and found.suffix != ".html")):
                lost.append(f"{path.relative_to(site)}: {link}")
    assert lost == []


def test_nothing_is_fetched_from_elsewhere(site, pages):
    for path, page in pages.items():
        for one in page.resources:
            assert urlsplit(one).scheme in ("", "data"), f"{path}: {one}"
            if path.name != "404.html" and not one.startswith("data:"):
                assert target(path, one, site).exists(), f"{path}: {one}"
    for path in site.rglob("*.css"):
        assert not re.search(r"@import|url\(\s*[\"']?https?:", path.read_text(encoding="utf-8")), path


def test_every_public_name_has_a_page(site):
    inventory = (site / "objects.inv").read_bytes()
    names = zlib.decompress(inventory.split(b"\n", 4)[4]).decode()
    known = {line.split()[0]: line.split()[3] for line in names.splitlines()}
    assert [name for name, module in PUBLIC.items() if f"{module}.{name}" not in known] == []


def test_every_policy_has_a_page_with_its_rule_arguments_and_config(site):
    for name in classes_of("policies"):
        text = (site / "algorithms" / name.lower() / "index.html").read_text(encoding="utf-8")
        for heading in ("rule", "arguments", "in-a-config", "measured"):
            assert f'<h2 id="{heading}"' in text, f"{name}: {heading}"


def test_formulas_are_rendered(site):
    text = (site / "algorithms" / "conucb" / "index.html").read_text(encoding="utf-8")
    assert text.count("<math") > 10
    for path in site.rglob("*.html"):
        assert 'class="arithmatex"' not in path.read_text(encoding="utf-8"), path


def test_measured_results_are_those_of_the_results(site):
    text = (site / "algorithms" / "conucb" / "index.html").read_text(encoding="utf-8")
    row = re.search(
        r"^\| ConUCB \| ([^|]+) \|", (REPOSITORY / "experiments" / "RESULTS.md").read_text(), re.MULTILINE
    )
    assert row[1].strip() in text


def test_tutorials_show_what_they_print_and_draw(site):
    for name in ("first_run", "your_own_data", "write_a_bandit", "hidden_features", "replay_and_its_bias"):
        text = (site / "tutorials" / name / "index.html").read_text(encoding="utf-8")
        assert 'class="output"' in text, name
    assert list((site / "tutorials").glob("first_run_*.png"))


def test_pages_fit_a_phone_and_ask_nobody_else(site):
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright, to look into a browser")
    if CHROMIUM is None:
        pytest.skip("needs Debian's chromium (apt-get install chromium)")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site))
    Thread(target=server.serve_forever, daemon=True).start()
    home, asked = f"http://127.0.0.1:{server.server_port}/", []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
        page.on("request", lambda request: asked.append(request.url))
        for path in (
            "",
            "start/",
            "algorithms/",
            "algorithms/conucb/",
            "tutorials/first_run/",
            "reference/config/",
            "results/",
        ):
            page.goto(home + path)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        browser.close()
    server.shutdown()
    server.server_close()
    assert [url for url in asked if not url.startswith((home, "data:"))] == []
