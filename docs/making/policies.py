"""A page per policy: rule, symbols, departures, arguments, config, and what was measured."""

from __future__ import annotations

import inspect
from pathlib import Path

from conbandit_torch.bandits.hlinucb import HLinUCB
from conbandit_torch.bandits.linear import LinearBandit
from conbandit_torch.configuration.kinds import classes_of, summary, text_of
from making.measured import Measured, measured
from making.rules import described
from making.writing import Made, argument_table, config_lines, prose, table

_TITLES = {"Rule": "Rule", "Symbols": "Symbols", "Differs": "Differs from the source"}


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
    source = cls.__module__.replace(".", "/") + ".py"
    parts = [
        f"# {name}",
        prose(summary(cls), name),
        *(
            f"## {_TITLES[title]}\n\n{text}" if title else text
            for title, text in described(text_of(cls).partition("\n\n")[2], name)
        ),
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


def _measured(found: list[Measured]) -> str:
    parts = []
    for one in found:
        rows = table(one.header, one.rows)
        about = f"**[{one.title}](../results.md#{one.anchor})**"
        parts.append(
            f"{about}\n\n{rows}\n\n```bash\n{one.command}\n```" if one.command else f"{about}\n\n{rows}"
        )
    return "\n\n".join(parts)
