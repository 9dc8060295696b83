"""A rule as docstrings write it, as Markdown with formulas."""

from __future__ import annotations

import re

from making.equations import latex, lines_of, pieces
from making.writing import prose, table


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
    return "\n\n".join(parts)


def symbol_table(text: str, here: str) -> str:
    """Which symbol is which argument; prose, if that is not all that the text says."""
    found = re.findall(r"([^,;`]+) `(\w+)`(?:[,;.]|$)", " ".join(text.split()))
    if ", ".join(f"{symbol.strip()} `{name}`" for symbol, name in found) != " ".join(text.split()).rstrip(
        "."
    ):
        return prose(" ".join(text.split()), here)
    return table(("symbol", "argument"), [(f"${latex(symbol)}$", f"`{name}`") for symbol, name in found])


def _with_formulas(text: str, here: str) -> str:
    return "".join(f"${latex(one)}$" if formula else prose(one, here) for one, formula in pieces(text))


def _equations(lines: list[str]) -> str:
    return "\n\n".join(f"$$\n{latex(line)}\n$$" for line in lines_of(lines))
