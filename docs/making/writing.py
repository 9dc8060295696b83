"""A generated page, and the Markdown that generated pages are made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from conbandit_torch.configuration.kinds import KINDS, arguments, classes_of, snippet
from conbandit_torch.core.arguments import arguments_of
from conbandit_torch.core.names import PUBLIC


@dataclass(frozen=True)
class Made:
    """A generated page.

    Attributes:
        path: its file below docs/.
        title: its name in the navigation.
        content: Markdown, or the bytes of a picture.
        group: the section of the navigation that it stands in; empty: none.
    """

    path: str
    title: str
    content: str | bytes
    group: str = ""


def prose(text: str, here: str = "") -> str:
    """Plain text as Markdown: its signs mean themselves, and names of public classes are links.

    Args:
        text: the text, with code in backticks.
        here: the name that the page is about, which needs no link.
    """
    pieces = re.split(r"(`[^`]+`)", text)
    return "".join(_linked(one, here) if one.startswith("`") else _escaped(one) for one in pieces)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def argument_table(cls: type) -> str:
    """The arguments that a config may give the class: type, default, meaning; empty if there are none."""
    parameters = arguments_of(cls).parameters
    rows = [
        (
            f"`{one.name}`",
            cell(type_name(parameters[one.name].annotation)),
            cell(in_short(one.default)),
            prose(one.meaning),
        )
        for one in arguments(cls)
    ]
    return table(("argument", "type", "default", "meaning"), rows) if rows else ""


def config_lines(cls: type) -> str:
    """The lines of a config that name the class, every default spelled out."""
    return f"```yaml\n{yaml.safe_dump(snippet(cls), sort_keys=False)}```"


def in_short(default: Any) -> str:
    """A default in one line: a part as it is called, anything else as YAML has it."""
    if default == "REQUIRED":
        return "must be given"
    if not isinstance(default, dict) or "class_path" not in default:
        return str(yaml.safe_dump(default)).partition("\n")[0]
    given = ", ".join(f"{name}={value}" for name, value in default["init_args"].items())
    return f"{default['class_path'].rpartition('.')[2]}({given})"


def type_name(annotation: Any) -> str:
    """A type as people write it."""
    if isinstance(annotation, type) and not hasattr(annotation, "__args__"):
        return annotation.__name__
    text = re.sub(
        r"\b(?:typing\.)?Literal\[(.*?)\]", lambda found: found[1].replace(", ", " or "), str(annotation)
    )
    return re.sub(r"[A-Za-z_][\w.]*\.(\w+)", r"\1", text).replace("NoneType", "None")


def cell(text: str) -> str:
    """Code in a table: a bar would end the cell."""
    return f"<code>{re.sub(r'[&<>|_*~]', lambda one: f'&#{ord(one[0])};', text)}</code>"


def address_of(name: str) -> str:
    """The page of a public name, from the top of docs/; of a policy its own."""
    if name in classes_of("policies"):
        return f"algorithms/{name.lower()}.md"
    for kind in KINDS:
        if kind != "policies" and name in classes_of(kind):
            return f"reference/{slug(kind)}.md#{name.lower()}"
    return ""


def slug(title: str) -> str:
    """A title as part of an address."""
    return title.lower().replace(" ", "-")


def _escaped(text: str) -> str:
    return re.sub(r"[*_<>\[\]|\\#~$]", lambda one: f"&#{ord(one[0])};", text)


def _linked(code: str, here: str) -> str:
    name = code.strip("`")
    if name not in PUBLIC or name == here:
        return code
    address = address_of(name)
    # Generated pages stand one folder below the top.
    return f"[{code}](../{address})" if address else f"[{code}][{PUBLIC[name]}.{name}]"
