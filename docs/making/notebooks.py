"""The tutorials: Python files in cells, executed while the site is built, with what they printed and drew."""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient

from making.writing import Made

_AT_ONCE = 2
_SECONDS = 600  # that one cell may take
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")  # a terminal's


def pages(folder: Path, repository: Path) -> list[Made]:
    """The tutorials in the order of their numbers, and the pictures that they draw.

    An executed tutorial is kept until its text or the package changes.

    Args:
        folder: where they are: `1_first_run.py`, `2_your_own_data.py`, ...
        repository: of the package that they import.
    """
    paths = sorted(folder.glob("[0-9]_*.py"))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        executed = pool.map(lambda path: _executed(path, repository), paths)
        return [made for path, one in zip(paths, executed, strict=True) for made in _pages(path, one)]


def _executed(path: Path, repository: Path) -> Any:
    kept = repository / ".cache" / "tutorials" / f"{path.stem}-{_digest(path, repository)}.ipynb"
    if kept.exists():
        return nbformat.read(kept, as_version=4)
    notebook = jupytext.read(path)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook, timeout=_SECONDS, kernel_name="python3", resources={"metadata": {"path": folder}}
        )
        client.execute(env=_environment(repository))
    kept.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, kept)
    return notebook


def _environment(repository: Path) -> dict[str, str]:
    """That of this process; this package first, its program found, one thread for each of several kernels."""
    own = {
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "COLUMNS": "100",
    }
    own["PYTHONPATH"] = os.pathsep.join([str(repository), os.environ.get("PYTHONPATH", "")])
    own["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return os.environ | own


def _digest(path: Path, repository: Path) -> str:
    """Of all that an executed tutorial depends on."""
    found = hashlib.sha256(os.environ.get("CONBANDIT_QUICK", "").encode())
    for one in [path, *sorted((repository / "conbandit_torch").rglob("*.py"))]:
        found.update(one.read_bytes())
    return found.hexdigest()[:16]


def _pages(path: Path, notebook: Any) -> list[Made]:
    name = path.stem.partition("_")[2]
    parts: list[str] = []
    pictures: list[Made] = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        source = cell.source.removesuffix("\nNone")
        parts.append(f"```{'bash' if source.startswith('!') else 'python'}\n{source.removeprefix('!')}\n```")
        printed = "".join(one.text for one in cell.outputs if one.get("name") == "stdout")
        parts.append(_text(printed))
        parts += [_shown(one, f"{name}_{len(pictures) + 1}.png", pictures) for one in cell.outputs]
    title = re.search(r"^# (.+)", parts[0], re.MULTILINE)
    note = (
        f'??? note "Run it yourself"\n    The whole tutorial is `docs/tutorials/{path.name}`: '
        "open it in Jupyter with jupytext, or run it as a program."
    )
    text = "\n\n".join(part for part in [*parts, note] if part)
    return [Made(f"tutorials/{name}.md", title[1] if title else name, text), *pictures]


def _shown(output: Any, picture: str, pictures: list[Made]) -> str:
    """What a cell gave or drew, as Markdown."""
    data = output.get("data", {})
    if "image/png" in data:
        pictures.append(Made(f"tutorials/{picture}", "", base64.b64decode(data["image/png"])))
        return f"![What the cell draws]({picture})"
    if data.get("text/html", "").startswith("<pre"):  # lines of progress
        return ""
    if "text/html" in data:
        table = re.sub(r"<style.*?</style>|(?<=<table)[^>]*", "", data["text/html"], flags=re.DOTALL)
        return f'<div class="output" markdown="0">\n{table}\n</div>'
    return _text(data.get("text/plain", ""))


def _text(text: str) -> str:
    lines = _COLOURS.sub("", text).rstrip()
    return (
        f'<div class="output" markdown="0"><pre><code>{html.escape(lines)}</code></pre></div>'
        if lines
        else ""
    )
