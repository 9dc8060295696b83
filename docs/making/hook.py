"""MkDocs calls these functions while it builds the site: they add generated pages and render formulas."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "docs"))  # so that `making` is a package here
sys.path.insert(0, str(REPOSITORY))

from mkdocs.structure.files import File, Files  # noqa: E402

from making import formulas, notebooks, parts, policies, reference  # noqa: E402
from making.writing import Made, address_of  # noqa: E402

_ELSEWHERE = {
    "results.md": "experiments/RESULTS.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
}
_BOARD = REPOSITORY / "experiments" / "leaderboard" / "index.html"
_pages: dict[str, list[Made]] = {}


def on_config(config: Any) -> Any:
    """Generate all pages, and put them where the navigation has a name with `/*`."""
    _pages.clear()
    _pages["tutorials/*"] = notebooks.pages(
        REPOSITORY / "docs" / "tutorials", Path(config.config_file_path).parent
    )
    _pages["algorithms/*"] = policies.pages(REPOSITORY / "experiments" / "RESULTS.md")
    _pages["reference/*"] = [*reference.commands(), *parts.pages(), *reference.names()]
    config.nav = _expanded(config.nav)
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages and the files that stand elsewhere in the repository."""
    for made in (one for pages in _pages.values() for one in pages):
        files.append(File.generated(config, made.path, content=made.content))
    for path, source in _ELSEWHERE.items():
        files.append(File.generated(config, path, abs_src_path=str(REPOSITORY / source)))
    for figure in sorted((REPOSITORY / "experiments" / "figures").glob("*.png")):
        files.append(File.generated(config, f"figures/{figure.name}", abs_src_path=str(figure)))
    if _BOARD.exists():
        files.append(File.generated(config, "leaderboard/board.html", abs_src_path=str(_BOARD)))
        scores = str(_BOARD.with_name("scores.csv"))
        files.append(File.generated(config, "leaderboard/scores.csv", abs_src_path=scores))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links of pages that stand elsewhere, as the site has them."""
    if page.file.src_uri in _ELSEWHERE:
        for path, source in _ELSEWHERE.items():
            markdown = markdown.replace(f"]({source}", f"]({path}")
        markdown = markdown.replace("](docs/", "](")
        markdown = markdown.replace("](leaderboard/index.html", "](leaderboard/board.html")
    if page.file.src_uri == "algorithms.md":  # the first cell of a row names classes: to their pages
        markdown = re.sub(r"^\| `[^|]+", _linked, markdown, flags=re.MULTILINE)
    if page.file.src_uri == "howto/leaderboard.md" and _BOARD.exists():
        markdown += "\n[The page of a real run](../leaderboard/board.html).\n"
    return markdown


def on_page_content(html: str, **_: Any) -> str:
    """Render the formulas of a page."""
    return formulas.rendered(html)


def _linked(cell: re.Match[str]) -> str:
    """A table's cell with its classes as links."""
    found = re.sub(r"`(\w+)[^`]*`", lambda one: _link(one[0], address_of(one[1])), cell[0])
    return str(found)


def _link(code: str, address: str) -> str:
    return f"[{code}]({address})" if address else code


def _expanded(nav: list[Any]) -> list[Any]:
    """The navigation with generated pages in the place of names that end in `/*`."""
    found: list[Any] = []
    for item in nav:
        if isinstance(item, str) and item in _pages:
            found += _grouped(_pages[item])
        elif isinstance(item, dict):
            found.append(
                {title: _expanded(one) if isinstance(one, list) else one for title, one in item.items()}
            )
        else:
            found.append(item)
    return found


def _grouped(pages: list[Made]) -> list[Any]:
    groups: dict[str, list[Any]] = {}
    for made in pages:
        if made.title:
            groups.setdefault(made.group, []).append({made.title: made.path})
    return [*groups.pop("", []), *({group: items} for group, items in groups.items())]
