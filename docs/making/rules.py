"""A rule as docstrings write it, as Markdown with formulas."""

from __future__ import annotations

import re

from making.equations import latex, lines_of, pieces
from making.formulas import is_rendered
from making.writing import prose, table

_SECTION = re.compile(r"^(Rule|Symbols|Differs)\b([^:\n]*):", re.MULTILINE)


def described(text: str, here: str) -> list[tuple[str, str]]:
    """(title, Markdown) of what a docstring says after its first sentence; an empty title is none.

    Args:
        text: the docstring without its first sentence and its arguments.
        here: the name of the class.
    """
    starts = [*_SECTION.finditer(text)]
    before = text[: starts[0].start()] if starts else text
    found = [("", _paragraphs(before, here))] if before.strip() else []
    for one, following in zip(starts, [*starts[1:], None], strict=False):
        body = text[one.end() : following.start() if following else len(text)]
        own, _, more = body.partition("\n\n") if one[1] != "Rule" else (body, "", "")
        if one[1] == "Rule":
            found.append(("Rule", rule_block(one[2], body, here)))
        elif one[1] == "Symbols":
            found.append(("Symbols", symbol_table(own, here)))
        else:
            found.append(("Differs", _paragraphs(own, here)))
        if more.strip():
            found.append(("", _paragraphs(more, here)))
    return found


def _paragraphs(text: str, here: str) -> str:
    parts = (" ".join(one.split()) for one in re.split(r"\n\s*\n", text.strip()))
    return "\n\n".join(prose(one[:1].upper() + one[1:], here) for one in parts)


def rule_block(condition: str, body: str, here: str) -> str:
    """The Markdown of a rule: prose as prose, indented lines as equations.

    Args:
        condition: what stands between `Rule` and the colon, such as `, given a projection P`.
        body: what follows the colon.
        here: the name of the policy.
    """
    parts: list[str] = []
    if condition.strip(" ,"):
        words = condition.strip(" ,")
        parts.append(_with_formulas(words[:1].upper() + words[1:] + ":", here))
    lines = body.strip("\n").splitlines()
    block: list[str] = []
    is_equations = False
    for line in [*lines, None]:
        indented = line is not None and line.startswith("    ")
        if line is None or indented != is_equations or not line.strip():
            if block:
                parts.append(
                    _equations(block)
                    if is_equations
                    else _with_formulas(" ".join(" ".join(block).split()), here)
                )
            block, is_equations = [], indented
        if line is not None and line.strip():
            block.append(line)
    text = "\n\n".join(parts)
    return text[:1].upper() + text[1:]


def symbol_table(text: str, here: str) -> str:
    """Which symbol is which argument; prose, if that is not all that the text says."""
    found = re.findall(r"([^,;`]+) `(\w+)`(?:[,;.]|$)", " ".join(text.split()))
    if any(name[0].isupper() for _, name in found) or ", ".join(
        f"{symbol.strip()} `{name}`" for symbol, name in found
    ) != " ".join(text.split()).rstrip("."):
        return prose(" ".join(text.split()), here)
    return table(("symbol", "argument"), [(f"${latex(symbol)}$", f"`{name}`") for symbol, name in found])


def _with_formulas(text: str, here: str) -> str:
    return "".join(
        f"${latex(one)}$" if formula and is_rendered(latex(one)) else prose(one, here)
        for one, formula in pieces(text)
    )


def _equations(lines: list[str]) -> str:
    """As formulas; as they are written, if one of them is none that KaTeX can draw."""
    found = [latex(line) for line in lines_of(lines)]
    if not all(is_rendered(one) for one in found):
        return "```text\n" + "\n".join(line.removeprefix("    ") for line in lines) + "\n```"
    return "\n\n".join(f"$$\n{one}\n$$" for one in found)
