"""Docstrings for the reference: rules are shown as they are written, line by line."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

# A title of ours, its block of indented lines, and what follows: equations, not Markdown.
_BLOCK = re.compile(r"^(?P<title>[A-Z][^\n]*:)\n(?P<body>(?: {4,}[^\n]*\n?)+)", re.MULTILINE)
_GOOGLE = ("Args:", "Attributes:", "Raises:", "Returns:", "Yields:", "Example:", "Examples:")


class Rules(griffe.Extension):
    """Fences the indented blocks that are no sections of Google's."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = rewritten(obj.docstring.value)


def rewritten(text: str) -> str:
    """The docstring with equations fenced and the titles of our sections in bold."""
    text = _BLOCK.sub(_fenced, text)
    text = re.sub(r"\](?= \[[A-Z])", "]\u200b", text)  # `rows[e]] [E]` is a shape, not a link
    return re.sub(r"^(Rule|Symbols|Differs)\b([^:\n]*):(?=\s)", r"\n**\1**\2:", text, flags=re.MULTILINE)


def _fenced(found: re.Match[str]) -> str:
    if found["title"] in _GOOGLE:
        return found[0]
    return f"{found['title']}\n\n```text\n{textwrap.dedent(found['body']).rstrip()}\n```\n"
