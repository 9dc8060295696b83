"""Digests of files and texts, by which damage is seen; without torch, as results are read without it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

_CHECKSUM = "checksum"
_TEXT_BEGINS = "# conbandit_torch "


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def text_digest(text: str) -> str:
    """SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


def sealed(content: dict[str, Any]) -> str:
    """The content as JSON, with a checksum by which damage is seen."""
    return json.dumps(content | {_CHECKSUM: text_digest(_canonical(content))}, indent=1)


def unsealed(text: str) -> dict[str, Any]:
    """The content that was `sealed`.

    Raises:
        ValueError: if the text is no such JSON, or not what was written.
    """
    try:
        content = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:
        raise ValueError("it is empty, cut or no JSON") from None
    if not isinstance(content, dict) or _CHECKSUM not in content:
        raise ValueError("it has no checksum")
    if content.pop(_CHECKSUM) != text_digest(_canonical(content)):
        raise ValueError("its checksum is not that of its content")
    return content


def sealed_text(text: str, about: str = "") -> str:
    """A text with a first line, a comment: what it is about, and a digest of all that follows."""
    body = f"{_TEXT_BEGINS}{about}{', ' if about else ''}content: sha256 "
    return f"{body}{text_digest(text)}\n{text}"


def is_as_sealed(text: str) -> bool | None:
    """Whether a text is as `sealed_text` made it; None: it has no such first line, so nobody can say."""
    first, _, rest = text.partition("\n")
    head, found, digest = first.rpartition("content: sha256 ")
    if not found or not head.startswith(_TEXT_BEGINS):
        return None
    return digest.strip() == text_digest(rest)


def _canonical(content: dict[str, Any]) -> str:
    return json.dumps(content, sort_keys=True)
