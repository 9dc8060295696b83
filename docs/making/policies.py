"""A page per policy: rule, symbols, departures, arguments, config, and what was measured."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from conbandit_torch.bandits.hlinucb import HLinUCB
from conbandit_torch.bandits.linear import LinearBandit
from conbandit_torch.configuration.kinds import classes_of, summary, text_of
from making.measured import Measured, measured
from making.rules import rule_block, symbol_table
from making.writing import Made, argument_table, config_lines, prose, table

_SECTION = re.compile(r"^(Rule|Symbols|Differs)\b([^:\n]*):", re.MULTILINE)


def pages(results: Path) -> list[Made]:
    """All of them, those that ask nothing first.

    Args:
        results: the file with the measured results.
    """
    found = measured(results)
    classes = {name: cls for name, cls in classes_of("policies").items() if cls is not LinearBandit}
    order = ("Base bandits", "Conversing", "Hidden features")
    made = [
        Made(f"algorithms/{name.lower()}.md", name, _page(name, cls, found.get(name, [])), _group(cls))
        for name, cls in classes.items()
    ]
    hooks = LinearBandit.__name__  # no policy to run, but the base of all linear ones
    made.append(Made(f"algorithms/{hooks.lower()}.md", hooks, _page(hooks, LinearBandit, []), "Base bandits"))
    return sorted(made, key=lambda one: (order.index(one.group), one.title.lower()))


def _group(cls: type) -> str:
    if issubclass(cls, HLinUCB):
        return "Hidden features"
    return "Conversing" if "schedule" in inspect.signature(cls).parameters else "Base bandits"


def _page(name: str, cls: type, found: list[Measured]) -> str:
    text = text_of(cls).partition("\n\n")[2]
    source = cls.__module__.replace(".", "/") + ".py"
    parts = [
        f"# {name}",
        prose(summary(cls), name),
        *(_section(title, body, name) for title, body in _sections(text)),
        f"The code: `{source}`. The class: [{name}][{cls.__module__}.{name}] in the reference.",
        "## Arguments",
        argument_table(cls) or "None.",
        "## In a config",
        "With every default spelled out; a line that is left out has its default.",
        config_lines(cls),
        "## Measured",
        _measured(found) if found else "No result is recorded for this policy by name.",
    ]
    return "\n\n".join(parts) + "\n"


def _sections(text: str) -> list[tuple[str, str]]:
    """(title, body) of what a docstring says after its first sentence, in its order."""
    starts = [*_SECTION.finditer(text)]
    before = text[: starts[0].start()] if starts else text
    found = [("", before)] if before.strip() else []
    for one, following in zip(starts, [*starts[1:], None], strict=True):
        body = text[one.end() : following.start() if following else len(text)]
        if one[1] == "Rule":
            found.append(("Rule" + one[2], body))
        else:
            own, _, more = body.partition("\n\n")
            found += [(one[1], own)] + ([("", more)] if more.strip() else [])
    return found


def _section(title: str, body: str, here: str) -> str:
    if title.startswith("Rule"):
        return f"## Rule\n\n{rule_block(title.removeprefix('Rule'), body, here)}"
    plain = "\n\n".join(" ".join(one.split()) for one in re.split(r"\n\s*\n", body.strip()))
    if not title:
        return prose(plain, here)
    if title == "Symbols":
        return f"## Symbols\n\n{symbol_table(body, here)}"
    return f"## Differs from the source\n\n{prose(plain[:1].upper() + plain[1:], here)}"


def _measured(found: list[Measured]) -> str:
    parts = []
    for one in found:
        rows = table(one.header, one.rows)
        about = f"**[{one.title}](../results.md#{one.anchor})**"
        parts.append(
            f"{about}\n\n{rows}\n\n```bash\n{one.command}\n```" if one.command else f"{about}\n\n{rows}"
        )
    return "\n\n".join(parts)
