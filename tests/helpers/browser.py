"""A real Chromium, and what TensorBoard's first screenful shows in it."""

from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from shutil import which

import numpy as np
import pytest

CHROMIUM = which("chromium")
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_SIZE = {"width": 1440, "height": 900}

_CARDS = """() => [...document.querySelectorAll('scalar-card')].map(card => {
    const box = card.querySelector('canvas')?.getBoundingClientRect() ?? {x: 0, y: 0, width: 0, height: 0};
    return {
        tag: card.querySelector('tb-truncated-path')?.title ?? '',
        pinned: card.closest('metrics-pinned-view') !== null,
        box: {x: box.x, y: box.y, width: box.width, height: box.height},
    };
})"""
_COLOURS = """() => Object.fromEntries(
    [...document.querySelectorAll('runs-data-table tb-data-table-content-row')].map(row => [
        row.innerText.trim(),
        [...row.querySelectorAll('*')].map(part => part.style.backgroundColor).find(Boolean),
    ])
)"""


@dataclass
class Card:
    """A chart: its tag, whether it is pinned, and which part of the plotting area each colour covers."""

    tag: str
    pinned: bool
    picture: np.ndarray  # [height, width, 3]

    def pixels(self, colour: str) -> int:
        """How many have the colour, which is given as `rgb(1, 2, 3)`."""
        wanted = np.array([int(part) for part in colour.removeprefix("rgb(").rstrip(")").split(",")])
        return int((np.abs(self.picture.astype(int) - wanted).max(axis=-1) <= 8).sum())


@dataclass
class Page:
    """What is seen without a click: the charts that are wholly on the screen, and the runs' colours."""

    cards: list[Card]
    colours: dict[str, str]
    smoothing: str


@contextmanager
def opened():
    """A running browser of Playwright's, or a skipped test."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright, to look into a browser")
    if CHROMIUM is None:
        pytest.skip("needs Debian's chromium (apt-get install chromium), to look at pages in it")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def chromium():
    """A function from an address to what is seen there, in a new profile each time.

    Its `for_text` waits until a text is seen there.
    """
    with opened() as browser:

        def look(address, tag, picture=None):
            page = browser.new_context(viewport=_SIZE).new_page()
            page.goto(address)
            # The chart is there as soon as its data are: they are drawn in the frames after that.
            page.wait_for_selector(f"scalar-card:has([title='{tag}']) canvas", timeout=20_000)
            page.wait_for_load_state("networkidle")
            page.wait_for_timeout(1000)
            if picture is not None:
                page.screenshot(path=picture)
            seen = Page(
                [_card(page, found) for found in page.evaluate(_CARDS) if _on_screen(found["box"])],
                page.evaluate(_COLOURS),
                page.locator(".scalars-smoothing input.slider-input").input_value(),
            )
            page.close()
            return seen

        def for_text(address, text):
            page = browser.new_context(viewport=_SIZE).new_page()
            page.goto(address)
            page.get_by_text(text).first.wait_for(timeout=20_000)
            page.close()

        look.for_text = for_text
        yield look


def _on_screen(box):
    return box["width"] > 0 and 0 <= box["y"] and box["y"] + box["height"] <= _SIZE["height"]


def _card(page, found):
    from PIL import Image

    image = Image.open(BytesIO(page.screenshot(clip=found["box"])))
    return Card(found["tag"], found["pinned"], np.asarray(image.convert("RGB")))
