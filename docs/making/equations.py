r"""Equations as docstrings write them, in ASCII, as LaTeX.

theta = M^-1 (b + (1-lam) theta~)     \theta = M^{-1} (b + (1-\lambda) \tilde{\theta})
"""

from __future__ import annotations

import re

_GREEK = (
    "theta",
    "phi",
    "alpha",
    "mu",
    "epsilon",
    "gamma",
    "delta",
    "sigma",
    "beta",
    "tau",
    "eta",
    "rho",
    "kappa",
)
_OPERATORS = {"sum": r"\sum", "argmax": r"\operatorname*{arg\,max}", "argmin": r"\operatorname*{arg\,min}"}
_FUNCTIONS = ("exp", "log", "max", "min", "det")
_SIGNS = {
    "+=": r"\text{ += }",
    "<=": r"\le ",
    ">=": r"\ge ",
    "->": r"\to ",
    "*": r"\cdot ",
    "...": r"\dots ",
}
_TOKEN = re.compile(
    r"""(?P<equation>\([^()]*\bEq\.\s\d+[^)]*\)|\bEq\.\s\d+)
      | (?P<code>`[^`]+`)
      | (?P<space>\s+)
      | (?P<word>[a-z]{2,}(?:_[a-z]{2,})+                       # an argument: hidden_alpha
             | [A-Za-z]{2,}(?:-[A-Za-z]+)*(?:'[a-z]+)?           # a word, or theta
             | [A-Za-z])
      | (?P<number>\d+(?:\.\d+)?)
      | (?P<sign>\+=|<=|>=|->|\.\.\.|[=+\-*/(),;:.<>\[\]|])
      | (?P<decoration>~|'|\^-1|[_^](?:\{[^}]*\}|\([^()]*\)|[A-Za-z0-9]+))
      | (?P<other>.)""",
    re.VERBOSE,
)


def latex(line: str) -> str:
    """A line of a rule as LaTeX: what is no symbol is text."""
    tokens = [(found.lastgroup or "", found[0]) for found in _TOKEN.finditer(line.strip())]
    out: list[str] = []
    text: list[str] = []
    opened: list[int] = []  # where bars that are not closed yet stand in `out`
    for at, (kind, token) in enumerate(tokens):
        if text and (kind == "space" or (token in ",;:." and text[-1] != " ")):
            text.append(" " if kind == "space" else token)
            continue
        if _is_text(kind, token, tokens, at):
            text.append(token.strip("`"))
            continue
        _end_text(out, text)
        if kind == "space":
            out.append(" ")
        elif kind == "decoration":
            _decorate(out, token, spaced=bool(at) and tokens[at - 1][0] == "space")
        elif token == "|":
            _bar(out, opened, is_norm=at + 1 < len(tokens) and tokens[at + 1][0] == "decoration")
        elif kind == "sign":
            out.append(_SIGNS.get(token, token))
        else:
            out.append(_symbol(token, tokens[at + 1][1] if at + 1 < len(tokens) else ""))
    _end_text(out, text)
    return re.sub(r"\s+", " ", "".join(out)).strip()


def pieces(text: str) -> list[tuple[str, bool]]:
    """Prose cut where formulas begin and end: (piece, whether it is a formula)."""
    tokens = [(found.lastgroup or "", found[0]) for found in _TOKEN.finditer(text)]
    runs: list[tuple[list[str], bool]] = []
    for at, (kind, token) in enumerate(tokens):
        is_text = _is_text(kind, token, tokens, at) or kind == "other"
        if not runs or runs[-1][1] == is_text:
            runs.append(([], not is_text))
        runs[-1][0].append(token)
    return [
        piece
        for tokens, formula in runs
        for piece in (_trimmed("".join(tokens)) if formula else [("".join(tokens), False)])
    ]


def _trimmed(run: str) -> list[tuple[str, bool]]:
    """A formula without the punctuation around it; prose, if there is no symbol in it."""
    core = run.strip(" ,;:.")
    while core.count("(") != core.count(")"):
        shorter = core.removesuffix(")") if core.count(")") > core.count("(") else core.removeprefix("(")
        if shorter == core:
            return [(run, False)]
        core = shorter.strip(" ,;:.")
    if not re.search(r"[A-Za-z]", re.sub(rf"\b(?:{'|'.join((*_OPERATORS, *_FUNCTIONS))})\b", "", core)):
        return [(run, False)]
    before, _, after = run.partition(core)
    return [(before, False), (core, True), (after, False)]


def lines_of(lines: list[str]) -> list[str]:
    """The equations of a rule, one per line: two spaces after a comma part two of them."""
    return [one for line in lines for one in re.split(r"(?<=[,;])\s{2,}", line.strip())]


def _is_text(kind: str, token: str, tokens: list[tuple[str, str]], at: int) -> bool:
    if kind in ("equation", "code"):
        return True
    if kind != "word":
        return False
    if len(token) == 1:  # the article, not an arm
        following = [word for group, word in tokens[at + 1 : at + 3] if group == "word"]
        return token == "a" and bool(following) and len(following[0]) > 2 and following[0] not in _GREEK
    plain = token.rstrip("'")
    if plain in _FUNCTIONS:  # a word, unless it is called or stands before a symbol
        following = next((word for group, word in tokens[at + 1 :] if group != "space"), "")
        return following != "(" and not (len(following) == 1 and following.isalpha())
    return (
        plain not in (*_GREEK, *_OPERATORS, *_FUNCTIONS, "lam", "floor", "sqrt")
        and "_" not in plain
        and plain != "ridge"
    )


def _bar(out: list[str], opened: list[int], *, is_norm: bool) -> None:
    """A norm has an index or a power; else bars are those of an absolute value."""
    if not opened:
        opened.append(len(out))
        out.append("")
        return
    out[opened.pop()] = r"\lVert " if is_norm else r"\lvert "
    out.append(r"\rVert " if is_norm else r"\rvert ")


def _symbol(token: str, following: str) -> str:
    name = token.rstrip("'")
    primes = "'" * (len(token) - len(name))
    if name == "lam":
        return r"\lambda" + primes
    if name in _GREEK:
        return f"\\{name}{primes}"
    if name in _OPERATORS:
        return _OPERATORS[name]
    if name in _FUNCTIONS:
        return f"\\{name}"
    if name == "N" and following == "(":
        return r"\mathcal{N}"
    return name if len(name) == 1 or name.isdigit() else rf"\mathtt{{{name.replace('_', chr(92) + '_')}}}"


def _decorate(out: list[str], token: str, *, spaced: bool) -> None:
    """Put a tilde, a prime, an index or a power on what stands before it."""
    if token == "~" and (spaced or not out):
        out.append(r"\sim ")
        return
    last = out.pop() if out else "{}"
    if token == "~":
        out.append(f"\\tilde{{{last}}}")
    elif token == "'":
        out.append(f"{last}'")
    else:
        raised = token[1:].strip("{}()")
        inner = (
            r"\top" if raised == "T" else raised if raised.isalpha() and len(raised) < 3 else latex(raised)
        )
        again = token[0] in re.sub(r"\{[^{}]*(\{[^{}]*\}[^{}]*)*\}", "", last)
        out.append(f"{{{last}}}{token[0]}{{{inner}}}" if again else f"{last}{token[0]}{{{inner}}}")


def _end_text(out: list[str], text: list[str]) -> None:
    if not text:
        return
    words = "".join(text)
    before = " " if out and out[-1] != "(" else ""
    after = "" if words.strip().endswith((")", ".")) else " "
    out.append(rf"\text{{{before}{words.strip()}{after}}}".replace("_", r"\_").replace("#", r"\#"))
    text.clear()
