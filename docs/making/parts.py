"""A page per kind of part that a config can name, and one of a config's own keys."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields

import yaml

from conbandit_torch.configuration.kinds import KINDS, classes_of, summary, text_of
from conbandit_torch.running.plan import Plan
from making.rules import described
from making.writing import Made, argument_table, cell, config_lines, prose, slug, table

_TUNE = (
    ("`tune.seeds`", "seeds", "must be given", "the trials' seeds, none of them the evaluation's"),
    (
        "`tune.space`",
        "mapping",
        "must be given",
        "by policy, by dotted argument: a range (`low`, `high`, `log`, `step`) or a list",
    ),
    ("`tune.start`", "mapping", "none", "by policy: values to try right after the config's own"),
)


def pages() -> list[Made]:
    """All of them, the config's own keys first."""
    made = [Made("reference/config.md", "Every key of a config", _keys(), "Configuration")]
    for kind in KINDS:
        if kind != "policies":
            made.append(Made(f"reference/{slug(kind)}.md", kind.capitalize(), _kind(kind), "Configuration"))
    return made


def _keys() -> str:
    said = _attributes(Plan)
    rows = []
    for one in fields(Plan):
        if one.name == "source":
            continue
        default = (
            one.default
            if one.default is not MISSING
            else one.default_factory()
            if one.default_factory is not MISSING
            else None
        )
        text = (
            "must be given"
            if one.default is MISSING and one.default_factory is MISSING
            else yaml.safe_dump(default, default_flow_style=True).partition("\n")[0]
        )
        rows.append((f"`{one.name}`", cell(str(one.type)), cell(text), prose(said[one.name])))
    kinds = [
        (f"[{kind}]({'../algorithms.md' if kind == 'policies' else f'{slug(kind)}.md'})", cell(where))
        for kind, (_, where) in KINDS.items()
    ]
    return f"""# Every key of a config

Generated from the code that reads configs. A part (an environment, a policy, a rule) is written as
`class_path` and `init_args`, or as its name alone. `conbandit run CONFIG --KEY VALUE` overrides any key
by its dotted name.

{table(("key", "type", "default", "meaning"), rows)}

The section `tune` is for `conbandit tune` alone:

{table(("key", "type", "default", "meaning"), _TUNE)}

`rounds: all` plays an environment that ends, such as a log, to its end.
`seeds` are a list, or a text such as `0-9` or `0,2,5`.

## Parts

{table(("kind", "where a config has it"), kinds)}
"""


def _attributes(cls: type) -> dict[str, str]:
    """What the docstring's section `Attributes` says, by name."""
    text = (cls.__doc__ or "").partition("Attributes:\n")[2]
    found = re.findall(r"^ {8}(\w+): (.*(?:\n {12}.*)*)", text, re.MULTILINE)
    return {name: " ".join(meaning.split()) for name, meaning in found}


def _kind(kind: str) -> str:
    base, where = KINDS[kind]
    classes = classes_of(kind)
    parts = [
        f"# {kind.capitalize()}",
        f"In a config: `{where}`. One of your own is a subclass of `{base.__name__}`: "
        "see [Extend](../extending.md).",
    ]
    parts.append(
        table(
            ("class", "what it is"),
            [(f"[`{name}`](#{name.lower()})", prose(summary(cls))) for name, cls in classes.items()],
        )
    )
    for name, cls in classes.items():
        parts += [
            f"## {name}",
            prose(summary(cls), name),
            *_said(cls, name),
            argument_table(cls),
            config_lines(cls),
        ]
        parts.append(f"In the reference: [{name}][{cls.__module__}.{name}].")
    return "\n\n".join(part for part in parts if part) + "\n"


def _said(cls: type, here: str) -> list[str]:
    """What the docstring says after its first sentence, its titles in bold."""
    found = described(text_of(cls).partition("\n\n")[2], here)
    return [f"**{title}.** {text}" if title else text for title, text in found]
